//! nginx's `random` above a lone main server.
//!
//! From nginx 1.27.3 on, once that server has failed within a request, `random` draws among the
//! backup ones from its table of the main ones, which ends after the first. Upstreams with one of
//! the module's directives are spared that: there the table is one of the backup servers.

use ngx::ffi::{
    NGX_ERROR, NGX_OK, nginx_version, ngx_http_request_t, ngx_http_upstream_srv_conf_t, ngx_int_t,
};

use super::conf::HostConf;
use crate::ffi::conf::{Conf, ConfError, ConfResult};
use crate::ffi::peers::Random;
use crate::ffi::upstream::Upstream;

/// The first version that needs this.
const FIRST_VERSION: u32 = 1_027_003;

/// Sees to the tables of all upstreams concerned, whatever balancers they have become.
pub fn install(cf: Conf) -> ConfResult {
    let Some(random) = Random::find(cf).filter(|_| nginx_version >= FIRST_VERSION) else {
        return Ok(());
    };

    for upstream in Upstream::declared(cf) {
        let conf = HostConf::of(upstream).filter(|conf| conf.combines.get());

        match conf {
            // nginx makes the table of shared peers while requests are served.
            Some(conf) if upstream.has_zone() => {
                // A singlet has the balancer of its host, and shares this.
                conf.random.set(Some(random));
                conf.unmended_peer_init.set(upstream.peer_init());
                upstream.set_peer_init(Some(ngx_http_upstream_init_mended_random_peer));
            }
            Some(_) => random
                .mend(upstream, Some(cf.pool()))
                .map_err(|_| ConfError::no_memory())?,
            None => {}
        }
    }

    Ok(())
}

/// nginx calls this before it looks for a peer for a request.
unsafe extern "C" fn ngx_http_upstream_init_mended_random_peer(
    r: *mut ngx_http_request_t,
    us: *mut ngx_http_upstream_srv_conf_t,
) -> ngx_int_t {
    // SAFETY: `us` is an upstream of the configuration that the request runs under.
    let upstream = unsafe { Upstream::from_ptr(us) };
    let installed = upstream.and_then(|upstream| {
        let conf = HostConf::of(upstream)?;
        Some((upstream, conf.random.get()?, conf.unmended_peer_init.get()?))
    });

    let Some((upstream, random, original)) = installed else {
        return NGX_ERROR as ngx_int_t;
    };

    // SAFETY: these are the arguments that nginx means for it.
    let rc = unsafe { original(r, us) };
    if rc != NGX_OK as ngx_int_t {
        return rc;
    }

    match random.mend(upstream, None) {
        Ok(()) => rc,
        Err(_) => NGX_ERROR as ngx_int_t,
    }
}
