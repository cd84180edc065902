//! The record of a request's walks: which upstrand it is in, which hops it has made.

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;

use combined_upstreams_core::rotation::Walk;
use combined_upstreams_core::trace;
use ngx::ffi::{NGX_LOG_ERR, ngx_http_upstream_state_t, ngx_str_t};
use ngx::log::DebugMask;
use ngx::{ngx_log_debug, ngx_log_error};

use super::conf::{Upstrand, now};
use super::snapshot::{Snapshot, SnapshotSlot};
use crate::ffi::conf::lossy;
use crate::ffi::request::{Exchange, Request};

/// What one request does with upstrands. A subrequest has a record of its own.
pub struct Record {
    request: Request,
    phase: Cell<Phase>,
    /// The request as it was before the walk that is under way.
    snapshot: SnapshotSlot,
    /// `header_only` as it was before the request was suspended.
    pub header_only: Cell<bool>,
    first: Visit,
    /// Room for the first hop: most requests make no other.
    hop: UnsafeCell<MaybeUninit<Hop>>,
    first_hop: Cell<*const Hop>,
    last_hop: Cell<*const Hop>,
    frozen_logged: Cell<bool>,
    /// The name was evaluated since the last hop began, by something that is no pass directive.
    looked_at: Cell<bool>,
    probe: Cell<Probe>,
}

/// Whether a variable is evaluated only to see if it asks for the name of an upstream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    Off,
    Waiting,
    Asked,
}

/// Where a request stands in its walk.
#[derive(Clone, Copy)]
pub enum Phase {
    /// In none, or its walk has ended.
    Idle,
    /// In a hop whose response has not been seen yet.
    Trying(Exchange),
    /// Suspended after a failed hop; what to do when it is resumed.
    Suspended(Resume),
    /// Its content handler is about to begin the next hop.
    Retrying,
}

/// Why a request was suspended.
#[derive(Clone, Copy, Debug)]
pub enum Resume {
    /// The walk goes on.
    Retry,
    /// The request goes on in a failover location.
    Intercept(Redirect),
    /// nginx finishes the request with this status.
    Finalize(isize),
}

/// Where an internal redirect goes, in nginx's terms.
#[derive(Clone, Copy, Debug)]
pub struct Redirect {
    /// A path, or `@` and the name of a location.
    pub uri: ngx_str_t,
    /// The arguments of a path.
    pub args: ngx_str_t,
}

/// What a request knows of one upstrand.
pub struct Visit {
    pub upstrand: &'static Upstrand,
    walk: Cell<Walk>,
    member: Cell<usize>,
    /// A pass directive has begun this walk: it is no mere look at the variable.
    entered: Cell<bool>,
    /// When the walk began, by nginx's clock (ms).
    began: Cell<u64>,
    /// The hops of the walk so far.
    tries: Cell<usize>,
    /// A response of this upstrand was replaced: that happens once in a request.
    intercepted: Cell<bool>,
    next: Cell<*const Visit>,
}

/// One upstream tried in a walk, or the failover location that a walk ended in.
pub struct Hop {
    /// The name of the hop's upstream, or what stands for a failover location.
    pub name: &'static [u8],
    target: Target,
    first_state: usize,
    /// Set once the hop's response has been seen.
    end_state: Cell<Option<usize>>,
    previous: *const Hop,
    next: Cell<*const Hop>,
}

#[derive(Clone, Copy)]
enum Target {
    Member {
        /// In the request's pool, like the hop.
        visit: *const Visit,
        exchange: Exchange,
    },
    FailoverLocation,
}

/// Marks the pool cleanup beside which a record stands; there is nothing to clean.
unsafe extern "C" fn ngx_http_upstrand_record(_data: *mut c_void) {}

impl Record {
    /// The record in the module's context: there is one in any request that is in a hop.
    #[inline]
    pub fn in_context<'a>(r: Request) -> Option<&'a Self> {
        r.context()
    }

    /// The request's record, also after an internal redirect erased the module's context.
    pub fn find<'a>(r: Request) -> Option<&'a Self> {
        if let Some(record) = r.context() {
            return Some(record);
        }

        if !r.is_internal() && !r.is_filter_finalized() {
            return None;
        }

        // SAFETY: only records are kept with this marker.
        let mut records = unsafe { r.kept::<Self>(ngx_http_upstrand_record) };
        let record = records.find(|record| record.request == r)?;
        r.set_context(record);

        Some(record)
    }

