//! What the module keeps for an `upstream {}` block. The singlets of a host share it.

use core::cell::{Cell, RefCell};
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use ngx::ffi::{ngx_conf_t, ngx_http_upstream_init_peer_pt};

use super::index::Index;
use crate::ffi::conf::Conf;
use crate::ffi::peers::Random;
use crate::ffi::upstream::Upstream;

/// How many blocks have begun in this process: only their order counts.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// The module's configuration of an upstream.
#[derive(Default)]
pub struct HostConf {
    /// Greater than that of each block that began before.
    number: usize,
    /// The upstream, once it has singlets.
    pub host: Cell<Option<Upstream>>,
    /// Its singlets in their order.
    pub singlets: RefCell<Vec<Upstream>>,
    /// Whether one of the module's directives stands in the block.
    pub combines: Cell<bool>,
    /// In the upstream that was declared first: all of them by their names.
    pub index: Cell<Option<&'static Index>>,
    /// `extend_single_peers`
    pub extends: Cell<bool>,
    /// The balancer's own way to prepare the choice of a peer, where ours stands before it.
    pub peer_init: Cell<ngx_http_upstream_init_peer_pt>,
    /// The module `random`, where its table is looked after at run time.
    pub random: Cell<Option<Random>>,
    /// See `peer_init`: the same where that is done.
    pub unmended_peer_init: Cell<ngx_http_upstream_init_peer_pt>,
}

impl HostConf {
    fn new() -> Self {
        Self {
            number: BLOCKS.fetch_add(1, Ordering::Relaxed),
            ..Self::default()
        }
    }

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

/// The upstreams declared so far in the order of their blocks, each with its singlets behind it.
/// nginx's own list has one that a URL implied before in the place that it got then.
///
/// To be called while the configuration is read: later singlets have the configuration of their host.
pub fn in_order(cf: Conf) -> Vec<Upstream> {
    let mut blocks: Vec<_> = Upstream::declared(cf)
        .filter_map(|upstream| Some((HostConf::of(upstream)?, upstream)))
        .collect();
    blocks.sort_by_key(|(conf, _)| conf.number);

    let mut upstreams = Vec::with_capacity(blocks.len());
    for (conf, upstream) in blocks {
        upstreams.push(upstream);
        upstreams.extend_from_slice(&conf.singlets.borrow());
    }

    upstreams
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

    match cf.keep(HostConf::new()) {
        Some(conf) => ptr::from_mut(conf).cast(),
        None => ptr::null_mut(),
    }
}
