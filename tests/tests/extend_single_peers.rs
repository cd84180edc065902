//! A lone server fails and comes back like any other: spec 3.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use harness::{
    Backend, Call, Config, Http1, Nginx, Reply, all, balancers, has_upstream_line, until,
};

/// An upstream for each name, chosen by the first part of the path.
const LOCATION: &str = "keepalive_requests 1000000;
location ~ ^/(?<upstream>\\w+) {
proxy_http_version 1.1;
proxy_set_header Connection '';
proxy_pass http://$upstream;
}";

/// A server that answers, or takes requests and closes, as a test switches it.
struct Switched {
    backend: Backend,
    works: Arc<AtomicBool>,
}

impl Switched {
    async fn off() -> Self {
        let works = Arc::new(AtomicBool::new(false));
        let state = works.clone();
        let backend = Backend::each(move |_| match state.load(Ordering::SeqCst) {
            true => Reply::ok("good"),
            false => Reply::nothing(),
        });
        Self {
            backend: backend.await,
            works,
        }
    }

    fn turn_on(&self) {
        self.works.store(true, Ordering::SeqCst);
    }

    /// How many requests for this upstream it got.
    fn requests(&self, upstream: &str) -> usize {
        let path = format!("/{upstream}");
        let requests = self.backend.requests();
        requests
            .iter()
            .filter(|request| request.target == path)
            .count()
    }
}

/// What may stand in the block beside the servers: each balancer, and what works with all of them.
async fn blocks() -> Vec<String> {
    let mut blocks: Vec<_> = balancers().await.into_iter().map(str::to_owned).collect();
    blocks.push("keepalive 4;".to_owned());
    blocks.push("least_conn; keepalive 4;".to_owned());
    if has_upstream_line("sticky cookie id;").await {
        blocks.push("sticky cookie id;".to_owned());
        blocks.push("least_conn; sticky cookie id; keepalive 4;".to_owned());
    }
    blocks
}

/// An upstream by the name of `NAME`, with the directive before and after the block's lines and
/// with and without a zone.
fn variants(name: &str, servers: &str, block: &str) -> Vec<(String, String)> {
    let orders = [
        format!("extend_single_peers; {servers} {block}"),
        format!("{servers} extend_single_peers; {block}"),
        format!("{servers} {block} extend_single_peers;"),
    ];

    let mut variants = Vec::new();
    for (order, lines) in orders.iter().enumerate() {
        for zone in [false, true] {
            let name = format!("{name}_{order}_{zone}");
            let zone = match zone {
                true => format!("zone {name} 64k;"),
                false => String::new(),
            };
            variants.push((
                name.clone(),
                format!("upstream {name} {{ {zone} {lines} }}\n"),
            ));
        }
    }
    variants
}

async fn status(client: &mut Http1, upstream: &str) -> u16 {
    client
        .call(&Call::get(&format!("/{upstream}")))
        .await
        .status
}

