//! `add_upstream` (spec 1): the servers of another upstream, appended to this one.

use core::ffi::{c_char, c_void};
use core::fmt;

use combined_upstreams_core::weight;
use ngx::ffi::{ngx_command_t, ngx_conf_t, ngx_http_upstream_server_t, ngx_str_t};

use super::conf::{self, HostConf};
use crate::ffi::conf::{Conf, ConfError, ConfResult, Unit, lossy, number, time};
use crate::ffi::upstream::{Ability, Upstream};

/// A directive is refused; the `Display` is nginx's error line (spec 1).
enum Error<'a> {
    Recursion(&'a [u8]),
    NotFound(&'a [u8]),
    Repeated(&'static str),
    Weight,
    WeightTooBig(&'a [u8]),
    Invalid(&'a [u8]),
    NotSupported(&'a [u8]),
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recursion(name) => write!(f, "upstream \"{}\" makes recursion", lossy(name)),
            Self::NotFound(name) => write!(f, "upstream \"{}\" not found", lossy(name)),
            Self::Repeated(name) => write!(f, "parameter \"{name}\" has been already declared"),
            Self::Weight => f.write_str("parameter \"weight\" must be a positive integer value"),
            Self::WeightTooBig(host) => {
                write!(f, "weight of upstream \"{}\" is too big", lossy(host))
            }
            Self::Invalid(word) => write!(f, "invalid parameter \"{}\"", lossy(word)),
            // nginx: ngx_http_upstream_server
            Self::NotSupported(word) => write!(
                f,
                "balancing method does not support parameter \"{}\"",
                lossy(word)
            ),
        }
    }
}

impl From<Error<'_>> for ConfError {
    fn from(error: Error<'_>) -> Self {
        Self::new(error)
    }
}

/// What the directive changes in each server that it copies.
#[derive(Default)]
struct Parameters {
    backup: bool,
    down: bool,
    weight: Option<usize>,
    max_fails: Option<usize>,
    /// Seconds.
    fail_timeout: Option<i64>,
    max_conns: Option<usize>,
}

/// The directive's function.
pub unsafe extern "C" fn ngx_http_upstream_add_upstream(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx calls this with the configuration that it is reading.
    let cf = unsafe { Conf::new(cf) };

    cf.finish(add_upstream(cf))
}

fn add_upstream(cf: Conf) -> ConfResult {
    let [_, name, words @ ..] = cf.args() else {
        return Err(ConfError::new("invalid number of arguments"));
    };

    // SAFETY: the directive's context is an upstream {} block.
    let host = unsafe { Upstream::host_of(cf) }.ok_or_else(ConfError::no_memory)?;

    if host.name().eq_ignore_ascii_case(name.as_bytes()) {
        return Err(Error::Recursion(name.as_bytes()).into());
    }

    let source = conf::find(cf, name.as_bytes()).ok_or(Error::NotFound(name.as_bytes()))?;
    let parameters = Parameters::parse(words, host)?;

    let too_big = || Error::WeightTooBig(host.name());
    let servers = source
        .servers()
        .iter()
        .map(|server| parameters.apply(*server))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| too_big())?;

    for backup in [false, true] {
        let part = host
            .servers()
            .iter()
            .chain(&servers)
            .filter(|server| (server.backup() != 0) == backup)
            .map(|server| (server.weight as u64, server.naddrs as u64));
        weight::check_total(part).map_err(|_| too_big())?;
    }

    if let Some(conf) = HostConf::of(host) {
        conf.combines.set(true);
    }

    host.push_servers(&servers)
}

impl Parameters {
    fn parse<'a>(words: &'a [ngx_str_t], host: Upstream) -> Result<Self, Error<'a>> {
        let mut parameters = Self::default();

        for word in words {
            parameters.add(word.as_bytes(), host)?;
        }

        Ok(parameters)
    }

    fn add<'a>(&mut self, word: &'a [u8], host: Upstream) -> Result<(), Error<'a>> {
        let invalid = || Error::Invalid(word);
        let (name, value) = split(word);

        let supported = |ability| match host.supports(ability) {
            true => Ok(()),
            false => Err(Error::NotSupported(word)),
        };

        match (name, value) {
            (b"backup", None) => {
                supported(Ability::Backup)?;
                set_flag(&mut self.backup, "backup")
            }
            (b"down", None) => {
                supported(Ability::Down)?;
                set_flag(&mut self.down, "down")
            }
            (b"weight", Some(value)) => {
                supported(Ability::Weight)?;
                let weight = number(value).filter(|weight| *weight > 0);
                set(&mut self.weight, "weight", weight.ok_or(Error::Weight)?)
            }
            (b"max_fails", Some(value)) => {
                supported(Ability::MaxFails)?;
                set(
                    &mut self.max_fails,
                    "max_fails",
                    number(value).ok_or_else(invalid)?,
                )
            }
            (b"fail_timeout", Some(value)) => {
                supported(Ability::FailTimeout)?;
                let time = time(value, Unit::Seconds).ok_or_else(invalid)?;
                set(&mut self.fail_timeout, "fail_timeout", time as i64)
            }
            (b"max_conns", Some(value)) => {
                supported(Ability::MaxConns)?;
                set(
                    &mut self.max_conns,
                    "max_conns",
                    number(value).ok_or_else(invalid)?,
                )
            }
            _ => Err(invalid()),
        }
    }

    fn apply(
        &self,
        mut server: ngx_http_upstream_server_t,
    ) -> Result<ngx_http_upstream_server_t, weight::TooBig> {
        if self.backup {
            server.set_backup(1);
        }
        if self.down {
            server.down = 1;
        }
        if let Some(factor) = self.weight {
            server.weight = weight::multiply(server.weight as u64, factor as u64)? as usize;
        }
        if let Some(max_fails) = self.max_fails {
            server.max_fails = max_fails;
        }
        if let Some(fail_timeout) = self.fail_timeout {
            server.fail_timeout = fail_timeout;
        }
        if let Some(max_conns) = self.max_conns {
            server.max_conns = max_conns;
        }

        Ok(server)
    }
}

/// `name=value`, or a name alone.
fn split(word: &[u8]) -> (&[u8], Option<&[u8]>) {
    match word.iter().position(|byte| *byte == b'=') {
        Some(at) => (&word[..at], Some(&word[at + 1..])),
        None => (word, None),
    }
}

fn set<T>(slot: &mut Option<T>, name: &'static str, value: T) -> Result<(), Error<'static>> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::Repeated(name)),
    }
}

fn set_flag(slot: &mut bool, name: &'static str) -> Result<(), Error<'static>> {
    match core::mem::replace(slot, true) {
        false => Ok(()),
        true => Err(Error::Repeated(name)),
    }
}
