//! The headers of a response, `headers_out`, kept to be put back.

use core::mem::offset_of;
use core::ptr;

use ngx::ffi::{ngx_http_headers_out_t, ngx_list_t};

use super::request::Request;

/// The fields come behind the two lists.
const FIELDS: usize = offset_of!(ngx_http_headers_out_t, status);
const FIELDS_SIZE: usize = size_of::<ngx_http_headers_out_t>() - FIELDS;

/// The fields in a new request (nginx: `ngx_http_alloc_request`): these two are -1, the others 0.
const FRESH: [u8; FIELDS_SIZE] = {
    let mut bytes = [0; FIELDS_SIZE];
    let mut i = 0;

    while i < size_of::<libc::off_t>() {
        bytes[offset_of!(ngx_http_headers_out_t, content_length_n) - FIELDS + i] = 0xff;
        i += 1;
    }

    i = 0;
    while i < size_of::<libc::time_t>() {
        bytes[offset_of!(ngx_http_headers_out_t, last_modified_time) - FIELDS + i] = 0xff;
        i += 1;
    }

    bytes
};

/// The headers of a response as they were.
pub enum Headers {
    /// As in any new request, which needs no copy: its lists have one part each.
    Fresh,
    /// Something has been set.
    Changed(*const ngx_http_headers_out_t),
}

impl Headers {
    /// Those of the request's response. None: out of memory.
    #[inline]
    pub fn of(r: Request) -> Option<Self> {
        let headers = &r.fields().headers_out;

        if has_one_part(&headers.headers)
            && has_one_part(&headers.trailers)
            && *fields(headers) == FRESH
        {
            return Some(Self::Fresh);
        }

        r.alloc(*headers).map(|copy| Self::Changed(copy))
    }

    /// Makes the headers again what they were, but for the elements that their lists' last parts
    /// have since got.
    pub fn restore(&self, headers: &mut ngx_http_headers_out_t) {
        match self {
            Self::Fresh => {
                headers.headers.last = &raw mut headers.headers.part;
                headers.trailers.last = &raw mut headers.trailers.part;

                // SAFETY: any bytes are a valid value of these plain fields.
                unsafe {
                    ptr::from_mut(headers)
                        .byte_add(FIELDS)
                        .cast::<[u8; FIELDS_SIZE]>()
                        .write(FRESH);
                }
            }
            // SAFETY: `of` made the copy in the request's pool.
            Self::Changed(copy) => *headers = unsafe { **copy },
        }
    }
}

fn has_one_part(list: &ngx_list_t) -> bool {
    ptr::eq(list.last, &list.part)
}

fn fields(headers: &ngx_http_headers_out_t) -> &[u8; FIELDS_SIZE] {
    // SAFETY: nginx makes all of a request zero before it sets anything, the padding included.
    unsafe { &*ptr::from_ref(headers).byte_add(FIELDS).cast() }
}
