//! What every text that a regular expression finds has to begin with: thousands of names are sooner compared
//! with that than searched.

/// Bytes that may mean something else than themselves.
const SPECIAL: &[u8] = b"\\^$.|?*+()[]{}";

/// The bytes that stand as they are at the beginning of the pattern, if it is tied to the beginning of the text; else
/// none.
pub fn literal(pattern: &[u8]) -> &[u8] {
    let Some(rest) = pattern.strip_prefix(b"^") else {
        return b"";
    };
    if rest.contains(&b'|') {
        return b"";
    }

    let special = |byte: &u8| SPECIAL.contains(byte) || !byte.is_ascii();
    let length = rest.iter().position(special).unwrap_or(rest.len());

    // What follows may say that the last one is not there.
    match rest.get(length) {
        Some(b'?' | b'*' | b'{') => &rest[..length.saturating_sub(1)],
        _ => &rest[..length],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_are_tied_to_the_beginning() {
        for (pattern, expected) in [
            ("^", ""),
            ("^app", "app"),
            ("^app$", "app"),
            ("^app-1_x ", "app-1_x "),
            (r"^app\d", "app"),
            ("^app.*", "app"),
            ("^app+", "app"),
            ("^app(?!x)", "app"),
            ("^app[12]", "app"),
        ] {
            assert_eq!(
                literal(pattern.as_bytes()),
                expected.as_bytes(),
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_byte_that_may_be_missing_is_none_of_it() {
        for pattern in ["^app?", "^app*", "^app{0,2}", "^app*?"] {
            assert_eq!(literal(pattern.as_bytes()), b"ap", "{pattern}");
        }
    }

    #[test]
    fn other_patterns_have_none() {
        for pattern in [
            "", "app", "^a|b", "^(a|b)", "(?i)^app", r"\Aapp", ".^app", "^?a", "^é",
        ] {
            assert_eq!(literal(pattern.as_bytes()), b"", "{pattern}");
        }
    }
}
