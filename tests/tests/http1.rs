//! HTTP/1 connections of a client that hold many failing-over requests. Spec 4.3.

use harness::{Backend, Call, Config, Failure, Nginx, Reply};

/// Answers with what it got: method, target and body.
async fn mirror() -> Backend {
    Backend::each(|request| {
        let line = format!("{} {} ", request.method, request.target).into_bytes();
        Reply::ok([line, request.body.clone()].concat())
    })
    .await
}

#[tokio::test]
async fn requests_written_at_once_are_answered_in_order() {
    for failure in [Failure::Refused, Failure::SmallBody, Failure::Closed] {
        let (bad, good) = (failure.backend().await, mirror().await);
        let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

        let calls = (0..200).map(|number| Call::get(&format!("/{number}")).bytes());
        let mut client = nginx.http1().await;
        client.send(&calls.collect::<Vec<_>>().concat()).await;

        for number in 0..200 {
            let answer = client.receive("GET").await;
            assert_eq!(
                (answer.status, answer.text()),
                (200, format!("GET /{number} ")),
                "after {failure:?}"
            );
        }
        nginx.stop().await;
    }
}

#[tokio::test]
async fn pipelined_requests_of_all_kinds_do_not_mix() {
    let (bad, good) = (Failure::SmallBody.backend().await, mirror().await);
    let nginx =
        Nginx::start(Config::upstrand([&bad, &good]).location("client_body_buffer_size 1k;")).await;

    let long = "x".repeat(3_000);
    let calls = [
        Call::get("/1"),
        Call::head("/2"),
        Call::new("PUT", "/3").body("small"),
        Call::get("/4").header("X-Long", &long),
        Call::new("PUT", "/5").body(long.clone()),
        Call::new("PUT", "/6").body("small").chunked(),
        Call::new("PUT", "/7").body(long.clone()).chunked(),
        Call::new("DELETE", "/8"),
        Call::get("/9"),
    ];
    let mut client = nginx.http1().await;
    client
        .send(&calls.iter().flat_map(Call::bytes).collect::<Vec<_>>())
        .await;

    for expected in [
        "GET /1 ",
        "",
        "PUT /3 small",
        "GET /4 ",
        &format!("PUT /5 {long}"),
        "PUT /6 small",
        &format!("PUT /7 {long}"),
        "DELETE /8 ",
        "GET /9 ",
    ] {
        let answer = client
            .receive(if expected.is_empty() { "HEAD" } else { "GET" })
            .await;
        assert_eq!((answer.status, answer.text().as_str()), (200, expected));
    }
    nginx.stop().await;
}

#[tokio::test]
async fn a_request_may_come_in_pieces_behind_another() {
    let (bad, good) = (Failure::SmallBody.backend().await, mirror().await);
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

    let both = [Call::get("/1").bytes(), Call::get("/2").bytes()].concat();
    let mut client = nginx.http1().await;
    client.send(&both[..both.len() - 9]).await;
    assert_eq!(client.receive("GET").await.text(), "GET /1 ");
    client.send(&both[both.len() - 9..]).await;
    assert_eq!(client.receive("GET").await.text(), "GET /2 ");
    nginx.stop().await;
}

#[tokio::test]
async fn a_connection_lives_on_when_all_hops_failed() {
    for failure in [Failure::Refused, Failure::SmallBody] {
        let (first, second) = (failure.backend().await, failure.backend().await);
        let nginx = Nginx::start(Config::upstrand([&first, &second])).await;

        let mut client = nginx.http1().await;
        for _ in 0..3 {
            assert_eq!(client.call(&Call::get("/")).await.status, failure.status());
        }
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_connection_closes_where_the_client_wants_it() {
    let (bad, good) = (Failure::SmallBody.backend().await, mirror().await);
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

    for call in [Call::get("/").closing(), Call::get("/").http10()] {
        let mut client = nginx.http1().await;
        let answer = client.call(&call).await;
        assert_eq!(
            (answer.text().as_str(), answer.header("connection")),
            ("GET / ", Some("close"))
        );
        assert_eq!(client.rest().await, b"");
    }
    nginx.stop().await;
}

#[tokio::test]
async fn an_http10_client_may_keep_its_connection() {
    let (bad, good) = (Failure::SmallBody.backend().await, mirror().await);
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

    let mut client = nginx.http1().await;
    for target in ["/1", "/2"] {
        let answer = client
            .call(
                &Call::get(target)
                    .http10()
                    .header("Connection", "keep-alive"),
            )
            .await;
        assert_eq!(answer.text(), format!("GET {target} "));
    }
    nginx.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_walk_along() {
    let (bad, stalling) = (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::silence()).await,
    );
    let nginx = Nginx::start(Config::upstrand([&bad, &stalling])).await;

    let mut client = nginx.http1().await;
    client.send(&Call::get("/").bytes()).await;
    stalling.received(1).await;
    drop(client);

    stalling.deserted().await;
    assert!(nginx.logged().await.starts_with("GET / 499 [u1 -> u2] "));
    nginx.stop().await;
}
