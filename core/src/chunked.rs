//! Writes the part of a chunked request body that nginx has read down again, so that nginx can read
//! it a second time: nginx decodes chunks in place, and what came from the client is gone.

use std::ops::Deref;

use crate::text::{Room, Sink};

/// How far nginx's parser has come in a chunked body (nginx: the states of
/// `ngx_http_parse_chunked`, by their numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parser {
    /// The number of the state.
    pub state: u64,
    /// The size of the chunk being read, or what is left of its data, in bytes.
    pub size: u64,
}

/// The longest piece: the size of a chunk in 16 digits, after the end of another.
const LONGEST: usize = 24;

/// What stands around the decoded bytes in an encoding of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Before the bytes.
    pub before: Piece,
    /// After them.
    pub after: Piece,
}

/// A few bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Sink for Piece {
    fn put(&mut self, piece: &[u8]) {
        let mut room = Room::new(&mut self.bytes[self.length..]);
        room.put(piece);
        self.length += room.into_text().map_or(0, <[u8]>::len);
    }
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Frames `decoded` bytes so that nginx's parser, having read the result, is where it was: what the
/// client sends next continues the body. None: the parser is in no state that is known.
pub fn frame(decoded: u64, parser: Parser) -> Option<Framing> {
    let Parser { state, size } = parser;

    match state {
        4 => return in_data(decoded, size),
        5 if decoded > 0 => return in_data(decoded, 0),
        6 if decoded > 0 => {
            let mut framing = in_data(decoded, 0)?;
            framing.after.put(b"\r");
            return Some(framing);
        }
        _ => {}
    }

    let mut framing = Framing::default();
    if decoded > 0 {
        framing = in_data(decoded, 0)?;
        framing.after.put(b"\r\n");
    }

    let after: &mut dyn Sink = &mut framing.after;
    match state {
        0 => {}
        1 => after.format(format_args!("{size:x}")),
        2 => after.format(format_args!("{size:x};")),
        3 => after.format(format_args!("{size:x}\r")),
        7 => after.put(b"0;"),
        8 => after.put(b"0\r"),
        9 => after.put(b"0\r\n"),
        10 => after.put(b"0\r\n\r"),
        11 => after.put(b"0\r\nx"),
        12 => after.put(b"0\r\nx\r"),
        _ => return None,
    }

    Some(framing)
}

/// One chunk of which `left` bytes are still to come.
fn in_data(decoded: u64, left: u64) -> Option<Framing> {
    let size = decoded.checked_add(left).filter(|size| *size > 0)?;

    let mut framing = Framing::default();
    let before: &mut dyn Sink = &mut framing.before;
    before.format(format_args!("{size:x}\r\n"));

    Some(framing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(decoded: &str, state: u64, size: u64) -> Option<String> {
        let Framing { before, after } = frame(decoded.len() as u64, Parser { state, size })?;
        Some([&before[..], decoded.as_bytes(), &after[..]].concat())
            .map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn between_chunks() {
        assert_eq!(framed("", 0, 0).unwrap(), "");
        assert_eq!(framed("hello world", 0, 0).unwrap(), "b\r\nhello world\r\n");
    }

    #[test]
    fn in_the_data_of_a_chunk() {
        assert_eq!(framed("hello", 4, 11).unwrap(), "10\r\nhello");
        assert_eq!(framed("hello", 4, 0).unwrap(), "5\r\nhello");
        assert_eq!(framed("", 4, 11).unwrap(), "b\r\n");
        assert_eq!(framed("hello", 5, 0).unwrap(), "5\r\nhello");
        assert_eq!(framed("hello", 6, 0).unwrap(), "5\r\nhello\r");
    }

    #[test]
    fn in_the_size_of_a_chunk() {
        assert_eq!(framed("a", 1, 0x1f).unwrap(), "1\r\na\r\n1f");
        assert_eq!(framed("", 1, 0).unwrap(), "0");
        assert_eq!(framed("a", 2, 0x1f).unwrap(), "1\r\na\r\n1f;");
        assert_eq!(framed("a", 3, 0x1f).unwrap(), "1\r\na\r\n1f\r");
        assert_eq!(
            framed("a", 3, u64::MAX).unwrap(),
            format!("1\r\na\r\n{}\r", "f".repeat(16))
        );
    }

    #[test]
    fn in_the_last_chunk_and_its_trailers() {
        for (state, tail) in [
            (7, "0;"),
            (8, "0\r"),
            (9, "0\r\n"),
            (10, "0\r\n\r"),
            (11, "0\r\nx"),
            (12, "0\r\nx\r"),
        ] {
            assert_eq!(framed("a", state, 0).unwrap(), format!("1\r\na\r\n{tail}"));
            assert_eq!(framed("", state, 0).unwrap(), tail);
        }
    }

    #[test]
    fn states_that_cannot_be() {
        assert_eq!(framed("", 4, 0), None);
        assert_eq!(framed("", 5, 0), None);
        assert_eq!(framed("", 6, 0), None);
        assert_eq!(framed("a", 13, 0), None);
        assert_eq!(frame(u64::MAX, Parser { state: 4, size: 1 }), None);
    }
}
