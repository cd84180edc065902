//! Every kind of answer of the good upstream, seen through an upstrand and without one. Spec 4.3
//! and 4.5.

use std::time::Duration;

use harness::{Call, Config, Failure, Matrix, Reply, Row, Seen};

/// A body in which no part looks like another.
fn body(length: usize) -> Vec<u8> {
    let words = (0..).flat_map(|number: u32| format!("{number} ").into_bytes());
    words.take(length).collect()
}

fn get(name: &'static str, reply: Reply) -> Row {
    Row::new(name, Call::get("/")).good(reply)
}

const HTTP11: &str = "proxy_http_version 1.1; proxy_set_header Connection '';";

/// Those that are not answered as HTTP would have it: nothing but the end of a connection tells
/// where they end.
const RAW: [&str; 4] = [
    "http10",
    "more_than_announced",
    "dies_in_chunks",
    "bare_newlines",
];

fn framings() -> Vec<Row> {
    let long = "long".repeat(400);
    vec![
        get("length", Reply::ok(body(1_000))).shows("Content-Length: 1000"),
        get("empty", Reply::ok("")).shows("Content-Length: 0"),
        get("until_close", Reply::ok(body(1_000)).until_close()).shows("chunked"),
        get("until_close_empty", Reply::ok("").until_close()).shows("chunked"),
        get("chunked", Reply::ok(body(100_000)).chunked()).shows("chunked"),
        get("chunked_empty", Reply::ok("").chunked()).shows("chunked"),
        get(
            "slow",
            Reply::ok(body(1_000)).slowly(Duration::from_millis(5)),
        ),
        get(
            "slow_chunked",
            Reply::ok(body(9_000))
                .chunked()
                .slowly(Duration::from_millis(5)),
        ),
        get(
            "created",
            Reply::status(201).header("Location", "/there").body("made"),
        )
        .shows("201"),
        get("no_content", Reply::status(204).header("X-Good", "yes")).shows("204"),
        get("not_modified", Reply::status(304).header("ETag", "\"tag\"")).shows("304"),
        get(
            "partial",
            Reply::status(206)
                .header("Content-Range", "bytes 0-3/9")
                .body("part"),
        )
        .shows("206"),
        get(
            "moved",
            Reply::status(301).header("Location", "http://else.where/x"),
        )
        .shows("301"),
        get("unknown_status", Reply::status(299).body("what?")).shows("299"),
        get("not_found", Reply::status(404).body("no")).shows("404"),
        get(
            "unauthorized",
            Reply::status(401).header("WWW-Authenticate", "Basic realm=x"),
        ),
        get(
            "http10",
            Reply::raw("HTTP/1.0 200 OK\r\nX-Old: yes\r\n\r\nold").until_close(),
        ),
        get(
            "http10_kept",
            Reply::raw("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nold"),
        ),
        get(
            "no_reason",
            Reply::raw("HTTP/1.1 200\r\nContent-Length: 4\r\n\r\ngood"),
        ),
        get(
            "bare_newlines",
            Reply::raw("HTTP/1.1 200 OK\nContent-Length: 4\n\ngood"),
        ),
        get(
            "more_than_announced",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood, and more"),
        )
        .shows("good\n"),
        get("dies", Reply::ok(body(1_000)).cut_short(2_000)).shows("whole: false"),
        get(
            "dies_in_chunks",
            Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nhalf")
                .until_close(),
        ),
        get(
            "dies_late",
            Reply::ok(body(300_000))
                .cut_short(600_000)
                .slowly(Duration::from_millis(5)),
        )
        .shows("whole: false"),
        get(
            "cookies",
            Reply::ok("good")
                .header("Set-Cookie", "one=1; Path=/")
                .header("Set-Cookie", "two=2"),
        ),
        get(
            "many_headers",
            (0..60).fold(Reply::ok("good"), |reply, number| {
                reply.header(&format!("X-Header-{number}"), &number.to_string())
            }),
        )
        .shows("X-Header-59: 59"),
        get(
            "headers_nearly_too_large",
            Reply::ok("good")
                .header("X-Long", &long)
                .header("X-Longer", &long),
        )
        .location("proxy_buffer_size 4k;"),
        get(
            "headers_too_large",
            Reply::ok("good").header("X-Long", &"long".repeat(2_000)),
        )
        .location("proxy_buffer_size 4k;")
        .shows("502 Bad Gateway"),
        get("invalid_header", Reply::ok("good").header("X bad", "yes")),
    ]
}

#[tokio::test]
async fn from_http10_connections() {
    let rows = framings().into_iter();
    Matrix::new(rows.map(|row| row.location("proxy_http_version 1.0;")))
        .run()
        .await;
}

#[tokio::test]
async fn from_http11_connections() {
    let rows = framings().into_iter();
    Matrix::new(rows.map(|row| row.location(HTTP11)))
        .run()
        .await;
}

#[tokio::test]
async fn without_buffering() {
    let rows = framings().into_iter();
    Matrix::new(rows.map(|row| row.location(HTTP11).location("proxy_buffering off;")))
        .run()
        .await;
}