    /// What the request knows of the upstrand; the first time its walk picks a start. None: out
    /// of memory.
    pub fn visit<'a>(r: Request, upstrand: &'static Upstrand) -> Option<(&'a Self, &'a Visit)> {
        let Some(record) = Self::find(r) else {
            // SAFETY: `init` writes a record.
            let record: &Self = unsafe {
                r.keep(ngx_http_upstrand_record, |record| {
                    Self::init(record, r, upstrand)
                })
            }?;
            r.set_context(record);

            return Some((record, &record.first));
        };

        let mut visit = &record.first;
        loop {
            if ptr::eq(visit.upstrand, upstrand) {
                return Some((record, visit));
            }

            // SAFETY: null or a visit in the request's pool.
            match unsafe { visit.next.get().as_ref() } {
                Some(next) => visit = next,
                None => break,
            }
        }

        let new = r.alloc(Visit::new(r, upstrand))?;
        visit.next.set(new);

        Some((record, new))
    }

    /// Writes a new record, piece by piece: it is too large to be moved about, and most of it is not
    /// looked at before it is set.
    fn init(record: *mut Self, r: Request, upstrand: &'static Upstrand) {
        // SAFETY: the room is the record's own; what is left out may stay as it is.
        unsafe {
            (&raw mut (*record).request).write(r);
            (&raw mut (*record).phase).write(Cell::new(Phase::Idle));
            SnapshotSlot::init(&raw mut (*record).snapshot);
            (&raw mut (*record).header_only).write(Cell::new(false));
            (&raw mut (*record).first).write(Visit::new(r, upstrand));
            (&raw mut (*record).first_hop).write(Cell::new(ptr::null()));
            (&raw mut (*record).last_hop).write(Cell::new(ptr::null()));
            (&raw mut (*record).frozen_logged).write(Cell::new(false));
            (&raw mut (*record).looked_at).write(Cell::new(false));
            (&raw mut (*record).probe).write(Cell::new(Probe::Off));
        }
    }

    /// Where the request stands.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Moves the request on.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.set(phase);
    }

    /// The request as it was before the walk.
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.get()
    }

    /// The last hop of the request, whose response may be awaited.
    #[inline]
    pub fn last_hop(&self) -> Option<&Hop> {
        // SAFETY: null or a hop in the request's pool.
        unsafe { self.last_hop.get().as_ref() }
    }

    /// The visit of the upstrand whose walk made the last hop.
    pub fn current(&self) -> Option<&Visit> {
        self.last_hop()?.visit()
    }

    /// All upstrands that the request has looked at.
    pub fn visits(&self) -> impl Iterator<Item = &Visit> {
        core::iter::successors(Some(&self.first), |visit| {
            // SAFETY: null or a visit in the request's pool.
            unsafe { visit.next.get().as_ref() }
        })
    }

    /// The hops of the request, in their order.
    pub fn hops(&self) -> impl Iterator<Item = &Hop> {
        // SAFETY: null or a hop in the request's pool.
        core::iter::successors(unsafe { self.first_hop.get().as_ref() }, |hop| {
            // SAFETY: as above.
            unsafe { hop.next.get().as_ref() }
        })
    }

    /// A pass directive asks where to send the request: begins a hop, and a walk if none of this
    /// upstrand is to go on. None: out of memory.
    pub fn begin_hop(&self, visit: &Visit, exchange: Exchange) -> Option<()> {
        match self.phase.get() {
            // The directive names the variable twice.
            Phase::Trying(current) if current == exchange => return Some(()),
            Phase::Retrying
                if self
                    .current()
                    .is_some_and(|current| ptr::eq(current, visit)) => {}
            _ => {
                self.close();
                visit.enter(self.request);
                self.snapshot.take(self.request)?;
            }
        }

        self.request.reserve_state()?;
        self.looked_at.set(false);
        visit.tries.set(visit.tries.get() + 1);
        self.push_hop(visit.name(), Target::Member { visit, exchange })?;
        self.phase.set(Phase::Trying(exchange));
        shield(self.request);

        ngx_log_debug!(
            mask: DebugMask::Http,
            self.request.log(),
            "http upstrand \"{}\": try {} \"{}\"",
            lossy(&visit.upstrand.name),
            visit.tries.get(),
            lossy(visit.name())
        );

        Some(())
    }

    /// The request is about to go on in a failover location. None: out of memory.
    pub fn enter_failover_location(&self) -> Option<()> {
        self.push_hop(trace::INTERCEPTED, Target::FailoverLocation)
    }

    fn push_hop(&self, name: &'static [u8], target: Target) -> Option<()> {
        self.end_hop();

        let hop = Hop {
            name,
            target,
            first_state: self.request.upstream_states().len(),
            end_state: Cell::new(None),
            previous: self.last_hop.get(),
            next: Cell::new(ptr::null()),
        };

        let hop: &Hop = match self.last_hop() {
            Some(last) => {
                let hop = self.request.alloc(hop)?;
                last.next.set(hop);
                hop
            }
            None => {
                // SAFETY: nobody holds a hop where there is none.
                let hop = unsafe { (*self.hop.get()).write(hop) };
                self.first_hop.set(hop);
                hop
            }
        };
        self.last_hop.set(hop);

        Some(())
    }

    /// Whether the request went where its last hop points: it may also have evaluated the variable
    /// for something else, and then the hop was none and is taken back.
    #[inline]
    pub fn confirm(&self, hop: &Hop, exchange: Exchange) -> bool {
        if exchange
            .resolved_host()
            .is_some_and(|host| host == hop.name || host.eq_ignore_ascii_case(hop.name))
        {
            return true;
        }

        self.take_back(hop);
        false
    }

    #[cold]
    fn take_back(&self, hop: &Hop) {
        // SAFETY: null or a hop in the request's pool.
        match unsafe { hop.previous.as_ref() } {
            Some(previous) => previous.next.set(ptr::null()),
            None => self.first_hop.set(ptr::null()),
        }
        self.last_hop.set(hop.previous);
    }

    /// Whether a hop was tried with this exchange.
    pub fn knows(&self, exchange: Exchange) -> bool {
        self.hops().any(|hop| hop.exchange() == Some(exchange))
    }

    /// Something that is no pass directive asks for the name of an upstream.
    pub fn look(&self) {
        match self.probe.get() {
            Probe::Off => self.looked_at.set(true),
            Probe::Waiting | Probe::Asked => self.probe.set(Probe::Asked),
        }
    }

    /// Whether that happened since the last hop began.
    pub fn was_looked_at(&self) -> bool {
        self.looked_at.get()
    }

    /// Whether an evaluation asks for the name of an upstream.
    pub fn probe(&self, evaluate: &dyn Fn()) -> bool {
        self.probe.set(Probe::Waiting);
        evaluate();

        self.probe.replace(Probe::Off) == Probe::Asked
    }

    /// Whether a hop that could not be is to be logged: the first time only.
    pub fn first_frozen(&self) -> bool {
        !self.frozen_logged.replace(true)
    }

    /// The response of the last hop has been seen.
    pub fn end_hop(&self) {
        if let Some(hop) = self.last_hop() {
            hop.end(self.request);
        }
    }

    /// The places of the last hop's servers in the request's states.
    pub fn last_states(&self) -> &[ngx_http_upstream_state_t] {
        let states = self.request.upstream_states();

        self.last_hop()
            .map_or(&[], |hop| &states[hop.states(states.len())])
    }

    /// Ends a walk that the request has left, by a redirect or by evaluating another upstrand.
    pub fn close(&self) {
        match self.phase.replace(Phase::Idle) {
            Phase::Idle => {}
            Phase::Trying(_) | Phase::Suspended(_) | Phase::Retrying => {
                self.end_hop();
                if let Some(snapshot) = self.snapshot.get() {
                    unshield(self.request, snapshot);
                }
            }
        }
    }
}

