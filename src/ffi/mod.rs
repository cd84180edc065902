//! What the ngx crate lacks: safe wrappers around the few parts of nginx that the module touches.

pub mod accel_redirect;
pub mod body;
pub mod complex_value;
pub mod conf;
pub mod headers_out;
pub mod module;
pub mod peers;
pub mod regex;
pub mod request;
pub mod singlet;
pub mod upstream;
pub mod variable;

/// The C functions of `accessors.c`, `http2.c` and `peers.c`.
mod accessors {
    #![allow(missing_docs, non_camel_case_types)]

    use ngx::ffi::*;

    include!(concat!(env!("OUT_DIR"), "/accessors.rs"));
}
