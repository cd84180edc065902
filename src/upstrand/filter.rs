//! The one decision point: the first header filter, which sees each response before anybody else.

use core::cell::Cell;

use combined_upstreams_core::statuses::Origin;
use ngx::ffi::{
    NGX_ERROR, NGX_HTTP_LOCK, NGX_HTTP_PATCH, NGX_HTTP_POST, NGX_LOG_INFO,
    ngx_http_output_header_filter_pt, ngx_http_request_t, ngx_http_top_header_filter, ngx_int_t,
};
use ngx::ngx_log_error;

use super::reentry::{self, Source};
use super::request::{Hop, Phase, Record, Resume, Visit};
use crate::ffi::conf::lossy;
use crate::ffi::request::{Exchange, Flags, Request};

/// A place for the filter that comes after one of ours.
struct NextFilter(Cell<ngx_http_output_header_filter_pt>);

// SAFETY: nginx configures and serves in one thread; only that one runs filters.
unsafe impl Sync for NextFilter {}

static NEXT_HEADER_FILTER: NextFilter = NextFilter(Cell::new(None));
static NEXT_TOP_HEADER_FILTER: NextFilter = NextFilter(Cell::new(None));

/// Puts the filter into the chain that nginx is building for a configuration.
pub fn install() {
    // SAFETY: nginx calls this from postconfiguration, where the chain is built.
    unsafe {
        NEXT_HEADER_FILTER.0.set(ngx_http_top_header_filter);
        ngx_http_top_header_filter = Some(ngx_http_upstrand_header_filter);
    }
}

/// Makes sure that the filter is the first of the chain: the slice filter, for one, must not see
/// the response of a failed hop. A reload that fails leaves a chain behind that may lack it.
pub fn ensure_first() {
    let is_top = |top: ngx_http_output_header_filter_pt, ours: HeaderFilter| {
        top.is_some_and(|top| core::ptr::fn_addr_eq(top, ours))
    };

    // SAFETY: nginx calls this before it serves requests.
    unsafe {
        let top = ngx_http_top_header_filter;

        if !is_top(top, ngx_http_upstrand_header_filter)
            && !is_top(top, ngx_http_upstrand_top_header_filter)
        {
            NEXT_TOP_HEADER_FILTER.0.set(top);
            ngx_http_top_header_filter = Some(ngx_http_upstrand_top_header_filter);
        }
    }
}

type HeaderFilter = unsafe extern "C" fn(*mut ngx_http_request_t) -> ngx_int_t;

/// The filter where postconfiguration put it.
unsafe extern "C" fn ngx_http_upstrand_header_filter(r: *mut ngx_http_request_t) -> ngx_int_t {
    // SAFETY: nginx filters a live request.
    let r = unsafe { Request::new(r) };

    filter(r, &NEXT_HEADER_FILTER)
}

/// The filter on top of modules that came after; the other one finds nothing left to do.
unsafe extern "C" fn ngx_http_upstrand_top_header_filter(r: *mut ngx_http_request_t) -> ngx_int_t {
    // SAFETY: nginx filters a live request.
    let r = unsafe { Request::new(r) };

    filter(r, &NEXT_TOP_HEADER_FILTER)
}

#[inline]
fn filter(r: Request, next: &NextFilter) -> ngx_int_t {
    if let Some(exchange) = r.upstream() {
        if let Some(record) = Record::in_context(r) {
            if let Some(rc) = decide(r, record, exchange) {
                return rc;
            }
        }
    }

    match next.0.get() {
        // SAFETY: nginx built the chain of filters.
        Some(next) => unsafe { next(r.as_ptr()) },
        None => NGX_ERROR as ngx_int_t,
    }
}

/// Decides on a response; None: it goes to the client.
fn decide(r: Request, record: &Record, exchange: Exchange) -> Option<ngx_int_t> {
    match record.phase() {
        Phase::Trying(tried) if tried == exchange => {}
        // The content handler answered without asking for the next upstream.
        Phase::Retrying => {
            record.close();
            return None;
        }
        _ => return None,
    }

    let visit = record.current()?;

    record.end_hop();
    record.set_phase(Phase::Idle);

    let response = Response::of(r, exchange);
    let end = match record.hop_of(exchange) {
        Some(hop) => walk_on(r, visit, hop, exchange, &response),
        None => Err(None),
    };

    match end {
        Ok(()) => Some(suspend(r, record, exchange, &response, Resume::Retry)),
        Err(_) => forward(r, record, exchange, &response),
    }
}

/// What the filter must know of a response.
struct Response {
    source: Source,
    status: u16,
    origin: Origin,
}

impl Response {
    fn of(r: Request, exchange: Exchange) -> Self {
        let made = r.fields().err_status;
        let received = exchange.fields().headers_in.status_n;

        if made != 0 {
            return Self {
                source: Source::Nginx,
                status: made as u16,
                origin: if received == made {
                    Origin::Backend
                } else {
                    Origin::Nginx
                },
            };
        }

        Self {
            source: if r.flags().has(Flags::CACHED) {
                Source::Cache
            } else {
                Source::Upstream
            },
            status: received as u16,
            origin: Origin::Backend,
        }
    }

