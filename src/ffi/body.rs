//! A request body that nginx streams to the upstream while it comes in
//! (`proxy_request_buffering off`).

use core::ptr;

use combined_upstreams_core::chunked::{self, Framing, Parser};
use ngx::ffi::{
    NGX_HTTP_VERSION_20, NGX_OK, ngx_buf_t, ngx_chain_t, ngx_cycle, ngx_http_request_body_t,
    ngx_http_request_t, ngx_int_t, ngx_palloc,
};

use super::accessors;
use super::module;
use super::request::Request;

/// What has been read of a streamed body of which nothing has been sent.
pub enum Unsent {
    /// Over HTTP/1: the bytes as the client's connection would bring them again.
    Bytes(ngx_buf_t),
    /// Over HTTP/2: the stream has them, as if they had come before anybody asked.
    Preread,
}

impl Unsent {
    /// Whether the body can be read again: not on HTTP/3.
    pub fn is_possible(r: Request) -> bool {
        match http1_body(r) {
            Some(body) => framing(body).is_some(),
            None => is_http2_rereadable(r),
        }
    }

    /// Collects what has been read. None: it cannot be read again, or memory is out.
    pub fn collect(r: Request) -> Option<Self> {
        match http1_body(r) {
            Some(body) => raw_bytes(r, body).map(Self::Bytes),
            None => unread_http2(r).then_some(Self::Preread),
        }
    }

    /// Has nginx read the body again, from the beginning on, while `handler` runs.
    pub fn read_again(
        mut self,
        r: Request,
        handler: unsafe extern "C" fn(*mut ngx_http_request_t) -> ngx_int_t,
    ) -> ngx_int_t {
        let fields = r.fields_mut();
        let header_in = fields.header_in;

        fields.request_body = ptr::null_mut();
        r.set_reading_body(false);
        r.set_body_streamed(false);

        if let Self::Bytes(buffer) = &mut self {
            // nginx counts these bytes once more.
            fields.request_length -= (buffer.last as usize - buffer.pos as usize) as i64;
            fields.header_in = buffer;
        }

        // SAFETY: the request's own content handler; nginx reads what `header_in` holds before the
        // handler returns, and keeps no pointer to the structure itself.
        let rc = unsafe { handler(r.as_ptr()) };

        // Where the next request had come with the body's end, nginx has put it into another buffer.
        let fields = r.fields_mut();
        if matches!(&self, Self::Bytes(buffer) if ptr::eq(fields.header_in, buffer)) {
            fields.header_in = header_in;
        }

        rc
    }
}

fn is_http2_rereadable(r: Request) -> bool {
    // SAFETY: nginx serves a request, and has an array of modules then.
    let v2 = unsafe { module::by_name((*ngx_cycle).modules, c"ngx_http_v2_module") };

    // SAFETY: the request is live, and the module is the one that the function wants.
    v2.is_some_and(|v2| unsafe {
        accessors::ngx_http_combined_upstreams_http2_is_rereadable(r.as_ptr(), v2) != 0
    })
}

/// False: it cannot be read again, or memory is out.
fn unread_http2(r: Request) -> bool {
    // SAFETY: the request is live, and its body is one of HTTP/2 that can be read again.
    is_http2_rereadable(r)
        && unsafe {
            accessors::ngx_http_combined_upstreams_http2_unread(r.as_ptr()) == NGX_OK as ngx_int_t
        }
}

/// The bytes from which nginx's parser gets to where it is.
fn raw_bytes(r: Request, body: &ngx_http_request_body_t) -> Option<ngx_buf_t> {
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

    Some(buffer)
}

/// The body of a request whose client speaks HTTP/1.
fn http1_body<'a>(r: Request) -> Option<&'a ngx_http_request_body_t> {
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