async fn comes_back(nginx: &Nginx, upstream: &str) {
    let what = format!("{upstream} in use again");
    until(&what, async || {
        let status = nginx.get(&format!("/{upstream}")).await.status;
        (status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_lone_server_is_ejected_and_comes_back_under_every_balancer() {
    let server = Switched::off().await;
    let address = server.backend.address();
    let lone = format!("server {address} fail_timeout=2s;");
    let patient = format!("server {address} max_fails=3 fail_timeout=2s;");

    let mut cases = Vec::new();
    for (number, block) in blocks().await.iter().enumerate() {
        for (fails, server) in [(1, &lone), (3, &patient)] {
            let named = variants(&format!("lone{number}_{fails}"), server, block);
            cases.extend(
                named
                    .into_iter()
                    .map(|(name, text)| (name, text, fails, block.clone())),
            );
        }
    }
    let texts: String = cases.iter().map(|(_, text, ..)| text.as_str()).collect();
    let config = Config::new().http(&texts).server(LOCATION);

    let verdict = Nginx::test(&config).await;
    assert!(!verdict.stderr.contains("[warn]"), "{}", verdict.stderr);

    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;
    for (name, _, fails, block) in &cases {
        for _ in 0..*fails + 2 {
            assert_eq!(status(&mut client, name).await, 502, "{name} {block}");
        }
        // From its last allowed failure on it is left alone.
        assert_eq!(server.requests(name), *fails, "{name} {block}");
    }
    let log = nginx.error_log();
    let said = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(said("upstream server temporarily disabled"), cases.len());
    assert_eq!(said("no live upstreams"), 2 * cases.len());

    server.turn_on();
    for (name, ..) in &cases {
        comes_back(&nginx, name).await;
    }
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn without_the_directive_a_lone_server_is_not_ejected() {
    let server = Switched::off().await;
    let lone = format!("server {} fail_timeout=60s;", server.backend.address());

    let blocks = blocks().await;
    let mut config = Config::new().server(LOCATION);
    for (number, block) in blocks.iter().enumerate() {
        config = config.http(&format!("upstream plain{number} {{ {lone} {block} }}"));
    }
    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;

    for (number, block) in blocks.iter().enumerate() {
        for _ in 0..5 {
            assert_eq!(status(&mut client, &format!("plain{number}")).await, 502);
        }
        assert_eq!(server.requests(&format!("plain{number}")), 5, "{block}");
    }
    assert!(!nginx.error_log().contains("temporarily disabled"));
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn with_backups_it_behaves_as_without_the_directive() {
    let (server, first, second) = (
        Switched::off().await,
        Switched::off().await,
        Switched::off().await,
    );
    let main = format!("server {} fail_timeout=2s;", server.backend.address());
    let one = format!(
        "{main} server {} backup fail_timeout=2s;",
        first.backend.address()
    );
    let two = format!(
        "{one} server {} backup fail_timeout=2s;",
        second.backend.address()
    );

    let mut cases = Vec::new();
    for (number, block) in blocks().await.iter().enumerate() {
        for (count, servers) in [(1, &one), (2, &two)] {
            // Plain nginx, from 1.27.3 on, then reads beyond its table.
            let plain = !(block.starts_with("random") && count == 2);
            for (name, text) in variants(&format!("lone{number}_{count}"), servers, block) {
                if plain {
                    cases.push((
                        format!("plain_{name}"),
                        text.replace("extend_single_peers;", "")
                            .replace("lone", "plain_lone"),
                        count,
                    ));
                }
                cases.push((name, text, count));
            }
        }
    }
    let texts: String = cases.iter().map(|(_, text, _)| text.as_str()).collect();
    let nginx = Nginx::start(Config::new().http(&texts).server(LOCATION)).await;
    let mut client = nginx.http1().await;

    for (name, _, count) in &cases {
        for _ in 0..3 {
            assert_eq!(status(&mut client, name).await, 502, "{name}");
        }
        let requests = [&server, &first, &second].map(|switched| switched.requests(name));
        assert_eq!(requests, [1, 1, count - 1], "{name}");
    }
    server.turn_on();
    for (name, ..) in &cases {
        comes_back(&nginx, name).await;
    }
    drop(client);
    nginx.stop().await;
}

/// A server that answers the first request of a connection, and closes on the second one without
/// a byte: what nginx sees if a kept-alive connection is closed just as it sends.
async fn forgetful() -> Backend {
    let seen = Mutex::new(HashSet::new());
    Backend::each(move |request| {
        let first = seen.lock().expect("no panic").insert(request.connection);
        if first {
            Reply::ok("good")
        } else {
            Reply::nothing()
        }
    })
    .await
}

#[tokio::test]
async fn a_stale_kept_connection_does_not_eject() {
    let backend = forgetful().await;
    let lone = format!("server {} fail_timeout=60s;", backend.address());

    let mut texts = format!("upstream plain {{ {lone} keepalive 4; }}");
    let mut names = vec!["plain".to_owned()];
    for (number, block) in blocks().await.iter().enumerate() {
        let block = match block.contains("keepalive") {
            true => block.clone(),
            false => format!("{block} keepalive 4;"),
        };
        for (name, text) in variants(&format!("lone{number}"), &lone, &block) {
            texts += &text;
            names.push(name);
        }
    }
    let nginx = Nginx::start(Config::new().http(&texts).server(LOCATION)).await;
    let mut client = nginx.http1().await;

    for name in &names {
        let before = backend.connections();
        for _ in 0..6 {
            assert_eq!(status(&mut client, name).await, 200, "{name}");
        }
        // One connection a request, each but the last one found stale by the next.
        assert_eq!(backend.connections() - before, 6, "{name}");

        // nginx does not repeat a request of which the server may have seen something.
        let post = client.call(&Call::post(&format!("/{name}"), "x")).await;
        assert_eq!(post.status, 502, "{name}");
        assert_eq!(status(&mut client, name).await, 200, "{name}");
    }
    assert!(!nginx.error_log().contains("temporarily disabled"));
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn a_server_that_died_behind_a_stale_connection_is_ejected() {
    let works = Arc::new(AtomicBool::new(true));
    let state = works.clone();
    let backend = Backend::each(move |_| match state.load(Ordering::SeqCst) {
        true => Reply::ok("good"),
        false => Reply::nothing(),
    })
    .await;
    let lone = format!("server {} fail_timeout=60s;", backend.address());

    let mut texts = String::new();
    let mut names = Vec::new();
    for (name, text) in variants("lone", &lone, "keepalive 4;") {
        texts += &text;
        names.push(name);
    }
    let nginx = Nginx::start(Config::new().http(&texts).server(LOCATION)).await;
    let mut client = nginx.http1().await;

    for name in &names {
        works.store(true, Ordering::SeqCst);
        assert_eq!(status(&mut client, name).await, 200, "{name}");

        works.store(false, Ordering::SeqCst);
        let before = backend.requests().len();
        assert_eq!(status(&mut client, name).await, 502, "{name}");
        assert_eq!(
            backend.requests().len(),
            before + 2,
            "{name}: stale, and once more"
        );
        assert_eq!(status(&mut client, name).await, 502, "{name}");
        assert_eq!(backend.requests().len(), before + 2, "{name}: ejected");
    }
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn an_answer_broken_off_on_a_kept_connection_is_a_failure() {
    let seen = Mutex::new(HashSet::new());
    let backend = Backend::each(move |request| {
        let first = seen.lock().expect("no panic").insert(request.connection);
        if first {
            Reply::ok("good")
        } else {
            Reply::raw("HTTP/1.1 200").cut_short(0)
        }
    })
    .await;
    let nginx = Nginx::start(
        Config::new()
            .http(&format!(
                "upstream lone {{ server {} fail_timeout=60s; extend_single_peers; keepalive 4; }}",
                backend.address()
            ))
            .server(LOCATION),
    )
    .await;
    let mut client = nginx.http1().await;

    assert_eq!(status(&mut client, "lone").await, 200);
    assert_eq!(status(&mut client, "lone").await, 502);
    assert_eq!(status(&mut client, "lone").await, 502);
    assert_eq!(backend.requests().len(), 2);
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn stale_connections_under_load_of_several_workers_eject_nobody() {
    let backend = forgetful().await;
    let config = Config::new()
        .workers(2)
        .http(&format!(
            "upstream lone {{ zone z 64k; server {} fail_timeout=60s; extend_single_peers; keepalive 8; }}",
            backend.address()
        ))
        .server(LOCATION);
    let nginx = Nginx::start(config).await;

    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(nginx.http1().await);
    }
    let failed: usize = all(clients.into_iter().map(|mut client| async move {
        let mut failed = 0;
        for _ in 0..500 {
            failed += usize::from(status(&mut client, "lone").await != 200);
        }
        failed
    }))
    .await
    .into_iter()
    .sum();
    assert_eq!(failed, 0);
    assert!(!nginx.error_log().contains("temporarily disabled"));
    nginx.stop().await;
}

#[tokio::test]
async fn a_singlet_of_an_extended_host_is_extended_too() {
    let server = Switched::off().await;
    let config = Config::new()
        .http(&format!(
            "upstream h {{ server {} fail_timeout=60s; extend_single_peers; combine_server_singlets; }}",
            server.backend.address()
        ))
        .server(LOCATION);
    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;

    for _ in 0..3 {
        assert_eq!(status(&mut client, "h1").await, 502);
    }
    assert_eq!(server.requests("h1"), 1);
    // Each has its own count of failures.
    assert_eq!(status(&mut client, "h").await, 502);
    assert_eq!(server.requests("h"), 1);
    drop(client);
    nginx.stop().await;
}
