//! The `upstrand {}` block (spec 4 and 7).

use core::ffi::{c_char, c_void};
use core::fmt;
use core::ptr;

use combined_upstreams_core::blacklist::Blacklist;
use combined_upstreams_core::rotation::{Order, Rotation};
use combined_upstreams_core::statuses::Statuses;
use ngx::ffi::{ngx_command_t, ngx_conf_parse, ngx_conf_t, ngx_str_t};
use regex::bytes::Regex;

use super::conf::{MainConf, Upstrand};
use super::variables;
use crate::ffi::conf::{Conf, ConfError, ConfResult, lossy};
use crate::ffi::module;
use crate::ffi::upstream::Upstream;

/// A line of an upstrand block is refused; the `Display` is nginx's error line (spec 7).
#[derive(Debug)]
enum Error<'a> {
    Directive(&'a [u8]),
    Content(&'a [u8]),
    Duplicate(&'a [u8]),
    UpstreamNotFound(&'a [u8]),
    Regex(&'a [u8], String),
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
            Self::Regex(pattern, reason) => {
                write!(f, "invalid regex \"{}\": {reason}", lossy(pattern))
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
}

struct Member {
    upstream: Upstream,
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

        match name {
            b"upstream" => self.upstream(cf, args),
            b"order" => self.order(args),
            b"next_upstream_statuses" => self.next_upstream_statuses(args),
            _ => Err(Error::Directive(name).into()),
        }
    }

    fn upstream(&mut self, cf: Conf, args: &[ngx_str_t]) -> ConfResult {
        let content = || Error::Content(b"upstream");
        let [name, parameters @ ..] = args else {
            return Err(Error::Directive(b"upstream").into());
        };
        if parameters.len() > 2 {
            return Err(Error::Directive(b"upstream").into());
        }

        let mut backup = false;
        for parameter in parameters {
            match parameter.as_bytes() {
                b"backup" if !backup => backup = true,
                _ => return Err(content().into()),
            }
        }

        let part = if backup {
            &mut self.backup
        } else {
            &mut self.main
        };

        match Pattern::parse(name.as_bytes())? {
            None => {
                let upstream = Upstream::find(cf, name.as_bytes())
                    .ok_or(Error::UpstreamNotFound(name.as_bytes()))?;
                add_member(part, Member { upstream });
            }
            Some(pattern) => {
                let mut matched = false;
                for upstream in Upstream::declared(cf).filter(|u| pattern.is_match(u.name())) {
                    add_member(part, Member { upstream });
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
        if self.order.is_some() {
            return Err(Error::Duplicate(b"order").into());
        }

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

        self.order = Some(order);
        Ok(())
    }

    fn next_upstream_statuses(&mut self, args: &[ngx_str_t]) -> ConfResult {
        for arg in args {
            self.failures.add(arg.as_bytes())?;
        }

        Ok(())
    }

    fn finish(self) -> ConfResult<Upstrand> {
        if self.main.is_empty() && self.backup.is_empty() {
            return Err(Error::NoUpstream(&self.name).into());
        }

        let main = self.main.len();
        let members: Vec<Member> = self.main.into_iter().chain(self.backup).collect();
        let blacklist = Blacklist::new(members.iter().map(|_| None));
        let rotation = Rotation::new(self.order.unwrap_or_default(), main, blacklist);

        Ok(Upstrand::new(
            self.name.into(),
            members.into_iter().map(|member| member.upstream).collect(),
            self.failures,
            rotation,
        ))
    }
}

/// A member listed twice in the same part counts once: the first line wins.
fn add_member(part: &mut Vec<Member>, member: Member) {
    if !part.iter().any(|known| known.upstream == member.upstream) {
        part.push(member);
    }
}

/// The regular expression of an `upstream ~re` or `upstream ~*re` line.
struct Pattern(Regex);

impl Pattern {
    /// None: the text is a name.
    fn parse(text: &[u8]) -> ConfResult<Option<Self>> {
        let (pattern, any_case) = match text {
            [b'~'] => return Ok(None),
            [b'~', b'*', pattern @ ..] if !pattern.is_empty() => (pattern, true),
            [b'~', pattern @ ..] => (pattern, false),
            _ => return Ok(None),
        };

        let invalid = |reason| ConfError::from(Error::Regex(pattern, reason));
        let Ok(utf8) = core::str::from_utf8(pattern) else {
            return Err(invalid("it is not UTF-8".to_string()));
        };

        regex::bytes::RegexBuilder::new(utf8)
            .case_insensitive(any_case)
            .unicode(false)
            .build()
            .map(|regex| Some(Self(regex)))
            .map_err(|error| invalid(reason(&error)))
    }

    fn is_match(&self, name: &[u8]) -> bool {
        self.0.is_match(name)
    }
}

/// The regex crate explains an error over several lines, the reason on the last.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();

    last.trim().trim_start_matches("error: ").to_string()
}
