//! nginx's variables.

use core::ffi::c_uint;

use ngx::ffi::{
    NGX_LOG_EMERG, ngx_http_add_variable, ngx_http_get_flushed_variable,
    ngx_http_get_indexed_variable, ngx_http_get_variable_index, ngx_http_request_t,
    ngx_http_variable_value_t, ngx_int_t, ngx_uint_t,
};
use ngx::ngx_conf_log_error;

use super::accessors;
use super::conf::{Conf, ConfError, ConfResult, lossy};
use super::request::Request;

/// A function that fills in a variable's value.
pub type GetHandler = unsafe extern "C" fn(
    *mut ngx_http_request_t,
    *mut ngx_http_variable_value_t,
    usize,
) -> ngx_int_t;

/// Adds a variable to the configuration.
///
/// # Errors
///
/// Somebody else has the name; nginx's error line has been written.
pub fn add(cf: Conf, name: &[u8], flags: c_uint, handler: GetHandler, data: usize) -> ConfResult {
    let mut text = cf.string(name)?;

    // SAFETY: nginx copies the name, and logs what is wrong.
    let variable =
        unsafe { ngx_http_add_variable(cf.as_ptr(), &mut text, flags as usize).as_mut() };
    let variable = variable.ok_or(ConfError::Logged)?;

    match variable.get_handler {
        // A variable of ours may be defined again.
        Some(known) if core::ptr::fn_addr_eq(known, handler) => {}
        Some(_) => {
            ngx_conf_log_error!(
                NGX_LOG_EMERG,
                cf.as_ptr(),
                "the duplicate \"{}\" variable",
                lossy(name)
            );
            return Err(ConfError::Logged);
        }
        None => {
            variable.get_handler = Some(handler);
            variable.data = data;
        }
    }

    Ok(())
}

/// Fills in a value, which nginx is not to keep. None: the variable has none.
///
/// # Safety
///
/// `v` is a value that nginx wants filled in, and the text lives as long as the request.
pub unsafe fn set_value(v: *mut ngx_http_variable_value_t, text: Option<&[u8]>) {
    let (data, len) = match text {
        // An empty slice has an address, too.
        Some(text) => (text.as_ptr().cast_mut(), text.len()),
        None => (core::ptr::null_mut(), 0),
    };

    // SAFETY: the caller's guarantee.
    unsafe { accessors::ngx_http_combined_upstreams_set_value(v, data, len) };
}

/// The text of a value; none if there is none.
fn text_of<'a>(value: &ngx_http_variable_value_t) -> Option<&'a [u8]> {
    // SAFETY: the value is valid; its text lives in the request's pool or in the configuration.
    unsafe {
        let text = accessors::ngx_http_combined_upstreams_get_value(value);
        (!text.data.is_null()).then(|| core::slice::from_raw_parts(text.data, text.len))
    }
}

/// A variable that a directive names.
pub struct VariableIndex(ngx_uint_t);

impl VariableIndex {
    /// The variable of this name, without `$`. Whether there is one nginx checks at the end.
    pub fn of(cf: Conf, name: &[u8]) -> ConfResult<Self> {
        let mut text = cf.string(name)?;

        // SAFETY: nginx copies the name.
        let index = unsafe { ngx_http_get_variable_index(cf.as_ptr(), &mut text) };

        ngx_uint_t::try_from(index)
            .map(Self)
            .map_err(|_| ConfError::Logged)
    }

    /// The variable's value in a request. None: it has none.
    pub fn value<'a>(&self, r: Request) -> Option<&'a [u8]> {
        // SAFETY: the index is one of this configuration; the value lives in the request's pool.
        let value = unsafe { ngx_http_get_flushed_variable(r.as_ptr(), self.0).as_ref() }?;

        text_of(value)
    }
}

/// Whether there is a variable that nginx has evaluated for the request, keeps, and whose value is
/// this text, for which `test` answers yes. What `test` is given evaluates the variable anew; its
/// kept value stays, and nothing is logged.
pub fn any_kept(r: Request, text: &[u8], test: impl Fn(&dyn Fn()) -> bool) -> bool {
    let mut index = 0;

    while let Some(kept) = next_kept(r, index, text) {
        // SAFETY: a request has a value for each variable of its configuration that is indexed.
        let value = unsafe { r.fields().variables.add(kept) };

        // SAFETY: nginx evaluates anew what is not valid, into the value that is put back then.
        let asks = unsafe {
            let saved = *value;
            (*value).set_valid(0);

            let asks = r.silently(|| {
                test(&|| {
                    ngx_http_get_indexed_variable(r.as_ptr(), kept);
                })
            });

            *value = saved;
            asks
        };

        if asks {
            return true;
        }
        index = kept + 1;
    }

    false
}

fn next_kept(r: Request, index: usize, text: &[u8]) -> Option<usize> {
    // SAFETY: the request is valid; the function only reads.
    let kept = unsafe {
        accessors::ngx_http_combined_upstreams_kept_variable(
            r.as_ptr(),
            index,
            text.as_ptr().cast_mut(),
            text.len(),
        )
    };

    usize::try_from(kept).ok()
}
