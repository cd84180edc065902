//! The `upstrand {}` block (spec 4 and 7).

use core::ffi::{c_char, c_void};
use core::fmt;
use core::ptr;

use combined_upstreams_core::blacklist::Blacklist;
use combined_upstreams_core::rotation::{Order, Rotation};
use combined_upstreams_core::statuses::Statuses;
use ngx::ffi::{ngx_command_t, ngx_conf_parse, ngx_conf_t, ngx_str_t};

use super::conf::{Interception, MainConf, Turns, Upstrand};
use super::pattern::Pattern;
use super::variables;
use crate::ffi::complex_value::ComplexValue;
use crate::ffi::conf::{Conf, ConfError, ConfResult, Unit, lossy, number, time};
use crate::ffi::module;
use crate::ffi::upstream::Upstream;
use crate::upstream::conf::in_order;

/// A line of an upstrand block is refused; the `Display` is nginx's error line (spec 7).
#[derive(Debug)]
enum Error<'a> {
    Directive(&'a [u8]),
    Content(&'a [u8]),
    Duplicate(&'a [u8]),
    UpstreamNotFound(&'a [u8]),
    Uri(&'a [u8]),
    Timeout(&'a [u8]),
    BlacklistInterval(&'a [u8]),
    NoUpstream(&'a [u8]),
    DuplicateUpstrand(&'a [u8]),
    Name(&'a [u8]),
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directive(name) => write!(f, "bad upstrand directive \"{}\"", lossy(name)),
            Self::Content(name) => {
                write!(f, "bad upstrand directive \"{}\" content", lossy(name))
            }
            Self::Duplicate(name) => {
                write!(f, "duplicate upstrand directive \"{}\"", lossy(name))
            }
            Self::UpstreamNotFound(name) => write!(f, "upstream \"{}\" is not found", lossy(name)),
            Self::Uri(uri) => write!(f, "invalid uri \"{}\"", lossy(uri)),
            Self::Timeout(time) => write!(f, "bad timeout value: \"{}\"", lossy(time)),
            Self::BlacklistInterval(time) => {
                write!(f, "bad blacklist interval: \"{}\"", lossy(time))
            }
            Self::NoUpstream(name) => {
                write!(f, "no upstream registered in upstrand \"{}\"", lossy(name))
            }
            Self::DuplicateUpstrand(name) => write!(f, "duplicate upstrand \"{}\"", lossy(name)),
            Self::Name(name) => write!(f, "invalid upstrand name \"{}\"", lossy(name)),
        }
    }
}

impl core::error::Error for Error<'_> {}

/// What the lines of a block have said so far.
#[derive(Default)]
struct Block {
    name: Vec<u8>,
    main: Vec<Member>,
    backup: Vec<Member>,
    order: Option<Order>,
    failures: Statuses,
    /// Milliseconds; 0: no limit.
    timeout: Option<u64>,
    /// 0: no limit.
    tries: Option<usize>,
    interceptions: Vec<Interception>,
    intercept_errors: Option<bool>,
}

struct Member {
    upstream: Upstream,
    /// Milliseconds.
    blacklist_interval: Option<u64>,
}

/// The directive's function: reads the whole block.
pub unsafe extern "C" fn ngx_http_upstrand_block(
    cf: *mut ngx_conf_t,
    _cmd: *mut ngx_command_t,
    _conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx calls this with the configuration that it is reading.
    let cf = unsafe { Conf::new(cf) };

    cf.finish(upstrand_block(cf))
}

fn upstrand_block(cf: Conf) -> ConfResult {
    let [_, name] = cf.args() else {
        return Err(ConfError::new("invalid number of arguments"));
    };
    let name = name.as_bytes();

    // SAFETY: lib.rs makes this the module's main configuration.
    let mcf = unsafe { module::main_conf::<MainConf>(cf.http_ctx()) };
    let mcf = mcf.ok_or_else(ConfError::no_memory)?;

    if !is_name(name) {
        return Err(Error::Name(name).into());
    }
    if mcf.find(name).is_some() {
        return Err(Error::DuplicateUpstrand(name).into());
    }

    let mut block = Block {
        name: name.to_vec(),
        ..Block::default()
    };
    parse(cf, &mut block)?;

    let upstrand: &'static Upstrand = cf.keep(block.finish()?).ok_or_else(ConfError::no_memory)?;
    mcf.upstrands.borrow_mut().push(upstrand);

    variables::add_upstrand(cf, upstrand)
}

/// Names that nginx's variables could not be told apart by are none (spec 7).
fn is_name(name: &[u8]) -> bool {
    let plain = |byte: &u8| !matches!(byte, 0..=b' ' | 0x7f | b'$');

    !name.is_empty() && name.iter().all(plain) && !variables::is_status_variable(name)
}

/// Hands the lines of the block to [`ngx_http_upstrand_line`].
fn parse(cf: Conf, block: &mut Block) -> ConfResult {
    // SAFETY: `cf` is valid; its handler is put back as soon as the block has been read, and the
    // block that `handler_conf` points at outlives the call.
    let rv = unsafe {
        let saved = *cf.as_ptr();

        (*cf.as_ptr()).handler = Some(ngx_http_upstrand_line);
        (*cf.as_ptr()).handler_conf = ptr::from_mut(block).cast();

        let rv = ngx_conf_parse(cf.as_ptr(), ptr::null_mut());

        *cf.as_ptr() = saved;
        rv
    };

    if rv.is_null() {
        Ok(())
    } else {
        Err(ConfError::Logged)
    }
}

/// nginx calls this for each line of the block.
unsafe extern "C" fn ngx_http_upstrand_line(
    cf: *mut ngx_conf_t,
    _dummy: *mut ngx_command_t,
    conf: *mut c_void,
) -> *mut c_char {
    // SAFETY: nginx calls this with the configuration that it is reading.
    let cf = unsafe { Conf::new(cf) };

    // SAFETY: `parse` set `handler_conf` to a block that it has borrowed mutably.
    let result = match unsafe { conf.cast::<Block>().as_mut() } {
        Some(block) => block.line(cf),
        None => Err(ConfError::no_memory()),
    };

    cf.finish(result)
}

impl Block {
    fn line(&mut self, cf: Conf) -> ConfResult {
        let [name, args @ ..] = cf.args() else {
            return Ok(());
        };
        let name = name.as_bytes();

        if args.is_empty() {
            return Err(Error::Directive(name).into());
        }

        match (name, args) {
            (b"upstream", [_] | [_, _] | [_, _, _]) => self.upstream(cf, args),
            (b"order", _) => self.order(args),
            (b"next_upstream_statuses", _) => self.next_upstream_statuses(args),
            (b"next_upstream_timeout", [time]) => self.next_upstream_timeout(time.as_bytes()),
            (b"next_upstream_tries", [tries]) => self.next_upstream_tries(tries.as_bytes()),
            (b"intercept_statuses", [statuses @ .., uri]) if !statuses.is_empty() => {
                self.intercept_statuses(cf, statuses, *uri)
            }
            (b"intercept_errors", [value]) => self.intercept_errors(value.as_bytes()),
            (b"include", [_]) => cf.include(),
            _ => Err(Error::Directive(name).into()),
        }
    }

    fn upstream(&mut self, cf: Conf, args: &[ngx_str_t]) -> ConfResult {
        let [name, parameters @ ..] = args else {
            return Err(Error::Directive(b"upstream").into());
        };

        let mut backup = false;
        let mut interval = None;
        for parameter in parameters {
            let parameter = parameter.as_bytes();

            match parameter.strip_prefix(b"blacklist_interval=") {
                Some(value) if interval.is_none() => {
                    let time = time(value, Unit::Milliseconds);
                    interval = Some(time.ok_or(Error::BlacklistInterval(value))?);
                }
                None if parameter == b"backup" && !backup => backup = true,
                _ => return Err(Error::Content(b"upstream").into()),
            }
        }

        let member = |upstream| Member {
            upstream,
            blacklist_interval: interval,
        };
        let part = if backup {
            &mut self.backup
        } else {
            &mut self.main
        };

        match Pattern::parse(cf, name.as_bytes())? {
            None => {
                let upstream = Upstream::find(cf, name.as_bytes())
                    .ok_or(Error::UpstreamNotFound(name.as_bytes()))?;
                add_member(part, member(upstream));
            }
            Some(pattern) => {
                let mut matched = false;
                for upstream in in_order(cf)
                    .into_iter()
                    .filter(|u| pattern.is_match(u.name()))
                {
                    add_member(part, member(upstream));
                    matched = true;
                }
                if !matched {
                    cf.warn(format_args!(
                        "upstrand \"{}\": no upstream matches \"{}\"",
                        lossy(&self.name),
                        lossy(name.as_bytes())
                    ));
                }
            }
        }

        Ok(())
    }

    fn order(&mut self, args: &[ngx_str_t]) -> ConfResult {
        let mut order = Order::default();
        for arg in args {
            let flag = match arg.as_bytes() {
                b"start_random" => &mut order.start_random,
                b"per_request" => &mut order.per_request,
                _ => return Err(Error::Content(b"order").into()),
            };
            if core::mem::replace(flag, true) {
                return Err(Error::Content(b"order").into());
            }
        }

        set(&mut self.order, "order", order)
    }

    fn next_upstream_statuses(&mut self, args: &[ngx_str_t]) -> ConfResult {
        for arg in args {
            self.failures.add(arg.as_bytes())?;
        }

        Ok(())
    }

    fn next_upstream_timeout(&mut self, value: &[u8]) -> ConfResult {
        let time = time(value, Unit::Milliseconds).ok_or(Error::Timeout(value))?;

        set(&mut self.timeout, "next_upstream_timeout", time)
    }

    fn next_upstream_tries(&mut self, value: &[u8]) -> ConfResult {
        let tries = number(value).ok_or(Error::Content(b"next_upstream_tries"))?;

        set(&mut self.tries, "next_upstream_tries", tries)
    }

    fn intercept_statuses(&mut self, cf: Conf, args: &[ngx_str_t], uri: ngx_str_t) -> ConfResult {
        let mut statuses = Statuses::default();
        for arg in args {
            statuses.add_response(arg.as_bytes())?;
        }

        if !matches!(uri.as_bytes().first(), Some(b'/' | b'@' | b'$')) {
            return Err(Error::Uri(uri.as_bytes()).into());
        }

        let uri = ComplexValue::compile(cf, uri)?;
        self.interceptions.push(Interception { statuses, uri });

        Ok(())
    }

    fn intercept_errors(&mut self, value: &[u8]) -> ConfResult {
        let on = match value.to_ascii_lowercase().as_slice() {
            b"on" => true,
            b"off" => false,
            _ => return Err(Error::Content(b"intercept_errors").into()),
        };

        set(&mut self.intercept_errors, "intercept_errors", on)
    }

    fn finish(self) -> ConfResult<Upstrand> {
        if self.main.is_empty() && self.backup.is_empty() {
            return Err(Error::NoUpstream(&self.name).into());
        }

        let main = self.main.len();
        let members: Vec<Member> = self.main.into_iter().chain(self.backup).collect();
        let blacklist = Blacklist::new(members.iter().map(|member| member.blacklist_interval));
        let rotation = Rotation::new(self.order.unwrap_or_default(), main, blacklist);

        Ok(Upstrand {
            name: self.name.into(),
            members: members.into_iter().map(|member| member.upstream).collect(),
            failures: self.failures,
            timeout: self.timeout.filter(|timeout| *timeout > 0),
            tries: self.tries.filter(|tries| *tries > 0),
            interceptions: self.interceptions.into(),
            intercept_errors: self.intercept_errors.unwrap_or(false),
            turns: Turns::new(rotation),
        })
    }
}

/// Sets what may be said once in a block.
fn set<T>(slot: &mut Option<T>, directive: &'static str, value: T) -> ConfResult {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::Duplicate(directive.as_bytes()).into()),
    }
}

/// A member listed twice in the same part counts once: the first line wins.
fn add_member(part: &mut Vec<Member>, member: Member) {
    if !part.iter().any(|known| known.upstream == member.upstream) {
        part.push(member);
    }
}
