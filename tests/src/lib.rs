//! A real nginx with the module, backends that misbehave as told, and clients that show every byte.
//!
//! A test starts its [`Backend`]s, starts an [`Nginx`] with a [`Config`] that names them, sends
//! [`Call`]s and ends with [`Nginx::stop`], which checks that nothing was left behind. Two
//! environment variables say what is tested: `NGINX_BINARY` and `NGINX_MODULE`.

mod backend;
mod balancers;
mod call;
mod config;
mod counts;
mod daemon;
mod dns;
mod environment;
mod failure;
mod gateway;
mod http1;
mod http2;
mod http2_backend;
mod http3;
mod launch;
mod matrix;
mod message;
mod moody;
mod nginx;
mod patience;
mod processes;
mod program;
mod reply;
mod row;
mod tls;
mod transcript;
mod wire;

pub use backend::Backend;
pub use balancers::{balancers, has_upstream_line};
pub use call::Call;
pub use config::Config;
pub use daemon::Daemon;
pub use dns::Dns;
pub use environment::number;
pub use failure::Failure;
pub use gateway::Protocol;
pub use http1::Http1;
pub use http2::Http2;
pub use http3::Http3;
pub use launch::module_line;
pub use matrix::Matrix;
pub use message::{Request, Response};
pub use moody::{Mood, Moody};
pub use nginx::{Nginx, Verdict};
pub use patience::{PATIENCE, all, until, within};
pub use processes::{descriptors, memory};
pub use program::Program;
pub use reply::Reply;
pub use row::{Row, Seen, Side};
