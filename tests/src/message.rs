//! A request as a backend got it, a response as a client got it.

use http::HeaderMap;

/// A request that a backend received.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    /// The minor version: 0 or 1.
    pub version: u8,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Every byte as it came.
    pub raw: Vec<u8>,
    /// Whether the body came to its end.
    pub whole: bool,
    /// The backend's connection that it came on, from 1.
    pub connection: usize,
}

/// A response that a client received.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: HeaderMap,
    /// Every byte as it came; empty under HTTP/2 and HTTP/3.
    pub raw: Vec<u8>,
    /// Whether the body came to its end.
    pub whole: bool,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        text_of(&self.headers, name)
    }

    /// Whether the client lets the connection live on.
    pub(crate) fn keeps_alive(&self) -> bool {
        let connection = self
            .header("connection")
            .unwrap_or_default()
            .to_ascii_lowercase();
        connection == "keep-alive" || self.version == 1 && connection != "close"
    }
}

impl Response {
    /// One that came in frames; the rest is its body, its trailers, and whether it came to its end.
    pub(crate) fn framed(
        head: http::response::Parts,
        (body, trailers, whole): (Vec<u8>, HeaderMap, bool),
    ) -> Self {
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            trailers,
            raw: Vec::new(),
            whole,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        text_of(&self.headers, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Every byte but the date, to compare two responses.
    pub fn undated(&self) -> String {
        String::from_utf8_lossy(&self.raw)
            .split_inclusive("\r\n")
            .filter(|line| !line.starts_with("Date: "))
            .collect()
    }
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get(name)
        .map(|value| value.to_str().expect("a header of visible ASCII"))
}
