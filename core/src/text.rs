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

/// Only the length of a text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length(pub usize);

impl Sink for Length {
    fn put(&mut self, piece: &[u8]) {
        self.0 += piece.len();
    }
}

/// Memory that a text is written to. What does not fit is left out.
#[derive(Debug)]
pub struct Room<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl<'a> Room<'a> {
    /// An empty text.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, used: 0 }
    }

    /// The text.
    pub fn into_text(self) -> &'a [u8] {
        &self.bytes[..self.used]
    }
}

impl Sink for Room<'_> {
    fn put(&mut self, piece: &[u8]) {
        let free = &mut self.bytes[self.used..];
        let length = piece.len().min(free.len());
        free[..length].copy_from_slice(&piece[..length]);
        self.used += length;
    }
}

#[cfg(test)]
pub(crate) fn written(write: impl Fn(&mut dyn Sink)) -> String {
    let mut length = Length::default();
    write(&mut length);

    let mut bytes = vec![0; length.0];
    let mut room = Room::new(&mut bytes);
    write(&mut room);
    String::from_utf8(room.into_text().to_vec()).unwrap()
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
    fn what_does_not_fit_is_left_out() {
        let mut bytes = [0; 5];
        let mut room = Room::new(&mut bytes);
        for piece in ["abc", "def", "ghi"] {
            room.put(piece.as_bytes());
        }
        assert_eq!(room.into_text(), b"abcde");
    }
}
