//! Which requests may go on to another upstream. Spec 4.3.

use harness::{Backend, Call, Config, Failure, Http1, Nginx, Reply, until};

/// The ways to fail after the request has been sent.
const SENT: [Failure; 4] = [
    Failure::SmallBody,
    Failure::Closed,
    Failure::Garbage,
    Failure::Timeout,
];

async fn good() -> Backend {
    Backend::each(|request| Reply::ok(request.body.clone())).await
}

#[tokio::test]
async fn a_non_idempotent_request_that_was_sent_is_not_repeated() {
    for method in ["POST", "LOCK", "PATCH"] {
        for failure in SENT {
            let (bad, good) = (failure.backend().await, good().await);
            let nginx =
                Nginx::start(Config::upstrand([&bad, &good]).location(failure.settings())).await;

            let answer = nginx.call(Call::new(method, "/").body("body")).await;
            assert_eq!(
                answer.status,
                failure.status(),
                "{method} after {failure:?}"
            );
            assert_eq!(
                (bad.requests().len(), good.requests().len()),
                (1, 0),
                "{method} after {failure:?}"
            );

            let status = failure.status();
            assert_eq!(
                nginx.logged().await,
                format!("{method} / {status} [u1] [(u1) {status}]")
            );
            nginx.stop().await;
        }
    }
}

#[tokio::test]
async fn a_non_idempotent_request_that_was_not_sent_goes_on() {
    for method in ["POST", "LOCK", "PATCH"] {
        let (bad, good) = (Backend::refusing(), good().await);
        let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

        let answer = nginx.call(Call::new(method, "/").body("body")).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "body"),
            "{method}"
        );
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_post_goes_on_from_an_upstream_without_live_servers() {
    let (dead, good) = (Backend::refusing(), good().await);
    let config = Config::new()
        .http(&format!(
            "upstream dead {{ server {0}; server {0} backup; }}",
            dead.address()
        ))
        .http(&format!("upstream good {{ server {}; }}", good.address()))
        .http("upstrand us {")
        .http("upstream dead; upstream good; order per_request; next_upstream_statuses error;")
        .http("}")
        .server("location / { proxy_pass http://$upstrand_us; }");
    let nginx = Nginx::start(config).await;

    for _ in 0..3 {
        assert_eq!(nginx.call(Call::post("/", "body")).await.text(), "body");
    }
    assert!(nginx.error_log().contains("no live upstreams"));
    nginx.stop().await;
}

#[tokio::test]
async fn non_idempotent_lets_them_go_on() {
    for method in ["POST", "LOCK", "PATCH"] {
        for failure in SENT {
            let (bad, good) = (failure.backend().await, good().await);
            let nginx = Nginx::start(
                Config::upstrand([&bad, &good])
                    .statuses("error timeout 5xx non_idempotent")
                    .location(failure.settings()),
            )
            .await;

            let answer = nginx.call(Call::new(method, "/").body("body")).await;
            assert_eq!(
                (answer.status, answer.text().as_str()),
                (200, "body"),
                "{method} after {failure:?}"
            );
            nginx.stop().await;
        }
    }
}

#[tokio::test]
async fn other_methods_go_on() {
    for method in ["GET", "PUT", "DELETE", "OPTIONS", "PROPFIND", "UNHEARD"] {
        let (bad, good) = (Failure::SmallBody.backend().await, good().await);
        let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

        let answer = nginx.call(Call::new(method, "/").body("body")).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "body"),
            "{method}"
        );
        assert_eq!(good.requests()[0].method, method);
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_post_that_goes_on_once_still_stops_at_the_hop_that_got_it() {
    let (refusing, bad, good) = (
        Backend::refusing(),
        Failure::SmallBody.backend().await,
        good().await,
    );
    let nginx = Nginx::start(Config::upstrand([&refusing, &bad, &good])).await;

    assert_eq!(nginx.call(Call::post("/", "body")).await.status, 503);
    assert_eq!(
        nginx.logged().await,
        "POST / 503 [u1 -> u2] [(u1) 502 (u2) 503]"
    );
    nginx.stop().await;
}

const STREAMING: &str = "proxy_request_buffering off; proxy_http_version 1.1;";

/// A PUT whose body nginx gets in two parts, the second one when it has connected to `last`.
async fn stream(nginx: &Nginx, call: &Call, last: &Backend, following: &[u8]) -> Http1 {
    let bytes = call.bytes();
    let (early, late) = bytes.split_at(bytes.len() / 2);

    let mut client = nginx.http1().await;
    client.send(early).await;
    until("the last hop", async || {
        (last.connections() > 0).then_some(())
    })
    .await;
    client.send(&[late, following].concat()).await;
    client
}

