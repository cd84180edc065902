//! Every kind of client and request, seen through an upstrand and without one. Spec 4.3 and 4.5.

use std::time::Duration;

use harness::{Backend, Call, Config, Failure, Matrix, Nginx, Reply, Row, Seen, all, until};

/// A body in which no part looks like another.
fn body(length: usize) -> Vec<u8> {
    let words = (0..).flat_map(|number: u32| format!("{number} ").into_bytes());
    words.take(length).collect()
}

/// Answers with the body that it got.
fn echo(row: Row) -> Row {
    row.script(|request| Reply::ok(request.body.clone()).header("X-Method", &request.method))
        .location("client_max_body_size 8m; client_body_buffer_size 16k;")
}

fn put(length: usize) -> Call {
    Call::new("PUT", "/").body(body(length))
}

const METHODS: [&str; 11] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "LOCK", "PROPFIND", "MKCOL",
    "UNHEARD",
];

#[tokio::test]
async fn methods() {
    let call = |method| Call::new(method, "/a%20path?with=args").header("X-Of-Client", "1");
    let bare = METHODS.map(|method| Row::new(method, call(method)).shows("HTTP/1.1 200"));
    Matrix::new(bare).run().await;

    let with_body = METHODS.map(|method| {
        let row = Row::new(method, call(method).body("a body"));
        echo(row).shows(&format!("X-Method: {method}"))
    });
    Matrix::new(with_body).run().await;
}

#[tokio::test]
async fn versions_and_connections() {
    let get = || Call::get("/x");
    let keep = "keep-alive";
    Matrix::new([
        Row::calls("http10", [get().http10()]).shows("Connection: close"),
        Row::calls(
            "http10_kept",
            [get().http10().header("Connection", keep), get().http10()],
        )
        .shows("Connection: keep-alive"),
        Row::calls(
            "kept",
            [
                get(),
                Call::head("/2"),
                Call::post("/3", "x"),
                get().closing(),
            ],
        )
        .shows("Connection: keep-alive"),
        Row::calls("no_length", [get(), get()])
            .good(Reply::ok("good").until_close())
            .shows("Transfer-Encoding: chunked"),
        Row::calls("http10_no_length", [get().http10()]).good(Reply::ok("good").until_close()),
        Row::client("pipelined", |side| async move {
            let calls = [
                Call::get("/1"),
                Call::head("/2"),
                Call::new("PUT", "/3").body("small"),
                Call::new("PUT", "/4").body(body(3_000)).chunked(),
                Call::get("/5").header("X-Long", &"long".repeat(700)),
                Call::get("/6").closing(),
            ]
            .map(|call| side.at(call));

            let mut client = side.http1().await;
            client
                .send(&calls.iter().flat_map(Call::bytes).collect::<Vec<_>>())
                .await;
            let mut seen = Seen::default();
            for method in ["GET", "HEAD", "PUT", "PUT", "GET", "GET"] {
                seen.add(&client.receive(method).await);
            }
            seen.0.extend(client.rest().await);
            seen
        })
        .shows("Connection: close"),
        Row::client("pieces", |side| async move {
            let mut client = side.http1().await;
            client
                .send_slowly(&side.at(Call::get("/slowly").closing()).bytes())
                .await;
            Seen::of([client.receive("GET").await])
        }),
    ])
    .run()
    .await;
}

