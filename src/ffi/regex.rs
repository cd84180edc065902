//! Regular expressions of nginx's own, PCRE: for the patterns that the regex crate cannot express.

use core::ffi::c_void;
use core::ptr::NonNull;

use ngx::ffi::{NGX_OK, ngx_int_t, ngx_str_t};

use super::accessors;
use super::conf::Conf;

/// A compiled pattern in the memory of the configuration.
pub struct NginxRegex(NonNull<c_void>);

impl NginxRegex {
    /// None: the pattern is bad, or nginx was built without PCRE.
    pub fn compile(cf: Conf, pattern: &[u8], any_case: bool) -> Option<Self> {
        // nginx hands PCRE a C string, or an address and a length, by its version.
        let mut pattern = cf.string(&[pattern, b"\0"].concat()).ok()?;
        pattern.len -= 1;

        // SAFETY: nginx copies the pattern into its own form.
        let regex = unsafe {
            accessors::ngx_http_combined_upstreams_regex_compile(
                cf.as_ptr(),
                &mut pattern,
                usize::from(any_case),
            )
        };

        NonNull::new(regex).map(Self)
    }

    /// Whether the pattern is found in the text.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let mut text = ngx_str_t {
            len: text.len(),
            data: text.as_ptr().cast_mut(),
        };

        // SAFETY: compiled by nginx, which only reads the text.
        let rc = unsafe {
            accessors::ngx_http_combined_upstreams_regex_match(self.0.as_ptr(), &mut text)
        };

        rc == NGX_OK as ngx_int_t
    }
}