#[tokio::test]
async fn a_streamed_body_of_which_nothing_was_sent_goes_on() {
    let put = Call::new("PUT", "/").body("0123456789".repeat(300));
    for call in [put.clone(), put.clone().chunked()] {
        let (first, second, good) = (Backend::refusing(), Backend::refusing(), good().await);
        let config = Config::upstrand([&first, &second, &good]).location(STREAMING);
        let nginx = Nginx::start(config).await;

        let mut client = stream(&nginx, &call, &good, b"").await;
        let answer = client.receive("PUT").await;
        assert_eq!(
            (answer.status, answer.text()),
            (200, "0123456789".repeat(300))
        );
        let walk = "PUT / 200 [u1 -> u2 -> u3] [(u1) 502 (u2) 502 (u3) 200]";
        assert_eq!(nginx.logged().await, walk);
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_streamed_body_that_has_begun_to_go_out_makes_the_response_final() {
    let (bad, good) = (
        Backend::answering_early(Reply::status(503).body("final")).await,
        good().await,
    );
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(STREAMING)).await;

    let (head, body) = Call::new("PUT", "/").body("0123456789".repeat(300)).parts();
    let mut client = nginx.http1().await;
    client.send(&[&head, &body[..1_000]].concat()).await;
    let answer = client.receive("PUT").await;
    assert_eq!((answer.status, answer.text().as_str()), (503, "final"));
    assert_eq!(good.connections(), 0);

    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn a_repeated_streamed_body_does_not_eat_the_next_request() {
    let (bad, good) = (Backend::refusing(), good().await);
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(STREAMING)).await;

    let put = Call::new("PUT", "/1").body("0123456789".repeat(300));
    let next = Call::new("PUT", "/2").body("next").bytes();
    let mut client = stream(&nginx, &put, &good, &next).await;
    assert_eq!(client.receive("PUT").await.text(), "0123456789".repeat(300));
    assert_eq!(client.receive("PUT").await.text(), "next");
    nginx.stop().await;
}

/// With a kept connection nginx reads the whole of the body as soon as the second hop begins, and what follows it.
#[tokio::test]
async fn nor_does_one_that_is_there_at_once() {
    let (bad, good) = (Backend::refusing(), good().await);
    let config = Config::upstrand([&bad, &good])
        .upstream("keepalive 4;")
        .location(STREAMING)
        .location("proxy_set_header Connection '';");
    let nginx = Nginx::start(config).await;
    assert_eq!(nginx.get("/").await.status, 200);

    let body = "0123456789".repeat(4_000);
    let put = Call::new("PUT", "/1").body(body.clone());
    let next = Call::new("PUT", "/2").body("next").bytes();
    for put in [put.clone(), put.chunked()] {
        let mut client = nginx.http1().await;
        client.send(&[put.bytes(), next.clone()].concat()).await;
        assert_eq!(client.receive("PUT").await.text(), body);
        assert_eq!(client.receive("PUT").await.text(), "next");
    }
    assert_eq!(good.connections(), 1);
    nginx.stop().await;
}

/// The second half of the body is sent when nginx has gone on to `good`.
#[tokio::test]
async fn a_streamed_body_over_http2_of_which_nothing_was_sent_goes_on() {
    let body = "0123456789".repeat(3_000);
    for settings in ["", "client_body_buffer_size 64k;"] {
        let (first, second, good) = (Backend::refusing(), Backend::refusing(), good().await);
        let config = Config::upstrand([&first, &second, &good])
            .location(STREAMING)
            .location(settings);
        let nginx = Nginx::start(config.http2()).await;

        let client = nginx.http2().await;
        let last_hop = until("the last hop", async || {
            (good.connections() > 0).then_some(())
        });
        let put = Call::new("PUT", "/").body(body.clone());
        let answer = client.call_pausing(&put, last_hop).await;
        assert_eq!((answer.status, answer.text()), (200, body.clone()));

        let walk = "PUT / 200 [u1 -> u2 -> u3] [(u1) 502 (u2) 502 (u3) 200]";
        assert_eq!(nginx.logged().await, walk);
        nginx.stop().await;
    }
}

/// nginx has told the client that it has more room than `http2_body_preread_size`: it must not be
/// told again.
#[tokio::test]
async fn a_streamed_body_over_http2_in_a_larger_buffer_makes_the_response_final() {
    let (bad, good) = (Backend::refusing(), good().await);
    let config = Config::upstrand([&bad, &good])
        .location(STREAMING)
        .location("client_body_buffer_size 128k;");
    let nginx = Nginx::start(config.http2()).await;

    let put = Call::new("PUT", "/").body("0123456789".repeat(3_000));
    let refused = until("a refused connection", async || {
        nginx.error_log().contains("refused").then_some(())
    });
    let answer = nginx.http2().await.call_pausing(&put, refused).await;
    assert_eq!((answer.status, good.connections()), (502, 0));
    nginx.stop().await;
}
