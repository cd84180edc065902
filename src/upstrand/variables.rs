//! The variables: `$upstrand_NAME`, which makes a request walk, and those that show its walk.

use core::ptr;

use combined_upstreams_core::trace::{self, Peer};
use ngx::ffi::{
    NGX_ERROR, NGX_HTTP_VAR_NOCACHEABLE, NGX_OK, ngx_http_add_variable, ngx_http_get_variable_pt,
    ngx_http_request_t, ngx_http_upstream_state_t, ngx_http_variable_value_t, ngx_int_t,
};

use super::conf::Upstrand;
use super::request::{Hop, Record};
use crate::ffi::conf::{Conf, ConfError, ConfResult};
use crate::ffi::request::{Flags, Request};

const PREFIX: &[u8] = b"upstrand_";

/// A variable that shows the walks of a request.
struct StatusVariable {
    /// What follows `upstrand_` in its name.
    name: &'static [u8],
    write: fn(&Record, &[ngx_http_upstream_state_t]) -> Vec<u8>,
}

const STATUS_VARIABLES: &[StatusVariable] = &[
    StatusVariable {
        name: b"path",
        write: |record, _| trace::path(record.hops().map(Hop::name)),
    },
    StatusVariable {
        name: b"status",
        write: |record, states| {
            for_each_hop(record, states, |state, text| match state.status {
                0 => text.push(b'-'),
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
        add(
            cf,
            variable.name,
            Some(ngx_http_upstrand_status_variable),
            ptr::from_ref(variable) as usize,
        )
    })
}

/// Adds an upstrand's own variable.
pub fn add_upstrand(cf: Conf, upstrand: &'static Upstrand) -> ConfResult {
    add(
        cf,
        &upstrand.name,
        Some(ngx_http_upstrand_variable),
        ptr::from_ref(upstrand) as usize,
    )
}

fn add(cf: Conf, name: &[u8], handler: ngx_http_get_variable_pt, data: usize) -> ConfResult {
    let mut name = cf.string(&[PREFIX, name].concat())?;

    // SAFETY: nginx copies the name into the configuration's memory, and logs what is wrong.
    let variable = unsafe {
        ngx_http_add_variable(cf.as_ptr(), &mut name, NGX_HTTP_VAR_NOCACHEABLE as usize).as_mut()
    };
    let variable = variable.ok_or(ConfError::Logged)?;

    variable.get_handler = handler;
    variable.data = data;

    Ok(())
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
fn current_upstream(r: Request, upstrand: &'static Upstrand) -> Option<&'static [u8]> {
    let (record, visit) = Record::visit(r, upstrand)?;

    if let Some(exchange) = r.upstream().filter(|u| u.is_being_set_up()) {
        if !r.flags().has(Flags::POST_ACTION) {
            record.begin_hop(visit, exchange)?;
        }
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
        Some(record) => r
            .text(&(variable.write)(record, r.upstream_states()))
            .map(Some),
    };

    answer(v, value)
}

/// `(name) value` for each hop, the value joined of those of the hop's servers.
fn for_each_hop(
    record: &Record,
    states: &[ngx_http_upstream_state_t],
    mut write: impl FnMut(&ngx_http_upstream_state_t, &mut Vec<u8>),
) -> Vec<u8> {
    let hops = record.hops().map(|hop| (hop.name(), hop));

    trace::values(hops, |hop, text| {
        let states = &states[hop.states(states.len())];
        let peers = states.iter().map(|state| match state.peer.is_null() {
            true => Peer::Separator,
            false => Peer::Tried(state),
        });
        trace::peers(peers, text, &mut write);
    })
}

/// Fills in a variable's value: none if there is not any, an error if memory is out.
fn answer(v: *mut ngx_http_variable_value_t, value: Option<Option<&[u8]>>) -> ngx_int_t {
    // SAFETY: nginx passes a value to fill in; it does not zero it before.
    let v = unsafe { &mut *v };

    let Some(value) = value else {
        return NGX_ERROR as ngx_int_t;
    };

    let text = value.unwrap_or_default();
    v.set_valid(u32::from(value.is_some()));
    v.set_not_found(u32::from(value.is_none()));
    v.set_no_cacheable(1);
    v.set_escape(0);
    v.set_len(text.len() as u32);
    v.data = text.as_ptr().cast_mut();

    NGX_OK as ngx_int_t
}
