//! `combine_server_singlets` (spec 2): an upstream for each server of this one, in which that
//! server is the only active one.

use core::ffi::{c_char, c_void};

use combined_upstreams_core::singlet::Parameters;
use ngx::ffi::{
    NGX_ERROR, NGX_OK, ngx_command_t, ngx_conf_t, ngx_http_upstream_server_t,
    ngx_http_upstream_srv_conf_t, ngx_int_t,
};

use super::conf::HostConf;
use crate::ffi::conf::{Conf, ConfError, ConfResult, lossy};
use crate::ffi::singlet;
use crate::ffi::upstream::{Ability, Upstream};

/// The directive's function.
pub unsafe extern "C" fn ngx_http_upstream_combine_server_singlets(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx calls this with the configuration that it is reading.
    let cf = unsafe { Conf::new(cf) };

    cf.finish(combine_server_singlets(cf))
}

fn combine_server_singlets(cf: Conf) -> ConfResult {
    let words: Vec<&[u8]> = cf
        .args()
        .iter()
        .skip(1)
        .map(|word| word.as_bytes())
        .collect();
    let parameters = Parameters::parse(&words)?;

    // SAFETY: the directive's context is an upstream {} block.
    let host = unsafe { Upstream::host_of(cf) }.ok_or_else(ConfError::no_memory)?;
    let servers = host.servers();

    if servers.is_empty() {
        return Err(ConfError::new(
            "no server so far declared to build singlets",
        ));
    }

    let conf = HostConf::of(host).ok_or_else(ConfError::no_memory)?;
    conf.host.set(Some(host));
    conf.combines.set(true);

    for (active, server) in servers.iter().enumerate() {
        let name = parameters.name(host.name(), active + 1, server.name.as_bytes());
        let servers = with_one_active(servers, active, parameters.nobackup);

        let singlet = singlet::add(
            cf,
            host,
            &name,
            &servers,
            Some(ngx_http_upstream_init_singlet),
        )
        .map_err(|_| ConfError::new(format!("failed to add upstream \"{}\"", lossy(&name))))?;
        conf.singlets.borrow_mut().push(singlet);
    }

    Ok(())
}

/// The servers of a singlet.
fn with_one_active(
    servers: &[ngx_http_upstream_server_t],
    active: usize,
    nobackup: bool,
) -> Vec<ngx_http_upstream_server_t> {
    let mut servers = servers.to_vec();

    for (index, server) in servers.iter_mut().enumerate() {
        if index == active {
            server.set_backup(0);
        } else if nobackup {
            server.down = 1;
        } else {
            server.set_backup(1);
        }
    }

    servers
}

/// nginx calls this for a singlet once the whole http block has been read, the host's included.
unsafe extern "C" fn ngx_http_upstream_init_singlet(
    cf: *mut ngx_conf_t,
    us: *mut ngx_http_upstream_srv_conf_t,
) -> ngx_int_t {
    // SAFETY: nginx calls this with the configuration that it has read.
    let cf = unsafe { Conf::new(cf) };

    // SAFETY: `us` is a singlet made above, and nginx initializes it once.
    let pair = unsafe {
        Upstream::from_ptr(us).and_then(|singlet| Some((singlet, singlet::host_of(singlet)?)))
    };

    match pair.map(|(singlet, host)| init(cf, singlet, host)) {
        Some(Ok(())) => NGX_OK as ngx_int_t,
        _ => NGX_ERROR as ngx_int_t,
    }
}

fn init(cf: Conf, singlet: Upstream, host: Upstream) -> ConfResult {
    // The directives `hash`, `ip_hash` and `random` take this ability from the host's lines.
    if !host.supports(Ability::Backup) {
        level(singlet);
    }

    singlet::init_like(cf, singlet, host)
}

/// The weight of the only active server matters to nobody; but a consistent hash has a table of
/// 2.5 KB for each unit of it.
fn level(singlet: Upstream) {
    for server in singlet.servers_mut() {
        if server.backup() == 0 {
            server.weight = 1;
        }
    }
}

/// Modules that prepare upstreams only now may have left out those that share what they keep with
/// one that was prepared before: each singlet chooses its peers as its host does.
pub fn settle(cf: Conf) {
    for upstream in Upstream::declared(cf) {
        if let Some(host) = HostConf::of(upstream).and_then(|conf| conf.host.get()) {
            upstream.set_peer_init(host.peer_init());
        }
    }
}
