//! Weights of servers that `add_upstream` appends (spec 1).

use std::fmt;

/// nginx keeps the sum of the weights of an upstream's main, and of its backup, servers in an int.
pub const MAX_TOTAL: u64 = i32::MAX as u64;

/// The weights of an upstream would add up to more than [`MAX_TOTAL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig;

impl fmt::Display for TooBig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("weight is too big")
    }
}

impl std::error::Error for TooBig {}

/// Multiplies a server's weight by the directive's.
///
/// # Errors
///
/// The product alone is over [`MAX_TOTAL`].
pub fn multiply(weight: u64, factor: u64) -> Result<u64, TooBig> {
    match weight.checked_mul(factor) {
        Some(product) if product <= MAX_TOTAL => Ok(product),
        _ => Err(TooBig),
    }
}

/// Checks the total of the weights of servers with the given numbers of addresses: nginx gives
/// each address the server's weight.
///
/// # Errors
///
/// The total is over [`MAX_TOTAL`].
pub fn check_total(servers: impl IntoIterator<Item = (u64, u64)>) -> Result<(), TooBig> {
    let mut total: u64 = 0;

    for (weight, addresses) in servers {
        total = weight
            .checked_mul(addresses)
            .and_then(|weights| total.checked_add(weights))
            .filter(|total| *total <= MAX_TOTAL)
            .ok_or(TooBig)?;
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products() {
        assert_eq!(multiply(3, 2), Ok(6));
        assert_eq!(multiply(1, MAX_TOTAL), Ok(MAX_TOTAL));
        assert_eq!(multiply(2, MAX_TOTAL), Err(TooBig));
        assert_eq!(multiply(u64::MAX, 2), Err(TooBig));
    }

    #[test]
    fn totals() {
        assert_eq!(check_total([]), Ok(()));
        assert_eq!(check_total([(MAX_TOTAL - 1, 1), (1, 1)]), Ok(()));
        assert_eq!(check_total([(MAX_TOTAL, 1), (1, 1)]), Err(TooBig));
        assert_eq!(check_total([(MAX_TOTAL / 2 + 1, 2)]), Err(TooBig));
        assert_eq!(check_total([(u64::MAX, u64::MAX)]), Err(TooBig));
        assert_eq!(check_total([(MAX_TOTAL, 0), (1, 1)]), Ok(()));
    }
}
