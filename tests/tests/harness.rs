//! The harness itself: what it says of nginx and of its backends can be relied upon. Nothing here
//! needs an upstrand.

use std::time::Duration;

use harness::{Backend, Call, Config, Nginx, Reply, all};
use tokio::time::timeout;

/// A server that passes everything to this backend.
fn plain(backend: &Backend) -> Config {
    let pass = format!("location / {{ proxy_pass http://{}; }}", backend.address());
    Config::new().server(&pass)
}

async fn answer(reply: Reply) -> harness::Response {
    let backend = Backend::answering(reply).await;
    let nginx = Nginx::start(plain(&backend)).await;
    let answer = nginx.get("/").await;
    nginx.stop().await;
    answer
}

#[tokio::test]
async fn requests_and_responses_are_shown_as_they_were() {
    let backend = Backend::answering(Reply::ok("hello").header("X-One", "1")).await;
    let nginx = Nginx::start(plain(&backend).server("proxy_http_version 1.0;")).await;

    let answer = nginx.call(Call::post("/there", "a body").chunked()).await;
    assert_eq!(
        (
            answer.status,
            answer.header("x-one"),
            answer.text().as_str()
        ),
        (200, Some("1"), "hello")
    );
    assert!(
        answer.raw.starts_with(b"HTTP/1.1 200 Scripted\r\n")
            && answer.raw.ends_with(b"\r\n\r\nhello")
    );
    assert!(answer.whole && !answer.undated().contains("Date:"));

    let [request] = &backend.requests()[..] else {
        panic!("one request")
    };
    assert_eq!(
        (
            request.method.as_str(),
            request.target.as_str(),
            request.whole
        ),
        ("POST", "/there", true)
    );
    assert_eq!(request.body, b"a body");
    assert!(
        request.raw.starts_with(b"POST /there HTTP/1.0\r\n")
            && request.raw.ends_with(b"\r\n\r\na body")
    );

    assert_eq!(nginx.logged().await, "POST /there 200");
    nginx.stop().await;
}

#[tokio::test]
async fn backends_misbehave_as_told() {
    assert_eq!(answer(Reply::nothing()).await.status, 502);
    assert_eq!(answer(Reply::garbage()).await.status, 502);
    assert_eq!(
        answer(Reply::raw("HTTP/1.1 204 No\r\n\r\n")).await.status,
        204
    );
    assert_eq!(
        answer(Reply::ok("closed").until_close()).await.text(),
        "closed"
    );
    assert_eq!(
        answer(Reply::ok("by and by").slowly(Duration::from_millis(1)))
            .await
            .text(),
        "by and by"
    );
    assert_eq!(
        answer(Reply::ok("x".repeat(9_000)).chunked())
            .await
            .body
            .len(),
        9_000
    );

    let cut = answer(Reply::ok("half").cut_short(8)).await;
    assert_eq!(
        (cut.status, cut.text().as_str(), cut.whole),
        (200, "half", false)
    );
}

#[tokio::test]
async fn a_refusing_backend_refuses() {
    let nginx = Nginx::start(plain(&Backend::refusing())).await;
    assert_eq!(nginx.get("/").await.status, 502);
    assert!(nginx.error_log().contains("Connection refused"));
    nginx.stop().await;
}

#[tokio::test]
async fn stalled_and_endless_backends_go_on_until_nginx_leaves() {
    for reply in [
        Reply::silence(),
        Reply::ok("some").stalled(),
        Reply::ok("some").endless(),
    ] {
        let backend = Backend::answering(reply).await;
        let nginx = Nginx::start(plain(&backend)).await;

        let mut client = nginx.http1().await;
        client.send(&Call::get("/").bytes()).await;
        backend.received(1).await;
        drop(client);

        backend.deserted().await;
        nginx.stop().await;
    }
}

