//! Texts that are written piece by piece, without memory of their own: while nginx serves requests, all memory comes
//! from its pools, which can say that there is none.

use std::fmt;

/// Where a text goes.
pub trait Sink {
    /// Writes the next piece.
    fn put(&mut self, piece: &[u8]);
}

impl dyn Sink + '_ {
    /// Writes what a format string makes.
    pub fn format(&mut self, arguments: fmt::Arguments) {
        struct Pieces<'a>(&'a mut dyn Sink);

        impl fmt::Write for Pieces<'_> {
            fn write_str(&mut self, piece: &str) -> fmt::Result {
                self.0.put(piece.as_bytes());
                Ok(())
            }
        }

        // A sink takes everything.
        let _ = fmt::write(&mut Pieces(self), arguments);
    }
}

/// Memory that a text is written to, which may be longer than that.
#[derive(Debug)]
pub struct Room<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Room<'a> {
    /// An empty text.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// The length of the text, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The text. None: it is longer than the memory.
    pub fn into_text(self) -> Option<&'a [u8]> {
        self.bytes.get(..self.length)
    }
}

impl Sink for Room<'_> {
    #[inline]
    fn put(&mut self, piece: &[u8]) {
        let end = self.length + piece.len();

        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(piece);
        }
        self.length = end;
    }
}

#[cfg(test)]
pub(crate) fn written(write: impl Fn(&mut dyn Sink)) -> String {
    let mut bytes = [0; 1000];
    let mut room = Room::new(&mut bytes);
    write(&mut room);
    String::from_utf8(room.into_text().unwrap().to_vec()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_formats() {
        let text = written(|text| {
            text.put(b"a ");
            text.format(format_args!("{} {:03}", 1, 2));
        });
        assert_eq!(text, "a 1 002");
    }

    #[test]
    fn what_does_not_fit_is_measured() {
        for (size, expected) in [
            (8, None),
            (9, Some(&b"abcdefghi"[..])),
            (10, Some(b"abcdefghi")),
        ] {
            let mut bytes = vec![0; size];
            let mut room = Room::new(&mut bytes);
            for piece in ["abc", "def", "ghi"] {
                room.put(piece.as_bytes());
            }
            assert_eq!((room.length(), room.into_text()), (9, expected));
        }
    }
}
