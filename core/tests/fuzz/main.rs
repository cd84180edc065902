//! Random executions of the fuzz targets. scripts/fuzz-core.sh makes many more of them.
//!
//! EXECUTIONS says how many for each target (20,000 without it), EXECUTIONS_FROM the number of the first one.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod targets;

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// Runs a target with the random numbers of each execution; the one that fails is named.
fn each(target: fn(&mut dyn RngCore)) {
    let number = |variable: &str, default| match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    };
    let first = number("EXECUTIONS_FROM", 0_u64);

    for seed in first..first + number("EXECUTIONS", 20_000) {
        let result = std::panic::catch_unwind(|| target(&mut SmallRng::seed_from_u64(seed)));
        assert!(result.is_ok(), "execution {seed}");
    }
}

macro_rules! tests {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                each(targets::$target);
            }
        )*
    };
}

tests! { statuses singlets weights chunks walks }
