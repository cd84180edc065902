//! The texts of the variables that show a walk (spec 6).

use crate::text::Sink;

/// What stands in the trace for a failover location that an interception redirected to.
pub const INTERCEPTED: &[u8] = b"<intercepted>";

const ARROW: &[u8] = b" -> ";

/// `u01 -> u02 -> b01`: the names of the upstreams in the order of their hops.
pub fn path<'a>(names: impl IntoIterator<Item = &'a [u8]>, text: &mut dyn Sink) {
    for (index, name) in names.into_iter().enumerate() {
        if index > 0 {
            text.put(ARROW);
        }
        text.put(name);
    }
}

/// `(u01) 503 (u02) 503 (b01) 200`: for each hop its name and what `value` writes for it. An empty
/// value keeps its blank.
pub fn values<'a, H>(
    hops: impl IntoIterator<Item = (&'a [u8], H)>,
    text: &mut dyn Sink,
    mut value: impl FnMut(H, &mut dyn Sink),
) {
    for (index, (name, hop)) in hops.into_iter().enumerate() {
        text.put(if index > 0 { &b" ("[..] } else { b"(" });
        text.put(name);
        text.put(b") ");
        value(hop, text);
    }
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
    text: &mut dyn Sink,
    mut value: impl FnMut(T, &mut dyn Sink),
) {
    let mut pending: &[u8] = b"";

    for peer in peers {
        match peer {
            Peer::Tried(peer) => {
                text.put(pending);
                value(peer, text);
                pending = b", ";
            }
            Peer::Separator if !pending.is_empty() => pending = b" : ",
            Peer::Separator => {}
        }
    }
}

/// A decimal number.
pub fn number(value: u64, text: &mut dyn Sink) {
    padded(value, 1, text);
}

/// `1.005`: seconds with milliseconds, of milliseconds; `-` where there is none.
pub fn seconds(msec: Option<u64>, text: &mut dyn Sink) {
    match msec {
        Some(msec) => {
            number(msec / 1000, text);
            text.put(b".");
            padded(msec % 1000, 3, text);
        }
        None => text.put(b"-"),
    }
}

/// A decimal number of at least so many digits.
fn padded(mut value: u64, width: usize, text: &mut dyn Sink) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();

    while value > 0 {
        first -= 1;
        digits[first] += (value % 10) as u8;
        value /= 10;
    }

    text.put(&digits[first.min(digits.len() - width)..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::written;

    fn joined(list: &[Peer<u64>]) -> String {
        written(|text| peers(list.iter().copied(), text, number))
    }

    #[test]
    fn paths() {
        let joined = |names: &[&'static [u8]]| written(|text| path(names.iter().copied(), text));
        assert_eq!(joined(&[]), "");
        assert_eq!(joined(&[b"u01"]), "u01");
        assert_eq!(
            joined(&[b"u01", b"b01", INTERCEPTED]),
            "u01 -> b01 -> <intercepted>"
        );
    }

    #[test]
    fn values_of_hops() {
        let joined = |hops: &[(&'static [u8], &str)]| {
            written(|text| {
                values(hops.iter().copied(), text, |value, text| {
                    text.put(value.as_bytes())
                });
            })
        };
        assert_eq!(
            joined(&[(b"u01", "503"), (b"u02", ""), (b"b01", "200")]),
            "(u01) 503 (u02)  (b01) 200"
        );
        assert_eq!(joined(&[(b"u01", "")]), "(u01) ");
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
        let text = |msec| written(|text| seconds(msec, text));
        assert_eq!(text(Some(0)), "0.000");
        assert_eq!(text(Some(7)), "0.007");
        assert_eq!(text(Some(61_005)), "61.005");
        assert_eq!(text(Some(12_999)), "12.999");
        assert_eq!(text(None), "-");
    }
}
