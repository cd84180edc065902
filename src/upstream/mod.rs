//! The directives of an `upstream {}` block, which rewrite its servers at configuration time.

pub mod add;
pub mod conf;
pub mod extend;
mod index;
pub mod random;
pub mod singlets;
