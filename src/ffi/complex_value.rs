//! A text of the configuration that may contain variables.

use core::ptr::NonNull;

use ngx::ffi::{
    NGX_OK, ngx_http_compile_complex_value, ngx_http_compile_complex_value_t,
    ngx_http_complex_value, ngx_http_complex_value_t, ngx_int_t, ngx_pcalloc, ngx_str_t,
};

use super::conf::{Conf, ConfError, ConfResult};
use super::request::Request;

/// nginx's `ngx_http_complex_value_t`, in the memory of the configuration.
pub struct ComplexValue(NonNull<ngx_http_complex_value_t>);

impl ComplexValue {
    /// Compiles a text.
    ///
    /// # Errors
    ///
    /// nginx has said what is wrong with it.
    pub fn compile(cf: Conf, text: ngx_str_t) -> ConfResult<Self> {
        let mut text = text;

        // SAFETY: all fields may be zero; nginx compiles into memory of the configuration.
        unsafe {
            let value = ngx_pcalloc(cf.pool(), size_of::<ngx_http_complex_value_t>());
            let value = NonNull::new(value.cast()).ok_or_else(ConfError::no_memory)?;

            let mut ccv: ngx_http_compile_complex_value_t = core::mem::zeroed();
            ccv.cf = cf.as_ptr();
            ccv.value = &mut text;
            ccv.complex_value = value.as_ptr();

            if ngx_http_compile_complex_value(&mut ccv) != NGX_OK as ngx_int_t {
                return Err(ConfError::Logged);
            }

            Ok(Self(value))
        }
    }

    /// The text for a request, in its pool or in the configuration. None: out of memory.
    pub fn evaluate(&self, r: Request) -> Option<ngx_str_t> {
        let mut text = ngx_str_t::empty();

        // SAFETY: compiled by nginx; the request is live.
        let rc = unsafe { ngx_http_complex_value(r.as_ptr(), self.0.as_ptr(), &mut text) };

        (rc == NGX_OK as ngx_int_t).then_some(text)
    }
}
