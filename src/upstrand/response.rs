//! A response as the filter sees it: who made it, and which status it stands for.

use combined_upstreams_core::statuses::Origin;

use crate::ffi::request::{Exchange, Request};

/// Whether the response that the filter holds was made by nginx, read from a cache, or neither.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// nginx's own answer: the exchange with the upstream is over.
    Nginx,
    /// A cache entry: nginx does not finalize the request if the filter answers `NGX_DONE`.
    Cache,
    /// The upstream, which may have more to send.
    Upstream,
}

/// What the filter must know of a response.
pub struct Response {
    pub source: Source,
    pub status: u16,
    pub origin: Origin,
}

impl Response {
    /// The response that nginx is about to send.
    pub fn of(r: Request, exchange: Exchange) -> Self {
        let made = r.fields().err_status;
        let received = exchange.fields().headers_in.status_n;

        if made != 0 {
            return Self {
                source: Source::Nginx,
                status: made as u16,
                origin: if received == made {
                    Origin::Backend
                } else {
                    Origin::Nginx
                },
            };
        }

        Self {
            source: if r.is_cached() {
                Source::Cache
            } else {
                Source::Upstream
            },
            status: received as u16,
            origin: Origin::Backend,
        }
    }

    /// What stale content stands for: the failure because of which nginx sends it.
    pub fn behind_stale(exchange: Exchange) -> Option<(u16, Origin)> {
        let state = exchange.state()?;

        if state.status < 300 {
            return None;
        }

        // The header's time is set once a server's header has been read.
        let origin = if state.header_time == usize::MAX {
            Origin::Nginx
        } else {
            Origin::Backend
        };

        Some((state.status as u16, origin))
    }
}
