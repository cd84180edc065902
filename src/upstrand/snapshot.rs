//! What the response of a hop changes in a request, kept so that nothing of a failed one shows.

use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;

use ngx::ffi::{ngx_http_post_subrequest_t, ngx_list_t, ngx_uint_t};

use crate::ffi::headers_out::Headers;
use crate::ffi::request::{Bits, Request};

/// A request as it was before the first hop of a walk.
pub struct Snapshot {
    headers: Headers,
    /// How full the last part of each list was: parts are filled in place.
    headers_nelts: ngx_uint_t,
    trailers_nelts: ngx_uint_t,
    bits: Bits,
    limit_rate: usize,
    http_version: ngx_uint_t,
    /// What nginx's answer, or an error page, had made of the status before.
    pub err_status: ngx_uint_t,
    /// Who is told of a subrequest's end.
    pub post_subrequest: *mut ngx_http_post_subrequest_t,
}

/// The place of a request's snapshot, which is taken there: it is too large to be moved about.
pub struct SnapshotSlot {
    snapshot: UnsafeCell<MaybeUninit<Snapshot>>,
    taken: Cell<bool>,
}

impl SnapshotSlot {
    /// No snapshot has been taken.
    ///
    /// # Safety
    ///
    /// `slot` points at room for a slot.
    pub unsafe fn init(slot: *mut Self) {
        // SAFETY: the caller vouches for the room; the rest may stay as it is.
        unsafe { (&raw mut (*slot).taken).write(Cell::new(false)) };
    }

    /// Keeps the request as it is. None: out of memory.
    #[inline]
    pub fn take(&self, r: Request) -> Option<()> {
        let fields = r.fields();
        let snapshot = self.snapshot.get().cast::<Snapshot>();

        // SAFETY: the slot's own room; nobody holds a snapshot when a walk begins.
        unsafe {
            (&raw mut (*snapshot).headers).write(Headers::of(r)?);
            (&raw mut (*snapshot).headers_nelts).write(last_nelts(&fields.headers_out.headers));
            (&raw mut (*snapshot).trailers_nelts).write(last_nelts(&fields.headers_out.trailers));
            (&raw mut (*snapshot).bits).write(Bits::none());
            r.save_bits(&mut (*snapshot).bits);
            (&raw mut (*snapshot).limit_rate).write(fields.limit_rate);
            (&raw mut (*snapshot).http_version).write(fields.http_version);
            (&raw mut (*snapshot).err_status).write(fields.err_status);
            (&raw mut (*snapshot).post_subrequest).write(fields.post_subrequest);
        }

        self.taken.set(true);

        Some(())
    }

    /// The snapshot, if one has been taken.
    #[inline]
    pub fn get(&self) -> Option<&Snapshot> {
        // SAFETY: `take` has written all of it.
        self.taken
            .get()
            .then(|| unsafe { (*self.snapshot.get()).assume_init_ref() })
    }
}

impl Snapshot {
    /// Makes the request again what it was.
    pub fn restore(&self, r: Request) {
        let fields = r.fields_mut();

        self.headers.restore(&mut fields.headers_out);
        truncate(&mut fields.headers_out.headers, self.headers_nelts);
        truncate(&mut fields.headers_out.trailers, self.trailers_nelts);

        self.restore_fields(r);
    }

    /// Makes the request what it was when nginx began to answer in the upstream's place: of the
    /// headers it had by then added WWW-Authenticate, of an upstream's 401.
    pub fn restore_but_headers(&self, r: Request) {
        let fields = r.fields_mut();
        let added = fields.headers_out;

        self.headers.restore(&mut fields.headers_out);
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

        r.restore_bits(&self.bits);
    }

    /// Whether `error_page` had acted before.
    pub fn error_page(&self) -> bool {
        self.bits.error_page()
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
