//! The ways in which a hop fails.

use crate::backend::Backend;
use crate::gateway::Protocol;
use crate::reply::Reply;

/// One way to fail. `error timeout 5xx` covers them all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    Refused,
    SmallBody,
    LargeBody,
    StalledBody,
    EndlessBody,
    Closed,
    Garbage,
    Timeout,
}

impl Failure {
    pub const ALL: [Self; 8] = [
        Self::Refused,
        Self::SmallBody,
        Self::LargeBody,
        Self::StalledBody,
        Self::EndlessBody,
        Self::Closed,
        Self::Garbage,
        Self::Timeout,
    ];

    /// A backend that fails so.
    pub async fn backend(self) -> Backend {
        self.speaking(Protocol::Http1).await
    }

    /// A backend that fails so, in this protocol.
    pub async fn speaking(self, protocol: Protocol) -> Backend {
        let unavailable = Reply::status(503).header("X-Failed", "yes");
        let reply = match self {
            Self::Refused => return Backend::refusing(),
            Self::SmallBody => unavailable.body("failed"),
            Self::LargeBody => unavailable.body(vec![b'f'; 2_000_000]),
            Self::StalledBody => unavailable.body("failed").stalled(),
            Self::EndlessBody => unavailable.endless(),
            Self::Closed => Reply::nothing(),
            Self::Garbage => Reply::garbage(),
            Self::Timeout => Reply::silence(),
        };
        Backend::speaking(protocol, move |_| reply.clone()).await
    }

    /// What lets it happen in good time. (Only a timeout needs anything: elsewhere a short one would
    /// but make tests fail on a busy machine.)
    pub fn settings(self) -> &'static str {
        match self {
            Self::Timeout => "proxy_read_timeout 1s;",
            _ => "",
        }
    }

    /// The status of such a hop.
    pub fn status(self) -> u16 {
        match self {
            Self::Refused | Self::Closed | Self::Garbage => 502,
            Self::Timeout => 504,
            _ => 503,
        }
    }
}
