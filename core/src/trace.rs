//! The texts of the variables that show a walk (spec 6).

/// What stands in the trace for a failover location that an interception redirected to.
pub const INTERCEPTED: &[u8] = b"<intercepted>";

const ARROW: &[u8] = b" -> ";

/// The texts of most walks need no more room, in bytes.
const USUAL_SIZE: usize = 256;

/// `u01 -> u02 -> b01`: the names of the upstreams in the order of their hops.
pub fn path<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut text = Vec::with_capacity(USUAL_SIZE);

    for name in names {
        if !text.is_empty() {
            text.extend_from_slice(ARROW);
        }
        text.extend_from_slice(name);
    }

    text
}

/// `(u01) 503 (u02) 503 (b01) 200`: for each hop its name and what `value` writes for it. An empty
/// value keeps its blank.
pub fn values<'a, H>(
    hops: impl IntoIterator<Item = (&'a [u8], H)>,
    mut value: impl FnMut(H, &mut Vec<u8>),
) -> Vec<u8> {
    let mut text = Vec::with_capacity(USUAL_SIZE);

    for (name, hop) in hops {
        if !text.is_empty() {
            text.push(b' ');
        }
        text.push(b'(');
        text.extend_from_slice(name);
        text.extend_from_slice(b") ");
        value(hop, &mut text);
    }

    text
}

/// One of the servers tried in a hop, as nginx's own `$upstream_*` variables see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer<T> {
    /// A server that was tried.
    Tried(T),
    /// What nginx puts between the servers of two upstreams: no server.
    Separator,
}

/// `502, 503`, and ` : ` in place of a separator that is not the first: nginx's form of its
/// `$upstream_*` variables (nginx: `ngx_http_upstream_status_variable`).
pub fn peers<T>(
    peers: impl IntoIterator<Item = Peer<T>>,
    text: &mut Vec<u8>,
    mut value: impl FnMut(T, &mut Vec<u8>),
) {
    let mut pending: &[u8] = b"";

    for peer in peers {
        match peer {
            Peer::Tried(peer) => {
                text.extend_from_slice(pending);
                value(peer, text);
                pending = b", ";
            }
            Peer::Separator if !pending.is_empty() => pending = b" : ",
            Peer::Separator => {}
        }
    }
}

/// A decimal number.
pub fn number(value: u64, text: &mut Vec<u8>) {
    padded(value, 1, text);
}

/// `1.005`: seconds with milliseconds, of milliseconds; `-` where there is none.
pub fn seconds(msec: Option<u64>, text: &mut Vec<u8>) {
    match msec {
        Some(msec) => {
            number(msec / 1000, text);
            text.push(b'.');
            padded(msec % 1000, 3, text);
        }
        None => text.push(b'-'),
    }
}

/// A decimal number of at least so many digits.
fn padded(mut value: u64, width: usize, text: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();

    while value > 0 {
        first -= 1;
        digits[first] += (value % 10) as u8;
        value /= 10;
    }

    text.extend_from_slice(&digits[first.min(digits.len() - width)..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(list: &[Peer<u64>]) -> String {
        let mut text = Vec::new();
        peers(list.iter().copied(), &mut text, number);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn paths() {
        assert_eq!(path([]), b"");
        assert_eq!(path([&b"u01"[..]]), b"u01");
        assert_eq!(
            path([&b"u01"[..], b"b01", INTERCEPTED]),
            b"u01 -> b01 -> <intercepted>"
        );
    }

    #[test]
    fn values_of_hops() {
        let hops = [(&b"u01"[..], "503"), (b"u02", ""), (b"b01", "200")];
        let write = |value: &str, text: &mut Vec<u8>| text.extend_from_slice(value.as_bytes());
        assert_eq!(values(hops, write), b"(u01) 503 (u02)  (b01) 200");
        assert_eq!(values([(&b"u01"[..], "")], write), b"(u01) ");
    }

    #[test]
    fn peers_of_one_hop() {
        use Peer::{Separator, Tried};
        assert_eq!(joined(&[]), "");
        assert_eq!(joined(&[Tried(200)]), "200");
        assert_eq!(joined(&[Separator, Tried(502), Tried(503)]), "502, 503");
        assert_eq!(joined(&[Tried(502), Separator, Tried(200)]), "502 : 200");
        assert_eq!(joined(&[Tried(502), Separator]), "502");
        assert_eq!(joined(&[Separator]), "");
    }

    #[test]
    fn numbers() {
        assert_eq!(joined(&[Peer::Tried(0)]), "0");
        assert_eq!(joined(&[Peer::Tried(10)]), "10");
        assert_eq!(joined(&[Peer::Tried(u64::MAX)]), "18446744073709551615");
    }

    #[test]
    fn times() {
        let text = |msec| {
            let mut text = Vec::new();
            seconds(msec, &mut text);
            String::from_utf8(text).unwrap()
        };
        assert_eq!(text(Some(0)), "0.000");
        assert_eq!(text(Some(7)), "0.007");
        assert_eq!(text(Some(61_005)), "61.005");
        assert_eq!(text(Some(12_999)), "12.999");
        assert_eq!(text(None), "-");
    }
}
