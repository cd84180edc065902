//! `extend_single_peers` (spec 3): the lone server of an upstream may fail like any other.
//!
//! What keeps it from failing is the bit `single` of the upstream's peers, which nginx sets at the
//! start and again after each change of the addresses of a name. Requests clear it. nginx also
//! needs it to try the same server again when a kept-alive connection turns out to be closed: for
//! the choice of that one peer it is set again.

use core::ffi::{c_char, c_void};

use ngx::ffi::{
    NGX_BUSY, NGX_ERROR, NGX_OK, ngx_command_t, ngx_conf_t, ngx_http_request_t,
    ngx_http_upstream_srv_conf_t, ngx_int_t, ngx_peer_connection_t, ngx_uint_t,
};

use super::conf::HostConf;
use crate::ffi::conf::{Conf, ConfError, ConfResult};
use crate::ffi::peers::{NEITHER, Peers, Wrapped};
use crate::ffi::upstream::Upstream;

/// How often a peer is asked for again when a request of another worker has come between.
const ATTEMPTS: usize = 10;

/// The directive's function.
pub unsafe extern "C" fn ngx_http_upstream_extend_single_peers(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx calls this with the configuration that it is reading.
    let cf = unsafe { Conf::new(cf) };

    cf.finish(extend_single_peers(cf))
}

fn extend_single_peers(cf: Conf) -> ConfResult {
    // SAFETY: the directive's context is an upstream {} block.
    let host = unsafe { Upstream::host_of(cf) };
    let conf = host
        .and_then(HostConf::of)
        .ok_or_else(ConfError::no_memory)?;
    conf.combines.set(true);

    match conf.extends.replace(true) {
        false => Ok(()),
        true => Err(ConfError::new(
            "\"extend_single_peers\" directive is duplicate",
        )),
    }
}

/// Puts our callback before the balancer of each upstream with the directive, whatever balancer
/// that has become.
pub fn install(cf: Conf) {
    for upstream in Upstream::declared(cf) {
        if let Some(conf) = HostConf::of(upstream).filter(|conf| conf.extends.get()) {
            // A singlet has the balancer of its host, and shares this.
            conf.peer_init.set(upstream.peer_init());
            upstream.set_peer_init(Some(ngx_http_upstream_init_extended_peer));
        }
    }
}

/// nginx calls this before it looks for a peer for a request.
unsafe extern "C" fn ngx_http_upstream_init_extended_peer(
    r: *mut ngx_http_request_t,
    us: *mut ngx_http_upstream_srv_conf_t,
) -> ngx_int_t {
    // SAFETY: `us` is an upstream of the configuration that the request runs under.
    let upstream = unsafe { Upstream::from_ptr(us) };
    let original = upstream
        .and_then(HostConf::of)
        .and_then(|conf| conf.peer_init.get());

    let (Some(upstream), Some(original)) = (upstream, original) else {
        return NGX_ERROR as ngx_int_t;
    };

    // SAFETY: these are the arguments that nginx means for it.
    let rc = unsafe { original(r, us) };
    if rc != NGX_OK as ngx_int_t {
        return rc;
    }

    // SAFETY: the configuration is in force; that the balancer is such a one is the directive's
    // documented condition.
    let peers = unsafe { Peers::of(upstream) };
    if !peers.is_lone() {
        return rc;
    }
    peers.set_single(false);

    // SAFETY: the balancer has just set its callbacks.
    let installed = unsafe {
        Wrapped::install(
            r,
            upstream,
            Some(ngx_http_upstream_get_extended_peer),
            Some(ngx_http_upstream_free_extended_peer),
        )
    };

    match installed {
        Ok(()) => rc,
        Err(_) => NGX_ERROR as ngx_int_t,
    }
}

unsafe extern "C" fn ngx_http_upstream_get_extended_peer(
    pc: *mut ngx_peer_connection_t,
    data: *mut c_void,
) -> ngx_int_t {
    // SAFETY: `install` has set this callback.
    let peer = unsafe { Wrapped::from_data(data) };

    match peer.peers() {
        Some(peers) if peer.wants_again() => {
            peer.set_again(false);
            // SAFETY: nginx calls this to get a peer for `pc`.
            unsafe { get_again(peer, peers, pc) }
        }
        // SAFETY: as above.
        _ => unsafe { peer.get(pc) },
    }
}

/// Asks for the lone peer, which the request has tried before.
///
/// # Safety
///
/// nginx wants a peer for `pc`.
unsafe fn get_again(peer: &Wrapped, peers: Peers, pc: *mut ngx_peer_connection_t) -> ngx_int_t {
    for _ in 0..ATTEMPTS {
        peers.set_single(true);
        // SAFETY: the caller's guarantee.
        let rc = unsafe { peer.get(pc) };
        peers.set_single(false);

        if rc != NGX_BUSY as ngx_int_t {
            return rc;
        }
    }

    NGX_BUSY as ngx_int_t
}

unsafe extern "C" fn ngx_http_upstream_free_extended_peer(
    pc: *mut ngx_peer_connection_t,
    data: *mut c_void,
    state: ngx_uint_t,
) {
    // SAFETY: `install` has set this callback.
    let peer = unsafe { Wrapped::from_data(data) };

    // Another worker may be choosing again, or the addresses of a name may have changed.
    if let Some(peers) = peer.peers() {
        peers.set_single(false);
    }

    // SAFETY: nginx calls this to give back what was got for `pc`.
    unsafe {
        let stale = peer.is_stale(pc, state);
        peer.set_again(stale);
        peer.free(pc, if stale { NEITHER } else { state });
    }
}
