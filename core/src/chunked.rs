//! Writes the part of a chunked request body that nginx has read down again, so that nginx can read
//! it a second time: nginx decodes chunks in place, and what came from the client is gone.

/// How far nginx's parser has come in a chunked body (nginx: the states of
/// `ngx_http_parse_chunked`, by their numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parser {
    /// The number of the state.
    pub state: u64,
    /// The size of the chunk being read, or what is left of its data, in bytes.
    pub size: u64,
}

/// What stands around the decoded bytes in an encoding of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Before the bytes.
    pub before: Vec<u8>,
    /// After them.
    pub after: Vec<u8>,
}

/// Frames `decoded` bytes so that nginx's parser, having read the result, is where it was: what the
/// client sends next continues the body. None: the parser is in no state that is known.
pub fn frame(decoded: u64, parser: Parser) -> Option<Framing> {
    let Parser { state, size } = parser;

    let after = match state {
        0 => String::new(),
        1 => format!("{size:x}"),
        2 => format!("{size:x};"),
        3 => format!("{size:x}\r"),
        4 => return in_data(decoded, size),
        5 if decoded > 0 => return in_data(decoded, 0),
        6 if decoded > 0 => {
            let mut framing = in_data(decoded, 0)?;
            framing.after.push(b'\r');
            return Some(framing);
        }
        7 => "0;".to_string(),
        8 => "0\r".to_string(),
        9 => "0\r\n".to_string(),
        10 => "0\r\n\r".to_string(),
        11 => "0\r\nx".to_string(),
        12 => "0\r\nx\r".to_string(),
        _ => return None,
    };

    if decoded == 0 {
        return Some(Framing {
            before: Vec::new(),
            after: after.into_bytes(),
        });
    }

    let mut framing = in_data(decoded, 0)?;
    framing.after.extend_from_slice(b"\r\n");
    framing.after.extend_from_slice(after.as_bytes());

    Some(framing)
}

/// One chunk of which `left` bytes are still to come.
fn in_data(decoded: u64, left: u64) -> Option<Framing> {
    let size = decoded.checked_add(left).filter(|size| *size > 0)?;

    Some(Framing {
        before: format!("{size:x}\r\n").into_bytes(),
        after: Vec::new(),
    })
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
