//! What two exchanges have to have in common.

/// The bytes around the first difference of the two, if there is one.
pub(crate) fn difference(plain: &[u8], other: &[u8]) -> Option<String> {
    if plain == other {
        return None;
    }

    let equal = plain.iter().zip(other).take_while(|(one, two)| one == two);
    let at = equal.count();
    let part = |bytes: &[u8]| {
        let from = at.saturating_sub(60);
        let part = &bytes[from.min(bytes.len())..(at + 200).min(bytes.len())];
        String::from_utf8_lossy(part).into_owned()
    };
    Some(format!(
        "at {at} of {} and {}\n  plain:    {:?}\n  upstrand: {:?}",
        plain.len(),
        other.len(),
        part(plain),
        part(other)
    ))
}

/// Whether the text stands in the bytes.
pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}

/// The bytes without what changes from one exchange or one side to the next: dates, the number of
/// the side, and these headers.
pub(crate) fn settled(bytes: &[u8], volatile: &[&str]) -> Vec<u8> {
    let mut settled = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let is = |name: &&str| {
            line.len() > name.len()
                && line[..name.len()].eq_ignore_ascii_case(name.as_bytes())
                && line[name.len()] == b':'
        };
        if is(&"Date") || volatile.iter().any(is) {
            continue;
        }

        let start = settled.len();
        settled.extend(line);
        if line.len() <= LONGEST_LINE {
            hide_side(&mut settled[start..]);
        }
    }
    settled
}

/// What is longer is a body, in which no side has its number.
const LONGEST_LINE: usize = 10_000;

/// Hides the number of the side in the names of a server, an upstream and an upstrand.
fn hide_side(line: &mut [u8]) {
    for word in ["side", "good", "us"] {
        let length = word.len();
        for at in 0..line.len().saturating_sub(length + 1) {
            let number = &line[at + length..at + length + 2];
            if line[at..].starts_with(word.as_bytes()) && number.iter().all(u8::is_ascii_digit) {
                line[at + length..at + length + 2].fill(b'#');
            }
        }
    }
}

/// A line of the access log.
pub(crate) struct Line {
    pub host: String,
    pub target: String,
    /// What is the same with and without an upstrand.
    pub same: String,
    pub path: String,
    pub statuses: String,
}

impl Line {
    pub const FORMAT: &str = "$host|$request_uri|$request_method|$status|$server_protocol|\
                              $request_length|$request_completion|$bytes_sent|$body_bytes_sent|\
                              $sent_http_transfer_encoding|$upstrand_path|$upstrand_status";

    pub fn parse(line: &str) -> Self {
        let fields: Vec<_> = line.split('|').collect();
        let [
            host,
            target,
            method,
            status,
            protocol,
            length,
            completion,
            sent,
            body,
            coding,
            path,
            statuses,
        ] = fields[..]
        else {
            panic!("a line of another format: {line:?}");
        };

        // How a body is cut into chunks or frames is not the same each time.
        let framed = coding == "chunked" || protocol == "HTTP/2.0" || protocol == "HTTP/3.0";
        let sent = if framed {
            String::new()
        } else {
            format!("{sent} {body}")
        };
        Self {
            host: host.to_owned(),
            target: target.to_owned(),
            same: format!("{method} {target} {status} {protocol} {length} {completion} {sent}"),
            path: path.to_owned(),
            statuses: statuses.to_owned(),
        }
    }
}

/// A line of the error log, at the level of warnings or errors, that a request caused.
pub(crate) struct ErrorLine {
    pub server: String,
    pub target: String,
    pub upstream: Option<String>,
    /// The text without the numbers of processes, connections and the like.
    pub text: String,
}

impl ErrorLine {
    /// None: a line of no request, or of a lower level; or one that tells but how fast a client
    /// read.
    pub fn parse(line: &str) -> Option<Self> {
        const LEVELS: [&str; 3] = ["[warn] ", "[error] ", "[crit] "];

        let level = LEVELS.iter().find(|level| line.contains(*level))?;
        let (_, text) = line.split_once(level)?;
        let (_, text) = text.split_once('*')?;
        let (_, text) = text.split_once(' ')?;
        if text.starts_with("an upstream response is buffered to a temporary file") {
            return None;
        }
        let after = |word: &str, end: char| {
            let (_, after) = text.split_once(word)?;
            after.split(end).next()
        };
        let request = after("request: \"", '"')?;
        Some(Self {
            server: after("server: ", ',')?.to_owned(),
            target: request.split(' ').nth(1)?.to_owned(),
            upstream: after("upstream: \"", '"').map(str::to_owned),
            text: unnumbered(&without_phase(text)),
        })
    }
}

/// The text without what nginx was doing: reading from one side and writing to the other take
/// turns.
fn without_phase(text: &str) -> String {
    match text.split_once(", client: ") {
        Some((what, context)) => {
            let what = what.split(" while ").next().unwrap_or_default();
            format!("{what}, client: {context}")
        }
        None => text.to_owned(),
    }
}

/// Addresses, ports, and the names of temporary files without their digits.
fn unnumbered(text: &str) -> String {
    let mut digits = false;
    let mut kept = String::new();
    for character in text.chars() {
        if !character.is_ascii_digit() {
            kept.push(character);
        } else if !digits {
            kept.push('#');
        }
        digits = character.is_ascii_digit();
    }
    kept
}
