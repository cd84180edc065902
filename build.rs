//! Hands nginx's build configuration on to the module: its features as `cfg`, and the C accessors
//! of `src/ffi/*.c`, compiled with nginx's own headers and flags.
#![allow(clippy::expect_used, reason = "a build script fails by panicking")]
use std::env;
use std::path::PathBuf;

const SOURCES: [&str; 3] = ["src/ffi/accessors.c", "src/ffi/http2.c", "src/ffi/peers.c"];
const HEADERS: [&str; 3] = ["src/ffi/accessors.h", "src/ffi/http2.h", "src/ffi/peers.h"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for file in SOURCES.iter().chain(&HEADERS) {
        println!("cargo::rerun-if-changed={file}");
    }

    export_nginx_features();

    let include = env::var_os("DEP_NGINX_INCLUDE").expect("nginx-sys exports its include paths");
    let include: Vec<PathBuf> = env::split_paths(&include).collect();
    let cflags = env::var("DEP_NGINX_CFLAGS").unwrap_or_default();
    let cflags: Vec<&str> = cflags.split_whitespace().collect();

    compile_accessors(&include, &cflags);
    declare_accessors(&include, &cflags);
}

/// `cfg(ngx_feature = "...")` for each feature that nginx was configured with.
fn export_nginx_features() {
    let check = env::var("DEP_NGINX_FEATURES_CHECK").unwrap_or("any()".to_string());
    println!("cargo::rustc-check-cfg=cfg(ngx_feature, values({check}))");

    let features = env::var("DEP_NGINX_FEATURES").unwrap_or_default();
    for feature in features.split(',').map(str::trim).filter(|f| !f.is_empty()) {
        println!("cargo::rustc-cfg=ngx_feature=\"{feature}\"");
    }
}

fn compile_accessors(include: &[PathBuf], cflags: &[&str]) {
    let mut build = cc::Build::new();
    build.files(SOURCES).includes(include).opt_level(2);
    build.flag("-Wno-unused-parameter");

    for flag in cflags {
        build.flag(flag);
    }

    build.compile("ngx_http_combined_upstreams_accessors");
}

/// Declares our own functions only: nginx's types come from nginx-sys.
fn declare_accessors(include: &[PathBuf], cflags: &[&str]) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    bindgen::Builder::default()
        .headers(HEADERS)
        .clang_args(include.iter().map(|path| format!("-I{}", path.display())))
        .clang_args(cflags)
        .allowlist_function("ngx_http_combined_upstreams_.*")
        .allowlist_var("NGX_HTTP_COMBINED_UPSTREAMS_.*")
        .allowlist_type("ngx_http_combined_upstreams_.*")
        .blocklist_type(
            "ngx_(http_)?(request|array|str|regex|conf|pool|cycle|upstream|uint|int|module).*",
        )
        .allowlist_recursively(false)
        .layout_tests(false)
        .use_core()
        .generate()
        .expect("declarations of the C accessors")
        .write_to_file(out.join("accessors.rs"))
        .expect("writable OUT_DIR");
}
