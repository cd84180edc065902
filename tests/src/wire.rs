//! HTTP/1 messages out of a stream of bytes, the same for both sides.

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const MOST_HEADERS: usize = 200;

/// A stream of bytes both ways, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    /// Read, but not taken yet.
    ahead: Vec<u8>,
    /// Taken since the last `raw`.
    taken: Vec<u8>,
}

/// How the length of a body is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

pub(crate) struct Body {
    pub bytes: Vec<u8>,
    pub trailers: HeaderMap,
    pub whole: bool,
}

impl Wire {
    pub fn new(stream: impl Stream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            ahead: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// Writes; false if the other side has gone.
    pub async fn write(&mut self, bytes: &[u8]) -> bool {
        // TLS keeps bytes until it is flushed.
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Closes one direction, after what was written.
    pub async fn finish(&mut self) {
        // If the other side has gone already, there is nothing to close.
        let _ = self.stream.shutdown().await;
    }

    /// All through the blank line; None if the stream ends before it.
    pub async fn head(&mut self) -> Option<Vec<u8>> {
        self.through(b"\r\n\r\n").await
    }

    pub async fn body(&mut self, framing: Framing) -> Body {
        match framing {
            Framing::Length(length) => {
                let whole = self.read_up_to(length).await;
                let bytes = self.take(length.min(self.ahead.len()));
                Body {
                    bytes,
                    trailers: HeaderMap::new(),
                    whole,
                }
            }
            Framing::UntilClose => {
                let bytes = self.rest().await;
                Body {
                    bytes,
                    trailers: HeaderMap::new(),
                    whole: true,
                }
            }
            Framing::Chunked => {
                let mut bytes = Vec::new();
                let trailers = self.chunks(&mut bytes).await;
                Body {
                    bytes,
                    whole: trailers.is_some(),
                    trailers: trailers.unwrap_or_default(),
                }
            }
        }
    }

    /// So many bytes; None if the stream ends before.
    pub async fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        let whole = self.read_up_to(length).await;
        whole.then(|| self.take(length))
    }

    /// All through `end`; None if the stream ends before it.
    pub async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        self.through(end).await
    }

    /// Everything until the other side closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        self.take(self.ahead.len())
    }

    /// What has come by now, waiting only where nothing has.
    pub async fn some(&mut self) -> Vec<u8> {
        if self.ahead.is_empty() {
            self.more().await;
        }
        self.take(self.ahead.len())
    }

    /// The bytes taken since the last call: those of one message.
    pub fn raw(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.taken)
    }

    /// Fills `bytes` with the chunks; None if the stream ends before the last one.
    async fn chunks(&mut self, bytes: &mut Vec<u8>) -> Option<HeaderMap> {
        loop {
            let line = self.through(b"\r\n").await?;
            let size = chunk_size(&line)?;
            if size == 0 {
                return self.trailers().await;
            }

            let whole = self.read_up_to(size + 2).await;
            let mut chunk = self.take((size + 2).min(self.ahead.len()));
            chunk.truncate(size);
            bytes.append(&mut chunk);
            if !whole {
                return None;
            }
        }
    }

    async fn trailers(&mut self) -> Option<HeaderMap> {
        let mut lines = Vec::new();
        while !lines.ends_with(b"\r\n\r\n") && lines != b"\r\n" {
            lines.extend(self.through(b"\r\n").await?);
        }

        let mut room = [httparse::EMPTY_HEADER; MOST_HEADERS];
        match httparse::parse_headers(&lines, &mut room) {
            Ok(httparse::Status::Complete((_, parsed))) => Some(map(parsed)),
            _ => None,
        }
    }

    async fn through(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        let mut seen = 0;
        loop {
            let found = self.ahead[seen..]
                .windows(end.len())
                .position(|window| window == end);
            if let Some(at) = found {
                return Some(self.take(seen + at + end.len()));
            }
            seen = self.ahead.len().saturating_sub(end.len() - 1);
            if !self.more().await {
                return None;
            }
        }
    }

    async fn read_up_to(&mut self, length: usize) -> bool {
        while self.ahead.len() < length {
            if !self.more().await {
                return false;
            }
        }
        true
    }

    /// Reads more; false at the end of the stream, a reset included.
    async fn more(&mut self) -> bool {
        self.ahead.reserve(64 * 1024);
        matches!(self.stream.read_buf(&mut self.ahead).await, Ok(length) if length > 0)
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let later = self.ahead.split_off(length);
        let bytes = std::mem::replace(&mut self.ahead, later);
        self.taken.extend_from_slice(&bytes);
        bytes
    }
}

impl Framing {
    /// What the headers say, if they say anything.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        if headers
            .get("transfer-encoding")
            .is_some_and(|value| value == "chunked")
        {
            return Some(Self::Chunked);
        }
        let length = headers.get("content-length")?.to_str().ok()?.parse().ok()?;
        Some(Self::Length(length))
    }
}

/// The request line's method, target and minor version, and the headers.
pub(crate) fn parse_request(head: &[u8]) -> Option<(String, String, u8, HeaderMap)> {
    let mut room = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut room);
    request.parse(head).ok()?;

    Some((
        request.method?.to_owned(),
        request.path?.to_owned(),
        request.version?,
        map(request.headers),
    ))
}

/// The status and the headers. nginx lets some of a backend's bytes pass that should not stand there: a line that is
/// no header is left out.
pub(crate) fn parse_response(head: &[u8]) -> Option<(u16, HeaderMap)> {
    let visible = |byte: &u8| match byte {
        b'\t' | b'\r' | b'\n' | b' '.. => *byte,
        _ => b'?',
    };
    let head: Vec<u8> = head.iter().map(visible).collect();
    let mut room = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut room);
    let mut config = httparse::ParserConfig::default();
    config.ignore_invalid_headers_in_responses(true);
    config.parse_response(&mut response, &head).ok()?;

    Some((response.code?, map(response.headers)))
}

fn map(headers: &[httparse::Header]) -> HeaderMap {
    let pair = |header: &httparse::Header| {
        let name = HeaderName::from_bytes(header.name.as_bytes()).expect("a header name");
        let value = HeaderValue::from_bytes(header.value).expect("a header value");
        (name, value)
    };
    headers.iter().map(pair).collect()
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    match httparse::parse_chunk_size(line) {
        Ok(httparse::Status::Complete((_, size))) => usize::try_from(size).ok(),
        _ => None,
    }
}