    /// What stale content stands for: the failure because of which nginx sends it.
    fn behind_stale(exchange: Exchange) -> Option<(u16, Origin)> {
        let state = exchange.state()?;

        if state.status < 300 {
            return None;
        }

        // The header's time is set once a server's header has been read.
        let origin = if state.header_time == usize::MAX {
            Origin::Nginx
        } else {
            Origin::Backend
        };

        Some((state.status as u16, origin))
    }
}

/// Why a walk stops at a hop that failed (spec 8).
#[derive(Clone, Copy)]
enum Stop {
    NoMoreUpstreams,
    NotIdempotent,
    BodyAlreadySent,
}

impl Stop {
    fn text(self) -> &'static str {
        match self {
            Self::NoMoreUpstreams => "no more upstreams",
            Self::NotIdempotent => "not idempotent",
            Self::BodyAlreadySent => "request body already sent",
        }
    }
}

/// Moves the walk on after a hop that failed. An error: the response is final, as the hop did not
/// fail (None) or the walk stops for the given reason.
fn walk_on(
    r: Request,
    visit: &Visit,
    hop: &Hop,
    exchange: Exchange,
    response: &Response,
) -> Result<(), Option<Stop>> {
    let (mut status, mut origin) = (response.status, response.origin);

    if response.source == Source::Cache && exchange.is_stale() && visit.has_next() {
        if let Some(failure) = Response::behind_stale(exchange) {
            (status, origin) = failure;
        }
    }

    if !visit.upstrand.failures.matches(status, origin) {
        return Err(None);
    }

    visit.fail();

    let stop = match why_final(r, visit, hop, exchange) {
        None if visit.advance() => None,
        None => Some(Stop::NoMoreUpstreams),
        stop => stop,
    };

    let upstrand = lossy(&visit.upstrand.name);
    let failed = lossy(hop.name());

    match stop {
        None => {
            ngx_log_error!(
                NGX_LOG_INFO,
                r.log(),
                "upstrand \"{upstrand}\": upstream \"{failed}\" failed with {status}, trying \"{}\"",
                lossy(visit.name())
            );
            Ok(())
        }
        Some(stop) => {
            ngx_log_error!(
                NGX_LOG_INFO,
                r.log(),
                "upstrand \"{upstrand}\": upstream \"{failed}\" failed with {status}, {}",
                stop.text()
            );
            Err(Some(stop))
        }
    }
}

/// Why no further member may be tried after a failed hop.
fn why_final(r: Request, visit: &Visit, hop: &Hop, exchange: Exchange) -> Option<Stop> {
    const NOT_IDEMPOTENT: u32 = NGX_HTTP_POST | NGX_HTTP_LOCK | NGX_HTTP_PATCH;

    if !visit.has_next() {
        return Some(Stop::NoMoreUpstreams);
    }

    let sent = was_sent(r, hop, exchange);

    if sent
        && r.fields().method & NOT_IDEMPOTENT as usize != 0
        && !visit.upstrand.failures.allows_non_idempotent()
    {
        return Some(Stop::NotIdempotent);
    }

    let streamed = r.flags().has(Flags::BODY_NO_BUFFERING);
    let discarded = r.is_main() && r.fields().request_body.is_null();

    (discarded || (streamed && (sent || !reentry::can_repeat_streamed_body(r))))
        .then_some(Stop::BodyAlreadySent)
}

/// Whether anything of the request has gone to a server of the hop's upstream.
fn was_sent(r: Request, hop: &Hop, exchange: Exchange) -> bool {
    let states = r.upstream_states();
    let states = &states[hop.states(states.len())];

    exchange.fields().request_sent() != 0 || states.iter().any(|state| state.bytes_sent > 0)
}

/// Gives the response to the client, or to nginx where it must treat it as a failure of the request
/// itself.
fn forward(
    r: Request,
    record: &Record,
    exchange: Exchange,
    response: &Response,
) -> Option<ngx_int_t> {
    let snapshot = record.snapshot()?;

    if response.source == Source::Nginx {
        // Whoever waits for the subrequest's end learns of it before its answer is made.
        if !snapshot.post_subrequest.is_null() {
            let resume = Resume::Finalize(response.status as isize);
            return Some(suspend(r, record, exchange, response, resume));
        }
    } else {
        r.fields_mut().err_status = snapshot.err_status;
    }

    let fields = r.fields_mut();
    fields.post_subrequest = snapshot.post_subrequest;
    None
}

fn suspend(
    r: Request,
    record: &Record,
    exchange: Exchange,
    response: &Response,
    resume: Resume,
) -> ngx_int_t {
    reentry::suspend(r, record, exchange, response.source, resume)
}
