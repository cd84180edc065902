//! What the module keeps for an `upstream {}` block. The singlets of a host share it.

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;

use ngx::ffi::{ngx_conf_t, ngx_http_upstream_init_peer_pt};

use super::index::Index;
use crate::ffi::conf::Conf;
use crate::ffi::upstream::Upstream;

/// The module's configuration of an upstream.
#[derive(Default)]
pub struct HostConf {
    /// The upstream, once it has singlets.
    pub host: Cell<Option<Upstream>>,
    /// Whether its balancer is `random`, once a singlet has asked.
    pub random: Cell<Option<bool>>,
    /// In the upstream that was declared first: all of them by their names.
    pub index: Cell<Option<&'static Index>>,
    /// `extend_single_peers`
    pub extends: Cell<bool>,
    /// The balancer's own way to prepare the choice of a peer, where ours stands before it.
    pub peer_init: Cell<ngx_http_upstream_init_peer_pt>,
}

impl HostConf {
    /// None: the upstream has no block.
    pub fn of<'a>(upstream: Upstream) -> Option<&'a Self> {
        // SAFETY: `create_srv_conf` makes this the module's configuration.
        unsafe { upstream.srv_conf() }
    }
}

/// The declared upstream of that name, in whatever case.
pub fn find(cf: Conf, name: &[u8]) -> Option<Upstream> {
    index(cf)
        .and_then(|index| index.find(cf, name))
        .or_else(|| Upstream::find(cf, name))
}

fn index(cf: Conf) -> Option<&'static Index> {
    let place = &Upstream::declared(cf).find_map(HostConf::of)?.index;

    if place.get().is_none() {
        place.set(cf.keep(Index::default()).map(|index| &*index));
    }

    place.get()
}

/// nginx calls this for each upstream {} block, and for each other one that may hold servers.
pub unsafe extern "C" fn create_srv_conf(cf: *mut ngx_conf_t) -> *mut c_void {
    // SAFETY: nginx calls this with the configuration that it is reading.
    let cf = unsafe { Conf::new(cf) };

    match cf.alloc::<HostConf>() {
        Ok(conf) => {
            // SAFETY: the memory is large enough, aligned for any type, and nobody else's yet.
            unsafe { conf.write(HostConf::default()) };
            conf.as_ptr().cast()
        }
        Err(_) => ptr::null_mut(),
    }
}
