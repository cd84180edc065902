//! The upstrands of a configuration, as requests see them.

use core::cell::{Cell, RefCell};

use combined_upstreams_core::rotation::{Begun, Rotation, Walk};
use combined_upstreams_core::statuses::{Origin, Statuses};
use ngx::ffi::ngx_current_msec;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::ffi::accel_redirect::Original;
use crate::ffi::complex_value::ComplexValue;
use crate::ffi::conf::Place;
use crate::ffi::upstream::Upstream;

/// The module's main configuration.
#[derive(Default)]
pub struct MainConf {
    /// All upstrands, in the order of their declaration. The configuration owns each of them, and
    /// keeps it where it is.
    pub upstrands: RefCell<Vec<&'static Upstrand>>,
    /// What nginx itself does with a response's X-Accel-Redirect.
    pub accel_redirect: Cell<Option<Original>>,
    /// The upstrands that `dynamic_upstrand` lines name.
    pub references: RefCell<Vec<&'static Reference>>,
}

/// The name of an upstrand that may be declared later.
pub struct Reference {
    pub name: Vec<u8>,
    /// Known once the whole http block has been read.
    pub upstrand: Cell<Option<&'static Upstrand>>,
    pub place: Place,
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
    /// `next_upstream_timeout`, in milliseconds; none: no limit.
    pub timeout: Option<u64>,
    /// `next_upstream_tries`; none: no limit.
    pub tries: Option<usize>,
    /// `intercept_statuses`, in the order of the lines.
    pub interceptions: Box<[Interception]>,
    /// `intercept_errors`
    pub intercept_errors: bool,
    /// Whose turn it is.
    pub turns: Turns,
}

/// Where a final response of one of these statuses is replaced.
pub struct Interception {
    pub statuses: Statuses,
    pub uri: ComplexValue,
}

impl Upstrand {
    /// The name of a member's upstream.
    pub fn member_name(&self, member: usize) -> &[u8] {
        self.members
            .get(member)
            .map_or(&[], |upstream| upstream.name())
    }

    /// The first interception of such a response.
    pub fn interception(&self, status: u16, origin: Origin) -> Option<&Interception> {
        self.interceptions
            .iter()
            .find(|interception| interception.statuses.matches(status, origin))
    }
}

/// In which order the walks of this process visit the members of an upstrand.
pub struct Turns {
    rotation: Rotation,
    /// What this process draws from. None until its first walk: the master, which forks the
    /// workers, makes none, so that each worker seeds its own.
    random: RefCell<Option<SmallRng>>,
    started: Cell<bool>,
}

impl Turns {
    /// Nothing has been drawn yet.
    pub fn new(rotation: Rotation) -> Self {
        Self {
            rotation,
            random: RefCell::new(None),
            started: Cell::new(false),
        }
    }

    /// Begins a walk.
    #[inline]
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
        match self.random.try_borrow_mut() {
            Ok(mut random) => random.get_or_insert_with(seeded).random_range(0..n),
            Err(_) => 0,
        }
    }
}

fn seeded() -> SmallRng {
    SmallRng::try_from_os_rng().unwrap_or_else(|_| {
        // SAFETY: the call has no conditions, and cannot fail.
        let pid = unsafe { libc::getpid() } as u64;
        SmallRng::seed_from_u64(pid.wrapping_mul(now() | 1))
    })
}

/// nginx's monotonic clock, in milliseconds, as of the current event.
pub fn now() -> u64 {
    // SAFETY: only the event loop, which is calling us, writes it.
    unsafe { ngx_current_msec as u64 }
}
