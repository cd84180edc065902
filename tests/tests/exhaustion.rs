//! When nginx runs out of something, a client gets an error or a closed connection, and others are served as soon as
//! there is enough again.

use std::time::Duration;

use harness::{Backend, Call, Config, Failure, Nginx, Reply, all, until};

/// More clients than there is room for.
const CLIENTS: usize = 60;

/// Ends it. Its log has such a line, and may have some at a level that no other test wants.
async fn stop(nginx: Nginx, expected: &str) {
    assert!(nginx.error_log().contains(expected), "no {expected:?}");
    let complaints = nginx.try_stop().await.err().unwrap_or_default();
    let unforeseen: Vec<_> = complaints
        .lines()
        .filter(|line| !line.contains(expected))
        .collect();
    assert!(unforeseen.is_empty(), "{unforeseen:#?}");
}

/// Sends a request on each of many connections at the same time. How many were answered well, and how many with an
/// error; the others were closed.
async fn crowd(nginx: &Nginx) -> (usize, usize) {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(nginx.http1().await);
    }
    let answers = all(clients.into_iter().map(|mut client| async move {
        client.try_send(&Call::get("/").closing().bytes()).await;
        client
            .try_receive("GET")
            .await
            .ok()
            .map(|answer| answer.status)
    }))
    .await;

    let count = |good: bool| {
        let answers = answers.iter().flatten();
        answers.filter(|status| (**status == 200) == good).count()
    };
    (count(true), count(false))
}

/// A crowd that a worker with this limit has no room for; `expected` is what it complains of.
async fn overwhelm(limit: impl FnOnce(Config) -> Config, expected: &str) {
    let slow = |reply: Reply| reply.slowly(Duration::from_millis(10));
    let bad = Backend::answering(slow(Reply::status(503))).await;
    let good = Backend::answering(slow(Reply::ok("good"))).await;
    let nginx = Nginx::start(limit(Config::upstrand([&bad, &good]))).await;

    let (served, failed) = crowd(&nginx).await;
    println!("{served} served, {failed} with an error");
    assert!(
        served + failed < CLIENTS || failed > 0,
        "there was room for all"
    );
    nginx.idle().await;
    assert_eq!(nginx.get("/").await.text(), "good");
    stop(nginx, expected).await;
}

#[tokio::test]
async fn at_the_limit_of_connections() {
    overwhelm(
        |config| config.connections(40),
        "worker_connections are not enough",
    )
    .await;
}

#[tokio::test]
async fn without_descriptors() {
    overwhelm(
        |config| config.main("worker_rlimit_nofile 40;"),
        "24: Too many open files",
    )
    .await;
}

#[tokio::test]
async fn without_live_upstreams_everywhere() {
    let refusing = Backend::refusing();
    let config = Config::upstrand([&refusing, &refusing, &refusing]).upstream(&format!(
        "server {} backup; keepalive 4;",
        refusing.address()
    ));
    let nginx = Nginx::start(config).await;

    for _ in 0..5 {
        let answer = nginx.get("/").await;
        assert_eq!((answer.status, answer.whole), (502, true));
    }
    assert!(nginx.error_log().contains("no live upstreams"));
    nginx.stop().await;
}

/// A body that does not come in whole cannot be sent to anybody: it is no upstream's failure.
#[tokio::test]
async fn without_room_for_a_request_body() {
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::ok("good")).await,
    );
    let config = Config::upstrand([&bad, &good]).largest_file(100_000);
    let nginx = Nginx::start(config.upstrand_block("intercept_statuses 5xx /;")).await;

    for method in ["PUT", "POST"] {
        let mut client = nginx.http1().await;
        client
            .try_send(&Call::new(method, "/").body(vec![b'x'; 300_000]).bytes())
            .await;
        assert_eq!(client.receive(method).await.status, 500, "{method}");
    }
    assert_eq!(good.requests().len(), 0);
    assert_eq!(nginx.get("/").await.text(), "good");

    let small = Call::new("PUT", "/").body(vec![b'x'; 50_000]);
    assert_eq!(nginx.call(small).await.text(), "good");
    stop(nginx, "27: File too large").await;
}

/// As without an upstrand: what has gone out is followed by the end of the connection.
#[tokio::test]
async fn without_room_for_a_response() {
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::ok(vec![b'x'; 20_000_000])).await,
    );
    let config = Config::upstrand([&bad, &good]).location("proxy_buffers 4 8k;");
    let nginx = Nginx::start(config.largest_file(100_000)).await;

    for target in ["/", "/plain"] {
        let mut client = nginx.http1_with_buffer(4_096).await;
        client.try_send(&Call::get(target).closing().bytes()).await;
        good.received(1).await;
        // Nothing is read until nginx has had to write a file.
        until("a full disk", async || {
            nginx.error_log().contains("has written only").then_some(())
        })
        .await;
        let answer = client.receive("GET").await;
        assert_eq!((answer.status, answer.whole), (200, false), "{target}");
    }
    stop(nginx, "has written only").await;
}
