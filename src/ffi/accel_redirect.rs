//! What nginx does with the header `X-Accel-Redirect` of an upstream's response, wrapped: nginx
//! follows it before any filter sees the response.

use core::ptr;

use ngx::ffi::{
    NGX_OK, ngx_hash_elt_t, ngx_hash_key, ngx_hash_t, ngx_http_header_handler_pt,
    ngx_http_request_t, ngx_http_upstream_header_t, ngx_http_upstream_main_conf_t,
    ngx_http_upstream_module, ngx_int_t, ngx_table_elt_t, ngx_uint_t,
};

use super::conf::{Conf, ConfResult};

const NAME: &[u8] = b"x-accel-redirect";

/// nginx's own handler of the header.
#[derive(Clone, Copy)]
pub struct Original(ngx_http_header_handler_pt);

impl Original {
    /// Does what nginx does.
    ///
    /// # Safety
    ///
    /// The arguments are those of the handler that was installed in its place.
    pub unsafe fn call(
        self,
        r: *mut ngx_http_request_t,
        h: *mut ngx_table_elt_t,
        offset: ngx_uint_t,
    ) -> ngx_int_t {
        match self.0 {
            // SAFETY: the caller vouches for the arguments.
            Some(handler) => unsafe { handler(r, h, offset) },
            None => NGX_OK as ngx_int_t,
        }
    }
}

/// Puts a handler in the place of nginx's own, in the hash of this configuration: nginx's static
/// table stays as it is. All gateways look the header up there.
pub fn install(cf: Conf, handler: ngx_http_header_handler_pt) -> ConfResult<Option<Original>> {
    // SAFETY: the index of a module that every nginx with http has.
    let index = unsafe { ngx_http_upstream_module.ctx_index };

    // SAFETY: this is the type of the upstream module's main configuration.
    let umcf = unsafe { cf.main_conf::<ngx_http_upstream_main_conf_t>(index) };

    let Some(entry) = umcf.and_then(|umcf| find(&umcf.headers_in_hash)) else {
        return Ok(None);
    };

    // SAFETY: the values of this hash are headers; nginx has built it from its static table, and
    // looks at it only while it serves requests.
    unsafe {
        let header = (*entry).value.cast::<ngx_http_upstream_header_t>();
        let original = Original((*header).handler);

        let copy = cf.alloc::<ngx_http_upstream_header_t>()?;
        ptr::copy_nonoverlapping(header, copy.as_ptr(), 1);
        (*copy.as_ptr()).handler = handler;
        (*entry).value = copy.as_ptr().cast();

        Ok(Some(original))
    }
}

/// The header's entry in the hash (nginx: `ngx_hash_find`, which returns the value only).
fn find(hash: &ngx_hash_t) -> Option<*mut ngx_hash_elt_t> {
    if hash.size == 0 || hash.buckets.is_null() {
        return None;
    }

    // SAFETY: nginx reads the name only; a bucket is null, or a list of entries one behind the
    // other that ends with one without a value.
    unsafe {
        let key = ngx_hash_key(NAME.as_ptr().cast_mut(), NAME.len());
        let mut entry = *hash.buckets.add(key % hash.size);

        while !entry.is_null() && !(*entry).value.is_null() {
            let name = (&raw const (*entry).name).cast::<u8>();
            let len = usize::from((*entry).len);

            if core::slice::from_raw_parts(name, len) == NAME {
                return Some(entry);
            }

            let next = name.add(len);
            entry = next
                .add(next.align_offset(align_of::<*mut ()>()))
                .cast_mut()
                .cast();
        }
    }

    None
}
