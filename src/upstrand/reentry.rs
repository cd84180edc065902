//! Suspends a request in the middle of nginx's work on a response, and resumes it: the same request
//! enters its content handler again, as nginx itself does it for a named error page.

use ngx::ffi::{NGX_DONE, NGX_ERROR, ngx_http_finalize_request, ngx_http_request_t, ngx_int_t};

use super::request::{Phase, Record, Resume};
use super::snapshot::Snapshot;
use crate::ffi::request::{Exchange, Flags, Request};

/// Whether the response that the filter holds was made by nginx, read from a cache, or neither.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// nginx's own answer: the exchange with the upstream is over.
    Nginx,
    /// A cache entry: nginx does not finalize the request if the filter answers `NGX_DONE`.
    Cache,
    /// The upstream, which may have more to send.
    Upstream,
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

    // nginx finalizes the request with NGX_DONE, which drops a reference.
    if source != Source::Cache {
        r.add_reference();
    }

    let fields = exchange.fields_mut();
    #[cfg(ngx_feature = "http_cache")]
    fields.set_cacheable(0);
    fields.set_store(0);
    fields.set_upgrade(0);

    // Of a response without a body nginx reads no more, and ends the exchange at once.
    record.header_only.set(r.flags().only(Flags::HEADER_ONLY));
    r.set_flags(Flags::HEADER_ONLY, Flags::HEADER_ONLY);
    record.set_phase(Phase::Suspended(resume));

    NGX_DONE as ngx_int_t
}

/// The suspended request's write event: nginx has unwound.
unsafe extern "C" fn ngx_http_upstrand_resume(r: *mut ngx_http_request_t) {
    // SAFETY: nginx runs the posted events of live requests only.
    let r = unsafe { Request::new(r) };

    r.fields_mut().write_event_handler = Some(ngx_http_upstrand_empty_handler);

    let Some(record) = Record::find(r) else {
        return;
    };
    let (Phase::Suspended(resume), Some(snapshot)) = (record.phase(), record.snapshot()) else {
        return;
    };

    r.set_flags(Flags::HEADER_ONLY, record.header_only.get());
    end_exchange(r);

    if let Resume::Retry = resume {
        r.forget_cached_error();
    }

    snapshot.restore(r);

    match resume {
        Resume::Retry => retry(r, record, &snapshot),
        Resume::Finalize(status) => {
            record.set_phase(Phase::Idle);
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

    if !r.flags().has(Flags::CACHED) {
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

fn retry(r: Request, record: &Record, _snapshot: &Snapshot) {
    record.set_phase(Phase::Retrying);

    let Some(handler) = r.fields().content_handler else {
        return;
    };

    // SAFETY: nginx itself calls the handler and finalizes with its answer just so.
    unsafe {
        let rc = handler(r.as_ptr());
        ngx_http_finalize_request(r.as_ptr(), rc);
    }
}

/// Nothing to do on a write event.
unsafe extern "C" fn ngx_http_upstrand_empty_handler(_r: *mut ngx_http_request_t) {}
