//! Responses that are HTTP, or nearly.

use std::time::Duration;

use harness::Reply;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// What the member of this number answers to the request of this number: always the same.
/// `redirects`: it may ask nginx to serve another location, by X-Accel-Redirect.
pub fn reply(seed: u64, member: u64, redirects: bool) -> Reply {
    let rng = SmallRng::seed_from_u64(seed.wrapping_mul(16).wrapping_add(member));
    Mutation { rng, redirects }.reply()
}

const STATUSES: [&str; 24] = [
    "200", "200", "200", "200", "204", "206", "301", "304", "400", "401", "404", "404", "429",
    "500", "502", "503", "503", "503", "503", "504", "599", "600", "100", "103",
];

const STATUS_LINES: [&str; 14] = [
    "HTTP/1.0 503",
    "HTTP/1.1 503",
    "HTTP/1.1 5O3 letter",
    "HTTP/1.1  200 two blanks",
    "HTTP/1.1 99 low",
    "HTTP/1.1 2000 long",
    "HTTP/2.0 200 other version",
    "HTTP/1.1",
    "HTTP/1.1 200 \u{1}\0 controls",
    "ICY 200 OK",
    "http/1.1 200 OK",
    "",
    "\r\nHTTP/1.1 200 late",
    "HTTP/1.1 200 lonely\rreturn",
];

/// Header lines; those that frame the body stand in [`Mutation::framing`].
const HEADERS: [&str; 38] = [
    "Connection: close",
    "Connection: keep-alive",
    "Connection: upgrade",
    "Keep-Alive: timeout=5",
    "X-Accel-Redirect: /elsewhere",
    "X-Accel-Expires: 60",
    "X-Accel-Expires: @1",
    "X-Accel-Expires: x",
    "X-Accel-Buffering: no",
    "X-Accel-Buffering: yes",
    "X-Accel-Charset: koi8-r",
    "Set-Cookie: a=1",
    "Set-Cookie: b=2; Path=/",
    "Vary: *",
    "Vary: Accept-Encoding, X-Other",
    "Cache-Control: no-store",
    "Cache-Control: max-age=3600, stale-while-revalidate=10, stale-if-error=10",
    "Cache-Control: max-age=99999999999999999999",
    "Cache-Control: private",
    "Expires: Thu, 01 Jan 2099 00:00:00 GMT",
    "Expires: never",
    "ETag: \"tag\"",
    "ETag: tag",
    "Last-Modified: Thu, 01 Jan 1970 00:00:10 GMT",
    "Location: http://u1/there",
    "Location: /there",
    "Refresh: 1; url=http://u2/",
    "WWW-Authenticate: Basic realm=r",
    "Content-Type: text/html; charset=utf-8",
    "Content-Type:",
    "Content-Encoding: gzip",
    "Content-Range: bytes 0-3/4",
    "Accept-Ranges: bytes",
    "Upgrade: websocket",
    "Trailer: X-Trailer",
    "Link: </style.css>; rel=preload",
    "Date: Thu, 01 Jan 1970 00:00:00 GMT",
    "Server: mutant",
];

/// Lines that are no headers, or strange ones.
const STRANGE: [&str; 12] = [
    "no colon",
    ": no name",
    "X-Nul: a\0b",
    "X Blank: a",
    "X_Underscore: a",
    "X-High: \u{e9}\u{ff}",
    "X-Colons: a: b: c",
    " folded: line",
    "X-Empty:",
    "\u{e9}: name",
    "X-Tab:\ta\t",
    "X-Return: a\rb",
];

struct Mutation {
    rng: SmallRng,
    redirects: bool,
}

impl Mutation {
    fn reply(mut self) -> Reply {
        let mut bytes = self.message();
        if self.one_in(4) {
            for _ in 0..self.rng.random_range(1..4) {
                self.damage(&mut bytes);
            }
        }

        let reply = Reply::raw(bytes);
        let reply = match self.rng.random_range(0..400) {
            0 => reply.stalled(),
            1..180 => reply.until_close(),
            _ => reply,
        };
        match self.one_in(6) {
            true => reply.slowly(Duration::from_micros(self.rng.random_range(0..2_000))),
            false => reply,
        }
    }

