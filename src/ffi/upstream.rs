//! nginx's upstreams at configuration time.

use core::ffi::c_void;
use core::ptr::NonNull;

use ngx::ffi::{
    NGX_HTTP_UPSTREAM_BACKUP, NGX_HTTP_UPSTREAM_CREATE, NGX_HTTP_UPSTREAM_DOWN,
    NGX_HTTP_UPSTREAM_FAIL_TIMEOUT, NGX_HTTP_UPSTREAM_MAX_CONNS, NGX_HTTP_UPSTREAM_MAX_FAILS,
    NGX_HTTP_UPSTREAM_WEIGHT, ngx_array_push_n, ngx_http_upstream_init_peer_pt,
    ngx_http_upstream_main_conf_t, ngx_http_upstream_module, ngx_http_upstream_server_t,
    ngx_http_upstream_srv_conf_t,
};

use super::accessors;
use super::conf::{Conf, ConfError, ConfResult};
use super::module;

/// An upstream of the configuration that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Upstream(NonNull<ngx_http_upstream_srv_conf_t>);

/// What a balancer lets a `server` line say (nginx: `NGX_HTTP_UPSTREAM_BACKUP` and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// `backup`
    Backup,
    /// `weight=`
    Weight,
    /// `max_fails=`
    MaxFails,
    /// `fail_timeout=`
    FailTimeout,
    /// `max_conns=`
    MaxConns,
    /// `down`
    Down,
}

impl Upstream {
    /// The upstream whose block is being read.
    ///
    /// # Safety
    ///
    /// The directive stands in an `upstream {}` block.
    pub unsafe fn host_of(cf: Conf) -> Option<Self> {
        // SAFETY: the index of a module that every nginx with http has.
        let index = unsafe { ngx_http_upstream_module.ctx_index };

        // SAFETY: in an upstream {} block, `ctx` has the upstream in this slot of srv_conf.
        let uscf = unsafe { *(*cf.http_ctx()).srv_conf.add(index) };

        NonNull::new(uscf.cast()).map(Self)
    }

    /// None if it is null.
    ///
    /// # Safety
    ///
    /// Else it is an upstream of a configuration that lives on.
    pub unsafe fn from_ptr(uscf: *mut ngx_http_upstream_srv_conf_t) -> Option<Self> {
        NonNull::new(uscf).map(Self)
    }

    /// All upstreams known so far that the configuration declares (those that nginx implies from a
    /// URL are none), as nginx lists them.
    pub fn declared(cf: Conf) -> impl Iterator<Item = Self> {
        Self::all(cf)
            .iter()
            .copied()
            .filter(|upstream| upstream.is_declared())
    }

    /// All upstreams known so far, those that a URL implies included, as nginx lists them.
    pub fn all<'a>(cf: Conf) -> &'a [Self] {
        list(cf)
    }

    /// Whether it has a block, or is a singlet.
    pub fn is_declared(self) -> bool {
        self.flags() & NGX_HTTP_UPSTREAM_CREATE as usize != 0
    }

    /// Lets nginx see this upstream after another one, which was declared before it: a URL may have
    /// implied this one still earlier.
    pub fn move_behind(self, other: Self, cf: Conf) {
        let all = list(cf);
        let place = |upstream: Self| all.iter().rposition(|other| *other == upstream);

        if let (Some(from), Some(other)) = (place(self), place(other)) {
            if from < other {
                all[from..=other].rotate_left(1);
            }
        }
    }

    /// The configuration of the module in this upstream. None: the upstream has no block.
    ///
    /// # Safety
    ///
    /// `T` is what the module's `create_srv_conf` makes.
    pub unsafe fn srv_conf<'a, T>(self) -> Option<&'a T> {
        // SAFETY: the caller vouches for the type.
        self.slot(module::ctx_index())
            .map(|conf| unsafe { conf.cast::<T>().as_ref() })
    }

    /// What the http module of this place keeps for this upstream.
    pub fn slot(self, ctx_index: usize) -> Option<NonNull<c_void>> {
        // SAFETY: `srv_conf` is null or an array with a slot for each http module.
        unsafe {
            let slots = NonNull::new((*self.as_ptr()).srv_conf)?;
            NonNull::new(*slots.add(ctx_index).as_ptr())
        }
    }

    /// Whether its peers are in shared memory.
    pub fn has_zone(self) -> bool {
        // SAFETY: the upstream lives as long as the configuration.
        unsafe { accessors::ngx_http_combined_upstreams_has_zone(self.as_ptr()) != 0 }
    }

