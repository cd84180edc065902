//! The module as nginx numbers it: where its configuration and its contexts stand.

use core::ffi::CStr;
use core::ptr::NonNull;

use ngx::ffi::{ngx_http_conf_ctx_t, ngx_module_t};

unsafe extern "C" {
    // Defined in lib.rs. Named here again, so that no file has to look up to it.
    static mut ngx_http_combined_upstreams_module: ngx_module_t;
}

/// The module's place among the http modules of this cycle.
#[inline]
pub fn ctx_index() -> usize {
    // SAFETY: nginx numbers the module when it is loaded, before any of its code runs, and writes
    // the number no more while requests are served.
    unsafe { ngx_http_combined_upstreams_module.ctx_index }
}

/// The module's main configuration in an http context.
///
/// # Safety
///
/// `T` is what the module's `create_main_conf` makes.
pub unsafe fn main_conf<'a, T>(ctx: *const ngx_http_conf_ctx_t) -> Option<&'a T> {
    // SAFETY: nginx gives each http context an array with a slot for each http module.
    let conf = unsafe { *(*ctx).main_conf.add(ctx_index()) };

    // SAFETY: the caller vouches for the type; configuration lives as long as its cycle.
    NonNull::new(conf.cast()).map(|conf| unsafe { conf.as_ref() })
}

/// A module that may be absent from this nginx.
///
/// # Safety
///
/// `modules` is a cycle's null-terminated array of modules.
pub unsafe fn by_name<'a>(
    modules: *mut *mut ngx_module_t,
    name: &CStr,
) -> Option<&'a ngx_module_t> {
    let mut next = modules;

    loop {
        // SAFETY: the array ends with a null pointer, which ends the loop.
        let module = unsafe { (*next).as_ref() }?;

        // SAFETY: nginx refuses to load a module without a name, a C string.
        if !module.name.is_null() && unsafe { CStr::from_ptr(module.name) } == name {
            return Some(module);
        }

        // SAFETY: the module just read was not the terminator.
        next = unsafe { next.add(1) };
    }
}
