//! The connection of a failed hop is kept where its whole response had arrived, and only there.
//! Spec 4.5.

use harness::{Backend, Call, Config, Nginx, Reply};

/// Keeps connections to upstreams, and has backends keep them.
const KEEPALIVE: &str = "keepalive 8;";
const HTTP11: &str = "proxy_http_version 1.1; proxy_set_header Connection '';";

async fn good() -> Backend {
    Backend::answering(Reply::ok("good")).await
}

/// Sends requests one after another, each of which fails over from `bad`; tells how many
/// connections `bad` saw.
async fn connections_to(bad: &Backend, requests: usize) -> usize {
    let good = good().await;
    let config = Config::upstrand([bad, &good])
        .upstream(KEEPALIVE)
        .location(HTTP11);
    let nginx = Nginx::start(config).await;
    let mut client = nginx.http1().await;

    for request in 1..=requests {
        assert_eq!(client.call(&Call::get("/")).await.text(), "good");

        // nginx closes a client's connection after its keepalive_requests.
        if request % 500 == 0 {
            client = nginx.http1().await;
        }
    }

    drop(client);
    let connections = bad.connections();
    nginx.stop().await;
    connections
}

#[tokio::test]
async fn four_thousand_failed_hops_need_few_connections() {
    let bad = Backend::answering(Reply::status(503).body("failed")).await;
    let connections = connections_to(&bad, 4_000).await;
    println!("4000 failed hops, {connections} connections");
    assert!(connections < 40, "{connections}");
}

#[tokio::test]
async fn a_chunked_body_that_arrived_keeps_the_connection() {
    let bad = Backend::answering(Reply::status(503).body("failed").chunked()).await;
    assert!(connections_to(&bad, 200).await < 40);
}

#[tokio::test]
async fn a_response_without_a_body_keeps_the_connection() {
    let bad = Backend::answering(Reply::status(503)).await;
    assert!(connections_to(&bad, 200).await < 40);
}

#[tokio::test]
async fn a_partial_body_closes_the_connection() {
    let head = "HTTP/1.1 503 no\r\nContent-Length: 10\r\n\r\nhalf";
    let bad = Backend::answering(Reply::raw(head).stalled()).await;
    assert_eq!(connections_to(&bad, 20).await, 20);
}

#[tokio::test]
async fn connection_close_closes_the_connection() {
    let bad = Backend::answering(
        Reply::status(503)
            .header("Connection", "close")
            .body("failed"),
    )
    .await;
    assert_eq!(connections_to(&bad, 20).await, 20);
}

#[tokio::test]
async fn a_response_behind_the_response_never_reaches_a_client() {
    for length in [
        "Content-Length: 6\r\n\r\nfailed",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let injected = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ninjected";
        let bytes = format!("HTTP/1.1 503 no\r\n{length}{injected}");
        let bad = Backend::answering(Reply::raw(bytes).stalled()).await;
        assert_eq!(connections_to(&bad, 20).await, 20, "{length:?}");
    }
}
