//! A request body that nginx streams to the upstream while it comes in
//! (`proxy_request_buffering off`).

use core::ptr;

use combined_upstreams_core::chunked::{self, Framing, Parser};
use ngx::ffi::{
    NGX_HTTP_VERSION_20, ngx_buf_t, ngx_chain_t, ngx_http_request_body_t, ngx_http_request_t,
    ngx_int_t, ngx_palloc,
};

use super::request::Request;

/// What has been read of a streamed body of which nothing has been sent: the bytes as the client's
/// connection would bring them again.
pub struct Unsent {
    buffer: ngx_buf_t,
}

impl Unsent {
    /// Whether the bytes can be read again: not on HTTP/2 and HTTP/3, where they came in frames.
    pub fn is_possible(r: Request) -> bool {
        body(r).is_some_and(|body| framing(body).is_some())
    }

    /// Collects the bytes. None: they cannot be read again, or memory is out.
    pub fn collect(r: Request) -> Option<Self> {
        let body = body(r)?;
        let framing = framing(body)?;

        let decoded = || buffers(body.bufs);
        let parts = || {
            core::iter::once(&framing.before[..])
                .chain(decoded())
                .chain(core::iter::once(&framing.after[..]))
        };
        let size = parts().map(<[u8]>::len).sum::<usize>();

        // SAFETY: a buffer of zeros is nginx's empty one.
        let mut buffer: ngx_buf_t = unsafe { core::mem::zeroed() };

        // SAFETY: the request's pool; each part is written behind the one before, and all of them
        // together are `size` bytes long.
        unsafe {
            let start = ngx_palloc(r.fields().pool, size.max(1)).cast::<u8>();
            if start.is_null() {
                return None;
            }

            let mut last = start;
            for part in parts() {
                ptr::copy_nonoverlapping(part.as_ptr(), last, part.len());
                last = last.add(part.len());
            }

            buffer.start = start;
            buffer.pos = start;
            buffer.last = last;
            buffer.end = last;
        }
        buffer.set_temporary(1);

        Some(Self { buffer })
    }

    /// Has nginx read the body again, from these bytes on, while `handler` runs.
    pub fn read_again(
        mut self,
        r: Request,
        handler: unsafe extern "C" fn(*mut ngx_http_request_t) -> ngx_int_t,
    ) -> ngx_int_t {
        let fields = r.fields_mut();
        let header_in = fields.header_in;

        // nginx counts these bytes once more.
        fields.request_length -= (self.buffer.last as usize - self.buffer.pos as usize) as i64;
        fields.request_body = ptr::null_mut();
        fields.header_in = &mut self.buffer;
        r.set_reading_body(false);
        r.set_body_streamed(false);

        // SAFETY: the request's own content handler; nginx reads what `header_in` holds before the
        // handler returns, and keeps no pointer to the structure itself.
        let rc = unsafe { handler(r.as_ptr()) };

        // Where the next request had come with the body's end, nginx has put it into another buffer.
        let fields = r.fields_mut();
        if ptr::eq(fields.header_in, &self.buffer) {
            fields.header_in = header_in;
        }

        rc
    }
}

/// The body of a request whose client speaks HTTP/1.
fn body<'a>(r: Request) -> Option<&'a ngx_http_request_body_t> {
    if r.fields().http_version >= NGX_HTTP_VERSION_20 as usize {
        return None;
    }

    // SAFETY: null, or the body in the request's pool.
    unsafe { r.fields().request_body.as_ref() }
}

/// What stands around the bytes read so far. None: nginx's parser of chunks is in an unknown state.
fn framing(body: &ngx_http_request_body_t) -> Option<Framing> {
    // SAFETY: null, or the parser of a chunked body in the request's pool.
    let Some(parser) = (unsafe { body.chunked.as_ref() }) else {
        return Some(Framing::default());
    };

    let decoded = buffers(body.bufs).map(<[u8]>::len).sum::<usize>();
    let parser = Parser {
        state: parser.state as u64,
        size: parser.size as u64,
    };

    chunked::frame(decoded as u64, parser)
}

/// The bytes of a chain of buffers in memory.
fn buffers<'a>(chain: *mut ngx_chain_t) -> impl Iterator<Item = &'a [u8]> {
    let mut next = chain;

    core::iter::from_fn(move || {
        // SAFETY: a chain ends with null, and each link has a buffer.
        let link = unsafe { next.as_ref() }?;
        next = link.next;

        // SAFETY: the buffers of a body that is not written to a file are in memory; `pos` and
        // `last` are both null in one that only marks the end.
        Some(unsafe {
            let buffer = &*link.buf;
            if buffer.pos.is_null() {
                &[]
            } else {
                core::slice::from_raw_parts(buffer.pos, buffer.last as usize - buffer.pos as usize)
            }
        })
    })
}
