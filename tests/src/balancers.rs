//! nginx's ways to choose a server.

use crate::config::Config;
use crate::nginx::Nginx;

/// The lines that choose one; empty: round robin.
const ALL: [&str; 10] = [
    "",
    "least_conn;",
    "ip_hash;",
    "hash $uri;",
    "hash $uri consistent;",
    "random;",
    "random two;",
    "random two least_conn;",
    "least_time header;",
    "least_time last_byte inflight;",
];

/// Those that the nginx in question has.
pub async fn balancers() -> Vec<&'static str> {
    let mut present = Vec::new();
    for balancer in ALL {
        if has_upstream_line(balancer).await {
            present.push(balancer);
        }
    }
    present
}

/// Whether the nginx in question takes this line in an upstream.
pub async fn has_upstream_line(line: &str) -> bool {
    let config = Config::new().http(&format!(
        "upstream probe {{ zone probe 64k; server 127.0.0.1:1; {line} }}"
    ));
    Nginx::test(&config).await.code == Some(0)
}
