//! The upstreams of a configuration by their names: nginx keeps a list only, and thousands of
//! `add_upstream` lines would each go through all of it.

use core::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::ffi::conf::Conf;
use crate::ffi::upstream::Upstream;

/// The upstreams that were there at the last look, by their names in lower case.
#[derive(Default)]
pub struct Index {
    known: Cell<usize>,
    upstreams: RefCell<HashMap<Vec<u8>, Upstream>>,
}

impl Index {
    /// The declared upstream of that name, in whatever case. None does not mean that there is none:
    /// nginx's list may be in another order than at the last look.
    pub fn find(&self, cf: Conf, name: &[u8]) -> Option<Upstream> {
        let mut upstreams = self.upstreams.borrow_mut();
        let all = Upstream::all(cf);

        for upstream in all.iter().skip(self.known.get()) {
            // Of those that URLs imply several may have one name, but then none is declared.
            upstreams.insert(upstream.name().to_ascii_lowercase(), *upstream);
        }
        self.known.set(all.len());

        upstreams
            .get(&name.to_ascii_lowercase())
            .copied()
            .filter(|upstream| upstream.is_declared())
    }
}
