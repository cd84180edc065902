//! What a backend does with a request.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::call::chunks;

/// One response, and what follows it.
#[derive(Clone, Debug)]
pub struct Reply {
    start: Start,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    length: Length,
    trailers: Vec<(String, String)>,
    pub(crate) then: Then,
    pub(crate) pause: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Start {
    Status(u16),
    /// These bytes stand instead of a status line and headers.
    Raw(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Length {
    OfBody,
    Announced(usize),
    Chunked,
    Unknown,
}

/// What the backend does after the bytes of its response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Then {
    /// Waits for the next request, where HTTP allows it.
    Next,
    Close,
    /// Keeps the connection and says nothing more.
    Stall,
    /// Sends body bytes for as long as they are taken.
    Endless,
    /// Sends every byte back.
    Echo,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self::starting(Start::Status(status))
    }

    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200).body(body)
    }

    /// Takes the request and closes.
    pub fn nothing() -> Self {
        Self::raw("").then(Then::Close)
    }

    /// Takes the request and says nothing, for good.
    pub fn silence() -> Self {
        Self::raw("").then(Then::Stall)
    }

    /// Begins like HTTP and goes on in no way that is.
    pub fn garbage() -> Self {
        Self::raw("HTTP/1.1 200 OK\r\nX-Before: garbage\r\n\0\x01 no header\r\n\r\nbody")
            .then(Then::Close)
    }

    /// Switches protocols and echoes from then on.
    pub fn upgrade(protocol: &str) -> Self {
        let connection = Self::status(101).header("Connection", "Upgrade");
        connection.header("Upgrade", protocol).then(Then::Echo)
    }

    /// Sends these bytes as they are.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::starting(Start::Raw(bytes.into()))
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn chunked(mut self) -> Self {
        self.length = Length::Chunked;
        self
    }

    /// A trailer, after a chunked body.
    pub fn trailer(mut self, name: &str, value: &str) -> Self {
        self.trailers.push((name.to_owned(), value.to_owned()));
        self.chunked()
    }

    /// Announces `length` bytes and closes after the body that it has.
    pub fn cut_short(mut self, length: usize) -> Self {
        self.length = Length::Announced(length);
        self.then(Then::Close)
    }

    /// Announces more than its body and stalls after that.
    pub fn stalled(mut self) -> Self {
        self.length = Length::Announced(self.body.len() + 1_000);
        self.then(Then::Stall)
    }

    /// Sends more and more body.
    pub fn endless(mut self) -> Self {
        self.length = Length::Unknown;
        self.then(Then::Endless)
    }

    /// Ends its body by closing the connection.
    pub fn until_close(mut self) -> Self {
        self.length = Length::Unknown;
        self.then(Then::Close)
    }

    /// Sends its bytes in ten parts, with a pause before each.
    pub fn slowly(mut self, pause: Duration) -> Self {
        self.pause = Some(pause);
        self
    }

    pub(crate) fn is_raw(&self) -> bool {
        matches!(self.start, Start::Raw(_))
    }

    /// Whether it ends before its announced length.
    pub(crate) fn is_cut_short(&self) -> bool {
        matches!(self.length, Length::Announced(length) if length > self.body.len())
    }

    /// The bytes to send, without a body to HEAD; the connection ends after them if `closing`.
    pub(crate) fn bytes(&self, to_head: bool, closing: bool) -> Vec<u8> {
        let status = match &self.start {
            Start::Raw(bytes) => return bytes.clone(),
            Start::Status(status) => *status,
        };

        let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if closing && status != 101 {
            head += "Connection: close\r\n";
        }

        let bodiless = matches!(status, 101 | 204 | 304);
        match self.length {
            _ if bodiless => {}
            Length::OfBody => head += &format!("Content-Length: {}\r\n", self.body.len()),
            Length::Announced(length) => head += &format!("Content-Length: {length}\r\n"),
            Length::Chunked => head += "Transfer-Encoding: chunked\r\n",
            Length::Unknown => {}
        }
        head += "\r\n";

        let mut bytes = head.into_bytes();
        if !to_head && !bodiless {
            bytes.extend(self.framed_body());
        }
        bytes
    }

    /// The head, the body and the trailers under HTTP/2; None: it says nothing at all.
    pub(crate) fn http2(&self) -> Option<(http::Response<()>, Vec<u8>, HeaderMap)> {
        let Start::Status(status) = self.start else {
            return None;
        };

        let mut head = http::Response::builder().status(status);
        for (name, value) in &self.headers {
            head = head.header(name, value);
        }
        let pair = |(name, value): &(String, String)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a trailer's name");
            (
                name,
                HeaderValue::from_str(value).expect("a trailer's value"),
            )
        };
        let trailers = self.trailers.iter().map(pair).collect();
        let head = head.body(()).expect("a response");
        Some((head, self.body.clone(), trailers))
    }

    fn framed_body(&self) -> Vec<u8> {
        if self.length != Length::Chunked {
            return self.body.clone();
        }

        let mut bytes = chunks(&self.body);
        bytes.extend(b"0\r\n");
        for (name, value) in &self.trailers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        bytes.extend(b"\r\n");
        bytes
    }

    fn starting(start: Start) -> Self {
        Self {
            start,
            headers: Vec::new(),
            body: Vec::new(),
            length: Length::OfBody,
            trailers: Vec::new(),
            then: Then::Next,
            pause: None,
        }
    }

    fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}
