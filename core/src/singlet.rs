//! How `combine_server_singlets` reads its parameters and names the upstreams that it makes
//! (spec 2).

use std::fmt;

/// The largest field width.
pub const MAX_WIDTH: usize = 32;

const BYNAME: &[u8] = b"byname";
const NOBACKUP: &[u8] = b"nobackup";

/// The directive's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters<'a> {
    suffix: &'a [u8],
    tail: Tail,
    /// The other servers of a singlet are down instead of backup.
    pub nobackup: bool,
}

/// What stands last in a singlet's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// The server's number, zeros before it up to this width.
    Number { width: usize },
    /// The server's name.
    Name,
}

/// The parameters are refused; the `Display` is nginx's error line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<'a> {
    /// The width is none.
    Width(&'a [u8]),
    /// Something stands beside `byname` that might be a width.
    WidthOfName,
    /// `nobackup` is not last, or there are too many parameters.
    Invalid,
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width(word) => write!(
                f,
                "field width \"{}\" must be an integer value",
                String::from_utf8_lossy(word)
            ),
            Self::WidthOfName => {
                f.write_str("setting field width is not permitted when using \"byname\" value")
            }
            Self::Invalid => f.write_str("invalid parameters"),
        }
    }
}

impl std::error::Error for Error<'_> {}

impl<'a> Parameters<'a> {
    /// Reads the words that follow the directive's name.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn parse(words: &[&'a [u8]]) -> Result<Self, Error<'a>> {
        let (words, nobackup) = match words {
            [words @ .., last] if *last == NOBACKUP => (words, true),
            words => (words, false),
        };

        if words.contains(&NOBACKUP) {
            return Err(Error::Invalid);
        }

        let (suffix, tail) = match *words {
            [] => (&b""[..], Tail::Number { width: 0 }),
            [BYNAME] => (&b""[..], Tail::Name),
            [suffix] => (suffix, Tail::Number { width: 0 }),
            [BYNAME, _] | [_, BYNAME, _] => return Err(Error::WidthOfName),
            [suffix, BYNAME] => (suffix, Tail::Name),
            [suffix, width] => (
                suffix,
                Tail::Number {
                    width: parse_width(width)?,
                },
            ),
            _ => return Err(Error::Invalid),
        };

        Ok(Self {
            suffix,
            tail,
            nobackup,
        })
    }

    /// The name of the singlet for a server of `host`: its number, from 1, and its name as written.
    pub fn name(&self, host: &[u8], number: usize, server: &[u8]) -> Vec<u8> {
        let mut name = [host, self.suffix].concat();

        match self.tail {
            Tail::Number { width } => name.extend(format!("{number:0width$}").bytes()),
            Tail::Name => name.extend(server.iter().map(|byte| match byte {
                b':' => b'_',
                byte => *byte,
            })),
        }

        name
    }
}

fn parse_width(word: &[u8]) -> Result<usize, Error<'_>> {
    let digits = !word.is_empty() && word.iter().all(u8::is_ascii_digit);

    std::str::from_utf8(word)
        .ok()
        .filter(|_| digits)
        .and_then(|word| word.parse().ok())
        .filter(|width| *width <= MAX_WIDTH)
        .ok_or(Error::Width(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Parameters<'_>, Error<'_>> {
        let words: Vec<_> = line.split_whitespace().map(str::as_bytes).collect();
        Parameters::parse(&words)
    }

    fn named(line: &str, number: usize, server: &str) -> String {
        let name = parse(line).unwrap().name(b"h", number, server.as_bytes());
        String::from_utf8(name).unwrap()
    }

    #[test]
    fn by_number() {
        assert_eq!(named("", 1, "s"), "h1");
        assert_eq!(named("_s_", 12, "s"), "h_s_12");
        assert_eq!(named("_s_ 0", 7, "s"), "h_s_7");
        assert_eq!(named("_s_ 2", 7, "s"), "h_s_07");
        assert_eq!(named("_s_ 002", 7, "s"), "h_s_07");
        assert_eq!(named("_s_ 2", 107, "s"), "h_s_107");
        assert_eq!(named("_s_ 32", 1, "s"), format!("h_s_{}1", "0".repeat(31)));
        assert_eq!(named("2", 1, "s"), "h21");
    }

    #[test]
    fn an_empty_suffix_leaves_room_for_a_width() {
        let parameters = Parameters::parse(&[b"", b"2"]).unwrap();
        assert_eq!(parameters.name(b"h", 1, b"s"), b"h01");
    }

    #[test]
    fn by_name() {
        assert_eq!(named("byname", 1, "s1"), "hs1");
        assert_eq!(named("_s_ byname", 1, "s1:8080"), "h_s_s1_8080");
        assert_eq!(named("byname", 1, "127.0.0.1:8080"), "h127.0.0.1_8080");
        assert_eq!(named("byname", 1, "[::1]:80"), "h[__1]_80");
        assert_eq!(named("byname", 1, "unix:/run/a.sock"), "hunix_/run/a.sock");
    }

    #[test]
    fn nobackup_stands_last() {
        for line in [
            "nobackup",
            "_s_ nobackup",
            "_s_ 2 nobackup",
            "byname nobackup",
            "_s_ byname nobackup",
        ] {
            assert!(parse(line).unwrap().nobackup, "{line}");
        }
        assert!(!parse("_s_ byname").unwrap().nobackup);

        for line in [
            "nobackup 2",
            "nobackup byname",
            "_s_ nobackup 2",
            "nobackup nobackup",
        ] {
            assert_eq!(parse(line), Err(Error::Invalid), "{line}");
        }
    }

    #[test]
    fn too_many() {
        assert_eq!(parse("_s_ 2 3"), Err(Error::Invalid));
        assert_eq!(parse("_s_ 2 byname"), Err(Error::Invalid));
        assert_eq!(parse("_s_ 2 3 nobackup"), Err(Error::Invalid));
        assert_eq!(parse("a b c d e"), Err(Error::Invalid));
    }

    #[test]
    fn widths() {
        for width in ["-1", "+1", "33", "x", "1x", "99999999999999999999", "0x1"] {
            let line = format!("_s_ {width}");
            assert_eq!(parse(&line), Err(Error::Width(width.as_bytes())));
        }
        assert_eq!(Parameters::parse(&[b"_s_", b""]), Err(Error::Width(b"")));
        assert_eq!(
            Error::Width(b"-1").to_string(),
            "field width \"-1\" must be an integer value"
        );
    }

    #[test]
    fn no_width_beside_byname() {
        for line in [
            "byname 2",
            "byname _s_",
            "byname byname",
            "_s_ byname 2",
            "byname 2 nobackup",
        ] {
            assert_eq!(parse(line), Err(Error::WidthOfName), "{line}");
        }
    }

    #[test]
    fn names_of_any_length() {
        let server = "s".repeat(5000);
        assert_eq!(named("byname", 1, &server).len(), 5001);
    }
}