#[tokio::test]
async fn connections_and_requests_are_counted() {
    let backend = Backend::each(|request| Reply::ok(request.target.clone())).await;
    let pool = format!(
        "upstream kept {{ server {}; keepalive 1; }}",
        backend.address()
    );
    let config = Config::new().http(&pool).server(
        "location / { proxy_pass http://kept; }
         proxy_http_version 1.1; proxy_set_header Connection '';",
    );
    let nginx = Nginx::start(config).await;

    let mut client = nginx.http1().await;
    for target in ["/1", "/2", "/3"] {
        assert_eq!(client.call(&Call::get(target)).await.text(), target);
    }
    assert_eq!((backend.connections(), backend.requests().len()), (1, 3));
    nginx.stop().await;
}

#[tokio::test]
async fn http2_carries_bodies_and_trailers_on_concurrent_streams() {
    let backend = Backend::each(|request| Reply::ok(request.body.clone())).await;
    let nginx = Nginx::start(plain(&backend).server("client_max_body_size 2m;").http2()).await;

    let client = nginx.http2().await;
    let bodies: Vec<_> = (1..=20)
        .map(|tens| vec![tens; usize::from(tens) * 10_000])
        .collect();
    let calls = bodies.clone().into_iter().map(|body| {
        let client = client.clone();
        async move { client.call(&Call::post("/", body)).await }
    });
    let answers = all(calls).await;
    assert!(answers.iter().map(|answer| &answer.body).eq(&bodies));
    nginx.stop().await;
}

#[tokio::test]
async fn an_upgraded_connection_echoes() {
    let backend = Backend::answering(Reply::upgrade("websocket")).await;
    let nginx = Nginx::start(plain(&backend).server(
        "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;
         proxy_set_header Connection upgrade;",
    ))
    .await;

    let mut client = nginx.http1().await;
    let answer = client
        .call(
            &Call::get("/")
                .header("Upgrade", "websocket")
                .header("Connection", "Upgrade"),
        )
        .await;
    assert_eq!(
        (answer.status, answer.header("upgrade")),
        (101, Some("websocket"))
    );
    client.send(b"ping").await;
    assert_eq!(client.exactly(4).await, b"ping");

    drop(client);
    nginx.stop().await;
}

#[tokio::test]
async fn a_reload_replaces_the_workers() {
    let backend = Backend::answering(Reply::ok("still here")).await;
    let nginx = Nginx::start(plain(&backend).workers(2)).await;
    let old = nginx.workers();

    nginx.reload().await;
    assert_eq!(nginx.get("/").await.text(), "still here");
    assert_eq!(old.len(), 2);
    nginx.stop().await;
}

#[tokio::test]
async fn a_config_test_tells_code_and_reason() {
    let good = Nginx::test(&Config::new()).await;
    assert_eq!(good.code, Some(0), "{}", good.stderr);

    let bad = Nginx::test(&Config::new().http("no_such_directive;")).await;
    assert_eq!(bad.code, Some(1));
    assert!(
        bad.stderr
            .contains(r#"[emerg] unknown directive "no_such_directive""#),
        "{}",
        bad.stderr
    );
}

#[tokio::test]
async fn a_dead_worker_is_noticed() {
    let nginx = Nginx::start(Config::new()).await;
    let [worker] = nginx.workers()[..] else {
        panic!("one worker")
    };

    // SAFETY: the worker is a process of the nginx that this test started.
    unsafe { libc::kill(worker, libc::SIGKILL) };
    harness::until("another worker", async || {
        (nginx.workers() != [worker]).then_some(())
    })
    .await;

    let complaint = nginx.try_stop().await.expect_err("a complaint");
    assert!(complaint.contains("exited on signal 9"), "{complaint}");
}

#[tokio::test]
#[should_panic(expected = "has to stop() its nginx")]
async fn a_request_that_does_not_end_holds_up_the_stop() {
    let backend = Backend::answering(Reply::silence()).await;
    let nginx = Nginx::start(plain(&backend)).await;

    let mut client = nginx.http1().await;
    client.send(&Call::get("/").bytes()).await;
    backend.received(1).await;
    let _ = timeout(Duration::from_millis(300), nginx.stop()).await;
}

#[tokio::test]
#[should_panic(expected = "has to stop() its nginx")]
async fn a_test_that_forgets_to_stop_is_noticed() {
    Nginx::start(Config::new()).await;
}
