//! Compiles what the C compiler has to say of nginx's structures, and the module's accessors.
#![allow(clippy::expect_used, reason = "a build script fails by panicking")]

use std::env;

fn main() {
    const SOURCES: [&str; 2] = ["layout.c", "../../src/ffi/accessors.c"];

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../src/ffi/accessors.h");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }

    let include = env::var_os("DEP_NGINX_INCLUDE").expect("nginx-sys exports its include paths");
    let mut build = cc::Build::new();
    build.files(SOURCES).includes(env::split_paths(&include));
    build.include("../../src/ffi").flag("-Wno-unused-parameter");
    // What calls nginx is dropped: a test is not linked with it.
    build.flag("-ffunction-sections").flag("-fdata-sections");

    for flag in env::var("DEP_NGINX_CFLAGS")
        .unwrap_or_default()
        .split_whitespace()
    {
        build.flag(flag);
    }

    build.compile("combined_upstreams_layout");

    let check = env::var("DEP_NGINX_FEATURES_CHECK").unwrap_or("any()".to_string());
    println!("cargo::rustc-check-cfg=cfg(ngx_feature, values({check}))");
    let features = env::var("DEP_NGINX_FEATURES").unwrap_or_default();
    for feature in features.split(',').map(str::trim).filter(|f| !f.is_empty()) {
        println!("cargo::rustc-cfg=ngx_feature=\"{feature}\"");
    }

    let version = env::var("DEP_NGINX_VERSION_NUMBER").unwrap_or_default();
    println!("cargo::rustc-env=NGINX_VERSION_NUMBER={version}");
}
