//! X-Accel-Redirect from a member is ignored (spec 4.5): it would lead out of the walk.

use ngx::ffi::{NGX_OK, ngx_http_request_t, ngx_int_t, ngx_table_elt_t, ngx_uint_t};

use super::conf::MainConf;
use super::request::{Phase, Record};
use crate::ffi::accel_redirect;
use crate::ffi::conf::{Conf, ConfError, ConfResult};
use crate::ffi::module;
use crate::ffi::request::Request;

/// Takes the place of nginx's handler of the header in this configuration.
pub fn install(cf: Conf) -> ConfResult {
    // SAFETY: lib.rs makes this the module's main configuration.
    let mcf = unsafe { module::main_conf::<MainConf>(cf.http_ctx()) };
    let mcf = mcf.ok_or_else(ConfError::no_memory)?;

    let original = accel_redirect::install(cf, Some(ngx_http_upstrand_accel_redirect))?;
    mcf.accel_redirect.set(original);

    Ok(())
}

/// nginx calls this for the header in a response of an upstream, or in a cached one.
unsafe extern "C" fn ngx_http_upstrand_accel_redirect(
    r: *mut ngx_http_request_t,
    h: *mut ngx_table_elt_t,
    offset: ngx_uint_t,
) -> ngx_int_t {
    // SAFETY: nginx reads the response of a live request.
    let request = unsafe { Request::new(r) };

    if let (Some(exchange), Some(record)) = (request.upstream(), Record::in_context(request)) {
        if matches!(record.phase(), Phase::Trying(tried) if tried == exchange) {
            // Whoever reads it from the cache later might follow it.
            exchange.forbid_caching();
            return NGX_OK as ngx_int_t;
        }
    }

    // SAFETY: lib.rs makes this the module's main configuration.
    let mcf = unsafe { request.main_conf::<MainConf>() };

    match mcf.and_then(|mcf| mcf.accel_redirect.get()) {
        // SAFETY: these are the arguments that nginx means for its own handler.
        Some(original) => unsafe { original.call(r, h, offset) },
        None => NGX_OK as ngx_int_t,
    }
}
