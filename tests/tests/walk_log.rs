//! What the error log says of walks, and what a client that leaves does to them. Spec 8 and 4.2.

use std::collections::HashSet;
use std::time::Duration;

use harness::{Backend, Call, Config, Failure, Nginx, Reply, until};

/// The module's own words in the log, without what nginx adds.
fn said(nginx: &Nginx) -> Vec<String> {
    nginx
        .error_log()
        .lines()
        .filter_map(|line| {
            let from = line.find("upstrand \"us\"")?;
            let to = [" while ", ", client:"]
                .iter()
                .filter_map(|end| line[from..].find(end))
                .min()?;
            Some(line[from..from + to].to_owned())
        })
        .collect()
}

#[tokio::test]
async fn a_walk_that_runs_out_of_upstreams() {
    let (a, b) = (
        Backend::answering(Reply::status(503)).await,
        Backend::refusing(),
    );
    let nginx = Nginx::start(Config::upstrand([&a, &b])).await;

    nginx.get("/").await;
    assert_eq!(
        said(&nginx),
        [
            r#"upstrand "us": upstream "u1" failed with 503, trying "u2""#,
            r#"upstrand "us": upstream "u2" failed with 502, no more upstreams"#,
        ]
    );
    nginx.stop().await;
}

#[tokio::test]
async fn a_walk_that_runs_out_of_time() {
    let slow = Backend::answering(Reply::status(503).slowly(Duration::from_millis(40))).await;
    let good = Backend::answering(Reply::ok("good")).await;
    let config = Config::upstrand([&slow, &good]).upstrand_block("next_upstream_timeout 50ms;");
    let nginx = Nginx::start(config).await;

    assert_eq!(nginx.get("/").await.status, 503);
    assert_eq!(
        said(&nginx),
        [r#"upstrand "us": upstream "u1" failed with 503, timed out"#]
    );
    assert!(good.requests().is_empty());
    nginx.stop().await;
}

#[tokio::test]
async fn a_walk_that_may_not_repeat_its_request() {
    let bad = Backend::answering(Reply::status(503)).await;
    let good = Backend::answering(Reply::ok("good")).await;
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

    assert_eq!(nginx.call(Call::post("/", "body")).await.status, 503);
    assert_eq!(
        said(&nginx),
        [r#"upstrand "us": upstream "u1" failed with 503, not idempotent"#]
    );
    nginx.stop().await;
}

#[tokio::test]
async fn a_walk_that_cannot_repeat_its_body() {
    let bad = Backend::answering_early(Reply::status(503)).await;
    let good = Backend::answering(Reply::ok("good")).await;
    let config = Config::upstrand([&bad, &good])
        .location("proxy_request_buffering off; proxy_http_version 1.1;");
    let nginx = Nginx::start(config).await;

    let mut client = nginx.http1().await;
    client
        .send(b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
        .await;
    assert_eq!(client.receive("PUT").await.status, 503);
    assert_eq!(
        said(&nginx),
        [r#"upstrand "us": upstream "u1" failed with 503, request body already sent"#]
    );
    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn blacklists_that_are_full_are_cleared_with_a_word() {
    let (a, b) = (
        Failure::SmallBody.backend().await,
        Failure::SmallBody.backend().await,
    );
    let members = [("u1", &a), ("u2", &b)]
        .map(|(name, backend)| format!("upstream {name} {{ server {}; }}", backend.address()))
        .join("\n");
    let config = Config::new()
        .http(&members)
        .http("upstrand us {")
        .http("upstream u1 blacklist_interval=1h; upstream u2 blacklist_interval=1h;")
        .http("next_upstream_statuses 5xx; order per_request; }")
        .server("location / { proxy_pass http://$upstrand_us; }");
    let nginx = Nginx::start(config).await;
    let word = "[error]";
    let cleared = |log: &str| {
        log.lines()
            .filter(|line| line.contains(word))
            .filter(|line| {
                line.contains(
                    r#"all upstreams in upstrand "us" are blacklisted, whitelisting them"#,
                )
            })
            .count()
    };

    nginx.get("/").await;
    assert_eq!(cleared(&nginx.error_log()), 0);
    for walks in 1..4 {
        nginx.get("/").await;
        assert_eq!(cleared(&nginx.error_log()), walks);
        assert_eq!(
            (a.requests().len(), b.requests().len()),
            (walks + 1, walks + 1)
        );
    }
    nginx.stop().await;
}

#[tokio::test]
async fn a_blacklisted_member_comes_back_after_its_interval() {
    let bad = Failure::SmallBody.backend().await;
    let good = Backend::answering(Reply::ok("good")).await;
    let config = Config::new()
        .http(&format!("upstream u1 {{ server {}; }}", bad.address()))
        .http(&format!("upstream u2 {{ server {}; }}", good.address()))
        .http("upstrand us { upstream u1 blacklist_interval=150ms; upstream u2;")
        .http("next_upstream_statuses 5xx; order per_request; }")
        .server("location / { proxy_pass http://$upstrand_us; }");
    let nginx = Nginx::start(config).await;

    nginx.get("/").await;
    assert_eq!(bad.requests().len(), 1);
    until("the member is tried again", async || {
        nginx.get("/").await;
        (bad.requests().len() == 2).then_some(())
    })
    .await;
    // It was left out meanwhile, as it is again now.
    assert!(good.requests().len() > 2, "{}", good.requests().len());
    nginx.stop().await;
}

/// Each worker draws its first member. With eight members, 24 workers that all start at the same
/// one would be a chance of 8 to the power of -23.
#[tokio::test]
async fn workers_start_at_different_members() {
    let backend = Backend::answering(Reply::ok("good").until_close()).await;
    let upstreams: String = (1..=8)
        .map(|n| format!("upstream m{n} {{ server {}; }}\n", backend.address()))
        .collect();
    let config = Config::new()
        .workers(3)
        .http(&upstreams)
        .http("upstrand us { upstream ~^m; order start_random; }")
        .server("add_header X-Worker $pid; add_header X-Path $upstrand_path;")
        .server("location / { proxy_pass http://$upstrand_us; }");
    let nginx = Nginx::start(config).await;

    let mut starts = HashSet::new();
    for _ in 0..8 {
        let mut seen = HashSet::new();
        until("each worker has answered", async || {
            let answer = nginx.call(Call::get("/").closing()).await;
            let worker = answer.header("x-worker").unwrap_or_default().to_owned();
            if seen.insert(worker) {
                starts.insert(answer.header("x-path").unwrap_or_default().to_owned());
            }
            (seen.len() == 3).then_some(())
        })
        .await;
        nginx.reload().await;
    }

    assert!(starts.len() > 1, "{starts:?}");
    nginx.stop().await;
}

#[tokio::test]
async fn at_warn_the_module_says_nothing_of_its_own() {
    let bad = Failure::SmallBody.backend().await;
    let good = Backend::answering(Reply::ok("good")).await;
    let config = Config::upstrand([&bad, &good]).http("error_log warn.log warn;");
    let nginx = Nginx::start(config).await;

    for _ in 0..10 {
        assert_eq!(nginx.get("/").await.text(), "good");
    }
    let log = std::fs::read_to_string(nginx.prefix().join("warn.log")).expect("a log");
    assert_eq!(log, "");
    nginx.stop().await;
}
