//! An upstream's peers while requests are served.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use ngx::ffi::{
    NGX_ERROR, NGX_OK, NGX_PEER_FAILED, NGX_PEER_NEXT, ngx_event_free_peer_pt,
    ngx_event_get_peer_pt, ngx_http_request_t, ngx_int_t, ngx_peer_connection_t, ngx_pool_t,
    ngx_uint_t,
};

use super::accessors;
use super::conf::Conf;
use super::request::NoMemory;
use super::upstream::Upstream;

/// The peers of an upstream whose balancer is built on `ngx_http_upstream_rr_peers_t`.
#[derive(Clone, Copy)]
pub struct Peers(Upstream);

impl Peers {
    /// # Safety
    ///
    /// The configuration that declares the upstream is in force, and its balancer is built on
    /// `ngx_http_upstream_rr_peers_t`.
    pub unsafe fn of(upstream: Upstream) -> Self {
        Self(upstream)
    }

    /// There is one main peer, and no backup one.
    pub fn is_lone(self) -> bool {
        // SAFETY: `of` vouches for the peers; the function locks them.
        unsafe { accessors::ngx_http_combined_upstreams_is_lone(self.0.as_ptr()) != 0 }
    }

    /// Whether nginx takes a lone peer for one that cannot fail, and may be tried again in the same
    /// request. Nothing happens where there are several peers.
    pub fn set_single(self, single: bool) {
        // SAFETY: `of` vouches for the peers; the function locks them.
        unsafe {
            accessors::ngx_http_combined_upstreams_set_single(
                self.0.as_ptr(),
                ngx_uint_t::from(single),
            );
        }
    }
}

/// The balancer `random`, as nginx numbers it.
#[derive(Clone, Copy)]
pub struct Random {
    ctx_index: usize,
}

impl Random {
    /// None: this nginx has no such balancer.
    pub fn find(cf: Conf) -> Option<Self> {
        let module = cf.module(c"ngx_http_upstream_random_module")?;

        Some(Self {
            ctx_index: module.ctx_index,
        })
    }

    /// If this balancer has a table for the upstream that it might read beyond, gives it a longer
    /// one. At run time there is no pool for that: nginx itself allocates and frees the table then.
    pub fn mend(self, upstream: Upstream, pool: Option<*mut ngx_pool_t>) -> Result<(), NoMemory> {
        let Some(conf) = upstream.slot(self.ctx_index) else {
            return Ok(());
        };

        // SAFETY: the slot is that of the module; where it has a table the upstream's peers are
        // those of round robin.
        let rc = unsafe {
            accessors::ngx_http_combined_upstreams_mend_random(
                upstream.as_ptr(),
                conf.as_ptr(),
                pool.unwrap_or(ptr::null_mut()),
            )
        };

        match rc == NGX_OK as ngx_int_t {
            true => Ok(()),
            false => Err(NoMemory),
        }
    }
}

/// The callbacks and the data of a balancer for one request, with ours before them.
pub struct Wrapped(accessors::ngx_http_combined_upstreams_peer_t);

impl Wrapped {
    /// Puts callbacks before those of the balancer, which get a `Wrapped` as their data.
    ///
    /// # Safety
    ///
    /// The balancer of `upstream` has just set its own callbacks for the request.
    pub unsafe fn install(
        r: *mut ngx_http_request_t,
        upstream: Upstream,
        get: ngx_event_get_peer_pt,
        free: ngx_event_free_peer_pt,
    ) -> Result<(), NoMemory> {
        // SAFETY: the request has an upstream, with callbacks and data.
        let peer = unsafe {
            accessors::ngx_http_combined_upstreams_wrap_peer(r, upstream.as_ptr(), get, free)
        };

        NonNull::new(peer).map(drop).ok_or(NoMemory)
    }

    /// What nginx hands to a callback that `install` has set.
    ///
    /// # Safety
    ///
    /// `data` is that.
    pub unsafe fn from_data<'a>(data: *mut c_void) -> &'a mut Self {
        // SAFETY: the structure lives in the request's pool, and one callback runs at a time.
        unsafe { &mut *data.cast::<Self>() }
    }

    /// The upstream's peers.
    pub fn peers(&self) -> Option<Peers> {
        // SAFETY: the upstream is that of a request that is being served.
        unsafe { Upstream::from_ptr(self.0.upstream).map(|upstream| Peers::of(upstream)) }
    }

    /// The peer tried last is to be chosen once more.
    pub fn wants_again(&self) -> bool {
        self.0.again != 0
    }

    /// See `wants_again`.
    pub fn set_again(&mut self, again: bool) {
        self.0.again = ngx_uint_t::from(again);
    }

    /// Whether a try ends with this state only because the server had closed a kept-alive
    /// connection before it got the request.
    ///
    /// # Safety
    ///
    /// `pc` is what nginx handed to the callback that is running.
    pub unsafe fn is_stale(&self, pc: *mut ngx_peer_connection_t, state: ngx_uint_t) -> bool {
        state & NGX_PEER_FAILED as ngx_uint_t != 0
            // SAFETY: the caller vouches for `pc`, whose exchange is the one that was wrapped.
            && unsafe {
                accessors::ngx_http_combined_upstreams_is_stale(pc, self.0.exchange) != 0
            }
    }

    /// The balancer chooses a peer.
    ///
    /// # Safety
    ///
    /// As for `is_stale`.
    pub unsafe fn get(&self, pc: *mut ngx_peer_connection_t) -> ngx_int_t {
        match self.0.get {
            // SAFETY: these are the arguments that nginx means for it.
            Some(get) => unsafe { get(pc, self.0.data) },
            None => NGX_ERROR as ngx_int_t,
        }
    }

    /// The balancer takes a peer back.
    ///
    /// # Safety
    ///
    /// As for `is_stale`.
    pub unsafe fn free(&self, pc: *mut ngx_peer_connection_t, state: ngx_uint_t) {
        if let Some(free) = self.0.free {
            // SAFETY: these are the arguments that nginx means for it.
            unsafe { free(pc, self.0.data, state) };
        }
    }
}

/// The state of a try that is neither a success nor a failure of the server.
pub const NEITHER: ngx_uint_t = NGX_PEER_NEXT as ngx_uint_t;