/// Keeps nginx from acting on a hop's response before the module's filter has seen it:
/// `error_page` would redirect the request, and a subrequest's parent would be told that it ended.
/// From now on a status in `err_status` means that nginx made the response itself.
fn shield(r: Request) {
    let fields = r.fields_mut();

    fields.err_status = 0;
    fields.post_subrequest = ptr::null_mut();
    r.set_error_page(true);
}

/// Takes the shield off.
fn unshield(r: Request, snapshot: &Snapshot) {
    let fields = r.fields_mut();

    fields.err_status = snapshot.err_status;
    fields.post_subrequest = snapshot.post_subrequest;
    r.set_error_page(snapshot.error_page());
}

impl Visit {
    fn new(r: Request, upstrand: &'static Upstrand) -> Self {
        let begun = upstrand.turns.begin();
        log_whitelisting(r, upstrand, begun.whitelisted);

        Self {
            upstrand,
            walk: Cell::new(begun.walk),
            member: Cell::new(begun.member),
            entered: Cell::new(false),
            began: Cell::new(0),
            tries: Cell::new(0),
            intercepted: Cell::new(false),
            next: Cell::new(ptr::null()),
        }
    }

    /// A pass directive begins the walk: the one whose start was picked, or a further one.
    fn enter(&self, r: Request) {
        if self.entered.replace(true) {
            let begun = self.upstrand.turns.begin();
            log_whitelisting(r, self.upstrand, begun.whitelisted);
            self.walk.set(begun.walk);
            self.member.set(begun.member);
        }

        self.began.set(now());
        self.tries.set(0);
    }