    /// How nginx prepares the choice of a peer for a request.
    pub fn peer_init(self) -> ngx_http_upstream_init_peer_pt {
        // SAFETY: the upstream lives as long as the configuration.
        unsafe { (*self.as_ptr()).peer.init }
    }

    /// See `peer_init`.
    pub fn set_peer_init(self, init: ngx_http_upstream_init_peer_pt) {
        // SAFETY: the upstream lives as long as the configuration, and nothing else holds on to
        // this field.
        unsafe { (*self.as_ptr()).peer.init = init }
    }

    /// The declared upstream of that name, in whatever case.
    pub fn find(cf: Conf, name: &[u8]) -> Option<Self> {
        Self::declared(cf).find(|upstream| upstream.name().eq_ignore_ascii_case(name))
    }

    /// For calls of nginx.
    pub fn as_ptr(self) -> *mut ngx_http_upstream_srv_conf_t {
        self.0.as_ptr()
    }

    /// The name as declared.
    pub fn name<'a>(self) -> &'a [u8] {
        // SAFETY: the name stands in the memory of the configuration, as the upstream does.
        unsafe {
            let host = &(*self.as_ptr()).host;
            if host.len == 0 {
                &[]
            } else {
                core::slice::from_raw_parts(host.data, host.len)
            }
        }
    }

    fn flags(self) -> usize {
        // SAFETY: the upstream lives as long as the configuration.
        unsafe { (*self.as_ptr()).flags }
    }

    /// Whether the upstream's balancer, as it is set by now, has this ability.
    pub fn supports(self, ability: Ability) -> bool {
        let flag = match ability {
            Ability::Backup => NGX_HTTP_UPSTREAM_BACKUP,
            Ability::Weight => NGX_HTTP_UPSTREAM_WEIGHT,
            Ability::MaxFails => NGX_HTTP_UPSTREAM_MAX_FAILS,
            Ability::FailTimeout => NGX_HTTP_UPSTREAM_FAIL_TIMEOUT,
            Ability::MaxConns => NGX_HTTP_UPSTREAM_MAX_CONNS,
            Ability::Down => NGX_HTTP_UPSTREAM_DOWN,
        };

        self.flags() & flag as usize != 0
    }

    /// The servers declared so far.
    pub fn servers<'a>(self) -> &'a [ngx_http_upstream_server_t] {
        // SAFETY: `servers` is null or an array of servers.
        unsafe {
            match (*self.as_ptr()).servers.as_ref() {
                Some(servers) => servers.as_slice(),
                None => &[],
            }
        }
    }

    /// The same, to change them.
    pub fn servers_mut<'a>(&self) -> &'a mut [ngx_http_upstream_server_t] {
        // SAFETY: `servers` is null or an array of servers; nothing else looks at them meanwhile.
        unsafe {
            match (*self.as_ptr()).servers.as_ref() {
                Some(servers) if servers.nelts > 0 => {
                    core::slice::from_raw_parts_mut(servers.elts.cast(), servers.nelts)
                }
                _ => &mut [],
            }
        }
    }

    /// Appends servers, whole as they are.
    pub fn push_servers(self, servers: &[ngx_http_upstream_server_t]) -> ConfResult {
        // SAFETY: in a declared upstream `servers` is an array of servers; the new elements are
        // written before anybody reads them, and do not overlap the given ones.
        unsafe {
            let array = (*self.as_ptr()).servers;
            if array.is_null() {
                return Err(ConfError::no_memory());
            }

            let new: *mut ngx_http_upstream_server_t =
                ngx_array_push_n(array, servers.len()).cast();
            if new.is_null() {
                return Err(ConfError::no_memory());
            }

            core::ptr::copy_nonoverlapping(servers.as_ptr(), new, servers.len());
        }

        Ok(())
    }
}

/// nginx's list of all upstreams.
fn list<'a>(cf: Conf) -> &'a mut [Upstream] {
    // SAFETY: the index of a module that every nginx with http has.
    let index = unsafe { ngx_http_upstream_module.ctx_index };

    // SAFETY: this is the type of the upstream module's main configuration.
    let umcf = unsafe { cf.main_conf::<ngx_http_upstream_main_conf_t>(index) };

    match umcf.map(|umcf| &umcf.upstreams) {
        // SAFETY: the array holds pointers to upstreams, none of them null, and an `Upstream` is such
        // a pointer; while a directive's function runs nobody else looks at the array.
        Some(array) if array.nelts > 0 => unsafe {
            core::slice::from_raw_parts_mut(array.elts.cast(), array.nelts)
        },
        _ => &mut [],
    }
}
