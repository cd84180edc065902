//! HTTP/2 clients. Spec 4.3.

use harness::{Backend, Call, Config, Failure, Http2, Nginx, Reply, Response, all};

/// Answers with the target and the body that it got.
async fn mirror() -> Backend {
    Backend::each(|request| Reply::ok([request.target.as_bytes(), &request.body].concat())).await
}

/// The responses to calls that are sent all at once on one connection.
async fn at_once(client: &Http2, calls: impl IntoIterator<Item = Call>) -> Vec<Response> {
    all(calls.into_iter().map(|call| {
        let client = client.clone();
        async move { client.call(&call).await }
    }))
    .await
}

#[tokio::test]
async fn concurrent_streams_each_get_their_own_answer() {
    for failure in Failure::ALL {
        let (bad, good) = (failure.backend().await, mirror().await);
        let config = Config::upstrand([&bad, &good])
            .location(failure.settings())
            .http2();
        let nginx = Nginx::start(config).await;

        let calls = (0..50).map(|number| Call::get(&format!("/{number}")));
        let answers = at_once(&nginx.http2().await, calls).await;
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(
                (answer.status, answer.text()),
                (200, format!("/{number}")),
                "after {failure:?}"
            );
            assert_eq!(answer.header("x-failed"), None);
        }
        nginx.stop().await;
    }
}

#[tokio::test]
async fn bodies_of_concurrent_streams_arrive_whole() {
    let (bad, good) = (Backend::refusing(), mirror().await);
    let config = Config::upstrand([&bad, &good])
        .location("client_body_buffer_size 16k; client_max_body_size 2m;");
    let nginx = Nginx::start(config.http2()).await;

    let body = |number: usize| number.to_string().repeat(number * number * 300);
    let answers = at_once(
        &nginx.http2().await,
        (0..30).map(|number| Call::post("/", body(number))),
    )
    .await;
    for (number, answer) in answers.iter().enumerate() {
        assert!(
            answer.status == 200 && answer.text() == format!("/{}", body(number)),
            "stream {number}"
        );
    }
    nginx.stop().await;
}

#[tokio::test]
async fn a_post_that_was_sent_is_final() {
    let (bad, good) = (Failure::SmallBody.backend().await, mirror().await);
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).http2()).await;

    let answer = nginx.http2().await.call(&Call::post("/", "body")).await;
    assert_eq!((answer.status, answer.text().as_str()), (503, "failed"));
    assert_eq!(good.requests().len(), 0);
    nginx.stop().await;
}

#[tokio::test]
async fn a_head_has_the_good_headers_and_no_body() {
    let (bad, good) = (Failure::SmallBody.backend().await, mirror().await);
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).http2()).await;

    let answer = nginx.http2().await.call(&Call::head("/12345")).await;
    assert_eq!(
        (
            answer.status,
            answer.header("content-length"),
            answer.body.len()
        ),
        (200, Some("6"), 0)
    );
    nginx.stop().await;
}

#[tokio::test]
async fn when_all_fail_every_stream_gets_the_last_response() {
    let last = Backend::each(|request| Reply::status(500).body(request.target.clone())).await;
    let bad = Failure::SmallBody.backend().await;
    let nginx = Nginx::start(Config::upstrand([&bad, &last]).http2()).await;

    let answers = at_once(
        &nginx.http2().await,
        (0..20).map(|number| Call::get(&format!("/{number}"))),
    )
    .await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!((answer.status, answer.text()), (500, format!("/{number}")));
    }
    nginx.stop().await;
}