    /// Whether `next_upstream_timeout` has passed since the walk began.
    pub fn is_timed_out(&self) -> bool {
        let passed = now().saturating_sub(self.began.get());

        self.upstrand
            .timeout
            .is_some_and(|timeout| passed >= timeout)
    }

    /// Whether the walk has made as many hops as `next_upstream_tries` allows.
    pub fn is_exhausted(&self) -> bool {
        self.upstrand
            .tries
            .is_some_and(|tries| self.tries.get() >= tries)
    }

    /// A response of this upstrand is replaced.
    pub fn set_intercepted(&self) {
        self.intercepted.set(true);
    }

    /// Whether a response of this upstrand was replaced before.
    pub fn was_intercepted(&self) -> bool {
        self.intercepted.get()
    }

    /// The name of the current member's upstream.
    pub fn name(&self) -> &'static [u8] {
        self.upstrand.member_name(self.member.get())
    }

    /// The hop of the current member failed.
    pub fn fail(&self) {
        self.upstrand.turns.fail(self.member.get());
    }

    /// Whether a member is left for the walk.
    pub fn has_next(&self) -> bool {
        self.upstrand.turns.has_next(&self.walk.get())
    }

    /// Makes the walk's next member the current one, if one is left.
    pub fn advance(&self) -> bool {
        let mut walk = self.walk.get();
        let next = self.upstrand.turns.next(&mut walk);

        if let Some(member) = next {
            self.walk.set(walk);
            self.member.set(member);
        }

        next.is_some()
    }
}

impl Hop {
    /// The visit of the upstrand whose walk made the hop.
    #[inline]
    pub fn visit(&self) -> Option<&Visit> {
        match self.target {
            // SAFETY: a visit stays where it is as long as the request.
            Target::Member { visit, .. } => unsafe { visit.as_ref() },
            Target::FailoverLocation => None,
        }
    }

    /// The response of the hop has been seen.
    #[inline]
    pub fn end(&self, r: Request) {
        if self.end_state.get().is_none() {
            self.end_state.set(Some(r.upstream_states().len()));
        }
    }

    /// The exchange with the hop's upstream.
    pub fn exchange(&self) -> Option<Exchange> {
        match self.target {
            Target::Member { exchange, .. } => Some(exchange),
            Target::FailoverLocation => None,
        }
    }

    /// The places of the hop's servers in the request's `upstream_states`, whose number is `all`.
    pub fn states(&self, all: usize) -> core::ops::Range<usize> {
        let end = self.end_state.get().unwrap_or(all).min(all);
        self.first_state.min(end)..end
    }
}

fn log_whitelisting(r: Request, upstrand: &Upstrand, whitelisted: bool) {
    if whitelisted {
        ngx_log_error!(
            NGX_LOG_ERR,
            r.log(),
            "all upstreams in upstrand \"{}\" are blacklisted, whitelisting them",
            lossy(&upstrand.name)
        );
    }
}