    fn message(&mut self) -> Vec<u8> {
        let mut head = match self.one_in(20) {
            true => self.pick(&STATUS_LINES).to_owned(),
            false => format!("HTTP/1.1 {} Mutant", self.pick(&STATUSES)),
        };

        for _ in 0..self.rng.random_range(0..6) {
            let header = self.pick(&HEADERS);
            if self.redirects || !header.starts_with("X-Accel-Redirect") {
                head += "\r\n";
                head += header;
            }
        }
        if self.one_in(20) {
            head += "\r\n";
            head += self.pick(&STRANGE);
        }
        if self.one_in(60) {
            let length = self.pick(&[1_000, 3_900, 4_000, 4_096, 9_000]);
            head += &format!("\r\nX-Long: {}", "l".repeat(length));
        }
        if self.one_in(60) {
            let count = self.pick(&[30, 100, 150]);
            head += &"\r\nX-Many: one".repeat(count);
        }

        let (framing, body) = self.framing();
        let end = if self.one_in(40) { "\n\n" } else { "\r\n\r\n" };
        [head.as_bytes(), framing.as_bytes(), end.as_bytes(), &body].concat()
    }

    /// Header lines that frame a body, and what follows the head.
    fn framing(&mut self) -> (String, Vec<u8>) {
        let length = self.pick(&[0, 1, 5, 100, 100, 1_000, 4_096, 9_000, 60_000]);
        let body: Vec<u8> = (0..length).map(|place| b'a' + (place % 26) as u8).collect();

        match self.rng.random_range(0..20) {
            0..9 => (format!("\r\nContent-Length: {length}"), body),
            9..14 => (
                "\r\nTransfer-Encoding: chunked".to_owned(),
                self.chunks(&body),
            ),
            14 => (String::new(), body),
            15 => (format!("\r\nContent-Length: {}", length + 10), body),
            16 => (format!("\r\nContent-Length: {}", length / 2), body),
            17 => {
                let value =
                    self.pick(&["-1", "x", "", "99999999999999999999", "5, 5", "0x5", "+5"]);
                (format!("\r\nContent-Length: {value}"), body)
            }
            18 => (
                format!(
                    "\r\nContent-Length: {length}\r\nContent-Length: {}",
                    length + 1
                ),
                body,
            ),
            _ => {
                let value = self.pick(&["gzip", "chunked, gzip", "identity", "CHUNKED"]);
                let second = format!("\r\nTransfer-Encoding: {value}\r\nContent-Length: {length}");
                (second, self.chunks(&body))
            }
        }
    }

    fn chunks(&mut self, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let size = self.pick(&[1, 7, 1_000, 100_000]).max(body.len() / 50);
        for chunk in body.chunks(size.max(1)) {
            let length = match self.one_in(200) {
                true => self
                    .pick(&["", "x", "-1", "ffffffffffffffffff", "0x5"])
                    .to_owned(),
                false => format!("{:x}", chunk.len()),
            };
            let extension = if self.one_in(20) { ";name=value" } else { "" };
            bytes.extend(format!("{length}{extension}\r\n").bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }

        if !self.one_in(20) {
            bytes.extend(b"0\r\n");
            if self.one_in(5) {
                bytes.extend(b"X-Trailer: yes\r\n");
            }
            bytes.extend(b"\r\n");
        }
        if self.one_in(20) {
            bytes.extend(b"more");
        }
        bytes
    }

    /// Changes some bytes, most of them in the head.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let reach = match self.one_in(3) {
            true => bytes.len(),
            false => bytes.len().min(200),
        };
        let at = self.rng.random_range(0..reach);
        let end = (at + self.rng.random_range(1..9)).min(bytes.len());

        match self.rng.random_range(0..6) {
            0 => bytes[at] = self.rng.random(),
            1 => bytes[at] ^= 1 << self.rng.random_range(0..8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            4 => {
                let text =
                    self.pick(&["\r\n", "\n", "\r", "\0", " ", ":", "\r\n\r\n", "0\r\n\r\n"]);
                bytes.splice(at..at, text.bytes());
            }
            _ => bytes.truncate(at),
        }
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.rng.random_range(0..values.len())]
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.rng.random_range(0..count) == 0
    }
}