#[tokio::test]
async fn conditions_and_ranges() {
    const MODIFIED: &str = "Mon, 05 May 2025 05:05:05 GMT";
    let page = Reply::ok(body(1_000))
        .header("Last-Modified", MODIFIED)
        .header("ETag", "\"tag\"");
    let part = Reply::status(206)
        .header("Content-Range", "bytes 2-5/1000")
        .body("part");
    let get = |name: &str, value: &str| Call::get("/").header(name, value);
    let forced = |name, call| Row::new(name, call).location("proxy_force_ranges on;");

    Matrix::new([
        Row::new("range", get("Range", "bytes=2-5"))
            .good(part.clone())
            .shows("206"),
        Row::new("range_ignored", get("Range", "bytes=2-5"))
            .good(page.clone())
            .shows("200"),
        Row::new(
            "if_range",
            get("Range", "bytes=2-5").header("If-Range", "\"tag\""),
        )
        .good(part),
        forced("forced", get("Range", "bytes=2-5"))
            .good(page.clone())
            .shows("206 Partial"),
        forced("suffix", get("Range", "bytes=-5"))
            .good(page.clone())
            .shows("206 Partial"),
        forced("impossible", get("Range", "bytes=2000-"))
            .good(page.clone())
            .shows("416"),
        forced(
            "forced_if",
            get("Range", "bytes=2-5").header("If-Range", "\"tag\""),
        )
        .good(page.clone())
        .shows("206 Partial"),
        forced(
            "forced_other",
            get("Range", "bytes=2-5").header("If-Range", "\"other\""),
        )
        .good(page.clone())
        .shows("200 "),
        Row::new("modified_since", get("If-Modified-Since", MODIFIED)).good(page.clone()),
        Row::new("none_match", get("If-None-Match", "\"tag\"")).good(page.clone()),
        Row::new("not_modified", get("If-None-Match", "\"tag\""))
            .good(Reply::status(304).header("ETag", "\"tag\""))
            .shows("304"),
        Row::new(
            "precondition",
            Call::new("PUT", "/").body("x").header("If-Match", "\"no\""),
        )
        .good(Reply::status(412))
        .shows("412"),
    ])
    .run()
    .await;
}

#[tokio::test]
async fn bodies() {
    let file = "client_body_in_file_only clean;";
    let continued = |call: Call| {
        move |side: harness::Side| {
            let call = call.clone();
            async move {
                let call = call.header("Expect", "100-continue").closing();
                let (head, body) = side.at(call).parts();
                let mut client = side.http1().await;
                client.send(&head).await;
                let mut seen = Seen::of([client.receive("PUT").await]);
                client.send(&body).await;
                seen.add(&client.receive("PUT").await);
                seen
            }
        }
    };
    let rows = [
        Row::new("empty", Call::new("PUT", "/").header("Content-Length", "0")),
        Row::new("small", put(500)),
        Row::new("in_a_file", put(300_000)),
        Row::new("large", put(5_000_000)),
        Row::new("chunked", put(500).chunked()),
        Row::new("chunked_empty", put(0).chunked()),
        Row::new("chunked_in_a_file", put(300_000).chunked()),
        Row::new("file_only", put(500)).location(file),
        Row::new("single_buffer", put(10_000)).location("client_body_in_single_buffer on;"),
        Row::new("not_passed", put(500))
            .location("proxy_pass_request_body off; proxy_set_header Content-Length '';"),
        Row::new("replaced", put(500))
            .location("proxy_set_body \"got: $request_body\"; client_body_in_single_buffer on;"),
        Row::client("continue", continued(put(500))).shows("HTTP/1.1 100 Continue"),
        Row::client("continue_chunked", continued(put(300_000).chunked())).shows("100 Continue"),
        Row::client("slow", |side| async move {
            let mut client = side.http1().await;
            client
                .send_slowly(&side.at(put(50_000).closing()).bytes())
                .await;
            Seen::of([client.receive("PUT").await])
        }),
        Row::calls("kept", [put(300_000), put(500).chunked(), put(0)]),
    ];
    Matrix::new(rows.map(|row| echo(row).shows("HTTP/1.1 200")))
        .run()
        .await;
}

/// Of a body that is streamed, nothing is sent to an upstream that refuses the connection.
#[tokio::test]
async fn streamed_bodies_of_which_nothing_was_sent() {
    let slow = |name, call: Call| {
        Row::client(name, move |side| {
            let call = call.clone();
            async move {
                let mut client = side.http1().await;
                client.send_slowly(&side.at(call.closing()).bytes()).await;
                Seen::of([client.receive("PUT").await])
            }
        })
    };
    let rows = [
        Row::new("small", put(500)),
        Row::new("large", put(5_000_000)),
        Row::new("chunked", put(500).chunked()),
        Row::new("chunked_large", put(5_000_000).chunked()),
        Row::new("chunked_empty", put(0).chunked()),
        Row::calls("kept", [put(300_000), put(500).chunked(), put(5)]),
        slow("slow", put(50_000)),
        slow("slow_chunked", put(50_000).chunked()),
    ];
    let streamed = "proxy_request_buffering off; proxy_http_version 1.1;";
    Matrix::new(rows.map(|row| echo(row).location(streamed).shows("HTTP/1.1 200")))
        .failing(&[Failure::Refused, Failure::Refused])
        .run()
        .await;
}

