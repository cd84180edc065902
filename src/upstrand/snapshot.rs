//! What the response of a hop changes in a request, kept so that nothing of a failed one shows.

use ngx::ffi::{ngx_http_headers_out_t, ngx_http_post_subrequest_t, ngx_list_t, ngx_uint_t};

use crate::ffi::request::{Flags, Request};

/// A request as it was before the first hop of a walk.
#[derive(Clone, Copy)]
pub struct Snapshot {
    headers_out: ngx_http_headers_out_t,
    /// How full the last part of each list was: parts are filled in place.
    headers_nelts: ngx_uint_t,
    trailers_nelts: ngx_uint_t,
    flags: Flags,
    limit_rate: usize,
    http_version: ngx_uint_t,
    /// What nginx's answer, or an error page, had made of the status before.
    pub err_status: ngx_uint_t,
    /// Who is told of a subrequest's end.
    pub post_subrequest: *mut ngx_http_post_subrequest_t,
}

/// The bit fields that a response changes.
const RESPONSE: Flags = Flags::ERROR_PAGE
    .with(Flags::KEEPALIVE)
    .with(Flags::LINGERING_CLOSE)
    .with(Flags::LIMIT_RATE_SET)
    .with(Flags::CACHED)
    .with(Flags::ALLOW_RANGES)
    .with(Flags::SINGLE_RANGE)
    .with(Flags::SUBREQUEST_RANGES)
    .with(Flags::DISABLE_NOT_MODIFIED);

impl Snapshot {
    /// Keeps the request as it is, whose bit fields are `flags`.
    pub fn take(r: Request, flags: Flags) -> Self {
        let fields = r.fields();

        Self {
            headers_out: fields.headers_out,
            headers_nelts: last_nelts(&fields.headers_out.headers),
            trailers_nelts: last_nelts(&fields.headers_out.trailers),
            flags,
            limit_rate: fields.limit_rate,
            http_version: fields.http_version,
            err_status: fields.err_status,
            post_subrequest: fields.post_subrequest,
        }
    }

    /// Makes the request again what it was.
    pub fn restore(&self, r: Request) {
        let fields = r.fields_mut();

        fields.headers_out = self.headers_out;
        truncate(&mut fields.headers_out.headers, self.headers_nelts);
        truncate(&mut fields.headers_out.trailers, self.trailers_nelts);

        self.restore_fields(r);
    }

    /// Makes the request what it was when nginx began to answer in the upstream's place: of the
    /// headers it had by then added WWW-Authenticate, of an upstream's 401.
    pub fn restore_but_headers(&self, r: Request) {
        let fields = r.fields_mut();
        let added = fields.headers_out;

        fields.headers_out = self.headers_out;
        fields.headers_out.headers = added.headers;
        fields.headers_out.www_authenticate = added.www_authenticate;

        self.restore_fields(r);
    }

    fn restore_fields(&self, r: Request) {
        let fields = r.fields_mut();

        fields.limit_rate = self.limit_rate;
        fields.http_version = self.http_version;
        fields.err_status = self.err_status;
        fields.post_subrequest = self.post_subrequest;

        r.set_flags(RESPONSE, self.flags);
    }

    /// Whether `error_page` had acted before.
    pub fn error_page(&self) -> Flags {
        self.flags.only(Flags::ERROR_PAGE)
    }
}

fn last_nelts(list: &ngx_list_t) -> ngx_uint_t {
    // SAFETY: `last` is a part of the list; null only in a list that was never set up.
    unsafe { list.last.as_ref() }.map_or(0, |part| part.nelts)
}

fn truncate(list: &mut ngx_list_t, nelts: ngx_uint_t) {
    // SAFETY: `last` is the part that was the last when the list was kept; what came after stays
    // in the request's pool, unused.
    if let Some(part) = unsafe { list.last.as_mut() } {
        part.nelts = nelts;
        part.next = core::ptr::null_mut();
    }
}
