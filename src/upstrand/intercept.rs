//! `intercept_statuses` (spec 4.6): a final response is replaced by what another location produces.

use combined_upstreams_core::statuses::Origin;
use ngx::ffi::{
    NGX_DONE, NGX_HTTP_GET, NGX_HTTP_HEAD, NGX_LOG_ERR, NGX_LOG_INFO, ngx_http_core_get_method,
    ngx_http_finalize_request, ngx_http_internal_redirect, ngx_http_named_location,
    ngx_http_split_args, ngx_int_t, ngx_str_t,
};
use ngx::ngx_log_error;

use super::conf::Interception;
use super::request::{Record, Redirect, Visit};
use crate::ffi::conf::lossy;
use crate::ffi::request::Request;

/// Where a final response is replaced, if it is: once in a request for each upstrand.
#[inline]
pub fn redirect(r: Request, visit: &Visit, status: u16, origin: Origin) -> Option<Redirect> {
    if visit.was_intercepted() {
        return None;
    }

    let interception = visit.upstrand.interception(status, origin)?;

    evaluate(r, visit, interception)
}

/// None: the location cannot be told from the interception's URI.
#[cold]
fn evaluate(r: Request, visit: &Visit, interception: &Interception) -> Option<Redirect> {
    let mut uri = interception.uri.evaluate(r)?;
    let mut args = ngx_str_t::empty();
    let name = lossy(&visit.upstrand.name);

    match uri.as_bytes().first() {
        // SAFETY: the request is live; nginx only moves the ends of the two texts.
        Some(b'/') => unsafe { ngx_http_split_args(r.as_ptr(), &mut uri, &mut args) },
        Some(b'@') => {}
        _ => {
            ngx_log_error!(
                NGX_LOG_ERR,
                r.log(),
                "upstrand \"{name}\": invalid uri \"{}\" to intercept a response",
                lossy(uri.as_bytes())
            );
            return None;
        }
    }

    ngx_log_error!(
        NGX_LOG_INFO,
        r.log(),
        "upstrand \"{name}\": intercepted by \"{}\"",
        lossy(uri.as_bytes())
    );
    visit.set_intercepted();

    Some(Redirect { uri, args })
}

/// Lets the request, whose response has been dropped, go on in the failover location, as nginx does
/// it for an error page.
pub fn follow(r: Request, record: &Record, redirect: Redirect) {
    let Redirect { mut uri, mut args } = redirect;

    // The trace shows less if memory is out; the redirect needs none of it.
    let _ = record.enter_failover_location();

    // SAFETY: the request is live, and nginx copies the texts; the redirect takes a reference,
    // which the finalization drops.
    unsafe {
        if uri.as_bytes().first() == Some(&b'@') {
            ngx_http_named_location(r.as_ptr(), &mut uri);
        } else {
            if r.fields().method != NGX_HTTP_HEAD as usize {
                let fields = r.fields_mut();
                fields.method = NGX_HTTP_GET as usize;
                fields.method_name = ngx_http_core_get_method;
            }
            ngx_http_internal_redirect(r.as_ptr(), &mut uri, &mut args);
        }

        ngx_http_finalize_request(r.as_ptr(), NGX_DONE as ngx_int_t);
    }
}