/// nginx gets bodies of HTTP/2 in frames, and opens the window for more as it sends them on. (A short
/// one may have come whole after a hop: nginx then tells its length, if the client has not.)
#[tokio::test]
async fn a_streamed_body_on_http2() {
    let streamed = "proxy_request_buffering off; proxy_http_version 1.1;";
    let rows = [
        Row::http2("empty", put(0)),
        Row::http2("small", put(500).with_length()),
        Row::http2("as_large_as_the_window", put(65_536).with_length()),
        Row::http2("large", put(1_000_000)),
    ];
    Matrix::new(rows.map(|row| echo(row).location(streamed).shows("200")))
        .failing(&[Failure::Refused, Failure::Refused])
        .config(Config::http2)
        .run()
        .await;
}

#[tokio::test]
async fn http2_requests() {
    let calls = METHODS.map(|method| Row::http2(method, Call::new(method, "/x?y").body("body")));
    Matrix::new(calls.map(|row| echo(row).shows("200")))
        .config(Config::http2)
        .run()
        .await;

    Matrix::new([
        echo(Row::http2("large", put(1_000_000))).shows("200"),
        echo(Row::http2("in_a_file", put(100_000))).shows("200"),
        Row::http2("large_answer", Call::get("/")).good(Reply::ok(body(1_000_000))),
        Row::http2("no_length", Call::get("/")).good(Reply::ok(body(50_000)).until_close()),
        Row::http2("chunked", Call::get("/")).good(Reply::ok(body(50_000)).chunked()),
        Row::http2("no_content", Call::get("/"))
            .good(Reply::status(204))
            .shows("204"),
        Row::http2("not_modified", Call::get("/"))
            .good(Reply::status(304))
            .shows("304"),
        Row::http2("range", Call::get("/").header("range", "bytes=1-2"))
            .location("proxy_force_ranges on;")
            .shows("206"),
        Row::http2(
            "long_headers",
            Call::get("/").header("x-long", &"long".repeat(500)),
        )
        .good(Reply::ok("good").header("X-Long", &"long".repeat(700))),
        Row::client("streams", |side| async move {
            let client = side.http2().await;
            let calls = (0..30)
                .map(|number| Call::new("PUT", &format!("/{number}")).body(body(number * 500)));
            let answers = all(calls.map(|call| {
                let (client, call) = (client.clone(), side.at(call));
                async move { client.call(&call).await }
            }));
            Seen::of(answers.await)
        })
        .script(|request| Reply::ok(request.body.clone()).header("X-Target", &request.target)),
    ])
    .config(Config::http2)
    .run()
    .await;
}

/// Clients that take their time; the walk must keep, or bring back, what limits the rate.
#[tokio::test]
async fn slow_readers_and_limits() {
    const LATE: &str = "an upstream response is buffered to a temporary file";
    let large = || Reply::ok(body(3_000_000));
    let late = |name| {
        Row::client(name, |side| async move {
            let mut client = side.http1_with_buffer(4_096).await;
            client
                .send(&side.at(Call::get("/").closing()).bytes())
                .await;
            let host = format!("server: {}", side.host());
            until("a response that waits for its client", async || {
                let log = side.nginx().error_log();
                let mut lines = log.lines().filter(|line| line.contains(LATE));
                lines.any(|line| line.contains(&host)).then_some(())
            })
            .await;
            Seen::of([client.receive("GET").await])
        })
    };
    let rate = "add_header X-Rate $limit_rate;";

    Matrix::new([
        late("late").good(large()),
        late("late_postponed")
            .good(large())
            .location("postpone_output 0;"),
        Row::new("limited", Call::get("/"))
            .good(Reply::ok(body(30_000)))
            .location(&format!("limit_rate 100k; limit_rate_after 10k; {rate}")),
        Row::new("limited_before", Call::get("/"))
            .location(&format!("set $limit_rate 50k; {rate}"))
            .shows("X-Rate: 51200"),
        Row::new("limited_by_backend", Call::get("/"))
            .good(Reply::ok("good").header("X-Accel-Limit-Rate", "5000"))
            .location(rate)
            .shows("X-Rate: 5000"),
        Row::new("unlimited", Call::get("/"))
            .location(rate)
            .shows("X-Rate: 0"),
    ])
    .run()
    .await;
}

