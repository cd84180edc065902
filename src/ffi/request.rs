//! A request, for the code that runs in its callbacks.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use combined_upstreams_core::text::{Room, Sink};
use ngx::ffi::{
    NGX_ERROR, ngx_connection_t, ngx_http_cleanup_pt, ngx_http_event_handler_pt,
    ngx_http_post_request, ngx_http_request_t, ngx_http_upstream_state_t, ngx_http_upstream_t,
    ngx_int_t, ngx_log_t, ngx_palloc, ngx_pool_cleanup_t,
};

use super::accessors;
use super::module;

/// Most texts are not longer, in bytes.
const USUAL_LENGTH: usize = 256;

/// The bit fields of a request as they were.
#[derive(Clone, Copy)]
pub struct Bits(accessors::ngx_http_combined_upstreams_bits_t);

impl Bits {
    /// None is set.
    pub const fn none() -> Self {
        Self(accessors::ngx_http_combined_upstreams_bits_t { words: [0; 4] })
    }

    /// Whether `error_page` had acted.
    pub fn error_page(&self) -> bool {
        // SAFETY: the function looks at the one bit.
        unsafe { accessors::ngx_http_combined_upstreams_saved_error_page(&self.0) != 0 }
    }
}

macro_rules! bit_fields {
    (
        get { $($(#[$get_doc:meta])* $get:ident = $get_accessor:ident;)* }
        set { $($(#[$set_doc:meta])* $set:ident = $set_accessor:ident;)* }
    ) => {
        impl Request {
            $(
                $(#[$get_doc])*
                #[inline]
                pub fn $get(self) -> bool {
                    // SAFETY: the request is valid.
                    unsafe { accessors::$get_accessor(self.as_ptr()) != 0 }
                }
            )*
            $(
                $(#[$set_doc])*
                #[inline]
                pub fn $set(self, value: bool) {
                    // SAFETY: the request is valid.
                    unsafe { accessors::$set_accessor(self.as_ptr(), usize::from(value)) }
                }
            )*
        }
    };
}

bit_fields! {
    get {
        /// The response comes from a cache.
        is_cached = ngx_http_combined_upstreams_get_cached;
        /// A filter has replaced the response.
        is_filter_finalized = ngx_http_combined_upstreams_get_filter_finalize;
        /// No body is sent.
        is_header_only = ngx_http_combined_upstreams_get_header_only;
        /// The request was redirected internally, or is a subrequest.
        is_internal = ngx_http_combined_upstreams_get_internal;
        /// The request is in its `post_action` location.
        is_post_action = ngx_http_combined_upstreams_get_post_action;
        /// The body is streamed (`proxy_request_buffering off`).
        is_body_streamed = ngx_http_combined_upstreams_get_request_body_no_buffering;
    }
    set {
        /// `error_page` has acted, and does not again.
        set_error_page = ngx_http_combined_upstreams_set_error_page;
        /// No body is sent.
        set_header_only = ngx_http_combined_upstreams_set_header_only;
        /// The body has not been read to its end.
        set_reading_body = ngx_http_combined_upstreams_set_reading_body;
        /// The body is streamed.
        set_body_streamed = ngx_http_combined_upstreams_set_request_body_no_buffering;
    }
}

/// A request of nginx.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Request(NonNull<ngx_http_request_t>);

impl Request {
    /// # Safety
    ///
    /// `r` is the request whose callback is running, and is used only until it returns.
    #[inline]
    pub unsafe fn new(r: *mut ngx_http_request_t) -> Self {
        // SAFETY: nginx passes no null request.
        Self(unsafe { NonNull::new_unchecked(r) })
    }

    /// For calls of nginx.
    #[inline]
    pub fn as_ptr(self) -> *mut ngx_http_request_t {
        self.0.as_ptr()
    }

    /// The fields that stand before the request's bit fields.
    #[inline]
    pub fn fields<'a>(self) -> &'a ngx_http_request_t {
        // SAFETY: the request lives while its callback runs, and nothing else runs meanwhile; the
        // reference is never kept across a call of nginx.
        unsafe { self.0.as_ref() }
    }

    /// The same, to write.
    #[inline]
    pub fn fields_mut<'a>(&self) -> &'a mut ngx_http_request_t {
        // SAFETY: as for `fields`; no other reference is used while this one is.
        unsafe { &mut *self.as_ptr() }
    }

    /// Keeps the bit fields.
    #[inline]
    pub fn save_bits(self, bits: &mut Bits) {
        // SAFETY: the request is valid.
        unsafe { accessors::ngx_http_combined_upstreams_save_bits(self.as_ptr(), &mut bits.0) }
    }

    /// Puts those bit fields back that a response changes.
    pub fn restore_bits(self, bits: &Bits) {
        // SAFETY: the request is valid.
        unsafe { accessors::ngx_http_combined_upstreams_restore_bits(self.as_ptr(), &bits.0) }
    }

    /// Whether this is the client's own request, no subrequest.
    pub fn is_main(self) -> bool {
        self.fields().main == self.as_ptr()
    }

    /// Takes a reference to the main request, which the next finalization of this request drops.
    pub fn add_reference(self) {
        // SAFETY: the main request lives as long as its subrequests.
        unsafe { accessors::ngx_http_combined_upstreams_request_ref(self.as_ptr()) }
    }

    /// The module's main configuration.
    ///
    /// # Safety
    ///
    /// `T` is what the module's `create_main_conf` makes.
    pub unsafe fn main_conf<'a, T>(self) -> Option<&'a T> {
        // SAFETY: a request has an array with a slot for each http module; the caller vouches for
        // the type.
        unsafe {
            (*self.fields().main_conf.add(module::ctx_index()))
                .cast::<T>()
                .as_ref()
        }
    }

    /// The module's configuration of the location that the request is in.
    ///
    /// # Safety
    ///
    /// `T` is what the module's `create_loc_conf` makes.
    pub unsafe fn loc_conf<'a, T>(self) -> Option<&'a T> {
        // SAFETY: a request has an array with a slot for each http module; the caller vouches for
        // the type.
        unsafe {
            (*self.fields().loc_conf.add(module::ctx_index()))
                .cast::<T>()
                .as_ref()
        }
    }

    /// The module's context in this request; internal redirects erase it.
    #[inline]
    pub fn context<'a, T>(self) -> Option<&'a T> {
        // SAFETY: nginx gives each request an array with a slot for each http module; the module
        // puts only values of one type into its own, which live in the request's pool.
        unsafe {
            (*self.fields().ctx.add(module::ctx_index()))
                .cast::<T>()
                .as_ref()
        }
    }

    /// Sets the module's context.
    pub fn set_context<T>(self, context: &T) {
        // SAFETY: as for `context`.
        unsafe {
            *self.fields().ctx.add(module::ctx_index()) = ptr::from_ref(context).cast_mut().cast();
        }
    }

    /// The exchange with an upstream that the request is in, or was in last.
    #[inline]
    pub fn upstream(self) -> Option<Exchange> {
        NonNull::new(self.fields().upstream).map(Exchange)
    }

    /// Makes sure that nginx has room for the state of one more try: without it nginx never answers
    /// (`ngx_http_upstream_init_request`). None: out of memory.
    pub fn reserve_state(self) -> Option<()> {
        // SAFETY: `upstream_states` is null or an array of states in the request's pool; the element is
        // given back before anybody looks at it.
        unsafe {
            if let Some(states) = self.fields().upstream_states.as_mut() {
                NonNull::new(ngx::ffi::ngx_array_push(states))?;
                states.nelts -= 1;
            }
        }

        Some(())
    }

    /// The servers that were tried in this request so far.
    pub fn upstream_states<'a>(self) -> &'a [ngx_http_upstream_state_t] {
        // SAFETY: `upstream_states` is null or an array of states in the request's pool.
        unsafe {
            match self.fields().upstream_states.as_ref() {
                Some(states) => states.as_slice(),
                None => &[],
            }
        }
    }

    /// The log of the client's connection.
    pub fn log(self) -> *mut ngx_log_t {
        // SAFETY: a request has a connection throughout, and a connection a log.
        unsafe { (*self.connection()).log }
    }

    fn connection(self) -> *mut ngx_connection_t {
        self.fields().connection
    }

    /// Runs something of which nothing is to be logged.
    pub fn silently<T>(self, run: impl FnOnce() -> T) -> T {
        let log = self.log();

        // SAFETY: the log of a live connection; nobody else runs meanwhile.
        unsafe {
            let level = core::mem::replace(&mut (*log).log_level, 0);
            let result = run();
            (*log).log_level = level;
            result
        }
    }

    /// Makes room for a value in the request's pool, together with a cleanup by whose handler
    /// [`Request::kept`] finds it again. The handler does nothing, the value is never dropped.
    ///
    /// # Safety
    ///
    /// `init` writes a value of type `T`.
    pub unsafe fn keep<'a, T>(self, marker: Marker, init: impl FnOnce(*mut T)) -> Option<&'a T> {
        // SAFETY: the pool is the request's own; nginx aligns the memory for any type, and the
        // caller vouches for the value. The cleanup is linked as ngx_pool_cleanup_add does it.
        unsafe {
            let pool = self.fields().pool;
            let kept = ngx_palloc(pool, size_of::<Kept<T>>()).cast::<Kept<T>>();
            let kept = NonNull::new(kept)?.as_ptr();

            init(&raw mut (*kept).value);
            (&raw mut (*kept).cleanup).write(ngx_pool_cleanup_t {
                handler: Some(marker),
                data: (&raw mut (*kept).value).cast(),
                next: (*pool).cleanup,
            });
            (*pool).cleanup = &raw mut (*kept).cleanup;

            Some(&(*kept).value)
        }
    }

    /// The values that were kept with this marker in the request's pool, which subrequests share.
    ///
    /// # Safety
    ///
    /// Only values of type `T` are kept with this marker.
    pub unsafe fn kept<'a, T: 'a>(self, marker: Marker) -> impl Iterator<Item = &'a T> {
        // SAFETY: the pool is valid, and its cleanups are a list.
        let mut next = unsafe { (*self.fields().pool).cleanup };

        core::iter::from_fn(move || {
            loop {
                // SAFETY: each cleanup of the pool lives as long as the pool.
                let cleanup = unsafe { next.as_ref() }?;
                next = cleanup.next;

                if cleanup
                    .handler
                    .is_some_and(|handler| ptr::fn_addr_eq(handler, marker))
                {
                    // SAFETY: the caller vouches for the type.
                    return Some(unsafe { &*cleanup.data.cast::<T>() });
                }
            }
        })
    }

    /// Memory of the request's pool for a value, which is never dropped.
    pub fn alloc<'a, T>(self, value: T) -> Option<&'a T> {
        // SAFETY: the pool is the request's own; nginx aligns the memory for any type.
        unsafe {
            let memory = ngx_palloc(self.fields().pool, size_of::<T>()).cast::<T>();
            let memory = NonNull::new(memory)?.as_ptr();
            memory.write(value);
            Some(&*memory)
        }
    }

    /// A text in the request's pool, which `write` writes, twice if it is long. None: out of memory.
    pub fn text<'a>(self, write: impl Fn(&mut dyn Sink)) -> Option<&'a [u8]> {
        let mut usual = [0; USUAL_LENGTH];
        let mut room = Room::new(&mut usual);
        write(&mut room);
        let length = room.length();

        // SAFETY: the pool is the request's own.
        let start = unsafe { ngx::ffi::ngx_pnalloc(self.fields().pool, length.max(1)) };
        let start = NonNull::new(start.cast::<u8>())?.as_ptr();

        match room.into_text() {
            // SAFETY: the pool has given as many bytes.
            Some(text) => unsafe {
                start.copy_from_nonoverlapping(text.as_ptr(), length);
                Some(core::slice::from_raw_parts(start, length))
            },
            None => {
                // SAFETY: as above; the bytes are set before they are looked at.
                let bytes = unsafe {
                    start.write_bytes(0, length);
                    core::slice::from_raw_parts_mut(start, length)
                };
                let mut room = Room::new(bytes);
                write(&mut room);
                room.into_text()
            }
        }
    }

    /// Runs `handler` as soon as nginx has returned from what it is doing now.
    pub fn post(self, handler: ngx_http_event_handler_pt) -> Result<(), NoMemory> {
        self.fields_mut().write_event_handler = handler;

        // SAFETY: the request is valid; nginx allocates the list's link itself.
        let rc: ngx_int_t = unsafe { ngx_http_post_request(self.as_ptr(), ptr::null_mut()) };

        if rc == ngx::ffi::NGX_OK as ngx_int_t {
            Ok(())
        } else {
            Err(NoMemory)
        }
    }

    /// Takes out of the cache again what a hop that is over has left in it: an error that nginx
    /// made, and the use that it counted.
    pub fn forget_hop_in_cache(self) {
        // SAFETY: the request is valid.
        unsafe { accessors::ngx_http_combined_upstreams_cache_forget_hop(self.as_ptr()) }
    }
}

/// The request's pool has no memory left.
#[derive(Clone, Copy, Debug)]
pub struct NoMemory;

/// A value together with the cleanup by which it is found.
struct Kept<T> {
    cleanup: ngx_pool_cleanup_t,
    value: T,
}

/// A pool cleanup's handler that does nothing but mark what stands beside it.
pub type Marker = unsafe extern "C" fn(*mut c_void);

/// A request's exchange with an upstream: nginx's `ngx_http_upstream_t`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Exchange(NonNull<ngx_http_upstream_t>);

impl Exchange {
    /// For calls of nginx, and to tell exchanges apart.
    #[inline]
    pub fn as_ptr(self) -> *mut ngx_http_upstream_t {
        self.0.as_ptr()
    }

    /// The fields.
    #[inline]
    pub fn fields<'a>(self) -> &'a ngx_http_upstream_t {
        // SAFETY: the exchange lives in the pool of its request, whose callback is running.
        unsafe { self.0.as_ref() }
    }

    /// The same, to write.
    #[inline]
    pub fn fields_mut<'a>(&self) -> &'a mut ngx_http_upstream_t {
        // SAFETY: as for `fields`; no other reference is used while this one is.
        unsafe { &mut *self.as_ptr() }
    }

    /// Whether a pass directive is finding out where to send the request to: proxy, fastcgi,
    /// uwsgi, scgi and grpc evaluate their variables after `ngx_http_upstream_create` and before
    /// they set `conf`.
    #[inline]
    pub fn is_being_set_up(self) -> bool {
        self.fields().conf.is_null()
    }

    /// The host that variables resolved to, as long as no port came with it.
    pub fn resolved_host<'a>(self) -> Option<&'a [u8]> {
        // SAFETY: `resolved` is null or lives in the request's pool.
        let resolved = unsafe { self.fields().resolved.as_ref() }?;

        (resolved.no_port != 0 && resolved.host.len != 0)
            // SAFETY: the host's text lives in the request's pool or in the configuration.
            .then(|| unsafe { core::slice::from_raw_parts(resolved.host.data, resolved.host.len) })
    }

    /// The server that is being tried, or was tried last.
    pub fn state<'a>(self) -> Option<&'a ngx_http_upstream_state_t> {
        // SAFETY: `state` is null or an element of the request's array of states.
        unsafe { self.fields().state.as_ref() }
    }

    /// Whether nginx has come so far as to ask the upstream, or a cache. If it has not, it could not read the
    /// request's body, or was out of memory.
    pub fn has_begun(self) -> bool {
        !self.fields().request_bufs.is_null() || self.cache_status().is_some()
    }

    /// nginx sends what an expired cache entry holds.
    pub fn is_stale(self) -> bool {
        // SAFETY: the exchange is valid.
        unsafe { accessors::ngx_http_combined_upstreams_cache_is_stale(self.as_ptr()) != 0 }
    }

    /// The response is not to be put into a cache.
    pub fn forbid_caching(self) {
        self.fields_mut().set_cacheable(0);
    }

    /// The text of `$upstream_cache_status`; none: no cache took part.
    pub fn cache_status<'a>(self) -> Option<&'a [u8]> {
        // SAFETY: the exchange is valid; the texts are static.
        unsafe {
            accessors::ngx_http_combined_upstreams_cache_status(self.as_ptr())
                .as_ref()
                .map(|status| status.as_bytes())
        }
    }

    /// Lets nginx keep the connection of a response that is dropped, if all of it has arrived: the
    /// protocol's own filters look at what was read behind the header, and find its end in it.
    pub fn keep_connection(self) {
        let fields = self.fields_mut();

        if fields.request_body_sent() == 0 || fields.headers_in.connection_close() != 0 {
            return;
        }

        let Some(init) = fields.input_filter_init else {
            return;
        };

        let (pos, last) = (fields.buffer.pos, fields.buffer.last);
        let arrived = last as isize - pos as isize;

        // SAFETY: this is how nginx itself begins to read a body that it does not buffer, with
        // `last` where the header ends; the filters read `arrived` bytes from there.
        unsafe {
            let mut rc = init(fields.input_filter_ctx);

            if rc != NGX_ERROR as ngx_int_t && arrived > 0 {
                if let Some(filter) = (*self.as_ptr()).input_filter {
                    (*self.as_ptr()).buffer.last = pos;
                    rc = filter((*self.as_ptr()).input_filter_ctx, arrived);
                    (*self.as_ptr()).buffer.last = last;
                }
            }

            if rc == NGX_ERROR as ngx_int_t {
                (*self.as_ptr()).set_keepalive(0);
            }
        }
    }

    /// What nginx would do if the request were cleaned up now: end the exchange.
    pub fn cleanup(self) -> ngx_http_cleanup_pt {
        // SAFETY: `cleanup` is null or points at the handler's place in the request's list.
        unsafe { self.fields().cleanup.as_ref() }.copied().flatten()
    }
}
