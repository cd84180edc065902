//! The regular expression of an `upstream ~re` line (spec 4.1).

use core::fmt;

use combined_upstreams_core::prefix;
use regex::bytes::{Regex, RegexBuilder};

use crate::ffi::conf::{Conf, lossy};
use crate::ffi::regex::NginxRegex;

/// A pattern for names of upstreams.
pub struct Pattern {
    /// What the names begin with, in this or in any case.
    prefix: Vec<u8>,
    any_case: bool,
    engine: Engine,
}

enum Engine {
    /// Linear in time, and there in any nginx.
    Linear(Regex),
    /// Look-around and back-references: nginx's PCRE.
    Pcre(NginxRegex),
}

/// A pattern that neither can read. The `Display` is nginx's error line (spec 7).
#[derive(Debug)]
pub struct InvalidPattern {
    pattern: Vec<u8>,
    reason: String,
}

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid regex \"{}\": {}",
            lossy(&self.pattern),
            self.reason
        )
    }
}

impl core::error::Error for InvalidPattern {}

impl Pattern {
    /// The pattern after `~`, which minds case, or `~*`, which does not. None: the text is a name,
    /// as a tilde alone is.
    ///
    /// # Errors
    ///
    /// Neither the regex crate nor nginx's PCRE understands the pattern.
    pub fn parse(cf: Conf, text: &[u8]) -> Result<Option<Self>, InvalidPattern> {
        let (pattern, any_case) = match text {
            [b'~'] => return Ok(None),
            [b'~', b'*', pattern @ ..] if !pattern.is_empty() => (pattern, true),
            [b'~', pattern @ ..] => (pattern, false),
            _ => return Ok(None),
        };

        Ok(Some(Self {
            prefix: prefix::literal(pattern).to_vec(),
            any_case,
            engine: Engine::compile(cf, pattern, any_case)?,
        }))
    }

    /// Whether the pattern is found in the name.
    pub fn is_match(&self, name: &[u8]) -> bool {
        let begins = match name.get(..self.prefix.len()) {
            Some(start) if self.any_case => start.eq_ignore_ascii_case(&self.prefix),
            Some(start) => start == self.prefix,
            None => false,
        };

        begins && self.engine.is_match(name)
    }
}

impl Engine {
    fn compile(cf: Conf, pattern: &[u8], any_case: bool) -> Result<Self, InvalidPattern> {
        let reason = match linear(pattern, any_case) {
            Ok(regex) => return Ok(Self::Linear(regex)),
            Err(reason) => reason,
        };

        match NginxRegex::compile(cf, pattern, any_case) {
            Some(regex) => Ok(Self::Pcre(regex)),
            None => Err(InvalidPattern {
                pattern: pattern.to_vec(),
                reason,
            }),
        }
    }

    fn is_match(&self, name: &[u8]) -> bool {
        match self {
            Self::Linear(regex) => regex.is_match(name),
            Self::Pcre(regex) => regex.is_match(name),
        }
    }
}

fn linear(pattern: &[u8], any_case: bool) -> Result<Regex, String> {
    let pattern = core::str::from_utf8(pattern).map_err(|error| error.to_string())?;

    RegexBuilder::new(pattern)
        .case_insensitive(any_case)
        .unicode(false)
        .build()
        .map_err(|error| reason(&error))
}

/// The regex crate explains an error over several lines, the reason on the last.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();

    last.trim().trim_start_matches("error: ").to_string()
}