#[tokio::test]
async fn to_http2() {
    let rows = framings()
        .into_iter()
        .filter(|row| row.name() != "more_than_announced");
    Matrix::new(rows.map(|row| row.location(HTTP11).over_http2(Call::get("/"))))
        .config(Config::http2)
        .run()
        .await;
}

/// A response to HEAD has the headers of the others and no body.
#[tokio::test]
async fn to_head() {
    let rows = framings()
        .into_iter()
        .filter(|row| !RAW.contains(&row.name()));
    Matrix::new(rows.map(|row| row.over_http1([Call::head("/").closing()])))
        .run()
        .await;
}

#[tokio::test]
async fn large_bodies() {
    let large = || Reply::ok(body(10_000_000));
    Matrix::new([
        get("buffered", large()),
        get("unbuffered", large()).location("proxy_buffering off;"),
        get("no_file", large()).location("proxy_max_temp_file_size 0;"),
        get("chunked", large().chunked()).location(HTTP11),
        get("until_close", large().until_close()),
    ])
    .failing(&[Failure::SmallBody, Failure::LargeBody, Failure::Refused])
    .run()
    .await;
}

/// nginx passes trailers since 1.27.2, where the client speaks HTTP/2 or asks for them.
#[tokio::test]
async fn trailers() {
    let reply = Reply::ok("good")
        .header("Trailer", "X-End")
        .trailer("X-End", "there");
    let pass = "proxy_pass_trailers on; proxy_http_version 1.1; proxy_set_header Connection TE; \
                proxy_set_header TE trailers;";
    let asking = Call::get("/")
        .header("TE", "trailers")
        .header("Connection", "TE");
    Matrix::new([
        Row::calls("http1", [asking])
            .good(reply.clone())
            .location(pass)
            .since([1, 27, 2])
            .shows("there"),
        Row::http2("http2", Call::get("/").header("te", "trailers"))
            .good(reply.clone())
            .location(pass)
            .since([1, 27, 2])
            .shows("there"),
        Row::new("not_passed", Call::get("/"))
            .good(reply)
            .location(HTTP11)
            .hides("there"),
    ])
    .config(Config::http2)
    .run()
    .await;
}

/// nginx passes early hints since 1.29.0.
#[tokio::test]
async fn early_hints() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
    let hinted = |side: harness::Side| async move {
        let mut client = side.http1().await;
        client
            .send(&side.at(Call::get("/").closing()).bytes())
            .await;
        let first = client.receive("GET").await;
        let second = client.receive("GET").await;
        Seen::of([first, second])
    };
    Matrix::new([
        Row::client("passed", hinted)
            .good(Reply::raw(hints))
            .location(&format!("early_hints 1; {HTTP11}"))
            .since([1, 29, 0])
            .shows("103 Early Hints"),
        Row::new("ignored", Call::get("/"))
            .good(Reply::raw(hints))
            .location(HTTP11)
            .since([1, 29, 0])
            .hides("103"),
    ])
    .run()
    .await;
}

#[tokio::test]
async fn kept_connections_to_backends() {
    let rows = framings()
        .into_iter()
        .filter(|row| !RAW.contains(&row.name()));
    let kept = rows.map(|row| {
        let calls: Vec<_> = (0..2).map(|_| Call::get("/").closing()).collect();
        row.location(HTTP11).over_http1(calls)
    });
    Matrix::new(kept).upstream("keepalive 4;").run().await;
}

#[tokio::test]
async fn upgrades() {
    const UPGRADE: &str = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; \
                           proxy_set_header Connection upgrade;";
    let upgrade = |side: &harness::Side| {
        let call = Call::get("/")
            .header("Upgrade", "websocket")
            .header("Connection", "Upgrade");
        side.at(call).bytes()
    };
    let echoing = move |side: harness::Side| async move {
        let mut client = side.http1().await;
        client.send(&upgrade(&side)).await;
        let mut seen = Seen::of([client.receive("GET").await]);
        for message in ["one", "another", &"long ".repeat(20_000)] {
            client.send(message.as_bytes()).await;
            seen.0.extend(client.exactly(message.len()).await);
        }
        seen
    };
    // The client's first message follows its request at once, and then it says no more.
    let half_closing = move |side: harness::Side| async move {
        let mut client = side.http1().await;
        client.send(&upgrade(&side)).await;
        let mut seen = Seen::of([client.receive("GET").await]);
        client.send(b"all of it").await;
        seen.0.extend(client.exactly(9).await);
        client.finish().await;
        seen.0.extend(client.rest().await);
        seen
    };
    Matrix::new(
        [
            Row::client("echo", echoing).good(Reply::upgrade("websocket")),
            Row::client("half_close", half_closing).good(Reply::upgrade("websocket")),
            Row::client("declined", move |side| async move {
                let mut client = side.http1().await;
                client.send(&upgrade(&side)).await;
                client.send(&upgrade(&side)).await;
                Seen::of([client.receive("GET").await, client.receive("GET").await])
            })
            .good(Reply::ok("no socket here")),
        ]
        .map(|row| row.location(UPGRADE)),
    )
    .run()
    .await;
}
