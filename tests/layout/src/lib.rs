//! The structures of nginx that the module touches, as nginx-sys declares them, against what the C
//! compiler makes of them: bindgen has got bit fields wrong before.

#![cfg(test)]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::{offset_of, size_of, zeroed};

use nginx_sys::*;

unsafe extern "C" {
    fn layout_field(n: usize, size: *mut usize, offset: *mut usize) -> *const c_char;
    fn layout_bit(n: usize, memory: *mut u8) -> *const c_char;
    fn layout_request_size() -> usize;
    fn layout_request_bit(n: usize, memory: *mut u8) -> *const c_char;
    fn layout_get(name: *const c_char, r: *mut u8) -> c_int;
    fn layout_set(name: *const c_char, r: *mut u8, value: usize) -> c_int;
    fn layout_carry(from: *mut u8, to: *mut u8);
}

/// The number of bytes of any structure here is less.
const MEMORY: usize = 16 * 1024;

fn name(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }

    // SAFETY: the C side returns NULL or a literal.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

macro_rules! fields {
    ($($type:ident: $($field:ident)*;)*) => {
        HashMap::from([$($(
            (
                concat!(stringify!($type), ".", stringify!($field)),
                (size_of::<$type>(), offset_of!($type, $field)),
            ),
        )*)*])
    };
}

#[test]
fn fields_stand_where_c_has_them() {
    let rust: HashMap<&str, (usize, usize)> = fields! {
        ngx_http_request_t: connection ctx main_conf loc_conf write_event_handler upstream
            upstream_states pool header_in headers_out request_body method http_version method_name
            main post_subrequest content_handler limit_rate request_length err_status;
        ngx_http_headers_out_t: headers trailers www_authenticate;
        ngx_http_request_body_t: bufs chunked;
        ngx_http_upstream_t: conf headers_in resolved buffer input_filter_init input_filter
            input_filter_ctx state cleanup;
        ngx_http_upstream_headers_in_t: status_n;
        ngx_http_upstream_resolved_t: host no_port;
        ngx_http_upstream_state_t: status response_time connect_time header_time response_length
            bytes_sent peer;
        ngx_http_upstream_server_t: addrs naddrs weight max_conns max_fails fail_timeout down;
        ngx_http_upstream_srv_conf_t: peer srv_conf servers flags host;
        ngx_http_upstream_header_t: handler;
        ngx_http_upstream_main_conf_t: headers_in_hash upstreams;
        ngx_http_core_main_conf_t: phases;
    };

    let mut seen = 0;
    loop {
        let (mut size, mut offset) = (0, 0);
        // SAFETY: the C side writes the two numbers.
        let Some(field) = name(unsafe { layout_field(seen, &mut size, &mut offset) }) else {
            break;
        };
        let rust = rust.get(field.as_str()).copied();

        // Only the offsets count in a request: its bit fields come behind all of them.
        match field.starts_with("ngx_http_request_t.") {
            true => assert_eq!(rust.map(|(_, offset)| offset), Some(offset), "{field}"),
            false => assert_eq!(rust, Some((size, offset)), "{field}"),
        }
        seen += 1;
    }

    assert_eq!(seen, rust.len());
}

/// All memory of a structure in which `set` was called.
fn bytes_of<T>(set: impl FnOnce(&mut T)) -> Vec<u8> {
    // SAFETY: these structures of nginx may be all zeros; nginx makes them by ngx_pcalloc.
    let mut value: T = unsafe { zeroed() };
    set(&mut value);

    // SAFETY: a value of this size; its padding was zeroed with the rest.
    let bytes =
        unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
    let mut bytes = bytes.to_vec();
    bytes.resize(MEMORY, 0);
    bytes
}

#[test]
fn bit_fields_that_rust_sets_are_those_of_c() {
    type Upstream = ngx_http_upstream_t;
    type Value = ngx_variable_value_t;

    let rust = [
        bytes_of::<Upstream>(|u| u.set_store(1)),
        bytes_of::<Upstream>(|u| u.set_cacheable(1)),
        bytes_of::<Upstream>(|u| u.set_upgrade(1)),
        bytes_of::<Upstream>(|u| u.set_keepalive(1)),
        bytes_of::<Upstream>(|u| u.set_request_sent(1)),
        bytes_of::<Upstream>(|u| u.set_request_body_sent(1)),
        bytes_of::<ngx_http_upstream_headers_in_t>(|h| h.set_connection_close(1)),
        bytes_of::<ngx_http_upstream_server_t>(|s| s.set_backup(1)),
        bytes_of::<Value>(|v| v.set_valid(1)),
        bytes_of::<Value>(|v| v.set_no_cacheable(1)),
        bytes_of::<Value>(|v| v.set_not_found(1)),
        bytes_of::<Value>(|v| v.set_escape(1)),
        bytes_of::<ngx_buf_t>(|b| b.set_temporary(1)),
    ];

    let mut seen = 0;
    loop {
        let mut c = vec![0; MEMORY];
        // SAFETY: the memory is larger than any of the structures, and aligned as C's malloc is.
        let Some(field) = name(unsafe { layout_bit(seen, c.as_mut_ptr()) }) else {
            break;
        };
        assert!(rust[seen] == c, "{field}");
        seen += 1;
    }

    assert_eq!(seen, rust.len());
}

