//! The rules of nginx-combined-upstreams that need no nginx: which statuses fail over, in which
//! order a walk visits its upstreams, how long a failed one stays out, what a trace looks like.
//!
//! Nothing here reads a clock or a random source: both come in as arguments.

#![forbid(unsafe_code)]

pub mod blacklist;
pub mod chunked;
pub mod prefix;
pub mod rotation;
pub mod singlet;
pub mod statuses;
pub mod text;
pub mod trace;
pub mod weight;
