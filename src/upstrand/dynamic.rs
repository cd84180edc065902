//! `dynamic_upstrand` (spec 5): a variable that chooses an upstrand for each request.

use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::fmt;
use core::ptr;

use ngx::ffi::{
    NGX_HTTP_VAR_CHANGEABLE, NGX_HTTP_VAR_NOCACHEABLE, NGX_LOG_EMERG, NGX_LOG_ERR, ngx_command_t,
    ngx_conf_t, ngx_http_request_t, ngx_http_variable_value_t, ngx_int_t, ngx_str_t,
};
use ngx::ngx_log_error;

use super::conf::{MainConf, Reference, Upstrand};
use super::variables::{answer, current_upstream};
use crate::ffi::conf::{Conf, ConfError, ConfResult, lossy};
use crate::ffi::module;
use crate::ffi::request::Request;
use crate::ffi::variable::{self, VariableIndex};

/// The module's location configuration. All zeros are an empty one.
pub struct LocConf {
    /// The definitions of this scope.
    own: Cell<Option<&'static Definition>>,
    /// The scope around it.
    outer: Cell<Option<&'static LocConf>>,
}

/// One directive.
pub struct Definition {
    /// The variable's name, in lower case, as nginx compares them.
    name: Vec<u8>,
    candidates: Vec<VariableIndex>,
    /// The literal at the end.
    fallback: Option<&'static Reference>,
    evaluation: Cell<Evaluation>,
    next: Option<&'static Definition>,
}

/// Whether a definition is being evaluated, so that one which refers to itself is found out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evaluation {
    Idle,
    Running,
    Cyclic,
}

/// A directive is refused; the `Display` is nginx's error line (spec 5).
#[derive(Debug)]
enum Error<'a> {
    VariableName(&'a [u8]),
    DuplicateVariable(&'a [u8]),
    Parameter(&'a [u8]),
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VariableName(name) => write!(f, "invalid variable name \"{}\"", lossy(name)),
            Self::DuplicateVariable(name) => {
                write!(f, "duplicate dynamic upstrand variable \"{}\"", lossy(name))
            }
            Self::Parameter(word) => write!(f, "invalid parameter \"{}\"", lossy(word)),
        }
    }
}

impl core::error::Error for Error<'_> {}

/// Makes the configuration of a scope.
pub unsafe extern "C" fn create_loc_conf(cf: *mut ngx_conf_t) -> *mut c_void {
    // SAFETY: nginx calls this with the configuration that it is reading.
    let cf = unsafe { Conf::new(cf) };

    match cf.alloc::<LocConf>() {
        Ok(conf) => conf.as_ptr().cast(),
        Err(_) => ptr::null_mut(),
    }
}

/// Puts a scope into the one around it.
pub unsafe extern "C" fn merge_loc_conf(
    _cf: *mut ngx_conf_t,
    outer: *mut c_void,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: both are what `create_loc_conf` made, and live as long as the configuration.
    if let Some(conf) = unsafe { conf.cast::<LocConf>().as_ref() } {
        // SAFETY: as above.
        conf.outer.set(unsafe { outer.cast::<LocConf>().as_ref() });
    }

    ptr::null_mut()
}

/// The directive's function.
pub unsafe extern "C" fn ngx_http_dynamic_upstrand(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx calls this with the configuration that it is reading.
    let cf = unsafe { Conf::new(cf) };

    // SAFETY: `create_loc_conf` made it, and it lives as long as the configuration.
    let result = match unsafe { conf.cast::<LocConf>().as_ref() } {
        Some(conf) => define(cf, conf),
        None => Err(ConfError::no_memory()),
    };

    cf.finish(result)
}

