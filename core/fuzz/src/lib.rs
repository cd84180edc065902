//! The fuzz targets of core/, for libFuzzer: its input takes the place of random numbers.

#[allow(clippy::expect_used, reason = "a target fails by panicking")]
#[path = "../../tests/fuzz/targets.rs"]
pub mod targets;

use rand::RngCore;

/// Gives the bytes of an input, and zeros behind its end.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// The numbers that an input stands for.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl RngCore for Input<'_> {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, room: &mut [u8]) {
        let length = room.len().min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        room[..length].copy_from_slice(bytes);
        room[length..].fill(0);
        self.0 = rest;
    }
}
