//! The directives of an `upstream {}` block, which rewrite its servers at configuration time.

pub mod add;