/// A failed hop that sets a rate: it is not the client's.
#[tokio::test]
async fn the_rate_of_a_failed_hop_is_forgotten() {
    let limiting = Reply::status(503).header("X-Accel-Limit-Rate", "7");
    let (bad, good) = (
        Backend::answering(limiting).await,
        Backend::answering(Reply::ok("good")).await,
    );
    let before = "location = /before { set $limit_rate 50k; proxy_pass http://$upstrand_us; \
                  add_header X-Rate $limit_rate; }";
    let config = Config::upstrand([&bad, &good]).location("add_header X-Rate $limit_rate;");
    let nginx = Nginx::start(config.server(before)).await;

    assert_eq!(nginx.get("/").await.header("x-rate"), Some("0"));
    assert_eq!(nginx.get("/before").await.header("x-rate"), Some("51200"));
    nginx.stop().await;
}

/// Where a client leaves, nginx stops what it does for it.
#[tokio::test]
async fn a_client_that_leaves_ends_its_exchange_at_every_stage() {
    for failure in Failure::ALL {
        let slow = Reply::ok(body(1_000_000)).slowly(Duration::from_millis(20));
        let good = Backend::each(move |request| match request.target.as_str() {
            "/silent" => Reply::silence(),
            _ => slow.clone(),
        })
        .await;
        let bad = failure.backend().await;
        let config = Config::upstrand([&bad, &good]).location(failure.settings());
        let nginx =
            Nginx::start(config.location("client_body_buffer_size 1k; proxy_http_version 1.0;"))
                .await;

        // Within the body of the request, before any hop.
        let mut client = nginx.http1().await;
        client.send(&put(100_000).bytes()[..50_000]).await;
        drop(client);
        nginx.access_log(1).await;
        assert_eq!((bad.connections(), good.connections()), (0, 0));

        // While the good upstream thinks.
        let mut client = nginx.http1().await;
        client.send(&Call::get("/silent").bytes()).await;
        good.received(1).await;
        drop(client);
        good.deserted().await;

        // Within the good answer.
        let mut client = nginx.http1().await;
        client.send(&Call::get("/slow").bytes()).await;
        client.exactly(1_000).await;
        drop(client);
        good.deserted().await;
        bad.deserted().await;

        let status = failure.status();
        let log = nginx.access_log(3).await;
        assert_eq!(
            log[1],
            format!("GET /silent 499 [u1 -> u2] [(u1) {status} (u2) -]")
        );
        assert!(
            log[2].starts_with("GET /slow 200 [u1 -> u2]"),
            "{failure:?}: {}",
            log[2]
        );
        nginx.stop().await;
    }
}

/// While the first hop thinks.
#[tokio::test]
async fn a_client_that_leaves_during_a_failing_hop_reaches_no_further_one() {
    for failure in [
        Reply::silence(),
        Reply::status(503).slowly(Duration::from_secs(1)),
    ] {
        let (bad, good) = (
            Backend::answering(failure).await,
            Backend::answering(Reply::ok("good")).await,
        );
        let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

        let mut client = nginx.http1().await;
        client.send(&Call::get("/").bytes()).await;
        bad.received(1).await;
        drop(client);
        bad.deserted().await;
        assert!(nginx.logged().await.starts_with("GET / 499 [u1] "));
        assert_eq!(good.connections(), 0);
        nginx.stop().await;
    }
}
