//! Long walks and many of them.

use harness::{Backend, Call, Config, Failure, Http1, Nginx, Reply, all};

#[tokio::test]
async fn two_hundred_failing_upstreams_give_the_last_response() {
    let bad = Backend::each(|request| {
        Reply::status(503).body(request.header("host").unwrap().to_owned())
    })
    .await;
    let nginx = Nginx::start(Config::upstrand(std::iter::repeat_n(&bad, 200))).await;

    let answer = nginx.get("/").await;
    assert_eq!((answer.status, answer.text().as_str()), (503, "u200"));

    let asked: Vec<_> = bad
        .requests()
        .iter()
        .map(|request| request.header("host").unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (1..=200).map(|number| format!("u{number}")).collect();
    assert_eq!(asked, expected);
    assert!(
        nginx
            .logged()
            .await
            .starts_with(&format!("GET / 503 [{}] [(u1) 503 ", expected.join(" -> ")))
    );
    nginx.stop().await;
}

#[tokio::test]
async fn two_hundred_refusing_upstreams_are_no_recursion() {
    let (refusing, good) = (
        Backend::refusing(),
        Backend::answering(Reply::ok("good")).await,
    );
    let members = std::iter::repeat_n(&refusing, 200).chain([&good]);
    let nginx = Nginx::start(Config::upstrand(members)).await;

    assert_eq!(nginx.get("/").await.text(), "good");
    nginx.stop().await;
}

/// How much the memory of a worker may grow over 10,000 requests: less than 10 bytes in each.
const GROWTH: usize = 100_000;

#[tokio::test]
async fn ten_thousand_failing_over_requests_leave_the_memory_flat() {
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::ok("good")).await,
    );
    let config = Config::upstrand([&bad, &good])
        .upstream("keepalive 8;")
        .http("keepalive_requests 100000;")
        .location("proxy_http_version 1.1; proxy_set_header Connection '';");
    let nginx = Nginx::start(config).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(nginx.http1().await);
    }

    clients = ask(clients, 500).await;
    let before = nginx.worker_memory();
    clients = ask(clients, 2_500).await;
    let after = nginx.worker_memory();

    println!("resident memory of the worker: {before} bytes, after 10,000 more requests {after}");
    assert!(after < before + GROWTH, "{before} bytes, then {after}");
    assert_eq!(good.requests().len(), 12_000);
    drop(clients);
    nginx.stop().await;
}

/// Sends so many requests, one after the other, on each of the connections.
async fn ask(clients: Vec<Http1>, count: usize) -> Vec<Http1> {
    let call = Call::get("/").bytes();
    all(clients.into_iter().map(|mut client| {
        let call = call.clone();
        async move {
            for _ in 0..count {
                client.send(&call).await;
                assert_eq!(client.receive("GET").await.body, b"good");
            }
            client
        }
    }))
    .await
}
