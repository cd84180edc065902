//! `ngx_http_combined_upstreams_module`: combines upstreams at configuration time, and fails over
//! between whole upstreams at run time.
//!
//! This file is the module's table of contents: its directives, its context, its life cycle.

#![allow(
    clippy::missing_safety_doc,
    reason = "callbacks: only nginx calls them"
)]

mod ffi;
mod upstrand;
mod upstream;

use core::ffi::{c_char, c_void};
use core::ptr;

use ngx::ffi::{
    NGX_CONF_1MORE, NGX_CONF_2MORE, NGX_CONF_ANY, NGX_CONF_BLOCK, NGX_CONF_NOARGS, NGX_CONF_TAKE1,
    NGX_ERROR, NGX_HTTP_LIF_CONF, NGX_HTTP_LOC_CONF, NGX_HTTP_LOC_CONF_OFFSET, NGX_HTTP_MAIN_CONF,
    NGX_HTTP_MODULE, NGX_HTTP_SRV_CONF, NGX_HTTP_SRV_CONF_OFFSET, NGX_HTTP_UPS_CONF, NGX_OK,
    ngx_command_t, ngx_conf_t, ngx_cycle_t, ngx_http_module_t, ngx_int_t, ngx_module_t,
};
use ngx::ngx_string;

use crate::ffi::conf::{Conf, ConfResult};
use crate::upstrand::conf::MainConf;

static mut COMMANDS: [ngx_command_t; 6] = [
    ngx_command_t {
        name: ngx_string!("add_upstream"),
        type_: (NGX_HTTP_UPS_CONF | NGX_CONF_1MORE) as usize,
        set: Some(upstream::add::ngx_http_upstream_add_upstream),
        conf: NGX_HTTP_SRV_CONF_OFFSET,
        offset: 0,
        post: ptr::null_mut(),
    },
    ngx_command_t {
        name: ngx_string!("combine_server_singlets"),
        type_: (NGX_HTTP_UPS_CONF | NGX_CONF_ANY) as usize,
        set: Some(upstream::singlets::ngx_http_upstream_combine_server_singlets),
        conf: NGX_HTTP_SRV_CONF_OFFSET,
        offset: 0,
        post: ptr::null_mut(),
    },
    ngx_command_t {
        name: ngx_string!("extend_single_peers"),
        type_: (NGX_HTTP_UPS_CONF | NGX_CONF_NOARGS) as usize,
        set: Some(upstream::extend::ngx_http_upstream_extend_single_peers),
        conf: NGX_HTTP_SRV_CONF_OFFSET,
        offset: 0,
        post: ptr::null_mut(),
    },
    ngx_command_t {
        name: ngx_string!("upstrand"),
        type_: (NGX_HTTP_MAIN_CONF | NGX_CONF_BLOCK | NGX_CONF_TAKE1) as usize,
        set: Some(upstrand::block::ngx_http_upstrand_block),
        conf: 0,
        offset: 0,
        post: ptr::null_mut(),
    },
    ngx_command_t {
        name: ngx_string!("dynamic_upstrand"),
        type_: (NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_HTTP_LIF_CONF | NGX_CONF_2MORE)
            as usize,
        set: Some(upstrand::dynamic::ngx_http_dynamic_upstrand),
        conf: NGX_HTTP_LOC_CONF_OFFSET,
        offset: 0,
        post: ptr::null_mut(),
    },
    ngx_command_t::empty(),
];

static CONTEXT: ngx_http_module_t = ngx_http_module_t {
    preconfiguration: Some(preconfiguration),
    postconfiguration: Some(postconfiguration),
    create_main_conf: Some(create_main_conf),
    init_main_conf: None,
    create_srv_conf: Some(upstream::conf::create_srv_conf),
    merge_srv_conf: None,
    create_loc_conf: Some(upstrand::dynamic::create_loc_conf),
    merge_loc_conf: Some(upstrand::dynamic::merge_loc_conf),
};

/// The module, as `load_module` and nginx's own build look it up.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mut ngx_http_combined_upstreams_module: ngx_module_t = ngx_module_t {
    ctx: &raw const CONTEXT as *mut c_void,
    commands: (&raw mut COMMANDS).cast(),
    type_: NGX_HTTP_MODULE as usize,
    init_module: Some(init_module),
    init_process: Some(init_process),
    ..ngx_module_t::default()
};

/// The tables that load_module reads.
#[cfg(feature = "export-modules")]
mod export {
    #![allow(missing_docs, reason = "made by the ngx crate's macro")]

    use super::ngx_http_combined_upstreams_module;

    ngx::ngx_modules!(ngx_http_combined_upstreams_module);
}

unsafe extern "C" fn preconfiguration(cf: *mut ngx_conf_t) -> ngx_int_t {
    // SAFETY: nginx calls this with the configuration that it is about to read.
    let cf = unsafe { Conf::new(cf) };

    status(
        cf,
        upstrand::variables::ngx_http_upstrand_add_status_variables(cf),
    )
}

unsafe extern "C" fn create_main_conf(cf: *mut ngx_conf_t) -> *mut c_void {
    // SAFETY: nginx calls this with the configuration that it is about to read.
    let cf = unsafe { Conf::new(cf) };

    match cf.keep(MainConf::default()) {
        Some(mcf) => ptr::from_mut(mcf).cast(),
        None => ptr::null_mut(),
    }
}

unsafe extern "C" fn postconfiguration(cf: *mut ngx_conf_t) -> ngx_int_t {
    // SAFETY: nginx calls this with the configuration that it has read.
    let cf = unsafe { Conf::new(cf) };

    status(cf, install(cf))
}

fn install(cf: Conf) -> ConfResult {
    upstream::singlets::settle(cf);
    upstream::random::install(cf)?;
    upstream::extend::install(cf);

    upstrand::filter::install();
    upstrand::dynamic::resolve(cf)?;
    install_upstrands(cf)
}

/// What requests pass through if there is an upstrand, and are spared if there is none.
fn install_upstrands(cf: Conf) -> ConfResult {
    // SAFETY: `create_main_conf` makes this the module's main configuration.
    let mcf = unsafe { ffi::module::main_conf::<MainConf>(cf.http_ctx()) };

    if mcf.is_none_or(|mcf| mcf.upstrands.borrow().is_empty()) {
        return Ok(());
    }

    upstrand::reentry::install(cf)?;
    upstrand::accel_redirect::install(cf)
}

unsafe extern "C" fn init_module(_cycle: *mut ngx_cycle_t) -> ngx_int_t {
    upstrand::filter::ensure_first();

    NGX_OK as ngx_int_t
}

unsafe extern "C" fn init_process(_cycle: *mut ngx_cycle_t) -> ngx_int_t {
    upstrand::filter::ensure_first();

    NGX_OK as ngx_int_t
}

fn status(cf: Conf, result: ConfResult) -> ngx_int_t {
    let rv: *mut c_char = cf.finish(result);

    if rv.is_null() {
        NGX_OK as ngx_int_t
    } else {
        NGX_ERROR as ngx_int_t
    }
}