/// A request that is zeroed but for the bit field of this number, and the field's name.
fn request_bit(number: usize) -> Option<(String, Vec<u8>)> {
    let mut memory = vec![0; MEMORY];
    // SAFETY: the memory is larger than a request, and aligned as C's malloc is.
    let name = name(unsafe { layout_request_bit(number, memory.as_mut_ptr()) })?;
    Some((name, memory))
}

fn request_bits() -> Vec<(String, Vec<u8>)> {
    (0..).map_while(request_bit).collect()
}

#[test]
fn accessors_read_and_write_the_bit_they_are_named_after() {
    // SAFETY: no arguments.
    assert!(unsafe { layout_request_size() } <= MEMORY);
    let (mut read, mut written) = (0, 0);

    for (name, mut one) in request_bits() {
        let c_name = CString::new(name.as_str()).unwrap();
        let mut zero = vec![0; MEMORY];

        // SAFETY: each memory is larger than a request.
        unsafe {
            if layout_get(c_name.as_ptr(), zero.as_mut_ptr()) == 0 {
                assert_eq!(layout_get(c_name.as_ptr(), one.as_mut_ptr()), 1, "{name}");
                read += 1;
            }
            if layout_set(c_name.as_ptr(), zero.as_mut_ptr(), 1) == 0 {
                assert!(zero == one, "{name}");
                layout_set(c_name.as_ptr(), zero.as_mut_ptr(), 0);
                assert!(zero.iter().all(|byte| *byte == 0), "{name}");
                written += 1;
            }
        }
    }

    // The getter of `cached` answers 0 where nginx has no cache.
    assert!((5..=6).contains(&read), "{read}");
    assert_eq!(written, 4);
}

/// What the module puts back in a request is the one bit field, and only those of a response.
#[test]
fn bit_fields_of_a_response_are_put_back() {
    const OTHERS: [&str; 6] = [
        "header_only",
        "internal",
        "filter_finalize",
        "post_action",
        "request_body_no_buffering",
        "reading_body",
    ];

    for (name, mut one) in request_bits() {
        let mut other = vec![0; MEMORY];
        // SAFETY: each memory is larger than a request.
        unsafe { layout_carry(one.as_mut_ptr(), other.as_mut_ptr()) };
        assert_eq!(other == one, !OTHERS.contains(&name.as_str()), "{name}");

        let mut ones = one.clone();
        let mut zero = vec![0; MEMORY];
        // SAFETY: as above.
        unsafe { layout_carry(zero.as_mut_ptr(), ones.as_mut_ptr()) };
        assert_eq!(ones == zero, !OTHERS.contains(&name.as_str()), "{name}");
    }
}

/// Sets a bit field by the generated code.
type SetBit = fn(&mut ngx_http_request_t);

/// In the order of the numbers that C gives them.
const GENERATED: &[SetBit] = &[
    |r| r.set_header_only(1),
    |r| r.set_error_page(1),
    |r| r.set_internal(1),
    |r| r.set_filter_finalize(1),
    |r| r.set_post_action(1),
    |r| r.set_request_body_no_buffering(1),
    |r| r.set_reading_body(1),
    |r| r.set_keepalive(1),
    |r| r.set_lingering_close(1),
    |r| r.set_limit_rate_set(1),
    |r| r.set_allow_ranges(1),
    |r| r.set_single_range(1),
    |r| r.set_subrequest_ranges(1),
    |r| r.set_disable_not_modified(1),
    #[cfg(ngx_feature = "http_cache")]
    |r| r.set_cached(1),
];

/// From nginx 1.29.3 on, the generated code writes to other bits than nginx reads: that is why
/// there are accessors in C. Should a newer bindgen get it right, this test says so.
#[test]
fn generated_bit_fields_of_a_request_are_right_only_before_1_29_3() {
    let version: u64 = env!("NGINX_VERSION_NUMBER").parse().unwrap();
    let bits = request_bits();
    assert_eq!(bits.len(), GENERATED.len());

    let wrong: Vec<&str> = bits
        .iter()
        .zip(GENERATED)
        .filter(|((_, c), set)| bytes_of::<ngx_http_request_t>(*set) != *c)
        .map(|((name, _), _)| name.as_str())
        .collect();

    println!("nginx {version}: wrong in the generated code: {wrong:?}");
    assert_eq!(wrong.is_empty(), version < 1_029_003, "{wrong:?}");
}
