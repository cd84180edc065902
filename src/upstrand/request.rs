//! The record of a request's walks: which upstrand it is in, which hops it has made.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;

use combined_upstreams_core::rotation::Walk;
use ngx::ffi::NGX_LOG_ERR;
use ngx::ngx_log_error;

use super::conf::{Upstrand, now};
use super::snapshot::Snapshot;
use crate::ffi::conf::lossy;
use crate::ffi::request::{Exchange, Flags, Request};

/// What one request does with upstrands. A subrequest has a record of its own.
pub struct Record {
    request: Request,
    phase: Cell<Phase>,
    /// The request as it was before the walk that is under way.
    snapshot: Cell<Option<Snapshot>>,
    /// `header_only` as it was before the request was suspended.
    pub header_only: Cell<Flags>,
    first: Visit,
    hops: Cell<*const Hop>,
    last_hop: Cell<*const Hop>,
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
#[derive(Clone, Copy)]
pub enum Resume {
    /// The walk goes on.
    Retry,
    /// nginx finishes the request with this status.
    Finalize(isize),
}

/// What a request knows of one upstrand.
pub struct Visit {
    pub upstrand: &'static Upstrand,
    walk: Cell<Walk>,
    member: Cell<usize>,
    /// A pass directive has begun this walk: it is no mere look at the variable.
    entered: Cell<bool>,
    /// When the walk began, by nginx's clock (ms).
    pub began: Cell<u64>,
    next: Cell<*const Visit>,
}

/// One upstream tried in a walk.
pub struct Hop {
    upstrand: &'static Upstrand,
    member: usize,
    exchange: Exchange,
    first_state: usize,
    /// Set once the hop's response has been seen.
    end_state: Cell<Option<usize>>,
    next: Cell<*const Hop>,
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

        if !r.flags().has(Flags::INTERNAL.with(Flags::FILTER_FINALIZE)) {
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
            let record = Self {
                request: r,
                phase: Cell::new(Phase::Idle),
                snapshot: Cell::new(None),
                header_only: Cell::new(Flags::default()),
                first: Visit::new(r, upstrand),
                hops: Cell::new(ptr::null()),
                last_hop: Cell::new(ptr::null()),
            };
            let record: &Self = r.keep(ngx_http_upstrand_record, record)?;
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
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.snapshot.get()
    }

    /// The visit of the upstrand whose walk made the last hop.
    pub fn current(&self) -> Option<&Visit> {
        // SAFETY: null or a hop in the request's pool.
        let hop = unsafe { self.last_hop.get().as_ref() }?;

        self.visits()
            .find(|visit| ptr::eq(visit.upstrand, hop.upstrand))
    }

    fn visits(&self) -> impl Iterator<Item = &Visit> {
        core::iter::successors(Some(&self.first), |visit| {
            // SAFETY: null or a visit in the request's pool.
            unsafe { visit.next.get().as_ref() }
        })
    }

    /// The hops of the request, in their order.
    pub fn hops(&self) -> impl Iterator<Item = &Hop> {
        // SAFETY: null or a hop in the request's pool.
        core::iter::successors(unsafe { self.hops.get().as_ref() }, |hop| {
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
                self.snapshot
                    .set(Some(Snapshot::take(self.request, self.request.flags())));
            }
        }

        let hop = self.request.alloc(Hop {
            upstrand: visit.upstrand,
            member: visit.member.get(),
            exchange,
            first_state: self.request.upstream_states().len(),
            end_state: Cell::new(None),
            next: Cell::new(ptr::null()),
        })?;

        // SAFETY: null or a hop in the request's pool.
        match unsafe { self.last_hop.get().as_ref() } {
            Some(last) => last.next.set(hop),
            None => self.hops.set(hop),
        }
        self.last_hop.set(hop);
        self.phase.set(Phase::Trying(exchange));

        shield(self.request);

        Some(())
    }

    /// The hop that is being tried with this exchange, if the request went where the hop points:
    /// it may also have evaluated the variable for something else.
    pub fn hop_of(&self, exchange: Exchange) -> Option<&Hop> {
        // SAFETY: null or a hop in the request's pool.
        let hop = unsafe { self.last_hop.get().as_ref() }?;

        (hop.exchange == exchange
            && exchange
                .resolved_host()
                .is_some_and(|host| host.eq_ignore_ascii_case(hop.name())))
        .then_some(hop)
    }

    /// The response of the hop has been seen.
    pub fn end_hop(&self) {
        // SAFETY: null or a hop in the request's pool.
        if let Some(hop) = unsafe { self.last_hop.get().as_ref() } {
            if hop.end_state.get().is_none() {
                hop.end_state
                    .set(Some(self.request.upstream_states().len()));
            }
        }
    }

    /// Ends a walk that the request has left, by a redirect or by evaluating another upstrand.
    pub fn close(&self) {
        match self.phase.replace(Phase::Idle) {
            Phase::Idle => {}
            Phase::Trying(_) | Phase::Suspended(_) | Phase::Retrying => {
                self.end_hop();
                if let Some(snapshot) = self.snapshot.get() {
                    unshield(self.request, &snapshot);
                    self.request.fields_mut().err_status = snapshot.err_status;
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
    r.set_flags(Flags::ERROR_PAGE, Flags::ERROR_PAGE);
}

/// Takes the shield off, but for what it did to `err_status`.
pub fn unshield(r: Request, snapshot: &Snapshot) {
    r.fields_mut().post_subrequest = snapshot.post_subrequest;
    r.set_flags(Flags::ERROR_PAGE, snapshot.error_page());
}

impl Visit {
    fn new(r: Request, upstrand: &'static Upstrand) -> Self {
        let begun = upstrand.begin();
        log_whitelisting(r, upstrand, begun.whitelisted);

        Self {
            upstrand,
            walk: Cell::new(begun.walk),
            member: Cell::new(begun.member),
            entered: Cell::new(false),
            began: Cell::new(0),
            next: Cell::new(ptr::null()),
        }
    }

    /// A pass directive begins the walk: the one whose start was picked, or a further one.
    fn enter(&self, r: Request) {
        if self.entered.replace(true) {
            let begun = self.upstrand.begin();
            log_whitelisting(r, self.upstrand, begun.whitelisted);
            self.walk.set(begun.walk);
            self.member.set(begun.member);
        }

        self.began.set(now());
    }

    /// The name of the current member's upstream.
    pub fn name(&self) -> &'static [u8] {
        self.upstrand.member_name(self.member.get())
    }

    /// The hop of the current member failed.
    pub fn fail(&self) {
        self.upstrand.fail(self.member.get());
    }

    /// Whether a member is left for the walk.
    pub fn has_next(&self) -> bool {
        self.upstrand.has_next(&self.walk.get())
    }

    /// Makes the walk's next member the current one, if one is left.
    pub fn advance(&self) -> bool {
        let mut walk = self.walk.get();
        let next = self.upstrand.next(&mut walk);

        if let Some(member) = next {
            self.walk.set(walk);
            self.member.set(member);
        }

        next.is_some()
    }
}

impl Hop {
    /// The name of the hop's upstream.
    pub fn name(&self) -> &'static [u8] {
        self.upstrand.member_name(self.member)
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
