//! The variables: `$upstrand_NAME`, which makes a request walk, and those that show its walk.

use core::ptr;

use combined_upstreams_core::text::Sink;
use combined_upstreams_core::trace::{self, Peer};
use ngx::ffi::{
    NGX_ERROR, NGX_HTTP_VAR_NOCACHEABLE, NGX_OK, ngx_http_request_t, ngx_http_upstream_state_t,
    ngx_http_variable_value_t, ngx_int_t,
};

use super::conf::Upstrand;
use super::request::Record;
use crate::ffi::conf::{Conf, ConfResult};
use crate::ffi::request::{Exchange, Request};
use crate::ffi::variable;

const PREFIX: &[u8] = b"upstrand_";

/// A variable that shows the walks of a request.
struct StatusVariable {
    /// What follows `upstrand_` in its name.
    name: &'static [u8],
    write: fn(Request, &Record, &mut dyn Sink),
}

const STATUS_VARIABLES: &[StatusVariable] = &[
    StatusVariable {
        name: b"path",
        write: |_, record, text| trace::path(record.hops().map(|hop| hop.name), text),
    },
    StatusVariable {
        name: b"addr",
        write: |r, record, text| {
            each_server(r, record, text, |state, text| {
                // SAFETY: a server that was tried has a name, which lives as long as the request.
                let peer = unsafe { state.peer.as_ref() };
                text.put(peer.map_or(&[], |peer| peer.as_bytes()));
            })
        },
    },
    StatusVariable {
        name: b"cache_status",
        write: cache_status,
    },
    StatusVariable {
        name: b"connect_time",
        write: |r, record, text| {
            each_server(r, record, text, |state, text| {
                msec(state.connect_time, text)
            })
        },
    },
    StatusVariable {
        name: b"header_time",
        write: |r, record, text| {
            each_server(r, record, text, |state, text| msec(state.header_time, text))
        },
    },
    StatusVariable {
        name: b"response_length",
        write: |r, record, text| {
            each_server(r, record, text, |state, text| {
                trace::number(state.response_length as u64, text);
            })
        },
    },
    StatusVariable {
        name: b"response_time",
        write: |r, record, text| {
            each_server(r, record, text, |state, text| {
                msec(state.response_time, text)
            })
        },
    },
    StatusVariable {
        name: b"status",
        write: |r, record, text| {
            each_server(r, record, text, |state, text| match state.status {
                0 => text.put(b"-"),
                status => trace::number(status as u64, text),
            })
        },
    },
];

/// Whether this is what follows `upstrand_` in the name of a variable that shows walks: no upstrand
/// may be named so.
pub fn is_status_variable(name: &[u8]) -> bool {
    STATUS_VARIABLES
        .iter()
        .any(|variable| variable.name.eq_ignore_ascii_case(name))
}

/// Adds the variables that show walks; nginx calls this before it reads the http block.
pub fn ngx_http_upstrand_add_status_variables(cf: Conf) -> ConfResult {
    STATUS_VARIABLES.iter().try_for_each(|variable| {
        variable::add(
            cf,
            &[PREFIX, variable.name].concat(),
            NGX_HTTP_VAR_NOCACHEABLE,
            ngx_http_upstrand_status_variable,
            ptr::from_ref(variable) as usize,
        )
    })
}

/// Adds an upstrand's own variable.
pub fn add_upstrand(cf: Conf, upstrand: &'static Upstrand) -> ConfResult {
    variable::add(
        cf,
        &[PREFIX, &upstrand.name].concat(),
        NGX_HTTP_VAR_NOCACHEABLE,
        ngx_http_upstrand_variable,
        ptr::from_ref(upstrand) as usize,
    )
}

/// `$upstrand_NAME`: the name of the current hop's upstream. Begins the hop where a pass directive
/// asks for it.
unsafe extern "C" fn ngx_http_upstrand_variable(
    r: *mut ngx_http_request_t,
    v: *mut ngx_http_variable_value_t,
    data: usize,
) -> ngx_int_t {
    // SAFETY: nginx evaluates a variable for a live request.
    let r = unsafe { Request::new(r) };

    // SAFETY: `add_upstrand` put an upstrand there, which lives as long as the configuration.
    let upstrand = unsafe { &*(data as *const Upstrand) };

    answer(v, current_upstream(r, upstrand).map(Some))
}

/// The name of the upstream that the request's walk through the upstrand is at. None: out of memory.
pub fn current_upstream(r: Request, upstrand: &'static Upstrand) -> Option<&'static [u8]> {
    let (record, visit) = Record::visit(r, upstrand)?;

    match r.upstream().filter(|u| u.is_being_set_up()) {
        Some(exchange) if !r.is_post_action() => record.begin_hop(visit, exchange)?,
        _ => record.look(),
    }

    Some(visit.name())
}

/// `$upstrand_path`, `$upstrand_status` and their like.
unsafe extern "C" fn ngx_http_upstrand_status_variable(
    r: *mut ngx_http_request_t,
    v: *mut ngx_http_variable_value_t,
    data: usize,
) -> ngx_int_t {
    // SAFETY: nginx evaluates a variable for a live request.
    let r = unsafe { Request::new(r) };

    // SAFETY: `ngx_http_upstrand_add_status_variables` put a static one there.
    let variable = unsafe { &*(data as *const StatusVariable) };

    let value = match Record::find(r).filter(|record| record.hops().next().is_some()) {
        None => Some(None),
        Some(record) => r.text(|text| (variable.write)(r, record, text)).map(Some),
    };

    answer(v, value)
}

/// `(name) value` for each hop, the value joined of those of the hop's servers.
fn each_server(
    r: Request,
    record: &Record,
    text: &mut dyn Sink,
    mut write: impl FnMut(&ngx_http_upstream_state_t, &mut dyn Sink),
) {
    let states = r.upstream_states();
    let hops = record.hops().map(|hop| (hop.name, hop));

    trace::values(hops, text, |hop, text| {
        let states = &states[hop.states(states.len())];
        let peers = states.iter().map(|state| match state.peer.is_null() {
            true => Peer::Separator,
            false => Peer::Tried(state),
        });
        trace::peers(peers, text, &mut write);
    });
}

/// A cache's status belongs to an exchange, not to a server.
fn cache_status(r: Request, record: &Record, text: &mut dyn Sink) {
    let hops = record.hops().map(|hop| (hop.name, hop));

    trace::values(hops, text, |hop, text| {
        // A failover location may proxy plainly: then the request's exchange is of no hop.
        let exchange = hop
            .exchange()
            .or_else(|| r.upstream().filter(|exchange| !record.knows(*exchange)));

        if let Some(status) = exchange.and_then(Exchange::cache_status) {
            text.put(status);
        }
    });
}

/// Seconds with milliseconds, of nginx's milliseconds; all bits set mean that there is no time.
fn msec(msec: usize, text: &mut dyn Sink) {
    trace::seconds((msec != usize::MAX).then_some(msec as u64), text);
}

/// Fills in a variable's value: none if there is not any, an error if memory is out.
pub fn answer(v: *mut ngx_http_variable_value_t, value: Option<Option<&[u8]>>) -> ngx_int_t {
    let Some(text) = value else {
        return NGX_ERROR as ngx_int_t;
    };

    // SAFETY: nginx passes a value to fill in.
    unsafe { variable::set_value(v, text) };

    NGX_OK as ngx_int_t
}
