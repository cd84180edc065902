//! Sets of response statuses, as `next_upstream_statuses` names them (spec 4.3).

use std::fmt;

const FIRST: u16 = 200;
const LAST: u16 = 599;
const WORDS: usize = (LAST - FIRST) as usize / 64 + 1;

/// Statuses with which nginx answers for an upstream that gave no good answer. What else nginx
/// makes by itself (400, 408, 413) is the client's own fault and never a failure of a hop.
const MADE_FOR_AN_UPSTREAM: [u16; 4] = [500, 502, 503, 504];

/// The statuses of a hop that count as its failure, and whether a request that is not idempotent
/// may go on after one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    numbers: [u64; WORDS],
    error: bool,
    timeout: bool,
    non_idempotent: bool,
}

/// Who made a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The backend, or a cache on its behalf.
    Backend,
    /// nginx itself, because it got none from the backend.
    Nginx,
}

/// A word that names no status. Its `Display` is nginx's log line (spec 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidStatus(String);

impl fmt::Display for InvalidStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid status \"{}\"", self.0)
    }
}

impl std::error::Error for InvalidStatus {}

impl Statuses {
    /// Adds what one argument of `next_upstream_statuses` names.
    ///
    /// # Errors
    ///
    /// The word is none of a status 200 to 599, `2xx` to `5xx`, `error`, `timeout` and
    /// `non_idempotent`.
    pub fn add(&mut self, word: &[u8]) -> Result<(), InvalidStatus> {
        if word == b"non_idempotent" {
            self.non_idempotent = true;
            return Ok(());
        }

        self.add_response(word)
    }

    /// Adds what one status argument of `intercept_statuses` names: as [`Statuses::add`], without
    /// `non_idempotent`, which is no status.
    ///
    /// # Errors
    ///
    /// As for [`Statuses::add`].
    pub fn add_response(&mut self, word: &[u8]) -> Result<(), InvalidStatus> {
        match word {
            b"error" => self.error = true,
            b"timeout" => self.timeout = true,
            [class @ b'2'..=b'5', b'x', b'x'] => {
                let first = u16::from(class - b'0') * 100;
                (first..first + 100).for_each(|status| self.insert(status));
            }
            [a @ b'2'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                let digit = |byte: &u8| u16::from(byte - b'0');
                self.insert(digit(a) * 100 + digit(b) * 10 + digit(c));
            }
            _ => return Err(InvalidStatus(String::from_utf8_lossy(word).into_owned())),
        }

        Ok(())
    }

    /// Whether a response of this status and origin is in the set.
    ///
    /// `error` and `timeout` match only a 502 or 504 of nginx's own; numbers and classes match
    /// whoever made the response, except for what nginx answers to a fault of the client.
    #[inline]
    pub fn matches(&self, status: u16, origin: Origin) -> bool {
        match origin {
            Origin::Backend => self.contains(status),
            Origin::Nginx => {
                (self.error && status == 502)
                    || (self.timeout && status == 504)
                    || (MADE_FOR_AN_UPSTREAM.contains(&status) && self.contains(status))
            }
        }
    }

    /// Whether `non_idempotent` was given.
    pub fn allows_non_idempotent(&self) -> bool {
        self.non_idempotent
    }

    fn insert(&mut self, status: u16) {
        let bit = usize::from(status - FIRST);
        self.numbers[bit / 64] |= 1 << (bit % 64);
    }

    #[inline]
    fn contains(&self, status: u16) -> bool {
        let bit = usize::from(status.wrapping_sub(FIRST));
        self.numbers
            .get(bit / 64)
            .is_some_and(|word| word & (1 << (bit % 64)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> Statuses {
        let mut statuses = Statuses::default();
        for word in words {
            statuses.add(word.as_bytes()).unwrap();
        }
        statuses
    }

    fn matching(statuses: &Statuses, origin: Origin) -> Vec<u16> {
        (0..=1000)
            .filter(|status| statuses.matches(*status, origin))
            .collect()
    }

    #[test]
    fn an_empty_set_matches_nothing() {
        for origin in [Origin::Backend, Origin::Nginx] {
            assert_eq!(matching(&set(&[]), origin), []);
        }
    }

    #[test]
    fn numbers_and_classes_match_a_backend() {
        assert_eq!(matching(&set(&["204", "404"]), Origin::Backend), [204, 404]);
        assert_eq!(
            matching(&set(&["3xx"]), Origin::Backend),
            (300..400).collect::<Vec<_>>()
        );
        assert_eq!(
            matching(&set(&["200", "5xx", "599"]), Origin::Backend),
            [200].into_iter().chain(500..600).collect::<Vec<_>>()
        );
    }

    #[test]
    fn error_and_timeout_match_only_what_nginx_made() {
        let statuses = set(&["error", "timeout"]);
        assert_eq!(matching(&statuses, Origin::Backend), []);
        assert_eq!(matching(&statuses, Origin::Nginx), [502, 504]);
        assert_eq!(matching(&set(&["error"]), Origin::Nginx), [502]);
        assert_eq!(matching(&set(&["timeout"]), Origin::Nginx), [504]);
    }

    #[test]
    fn plain_502_and_504_match_both() {
        let statuses = set(&["502", "504"]);
        assert_eq!(matching(&statuses, Origin::Backend), [502, 504]);
        assert_eq!(matching(&statuses, Origin::Nginx), [502, 504]);
    }

    #[test]
    fn the_clients_own_faults_never_match() {
        let statuses = set(&["4xx", "5xx", "error", "timeout"]);
        assert_eq!(matching(&statuses, Origin::Nginx), [500, 502, 503, 504]);
    }

    #[test]
    fn non_idempotent_is_no_status() {
        let statuses = set(&["non_idempotent"]);
        assert!(statuses.allows_non_idempotent());
        assert!(!set(&["5xx"]).allows_non_idempotent());
        assert_eq!(matching(&statuses, Origin::Backend), []);
        assert!(Statuses::default().add_response(b"non_idempotent").is_err());
    }

    #[test]
    fn words_that_name_no_status() {
        for word in [
            "", "0", "05", "5", "50", "101", "199", "600", "999", "5000", "1xx", "6xx", "0xx",
            "xx", "5x", "5xxx", "5XX", "2x", "xxx", "-200", "+200", " 200", "200 ", "Error",
            "timeouts",
        ] {
            let error = Statuses::default().add(word.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), format!("invalid status \"{word}\""));
        }
        assert!(Statuses::default().add(b"5\xff0").is_err());
    }
}
