//! The one decision point: the first header filter, which sees each response before anybody else.

use core::cell::Cell;

use combined_upstreams_core::statuses::Origin;
use ngx::ffi::{
    NGX_ERROR, NGX_HTTP_LOCK, NGX_HTTP_PATCH, NGX_HTTP_POST, NGX_LOG_INFO,
    ngx_http_output_header_filter_pt, ngx_http_request_t, ngx_http_top_header_filter, ngx_int_t,
};
use ngx::ngx_log_error;

use super::frozen;
use super::intercept;
use super::reentry;
use super::request::{Phase, Record, Resume, Visit};
use super::response::{Response, Source};
use crate::ffi::conf::lossy;
use crate::ffi::request::{Exchange, Request};

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
        Phase::Idle => {
            frozen::check_stray(r, record, exchange);
            return None;
        }
        // The content handler answered without asking for the next upstream.
        _ => {
            record.close();
            return None;
        }
    }

    let hop = record.last_hop()?;
    let visit = hop.visit()?;
    let response = Response::of(r, exchange);

    hop.end(r);
    record.set_phase(Phase::Idle);

    let suspend = |resume| {
        Some(reentry::suspend(
            r,
            record,
            exchange,
            response.source,
            resume,
        ))
    };

    // What nginx answers before it asks is no upstream's failure, and the body may be gone.
    if record.confirm(hop, exchange) && exchange.has_begun() {
        let (status, origin) = cause(visit, exchange, &response);

        if visit.upstrand.failures.matches(status, origin)
            && walk_on(r, record, visit, exchange, status)
        {
            return suspend(Resume::Retry);
        }

        if let Some(redirect) = intercept::redirect(r, visit, response.status, response.origin) {
            return suspend(Resume::Intercept(redirect));
        }
    }

    if must_finalize(record, visit, &response) {
        return suspend(Resume::Finalize(response.status as isize));
    }

    release(r, record, visit, &response);
    None
}

/// Why a walk stops at a hop that failed (spec 8).
#[derive(Clone, Copy)]
enum Stop {
    NoMoreUpstreams,
    TriesExhausted,
    TimedOut,
    NotIdempotent,
    BodyAlreadySent,
}

impl Stop {
    fn text(self) -> &'static str {
        match self {
            Self::NoMoreUpstreams => "no more upstreams",
            Self::TriesExhausted => "tries exhausted",
            Self::TimedOut => "timed out",
            Self::NotIdempotent => "not idempotent",
            Self::BodyAlreadySent => "request body already sent",
        }
    }
}

/// What decides on a hop: its response, but of stale content why it is sent, as long as there is a choice.
#[inline]
fn cause(visit: &Visit, exchange: Exchange, response: &Response) -> (u16, Origin) {
    if response.source == Source::Cache {
        cause_behind_cache(visit, exchange, response)
    } else {
        (response.status, response.origin)
    }
}

#[cold]
fn cause_behind_cache(visit: &Visit, exchange: Exchange, response: &Response) -> (u16, Origin) {
    let failure = (exchange.is_stale() && visit.has_next())
        .then(|| Response::behind_stale(exchange))
        .flatten();

    failure.unwrap_or((response.status, response.origin))
}

/// Moves the walk on to its next member, after a hop that failed. False: the response is final.
#[cold]
fn walk_on(r: Request, record: &Record, visit: &Visit, exchange: Exchange, status: u16) -> bool {
    let failed = visit.name();
    visit.fail();

    let stop = why_stop(r, record, visit, exchange);
    if stop.is_none() && frozen::is_kept(r, record, visit) {
        frozen::warn(r, record, visit);
        return false;
    }

    let stop = stop.or_else(|| (!visit.advance()).then_some(Stop::NoMoreUpstreams));

    log_failure(r, visit, failed, status, stop);

    stop.is_none()
}

/// Why no further member may be tried after a failed hop.
fn why_stop(r: Request, record: &Record, visit: &Visit, exchange: Exchange) -> Option<Stop> {
    const NOT_IDEMPOTENT: u32 = NGX_HTTP_POST | NGX_HTTP_LOCK | NGX_HTTP_PATCH;

    if !visit.has_next() {
        return Some(Stop::NoMoreUpstreams);
    }
    if visit.is_exhausted() {
        return Some(Stop::TriesExhausted);
    }
    if visit.is_timed_out() {
        return Some(Stop::TimedOut);
    }

    // Anything of the request may have gone to any server of the upstream.
    let sent = exchange.fields().request_sent() != 0
        || record
            .last_states()
            .iter()
            .any(|state| state.bytes_sent > 0);

    if sent
        && r.fields().method & NOT_IDEMPOTENT as usize != 0
        && !visit.upstrand.failures.allows_non_idempotent()
    {
        return Some(Stop::NotIdempotent);
    }

    let streamed = r.is_body_streamed();
    let discarded = r.is_main() && r.fields().request_body.is_null();

    (discarded || (streamed && (sent || !reentry::can_repeat_streamed_body(r))))
        .then_some(Stop::BodyAlreadySent)
}

fn log_failure(r: Request, visit: &Visit, failed: &[u8], status: u16, stop: Option<Stop>) {
    let upstrand = &visit.upstrand.name;

    match stop {
        None => {
            ngx_log_error!(
                NGX_LOG_INFO,
                r.log(),
                "upstrand \"{}\": upstream \"{}\" failed with {status}, trying \"{}\"",
                lossy(upstrand),
                lossy(failed),
                lossy(visit.name())
            );
        }
        Some(stop) => {
            ngx_log_error!(
                NGX_LOG_INFO,
                r.log(),
                "upstrand \"{}\": upstream \"{}\" failed with {status}, {}",
                lossy(upstrand),
                lossy(failed),
                stop.text()
            );
        }
    }
}

/// Whether nginx must treat its own answer, which is final, as it treats any: tell those who wait
/// for a subrequest before the answer is made, and look for an error page.
fn must_finalize(record: &Record, visit: &Visit, response: &Response) -> bool {
    let awaited = record
        .snapshot()
        .is_some_and(|snapshot| !snapshot.post_subrequest.is_null());

    response.source == Source::Nginx && (awaited || visit.upstrand.intercept_errors)
}

/// Takes the shield off a request whose final response goes out. `error_page` has no say in it any
/// more, unless `intercept_errors` says so.
fn release(r: Request, record: &Record, visit: &Visit, response: &Response) {
    let Some(snapshot) = record.snapshot() else {
        return;
    };
    let fields = r.fields_mut();

    fields.post_subrequest = snapshot.post_subrequest;
    if response.source != Source::Nginx {
        fields.err_status = snapshot.err_status;

        // As ngx_http_send_header has it, which the shield kept from knowing.
        if fields.err_status != 0 {
            fields.headers_out.status = fields.err_status;
            fields.headers_out.status_line.len = 0;
        }
    }
    if visit.upstrand.intercept_errors {
        r.set_error_page(snapshot.error_page());
    }
}
