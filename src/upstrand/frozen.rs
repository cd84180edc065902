//! Values of `$upstrand_NAME` that something else keeps: a request cannot walk by them (spec 4.7).

use ngx::ffi::NGX_LOG_WARN;
use ngx::ngx_log_error;

use super::request::{Record, Visit};
use super::response::Response;
use crate::ffi::conf::lossy;
use crate::ffi::request::{Exchange, Request};
use crate::ffi::variable;

/// Looks at a response that is of no hop: if it should have failed over, but came by the name of an
/// upstrand's current upstream, that name was kept by `set` or `map` before.
pub fn check_stray(r: Request, record: &Record, exchange: Exchange) {
    let Some(host) = exchange.resolved_host() else {
        return;
    };
    if record.knows(exchange) {
        return;
    }

    let response = Response::of(r, exchange);
    let kept = record.visits().find(|visit| {
        let failures = &visit.upstrand.failures;

        host.eq_ignore_ascii_case(visit.name())
            && visit.has_next()
            && failures.matches(response.status, response.origin)
    });

    if let Some(visit) = kept {
        warn(r, record, visit);
    }
}

/// Whether the pass directive of the hop got its name through a variable that nginx has kept since,
/// as it keeps that of a `map`: entering the content handler again would send the request to the
/// same upstream a second time.
///
/// Such a variable holds the name, and asks for it when it is evaluated anew. Where the name was
/// also looked at after the pass directive, it may have been kept only then.
pub fn is_kept(r: Request, record: &Record, visit: &Visit) -> bool {
    !record.was_looked_at()
        && variable::any_kept(r, visit.name(), |evaluate| record.probe(evaluate))
}

/// The error log says so, once in a request.
pub fn warn(r: Request, record: &Record, visit: &Visit) {
    if !record.first_frozen() {
        return;
    }

    ngx_log_error!(
        NGX_LOG_WARN,
        r.log(),
        "upstrand \"{}\": no failover from \"{}\", its variable is kept by \"set\" or \"map\"",
        lossy(&visit.upstrand.name),
        lossy(visit.name())
    );
}
