//! The variables of a walk for hops that only a misbehaving backend makes, and what the log says the
//! client got. Spec 4.6 and 6.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::{Backend, Call, Config, Failure, Nginx, Reply, until};

/// Two members, and a log of `format` in its own file, which the returned function reads.
async fn start(members: [&Backend; 2], format: &str, more: &str) -> Nginx {
    let config = Config::upstrand(members)
        .http(&format!("log_format trace '{format}';"))
        .server("access_log trace.log trace;")
        .location("access_log trace.log trace;")
        .location(more);
    Nginx::start(config).await
}

/// The one line of that log, once it is there.
async fn traced(nginx: &Nginx) -> String {
    let log = nginx.prefix().join("trace.log");
    until("a line in the log", async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().last().map(str::to_owned)
    })
    .await
}

async fn good() -> Backend {
    Backend::answering(Reply::ok("good")).await
}

#[tokio::test]
async fn every_kind_of_failed_hop_has_its_status_and_no_more() {
    for failure in Failure::ALL {
        let (bad, good) = (failure.backend().await, good().await);
        let format =
            "$upstrand_path [$upstrand_status] [$upstrand_addr] [$upstrand_response_length]";
        let nginx = start([&bad, &good], format, failure.settings()).await;

        assert_eq!(nginx.get("/").await.text(), "good");
        assert_eq!(
            traced(&nginx).await,
            format!(
                "u1 -> u2 [(u1) {} (u2) 200] [(u1) {} (u2) {}] [(u1) 0 (u2) 4]",
                failure.status(),
                bad.address(),
                good.address()
            ),
            "{failure:?}"
        );
        nginx.stop().await;
    }
}

#[tokio::test]
async fn times_are_those_of_each_hop() {
    let (silent, good) = (Failure::Timeout.backend().await, good().await);
    let format = "$upstrand_header_time / $upstrand_response_time / $upstrand_connect_time";
    let nginx = start([&silent, &good], format, Failure::Timeout.settings()).await;

    nginx.get("/").await;
    let line = traced(&nginx).await;
    let [header, response, connect] = line.split(" / ").collect::<Vec<_>>()[..] else {
        panic!("{line}");
    };
    assert!(header.starts_with("(u1) - (u2) 0.0"), "{line}");
    assert!(connect.starts_with("(u1) 0.0"), "{line}");
    let waited: f64 = response
        .trim_start_matches("(u1) ")
        .split(' ')
        .next()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or_default();
    assert!(waited > 0.05, "{line}");
    nginx.stop().await;
}

#[tokio::test]
async fn the_log_tells_the_clients_truth() {
    let bad = Backend::answering(Reply::status(503).body("failed ".repeat(100))).await;
    let good = good().await;
    let nginx = start(
        [&bad, &good],
        "$status $body_bytes_sent [$upstream_status]",
        "",
    )
    .await;

    nginx.get("/").await;
    assert_eq!(traced(&nginx).await, "200 4 [503 : 200]");
    nginx.stop().await;
}

#[tokio::test]
async fn trailers_show_the_whole_walk() {
    let bad = Failure::SmallBody.backend().await;
    // nginx counts the framing of chunks, too.
    let good = Backend::answering(Reply::ok("good").chunked()).await;
    let more = "proxy_http_version 1.1; add_trailer X-Path $upstrand_path; \
                add_trailer X-Length $upstrand_response_length;";
    let nginx = start([&bad, &good], "-", more).await;

    let mut client = nginx.http1().await;
    client
        .send(&Call::get("/").header("TE", "trailers").closing().bytes())
        .await;
    let bytes = String::from_utf8(client.rest().await).expect("text");
    assert!(
        bytes.ends_with("0\r\nX-Path: u1 -> u2\r\nX-Length: (u1) 0 (u2) 14\r\n\r\n"),
        "{bytes}"
    );
    nginx.stop().await;
}

/// All members fail after their answers were kept: the last one's is served stale.
#[tokio::test]
async fn a_stale_answer_is_a_hop_of_its_own_kind() {
    let dead = Arc::new(AtomicBool::new(false));
    let backend = || {
        let dead = Arc::clone(&dead);
        Backend::each(move |_| match dead.load(Ordering::SeqCst) {
            true => Reply::nothing(),
            false => Reply::ok("kept").header("Cache-Control", "max-age=1"),
        })
    };
    let (a, b) = (backend().await, backend().await);
    let config = Config::upstrand([&a, &b])
        .http("proxy_cache_path cache keys_zone=c:1m;")
        .location("proxy_cache c; proxy_cache_key $uri; proxy_cache_use_stale error timeout;")
        .location("proxy_http_version 1.0;")
        .location("add_header X-Cache \"[$upstrand_cache_status]\" always;")
        .location("add_header X-Status \"[$upstrand_status]\" always;");
    let nginx = Nginx::start(config).await;

    assert_eq!(nginx.get("/").await.header("x-cache"), Some("[(u1) MISS]"));
    dead.store(true, Ordering::SeqCst);
    let answer = until("the answer is stale", async || {
        let answer = nginx.get("/").await;
        (answer.header("x-cache") != Some("[(u1) HIT]")).then_some(answer)
    })
    .await;

    assert_eq!((answer.status, answer.text().as_str()), (200, "kept"));
    assert_eq!(answer.header("x-cache"), Some("[(u1) STALE (u2) STALE]"));
    assert_eq!(answer.header("x-status"), Some("[(u1) 502 (u2) 502]"));
    nginx.stop().await;
}

#[tokio::test]
async fn a_walk_that_timed_out_is_intercepted() {
    let silent = Failure::Timeout.backend().await;
    let good = good().await;
    let config = Config::upstrand([&silent, &good])
        .location(Failure::Timeout.settings())
        .upstrand_block("next_upstream_timeout 10ms; intercept_statuses timeout /sorry;")
        .server("location /sorry { return 200 \"sorry $upstrand_path\"; }");
    let nginx = Nginx::start(config).await;

    assert_eq!(nginx.get("/").await.text(), "sorry u1 -> <intercepted>");
    assert!(good.requests().is_empty());
    nginx.stop().await;
}