fn define(cf: Conf, conf: &LocConf) -> ConfResult {
    let [_, variable, words @ ..] = cf.args() else {
        return Err(ConfError::new("invalid number of arguments"));
    };
    let name = variable_name(variable)
        .ok_or(Error::VariableName(variable.as_bytes()))?
        .to_ascii_lowercase();

    if conf.definitions().any(|known| known.name == name) {
        return Err(Error::DuplicateVariable(variable.as_bytes()).into());
    }

    // SAFETY: lib.rs makes this the module's main configuration.
    let mcf = unsafe { module::main_conf::<MainConf>(cf.http_ctx()) };
    let mcf = mcf.ok_or_else(ConfError::no_memory)?;

    let mut candidates = Vec::new();
    let mut fallback = None;
    for word in words {
        if fallback.is_some() {
            return Err(Error::Parameter(word.as_bytes()).into());
        }

        match variable_name(word) {
            Some(name) => candidates.push(VariableIndex::of(cf, name)?),
            None => {
                let reference = Reference {
                    name: word.as_bytes().to_vec(),
                    upstrand: Cell::new(None),
                    place: cf.place(),
                };
                let reference: &'static Reference =
                    cf.keep(reference).ok_or_else(ConfError::no_memory)?;
                mcf.references.borrow_mut().push(reference);
                fallback = Some(reference);
            }
        }
    }

    let definition: &'static Definition = cf
        .keep(Definition {
            name: name.clone(),
            candidates,
            fallback,
            evaluation: Cell::new(Evaluation::Idle),
            next: conf.own.get(),
        })
        .ok_or_else(ConfError::no_memory)?;
    conf.own.set(Some(definition));

    // The same variable may be defined in several scopes: which one holds is found at run time, by
    // its name.
    variable::add(
        cf,
        &name,
        NGX_HTTP_VAR_CHANGEABLE | NGX_HTTP_VAR_NOCACHEABLE,
        ngx_http_dynamic_upstrand_variable,
        ptr::from_ref(definition) as usize,
    )
}

/// The name of a variable, without its `$`.
fn variable_name(word: &ngx_str_t) -> Option<&[u8]> {
    match word.as_bytes() {
        [b'$', name @ ..] if !name.is_empty() => Some(name),
        _ => None,
    }
}

/// Looks up the literals, now that all upstrands are known.
pub fn resolve(cf: Conf) -> ConfResult {
    // SAFETY: lib.rs makes this the module's main configuration.
    let mcf = unsafe { module::main_conf::<MainConf>(cf.http_ctx()) };
    let mcf = mcf.ok_or_else(ConfError::no_memory)?;

    for reference in mcf.references.borrow().iter() {
        match mcf.find(&reference.name) {
            Some(upstrand) => reference.upstrand.set(Some(upstrand)),
            None => {
                ngx_log_error!(
                    NGX_LOG_EMERG,
                    cf.log(),
                    "upstrand \"{}\" not found in {}",
                    lossy(&reference.name),
                    reference.place
                );
                return Err(ConfError::Logged);
            }
        }
    }

    Ok(())
}

impl LocConf {
    fn definitions(&self) -> impl Iterator<Item = &'static Definition> {
        core::iter::successors(self.own.get(), |definition| definition.next)
    }

    /// The definition of the variable that is in force in this scope.
    fn find(&self, name: &[u8]) -> Option<&'static Definition> {
        core::iter::successors(Some(self), |conf| conf.outer.get())
            .find_map(|conf| conf.definitions().find(|known| known.name == name))
    }
}

/// The variable: the name of the chosen upstrand's current upstream.
unsafe extern "C" fn ngx_http_dynamic_upstrand_variable(
    r: *mut ngx_http_request_t,
    v: *mut ngx_http_variable_value_t,
    data: usize,
) -> ngx_int_t {
    // SAFETY: nginx evaluates a variable for a live request.
    let r = unsafe { Request::new(r) };

    // SAFETY: `define` put a definition of this variable there, for its name.
    let named = unsafe { &*(data as *const Definition) };

    // SAFETY: `create_loc_conf` makes the module's location configuration.
    let conf = unsafe { r.loc_conf::<LocConf>() };

    let chosen = conf
        .and_then(|conf| conf.find(&named.name))
        .and_then(|definition| definition.evaluate(r));

    answer(
        v,
        match chosen {
            Some(upstrand) => current_upstream(r, upstrand).map(Some),
            None => Some(Some(&[])),
        },
    )
}

impl Definition {
    /// The upstrand that the first candidate with a value names.
    fn evaluate(&self, r: Request) -> Option<&'static Upstrand> {
        if self.evaluation.get() != Evaluation::Idle {
            self.evaluation.set(Evaluation::Cyclic);
            return None;
        }

        self.evaluation.set(Evaluation::Running);
        let chosen = self.choose(r);

        if self.evaluation.replace(Evaluation::Idle) == Evaluation::Cyclic {
            ngx_log_error!(
                NGX_LOG_ERR,
                r.log(),
                "dynamic upstrand variable \"${}\" refers to itself",
                lossy(&self.name)
            );
            return None;
        }

        chosen
    }

    fn choose(&self, r: Request) -> Option<&'static Upstrand> {
        // SAFETY: lib.rs makes this the module's main configuration.
        let mcf = unsafe { r.main_conf::<MainConf>() }?;

        let mut values = self.candidates.iter().filter_map(|index| index.value(r));
        if let Some(name) = values.find(|value| !value.is_empty()) {
            return mcf.find(name);
        }

        self.fallback?.upstrand.get()
    }
}
