//! The nginx that is soaked, and the backends behind it.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use harness::{Moody, Reply, Request, module_line};

use crate::ledger::{Ledger, id_of};

/// The upstreams, each with what stands beside its servers; the second has two of these.
const UPSTREAMS: [(&str, &str); 6] = [
    ("u1", "keepalive 8;"),
    ("u2", "least_conn; zone u2 64k; keepalive 8;"),
    ("u3", "extend_single_peers; keepalive 2;"),
    ("u4", "extend_single_peers; zone u4 64k;"),
    ("u5", ""),
    ("spare", "hash $arg_id consistent;"),
];

const SERVERS: [usize; 6] = [1, 2, 1, 1, 1, 1];

pub async fn backends(ledger: &Arc<Ledger>) -> Vec<Moody> {
    let mut backends = Vec::new();
    for _ in 0..SERVERS.iter().sum() {
        let ledger = ledger.clone();
        backends.push(Moody::new(move |request| answer(request, &ledger)).await);
    }
    backends
}

/// What a backend in a good mood answers.
fn answer(request: &Request, ledger: &Ledger) -> Reply {
    let (path, _) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, ""));
    let id = id_of(&request.target);

    if request.method == "POST" {
        ledger.delivered(id, path == "/bold");
        return Reply::ok(format!("id={id} {} bytes", request.body.len()));
    }
    match path {
        "/ws" => Reply::upgrade("websocket"),
        "/page" => Reply::ok(format!(
            "[<!--#include virtual=\"/app?id={id}\" -->|<!--#include virtual=\"/first?id={id}\" -->]"
        )),
        path if path.starts_with("/cache/") => {
            Reply::ok(path.to_owned()).header("Cache-Control", "max-age=1")
        }
        _ => Reply::ok(format!("id={id}")),
    }
}

/// nginx.conf, with an HTTP/1 socket and an HTTP/2 one.
pub fn text(prefix: &Path, sockets: &[SocketAddr], backends: &[Moody]) -> String {
    let [http1, http2] = sockets else {
        panic!("two sockets")
    };
    let mut servers = backends.iter().map(Moody::address);
    let mut upstreams = String::new();
    for ((name, more), count) in UPSTREAMS.iter().zip(SERVERS) {
        let servers: String = servers
            .by_ref()
            .take(count)
            .map(|address| format!("server {address} fail_timeout=1s;"))
            .collect();
        writeln!(upstreams, "upstream {name} {{ {servers} {more} }}").expect("a string");
    }

    let members: String = (1..=5)
        .map(|number| format!("upstream u{number} blacklist_interval=500ms;"))
        .collect();
    let folder = prefix.display();
    let start = module_line();

    format!(
        "{start}
daemon off;
worker_processes 2;
worker_shutdown_timeout 20s;
pid nginx.pid;
error_log error.log warn;
events {{ worker_connections 2000; }}
http {{
client_body_temp_path {folder}/client_body;
proxy_temp_path {folder}/proxy;
fastcgi_temp_path {folder}/fastcgi;
uwsgi_temp_path {folder}/uwsgi;
scgi_temp_path {folder}/scgi;
proxy_cache_path {folder}/cache keys_zone=pages:1m inactive=1m;
log_format walk '$status $upstrand_path $upstrand_status $upstrand_addr $upstrand_response_time';
access_log access.log walk buffer=32k flush=1s;
keepalive_requests 1000;
proxy_http_version 1.1;
proxy_set_header Connection '';
proxy_connect_timeout 1s;
proxy_read_timeout 300ms;
{upstreams}
upstrand app {{ {members} upstream spare backup; next_upstream_statuses error timeout 5xx; }}
upstrand first {{
    {members}
    order start_random per_request;
    next_upstream_statuses error timeout 5xx;
    next_upstream_timeout 2s;
    intercept_statuses 5xx /sorry;
}}
upstrand bold {{
    {members}
    next_upstream_statuses error timeout 5xx non_idempotent;
    next_upstream_tries 4;
}}
server {{
    listen {http1};
    listen {http2} http2;
    dynamic_upstrand $pool $arg_pool app;

    location /app   {{ proxy_pass http://$upstrand_app; }}
    location /first {{ proxy_pass http://$upstrand_first; }}
    location /bold  {{ proxy_pass http://$upstrand_bold; }}
    location /dyn   {{ proxy_pass http://$pool; }}
    location /page  {{ ssi on; ssi_types *; proxy_pass http://$upstrand_app; }}
    location /sorry {{ return 503 'intercepted'; }}
    location /cache {{
        proxy_cache pages;
        proxy_cache_key $uri;
        proxy_cache_lock on;
        proxy_cache_lock_age 500ms;
        proxy_cache_lock_timeout 500ms;
        proxy_cache_use_stale error timeout updating http_503;
        proxy_cache_background_update on;
        proxy_pass http://$upstrand_app;
    }}
    location /ws {{
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection upgrade;
        proxy_read_timeout 4s;
        proxy_pass http://$upstrand_first;
    }}
}}
}}
"
    )
}
