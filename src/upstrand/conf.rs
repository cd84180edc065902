//! The upstrands of a configuration, as requests see them.

use core::cell::{Cell, RefCell};

use combined_upstreams_core::rotation::{Begun, Rotation, Walk};
use combined_upstreams_core::statuses::Statuses;
use ngx::ffi::{ngx_current_msec, ngx_pid};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::ffi::upstream::Upstream;

/// The module's main configuration.
#[derive(Default)]
pub struct MainConf {
    /// All upstrands, in the order of their declaration. The configuration owns each of them, and
    /// keeps it where it is.
    pub upstrands: RefCell<Vec<&'static Upstrand>>,
}

impl MainConf {
    /// The upstrand of that name, in whatever case.
    pub fn find(&self, name: &[u8]) -> Option<&'static Upstrand> {
        self.upstrands
            .borrow()
            .iter()
            .copied()
            .find(|upstrand| upstrand.name.eq_ignore_ascii_case(name))
    }
}

/// An ordered set of upstreams, through which a request walks until one of them gives a good answer.
pub struct Upstrand {
    /// The name as declared.
    pub name: Box<[u8]>,
    /// The main members, then the backup ones.
    pub members: Box<[Upstream]>,
    /// `next_upstream_statuses`
    pub failures: Statuses,
    /// In which order walks visit the members.
    rotation: Rotation,
    /// What this process draws from. None until its first walk: the master, which forks the
    /// workers, makes none, so that each worker seeds its own.
    worker: RefCell<Option<SmallRng>>,
    started: Cell<bool>,
}

impl Upstrand {
    /// An upstrand whose rotation has as many members as are given.
    pub fn new(
        name: Box<[u8]>,
        members: Box<[Upstream]>,
        failures: Statuses,
        rotation: Rotation,
    ) -> Self {
        Self {
            name,
            members,
            failures,
            rotation,
            worker: RefCell::new(None),
            started: Cell::new(false),
        }
    }

    /// The name of a member's upstream.
    pub fn member_name(&self, member: usize) -> &[u8] {
        self.members
            .get(member)
            .map_or(&[], |upstream| upstream.name())
    }

    /// Begins a walk.
    pub fn begin(&self) -> Begun {
        let draw = &mut |n| self.draw(n);

        if !self.started.replace(true) {
            self.rotation.start_worker(draw);
        }

        self.rotation.begin(now(), draw)
    }

    /// Whether a member is left for the walk.
    pub fn has_next(&self, walk: &Walk) -> bool {
        self.rotation.has_next(walk, now())
    }

    /// Takes the walk's next member.
    pub fn next(&self, walk: &mut Walk) -> Option<usize> {
        self.rotation.next(walk, now(), &mut |n| self.draw(n))
    }

    /// A hop of the member failed.
    pub fn fail(&self, member: usize) {
        self.rotation.fail(member, now());
    }

    fn draw(&self, n: usize) -> usize {
        match self.worker.try_borrow_mut() {
            Ok(mut worker) => worker.get_or_insert_with(seeded).random_range(0..n),
            Err(_) => 0,
        }
    }
}

fn seeded() -> SmallRng {
    SmallRng::try_from_os_rng().unwrap_or_else(|_| {
        // SAFETY: nginx sets the process id when a process starts.
        let pid = unsafe { ngx_pid } as u64;
        SmallRng::seed_from_u64(pid.wrapping_mul(now() | 1))
    })
}

/// nginx's monotonic clock, in milliseconds, as of the current event.
pub fn now() -> u64 {
    // SAFETY: only the event loop, which is calling us, writes it.
    unsafe { ngx_current_msec as u64 }
}
