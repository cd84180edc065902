//! The `upstrand {}` block, and the walk of a request through its members.
//!
//! ```text
//!   block      reads the configuration into conf
//!   variables  $upstrand_NAME begins a hop in a request's record, $upstrand_path and its like show it
//!   filter     decides on each hop's response: forward it, or suspend the request
//!   reentry    suspends the request and resumes it: with the next hop, or for nginx to finish
//! ```

pub mod accel_redirect;
pub mod block;
pub mod conf;
pub mod dynamic;
pub mod filter;
mod frozen;
pub mod intercept;
mod pattern;
pub mod reentry;
pub mod request;
mod response;
mod snapshot;
pub mod variables;
