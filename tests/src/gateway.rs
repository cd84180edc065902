//! The protocols beside HTTP/1 in which nginx speaks with backends.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::message::Request;
use crate::reply::{Reply, Then};
use crate::wire::{Body, Framing, Wire};

/// What a backend speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Protocol {
    Http1,
    /// HTTP/1 under TLS.
    Https,
    /// By prior knowledge, as gRPC has it.
    Http2,
    Fastcgi,
    Uwsgi,
    Scgi,
}

const STDOUT: u8 = 6;
const END_REQUEST: u8 = 3;

/// A request's parameters, in their order.
type Parameters = Vec<(Vec<u8>, Vec<u8>)>;

/// The next request in one of the CGI-like protocols; None: there is none.
pub(crate) async fn read(
    protocol: Protocol,
    wire: &mut Wire,
    connection: usize,
) -> Option<Request> {
    let (parameters, body) = match protocol {
        Protocol::Fastcgi => fastcgi(wire).await?,
        Protocol::Uwsgi => with_length(wire, uwsgi).await?,
        Protocol::Scgi => with_length(wire, scgi).await?,
        Protocol::Http1 | Protocol::Https | Protocol::Http2 => unreachable!("read elsewhere"),
    };

    let text = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key == name.as_bytes());
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    };
    let headers = parameters.iter().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name).ok()?;
        Some((name, HeaderValue::from_bytes(value).ok()?))
    });
    let lines = parameters
        .iter()
        .flat_map(|(name, value)| [&name[..], b": ", value, b"\r\n"].concat());
    Some(Request {
        method: text("REQUEST_METHOD").unwrap_or_default(),
        target: text("REQUEST_URI").unwrap_or_default(),
        version: 1,
        headers: headers.collect::<HeaderMap>(),
        raw: lines.chain(*b"\r\n").collect(),
        whole: body.whole,
        body: body.bytes,
        connection,
    })
}

/// The bytes of a reply in one of these protocols.
pub(crate) fn write(protocol: Protocol, reply: &Reply, to_head: bool) -> Vec<u8> {
    let bytes = reply.bytes(to_head, false);
    if protocol != Protocol::Fastcgi || reply.is_raw() {
        return bytes;
    }

    let status = bytes.strip_prefix(b"HTTP/1.1").expect("a status line");
    let mut records = stdout(&[b"Status:", status].concat());
    if matches!(reply.then, Then::Next | Then::Close) && !reply.is_cut_short() {
        records.extend([1, END_REQUEST, 0, 1, 0, 8, 0, 0]);
        records.extend([0; 8]);
    }
    records
}

/// The bytes as FastCGI's records.
pub(crate) fn stdout(bytes: &[u8]) -> Vec<u8> {
    let record = |part: &[u8]| {
        let [high, low] = u16::try_from(part.len())
            .expect("a short part")
            .to_be_bytes();
        [&[1, STDOUT, 0, 1, high, low, 0, 0], part].concat()
    };
    bytes.chunks(30_000).flat_map(record).collect()
}

async fn fastcgi(wire: &mut Wire) -> Option<(Parameters, Body)> {
    const PARAMS: u8 = 4;
    const STDIN: u8 = 5;

    let (mut parameters, mut body) = (Vec::new(), Vec::new());
    loop {
        let head = wire.exactly(8).await?;
        let length = u16::from_be_bytes([head[4], head[5]]);
        let mut content = wire
            .exactly(usize::from(length) + usize::from(head[6]))
            .await?;
        content.truncate(length.into());

        match head[1] {
            PARAMS => parameters.append(&mut content),
            STDIN if content.is_empty() => break,
            STDIN => body.append(&mut content),
            _ => {}
        }
    }

    let mut rest = &parameters[..];
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let (name, value) = (fastcgi_length(&mut rest)?, fastcgi_length(&mut rest)?);
        pairs.push((split_off(&mut rest, name)?, split_off(&mut rest, value)?));
    }
    Some((pairs, whole(body)))
}

/// A length of one byte, or of four whose first bit is set.
fn fastcgi_length(rest: &mut &[u8]) -> Option<usize> {
    let first = *rest.first()?;
    if first < 0x80 {
        *rest = &rest[1..];
        return Some(first.into());
    }
    let bytes = split_off(rest, 4)?;
    let length = u32::from_be_bytes(bytes.try_into().ok()?) & 0x7fff_ffff;
    usize::try_from(length).ok()
}

async fn uwsgi(wire: &mut Wire) -> Option<Parameters> {
    let head = wire.exactly(4).await?;
    let block = wire
        .exactly(u16::from_le_bytes([head[1], head[2]]).into())
        .await?;

    let mut rest = &block[..];
    let mut text = || {
        let length = split_off(&mut rest, 2)?;
        split_off(&mut rest, u16::from_le_bytes([length[0], length[1]]).into())
    };
    let mut pairs = Vec::new();
    while let Some(name) = text() {
        pairs.push((name, text()?));
    }
    Some(pairs)
}

async fn scgi(wire: &mut Wire) -> Option<Parameters> {
    let length = wire.until(b":").await?;
    let length: usize = std::str::from_utf8(&length)
        .ok()?
        .trim_end_matches(':')
        .parse()
        .ok()?;
    let block = wire.exactly(length + 1).await?;

    let mut texts = block.split(|byte| *byte == 0);
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        pairs.push((name.to_vec(), value.to_vec()));
    }
    Some(pairs)
}

/// Parameters, and a body whose length is one of them.
async fn with_length(
    wire: &mut Wire,
    parameters: impl AsyncFnOnce(&mut Wire) -> Option<Parameters>,
) -> Option<(Parameters, Body)> {
    let parameters = parameters(wire).await?;
    let length = parameters
        .iter()
        .find(|(name, _)| name == b"CONTENT_LENGTH");
    let length = length.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());

    let body = wire.body(Framing::Length(length.unwrap_or(0))).await;
    Some((parameters, body))
}

fn whole(bytes: Vec<u8>) -> Body {
    Body {
        bytes,
        trailers: HeaderMap::new(),
        whole: true,
    }
}

fn split_off(rest: &mut &[u8], length: usize) -> Option<Vec<u8>> {
    let (part, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(part.to_vec())
}
