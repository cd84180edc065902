//! What nginx's stub_status counts.

use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// How many connections and requests nginx counts.
#[derive(Debug, PartialEq)]
pub(crate) struct Counts {
    active: usize,
    reading: usize,
    writing: usize,
    waiting: usize,
}

impl Counts {
    /// What stub_status says; None while nobody answers.
    pub async fn of(socket: &Path) -> Option<Self> {
        let mut stream = UnixStream::connect(socket).await.ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;

        let number = |name: &str| {
            let after = text.split_once(name)?.1;
            after.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            active: number("Active connections:")?,
            reading: number("Reading:")?,
            writing: number("Writing:")?,
            waiting: number("Waiting:")?,
        })
    }

    /// Nothing but idle connections and the one that asks.
    pub fn idle(&self) -> bool {
        self.active == self.waiting + 1 && self.reading == 0 && self.writing == 1
    }
}
