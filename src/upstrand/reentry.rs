//! Suspends a request in the middle of nginx's work on a response, and resumes it: the same request
//! enters its content handler again, as nginx itself does it for a named error page.

use ngx::ffi::{
    NGX_DECLINED, NGX_DONE, NGX_ERROR, NGX_HTTP_INTERNAL_SERVER_ERROR, ngx_http_finalize_request,
    ngx_http_phases_NGX_HTTP_REWRITE_PHASE, ngx_http_phases_NGX_HTTP_SERVER_REWRITE_PHASE,
    ngx_http_request_t, ngx_int_t,
};
use ngx::log::DebugMask;
use ngx::ngx_log_debug;

use super::intercept;
use super::request::{Phase, Record, Resume};
use super::response::Source;
use crate::ffi::body::Unsent;
use crate::ffi::conf::{Conf, ConfResult};
use crate::ffi::request::{Exchange, Request};

/// Adds the handler that ends walks which a request has left. Its phases are the first that an
/// internal redirect runs.
pub fn install(cf: Conf) -> ConfResult {
    for phase in [
        ngx_http_phases_NGX_HTTP_SERVER_REWRITE_PHASE,
        ngx_http_phases_NGX_HTTP_REWRITE_PHASE,
    ] {
        cf.add_phase_handler(phase as usize, ngx_http_upstrand_redirect_handler)?;
    }

    Ok(())
}

/// A redirect that nginx follows before the filter has seen a response takes the request out of
/// its walk.
unsafe extern "C" fn ngx_http_upstrand_redirect_handler(r: *mut ngx_http_request_t) -> ngx_int_t {
    // SAFETY: nginx runs the phases of live requests.
    let r = unsafe { Request::new(r) };

    if r.upstream().is_some() && r.is_internal() {
        if let Some(record) = Record::find(r) {
            record.close();
        }
    }

    NGX_DECLINED as ngx_int_t
}

/// Makes nginx drop the response that it is about to send. Returns what the filter answers.
pub fn suspend(
    r: Request,
    record: &Record,
    exchange: Exchange,
    source: Source,
    resume: Resume,
) -> ngx_int_t {
    if r.post(Some(ngx_http_upstrand_resume)).is_err() {
        record.close();
        return NGX_ERROR as ngx_int_t;
    }

    if source == Source::Upstream {
        exchange.keep_connection();
    }

    // nginx finalizes the request with NGX_DONE, which drops a reference.
    if source != Source::Cache {
        r.add_reference();
    }

    exchange.forbid_caching();
    let fields = exchange.fields_mut();
    fields.set_store(0);
    fields.set_upgrade(0);

    // Of a response without a body nginx reads no more, and ends the exchange at once.
    record.header_only.set(r.is_header_only());
    r.set_header_only(true);
    record.set_phase(Phase::Suspended(resume));
    ngx_log_debug!(mask: DebugMask::Http, r.log(), "http upstrand suspends: {resume:?}");

    NGX_DONE as ngx_int_t
}

/// Whether a body that is streamed, and of which nothing was sent, can be sent to another upstream.
pub fn can_repeat_streamed_body(r: Request) -> bool {
    Unsent::is_possible(r)
}

/// The suspended request's write event: nginx has unwound.
unsafe extern "C" fn ngx_http_upstrand_resume(r: *mut ngx_http_request_t) {
    // SAFETY: nginx runs the posted events of live requests only.
    let r = unsafe { Request::new(r) };

    ngx_log_debug!(mask: DebugMask::Http, r.log(), "http upstrand resumes");
    r.fields_mut().write_event_handler = Some(ngx_http_upstrand_empty_handler);

    let Some(record) = Record::find(r) else {
        return;
    };
    let (Phase::Suspended(resume), Some(snapshot)) = (record.phase(), record.snapshot()) else {
        return;
    };

    r.set_header_only(record.header_only.get());
    end_exchange(r);

    match resume {
        Resume::Retry => {
            r.forget_hop_in_cache();
            snapshot.restore(r);
            retry(r, record);
        }
        Resume::Intercept(redirect) => {
            r.forget_hop_in_cache();
            snapshot.restore(r);
            record.set_phase(Phase::Idle);
            intercept::follow(r, record, redirect);
        }
        Resume::Finalize(status) => {
            snapshot.restore_but_headers(r);
            record.set_phase(Phase::Idle);

            let error_pages = record
                .current()
                .is_some_and(|visit| visit.upstrand.intercept_errors);
            if !error_pages {
                r.set_error_page(true);
            }

            // SAFETY: the request is live; this drops the reference that it is served by.
            unsafe { ngx_http_finalize_request(r.as_ptr(), status) };
        }
    }
}

/// Ends the exchange where nginx has not, and gives its buffer back to the pool.
fn end_exchange(r: Request) {
    let Some(exchange) = r.upstream() else {
        return;
    };

    if let Some(cleanup) = exchange.cleanup() {
        r.add_reference();
        // SAFETY: nginx's own cleanup of the exchange, which drops one reference.
        unsafe { cleanup(r.as_ptr().cast()) };
    }

    if !r.is_cached() {
        let buffer = &mut exchange.fields_mut().buffer;

        if !buffer.start.is_null() {
            // SAFETY: nginx allocated the buffer from the request's pool; nobody reads it now
            // that the exchange is over.
            unsafe {
                ngx::ffi::ngx_pfree(r.fields().pool, buffer.start.cast());
                *buffer = core::mem::zeroed();
            }
        }
    }
}

/// Enters the content handler again, as nginx itself calls it and finalizes with its answer.
fn retry(r: Request, record: &Record) {
    record.set_phase(Phase::Retrying);

    let rc = enter_content_handler(r).unwrap_or(NGX_HTTP_INTERNAL_SERVER_ERROR as ngx_int_t);

    // SAFETY: the request is live; this drops the reference that the handler took, or ends it.
    unsafe { ngx_http_finalize_request(r.as_ptr(), rc) };
}

/// None: there is no handler, or no memory for the body.
fn enter_content_handler(r: Request) -> Option<ngx_int_t> {
    let handler = r.fields().content_handler?;

    if r.is_body_streamed() {
        return Unsent::collect(r).map(|unsent| unsent.read_again(r, handler));
    }

    // SAFETY: the request is live, and the handler is its own.
    Some(unsafe { handler(r.as_ptr()) })
}

/// Nothing to do on a write event.
unsafe extern "C" fn ngx_http_upstrand_empty_handler(_r: *mut ngx_http_request_t) {}
