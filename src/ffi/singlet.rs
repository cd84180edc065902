//! Upstreams that are made from another one, their host, and share what it has.

use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};

use ngx::ffi::{
    NGX_HTTP_UPSTREAM_BACKUP, NGX_OK, ngx_array_create, ngx_http_complex_value_t,
    ngx_http_max_module, ngx_http_module_t, ngx_http_upstream_add, ngx_http_upstream_init_pt,
    ngx_http_upstream_init_round_robin, ngx_http_upstream_module, ngx_http_upstream_server_t,
    ngx_int_t, ngx_palloc, ngx_uint_t, ngx_url_t,
};

use super::accessors;
use super::conf::{Conf, ConfError, ConfResult};
use super::upstream::Upstream;

/// Adds an upstream, which nginx hands to `init` once the whole http block has been read: `host_of`
/// then yields the host.
///
/// # Errors
///
/// The name is taken; nginx's error line has been written.
pub fn add(
    cf: Conf,
    host: Upstream,
    name: &[u8],
    servers: &[ngx_http_upstream_server_t],
    init: ngx_http_upstream_init_pt,
) -> ConfResult<Upstream> {
    // SAFETY: the structure is plain data, for which zeros are what nginx begins with itself.
    let mut url: ngx_url_t = unsafe { core::mem::zeroed() };
    url.host = cf.string(name)?;
    url.set_no_resolve(1);
    url.set_no_port(1);

    // SAFETY: this is how nginx itself adds the upstream of a block.
    let singlet = unsafe { ngx_http_upstream_add(cf.as_ptr(), &mut url, (*host.as_ptr()).flags) };
    // SAFETY: it is null or an upstream of the configuration.
    let singlet = unsafe { Upstream::from_ptr(singlet) }.ok_or(ConfError::Logged)?;

    singlet.move_behind(host, cf);

    // SAFETY: the upstream is ours alone until it has been read; of its `peer` nginx uses only
    // `init_upstream` before `init` runs.
    unsafe {
        (*singlet.as_ptr()).peer.init_upstream = init;
        (*singlet.as_ptr()).peer.data = host.as_ptr().cast();
    }

    set_servers(cf, singlet, servers)?;

    Ok(singlet)
}

fn set_servers(cf: Conf, upstream: Upstream, servers: &[ngx_http_upstream_server_t]) -> ConfResult {
    // SAFETY: the upstream is one of ours; nginx allocates the array with so many elements.
    unsafe {
        (*upstream.as_ptr()).servers = ngx_array_create(
            cf.pool(),
            servers.len(),
            size_of::<ngx_http_upstream_server_t>(),
        );
    }

    upstream.push_servers(servers)
}

/// The host of an upstream that `init` of [`add`] got.
///
/// # Safety
///
/// It did.
pub unsafe fn host_of(singlet: Upstream) -> Option<Upstream> {
    // SAFETY: `add` has put the host there.
    unsafe { Upstream::from_ptr((*singlet.as_ptr()).peer.data.cast()) }
}

/// Makes a singlet what its host is: the same balancer with the same configuration, so that both
/// share one pool of kept-alive connections.
pub fn init_like(cf: Conf, singlet: Upstream, host: Upstream) -> ConfResult {
    let slots = slots_like(cf, singlet, host)?;

    // SAFETY: both upstreams are valid, and nginx runs this while it has the configuration for
    // itself.
    unsafe {
        let (us, host) = (singlet.as_ptr(), host.as_ptr());
        (*us).srv_conf = slots.as_ptr();
        (*us).flags = (*host).flags | NGX_HTTP_UPSTREAM_BACKUP as ngx_uint_t;
        (*us).peer.data = ptr::null_mut();

        if accessors::ngx_http_combined_upstreams_inherit(cf.as_ptr(), us, host)
            != NGX_OK as ngx_int_t
        {
            return Err(ConfError::Logged);
        }
    }

    init_by_balancer(cf, singlet, host)
}

fn init_by_balancer(cf: Conf, upstream: Upstream, host: Upstream) -> ConfResult {
    // SAFETY: both upstreams are valid; the host's `init_upstream` finds all it needs in the other
    // one's slots.
    let rc = unsafe {
        match (*host.as_ptr()).peer.init_upstream {
            Some(init) => init(cf.as_ptr(), upstream.as_ptr()),
            None => ngx_http_upstream_init_round_robin(cf.as_ptr(), upstream.as_ptr()),
        }
    };

    if rc == NGX_OK as ngx_int_t {
        Ok(())
    } else {
        Err(ConfError::Logged)
    }
}

/// The configurations of all modules for a singlet: those of the host, but for what belongs to the
/// upstream itself and to its peers.
fn slots_like(cf: Conf, singlet: Upstream, host: Upstream) -> ConfResult<NonNull<*mut c_void>> {
    // SAFETY: nginx has counted its http modules before it reads an upstream {} block, and gives
    // each such block an array with a slot for each of them.
    let slots = unsafe {
        let count = ngx_http_max_module;
        let slots = ngx_palloc(cf.pool(), count * size_of::<*mut c_void>());
        let slots = NonNull::new(slots.cast::<*mut c_void>()).ok_or_else(ConfError::no_memory)?;

        ptr::copy_nonoverlapping((*host.as_ptr()).srv_conf, slots.as_ptr(), count);
        *slots.add(ngx_http_upstream_module.ctx_index).as_ptr() = singlet.as_ptr().cast();
        slots
    };

    if let Some(hash) = fresh_slot(cf, slots, c"ngx_http_upstream_hash_module")? {
        // Without a key the servers are taken in turn.
        // SAFETY: the structure of every version begins with the key.
        unsafe { hash.cast::<ngx_http_complex_value_t>().write_bytes(0, 1) };
    }
    fresh_slot(cf, slots, c"ngx_http_upstream_random_module")?;

    Ok(slots)
}

/// Puts a new configuration of a module into its slot. None: this nginx has no such module.
fn fresh_slot(
    cf: Conf,
    slots: NonNull<*mut c_void>,
    name: &CStr,
) -> ConfResult<Option<NonNull<c_void>>> {
    let Some(module) = cf.module(name) else {
        return Ok(None);
    };

    // SAFETY: the context of an http module is of this type.
    let create = unsafe { (*module.ctx.cast::<ngx_http_module_t>()).create_srv_conf };
    let Some(create) = create else {
        return Ok(None);
    };

    // SAFETY: this is how nginx itself fills the slot of an upstream {} block, which is within the
    // array for each http module.
    unsafe {
        let conf = NonNull::new(create(cf.as_ptr())).ok_or_else(ConfError::no_memory)?;
        *slots.add(module.ctx_index).as_ptr() = conf.as_ptr();

        Ok(Some(conf))
    }
}
