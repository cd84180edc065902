//! What a client gets when hops fail: the first response that does not, or else the last one.
//! Spec 4.3 and 4.5.

use harness::{Backend, Call, Config, Failure, Nginx, Reply};

async fn good() -> Backend {
    Backend::answering(Reply::ok("good").header("X-Good", "yes")).await
}

#[tokio::test]
async fn a_get_goes_past_every_kind_of_failure() {
    for failure in Failure::ALL {
        let (first, second, good) = (
            failure.backend().await,
            failure.backend().await,
            good().await,
        );
        let nginx =
            Nginx::start(Config::upstrand([&first, &second, &good]).location(failure.settings()))
                .await;

        let (answer, plain) = (nginx.get("/").await, nginx.get("/plain").await);
        assert_eq!(answer.undated(), plain.undated(), "after {failure:?}");
        assert_eq!(answer.text(), "good", "after {failure:?}");

        let status = failure.status();
        let walk = format!("GET / 200 [u1 -> u2 -> u3] [(u1) {status} (u2) {status} (u3) 200]");
        assert_eq!(nginx.access_log(2).await[0], walk, "after {failure:?}");
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_head_goes_past_every_kind_of_failure() {
    for failure in Failure::ALL {
        let (bad, good) = (failure.backend().await, good().await);
        // To a HEAD all of a response has arrived that stalls in its body: a connection that is kept
        // would be used again, and nobody there to answer.
        let config = Config::upstrand([&bad, &good])
            .location(failure.settings())
            .location("proxy_http_version 1.0;");
        let nginx = Nginx::start(config).await;

        let mut client = nginx.http1().await;
        let (head, plain) = (
            client.call(&Call::head("/")).await,
            client.call(&Call::head("/plain")).await,
        );
        assert_eq!(head.undated(), plain.undated(), "after {failure:?}");
        assert_eq!(
            (head.status, head.header("content-length")),
            (200, Some("4")),
            "after {failure:?}"
        );
        assert_eq!(
            client.call(&Call::get("/")).await.text(),
            "good",
            "after {failure:?}"
        );
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_good_first_hop_is_the_only_one() {
    let (first, second) = (good().await, good().await);
    let nginx = Nginx::start(Config::upstrand([&first, &second])).await;

    assert_eq!(nginx.get("/").await.text(), "good");
    assert_eq!((first.requests().len(), second.requests().len()), (1, 0));
    assert_eq!(nginx.logged().await, "GET / 200 [u1] [(u1) 200]");
    nginx.stop().await;
}

#[tokio::test]
async fn every_hop_gets_the_same_request() {
    let (first, second) = (Failure::SmallBody.backend().await, good().await);
    let config = Config::upstrand([&first, &second]).location("proxy_http_version 1.0;");
    let nginx = Nginx::start(config).await;
    nginx
        .call(Call::get("/a%20path?with=args").header("X-Of-Client", "1"))
        .await;

    let raw = |backend: &Backend| String::from_utf8(backend.requests()[0].raw.clone()).unwrap();
    assert!(raw(&first).starts_with("GET /a%20path?with=args HTTP/1.0\r\nHost: u1\r\n"));
    assert_eq!(raw(&first).replace("Host: u1", "Host: u2"), raw(&second));
    nginx.stop().await;
}

#[tokio::test]
async fn nothing_of_a_failed_hop_shows() {
    let mut reply = Reply::status(503)
        .body("failed")
        .trailer("X-Trailer", "failed");
    for (name, value) in [
        ("Accept-Ranges", "bytes"),
        ("Cache-Control", "max-age=99"),
        ("Content-Disposition", "attachment"),
        ("Content-Encoding", "gzip"),
        ("Content-Language", "eo"),
        ("Content-Range", "bytes 0-5/99"),
        ("Content-Type", "application/json; charset=koi8-r"),
        ("ETag", "\"failed\""),
        ("Expires", "Thu, 01 Jan 2099 00:00:00 GMT"),
        ("Last-Modified", "Thu, 01 Jan 1998 00:00:00 GMT"),
        ("Link", "</failed>; rel=preload"),
        ("Location", "/failed"),
        ("Refresh", "1; url=/failed"),
        ("Retry-After", "1"),
        ("Set-Cookie", "one=1"),
        ("Set-Cookie", "two=2"),
        ("Trailer", "X-Trailer"),
        ("Vary", "X-Failed"),
        ("WWW-Authenticate", "Basic realm=failed"),
        ("X-Accel-Buffering", "no"),
        ("X-Accel-Charset", "koi8-r"),
        ("X-Accel-Expires", "99"),
        ("X-Accel-Limit-Rate", "1"),
        ("X-Accel-Redirect", "/failed"),
        ("X-Failed", "yes"),
    ] {
        reply = reply.header(name, value);
    }
    let bad = Backend::answering(reply).await;
    let good =
        Backend::answering(Reply::ok("g".repeat(5_000)).header("Set-Cookie", "good=1")).await;
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

    let (answer, plain) = (nginx.get("/").await, nginx.get("/plain").await);
    assert_eq!(answer.undated(), plain.undated());
    assert_eq!(answer.status, 200);
    nginx.stop().await;
}

/// nginx takes this for HTTP/0.9, gives it no status and sends it without a head.
#[tokio::test]
async fn a_body_without_a_head_is_as_final_as_without_an_upstrand() {
    let headless = Backend::answering(Reply::raw("no HTTP at all").until_close()).await;
    let good = good().await;
    let first = "location = /first { proxy_pass http://u1; }";
    let nginx = Nginx::start(Config::upstrand([&headless, &good]).server(first)).await;

    for target in ["/", "/first"] {
        let mut client = nginx.http1().await;
        client.send(&Call::get(target).closing().bytes()).await;
        assert_eq!(client.rest().await, b"no HTTP at all");
    }
    assert_eq!(good.requests().len(), 0);
    nginx.stop().await;
}

#[tokio::test]
async fn when_all_fail_the_last_response_comes_as_it_was() {
    let last = Reply::status(503)
        .header("X-Last", "yes")
        .header("Set-Cookie", "last=1")
        .body("last");
    for last in [
        last.clone(),
        last.clone().chunked(),
        last.until_close(),
        Reply::status(500),
    ] {
        let (first, second) = (
            Failure::SmallBody.backend().await,
            Failure::Refused.backend().await,
        );
        let last = Backend::answering(last).await;
        let nginx = Nginx::start(Config::upstrand([&first, &second, &last])).await;

        let (answer, plain) = (nginx.get("/").await, nginx.get("/plain").await);
        assert_eq!(answer.undated(), plain.undated());
        assert!(answer.status >= 500);
        nginx.stop().await;
    }
}

#[tokio::test]
async fn when_all_fail_in_one_way_the_client_gets_what_a_plain_proxy_gives() {
    for failure in [
        Failure::Refused,
        Failure::SmallBody,
        Failure::LargeBody,
        Failure::Closed,
        Failure::Timeout,
    ] {
        let (first, second) = (failure.backend().await, failure.backend().await);
        let nginx =
            Nginx::start(Config::upstrand([&first, &second]).location(failure.settings())).await;

        let (answer, plain) = (nginx.get("/").await, nginx.get("/plain").await);
        assert_eq!(answer.undated(), plain.undated(), "{failure:?}");

        let status = failure.status();
        let walk = format!("GET / {status} [u1 -> u2] [(u1) {status} (u2) {status}]");
        assert_eq!(nginx.access_log(2).await[0], walk);
        nginx.stop().await;
    }
}

#[tokio::test]
async fn without_statuses_nothing_fails_over() {
    for failure in [Failure::Refused, Failure::SmallBody, Failure::Timeout] {
        let (bad, good) = (failure.backend().await, good().await);
        let nginx = Nginx::start(
            Config::upstrand([&bad, &good])
                .statuses("")
                .location(failure.settings()),
        )
        .await;

        assert_eq!(nginx.get("/").await.status, failure.status());
        assert_eq!(good.requests().len(), 0);
        nginx.stop().await;
    }
}

#[tokio::test]
async fn error_and_timeout_are_only_what_nginx_itself_made() {
    for status in [502, 504] {
        let (bad, good) = (
            Backend::answering(Reply::status(status).body("own")).await,
            good().await,
        );
        let nginx = Nginx::start(Config::upstrand([&bad, &good]).statuses("error timeout")).await;

        let answer = nginx.get("/").await;
        assert_eq!((answer.status, answer.text().as_str()), (status, "own"));
        nginx.stop().await;
    }
}

#[tokio::test]
async fn error_does_not_cover_a_timeout_nor_timeout_an_error() {
    for (statuses, failure) in [("error", Failure::Timeout), ("timeout", Failure::Refused)] {
        let (bad, good) = (failure.backend().await, good().await);
        let nginx = Nginx::start(
            Config::upstrand([&bad, &good])
                .statuses(statuses)
                .location(failure.settings()),
        )
        .await;

        assert_eq!(nginx.get("/").await.status, failure.status(), "{statuses}");
        nginx.stop().await;
    }
}

#[tokio::test]
async fn numbers_cover_what_nginx_and_what_a_backend_made() {
    let bad_gateway = Backend::answering(Reply::status(502)).await;
    for (bad, statuses) in [
        (Backend::refusing(), "502"),
        (bad_gateway, "502"),
        (Failure::Timeout.backend().await, "504"),
        (Backend::answering(Reply::status(504)).await, "504"),
        (Backend::answering(Reply::status(404)).await, "4xx"),
        (Backend::answering(Reply::status(302)).await, "404 302"),
        (Backend::answering(Reply::status(204)).await, "2xx 3xx"),
    ] {
        let good = Backend::answering(Reply::status(418).body("good")).await;
        let nginx = Nginx::start(
            Config::upstrand([&bad, &good])
                .statuses(statuses)
                .location(Failure::Timeout.settings()),
        )
        .await;

        assert_eq!(nginx.get("/").await.status, 418, "{statuses}");
        nginx.stop().await;
    }
}

#[tokio::test]
async fn what_the_client_did_wrong_is_no_failed_hop() {
    let (first, second) = (good().await, good().await);
    let config = Config::upstrand([&first, &second])
        .statuses("4xx 5xx")
        .location("client_max_body_size 10;");
    let nginx = Nginx::start(config).await;

    let bad_chunk =
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n";
    let too_large = Call::post("/", "more than ten bytes").chunked().bytes();
    for (bytes, status) in [(bad_chunk.as_bytes(), 400), (&too_large, 413)] {
        let mut client = nginx.http1().await;
        client.send(bytes).await;
        assert_eq!(client.receive("POST").await.status, status);
    }
    assert_eq!((first.requests().len(), second.requests().len()), (0, 0));
    nginx.stop().await;
}

#[tokio::test]
async fn a_response_that_has_begun_is_final() {
    let (dying, good) = (
        Backend::answering(Reply::ok("half").cut_short(8)).await,
        good().await,
    );
    let nginx = Nginx::start(Config::upstrand([&dying, &good])).await;

    let answer = nginx.get("/").await;
    assert_eq!(
        (answer.status, answer.text().as_str(), answer.whole),
        (200, "half", false)
    );
    assert_eq!(good.requests().len(), 0);
    nginx.stop().await;
}

#[tokio::test]
async fn a_redirect_by_a_member_is_ignored_and_one_by_a_plain_backend_is_not() {
    let redirecting = Reply::ok("good").header("X-Accel-Redirect", "/inner");
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(redirecting).await,
    );
    let inner = "location = /inner { internal; return 200 inner; }";
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).server(inner)).await;

    for (target, text) in [
        ("/", "good"),
        ("/plain", "inner"),
        ("/", "good"),
        ("/plain", "inner"),
    ] {
        assert_eq!(nginx.get(target).await.text(), text);
    }
    nginx.stop().await;
}

#[tokio::test]
async fn a_name_that_was_kept_elsewhere_does_not_walk_on() {
    let (bad, good) = (Failure::SmallBody.backend().await, good().await);
    let frozen = "location = /frozen { set $kept $upstrand_us; proxy_pass http://$kept; }";
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).server(frozen)).await;

    let answer = nginx.get("/frozen").await;
    assert_eq!((answer.status, answer.text().as_str()), (503, "failed"));
    assert_eq!(good.requests().len(), 0);
    nginx.stop().await;
}
