//! Backends that speak other protocols than HTTP/1, seen through an upstrand and without one.
//! Spec 4.3, 4.5 and 4.7.

use harness::{Backend, Call, Config, Failure, Matrix, Nginx, Protocol, Reply, Row};

const PARAMETERS: [&str; 6] = [
    "REQUEST_METHOD $request_method",
    "REQUEST_URI $request_uri",
    "QUERY_STRING $query_string",
    "CONTENT_TYPE $content_type",
    "CONTENT_LENGTH $content_length",
    "SERVER_NAME $server_name",
];

/// A location that passes to a gateway of this name.
fn location(gateway: &str, more: &str) -> String {
    let parameters: String = PARAMETERS
        .iter()
        .map(|parameter| format!("{gateway}_param {parameter};\n"))
        .collect();
    format!("location ROW/ {{ {gateway}_pass TARGET; {parameters} {more} }}")
}

/// What is asked of each of the CGI-like gateways.
fn rows(gateway: &str) -> Vec<Row> {
    let row = |name, call: Call| Row::new(name, call).server(&location(gateway, ""));
    let get = |name| row(name, Call::get("/x?y=z"));
    let put = |name, length: usize| {
        row(name, Call::new("PUT", "/").body("body".repeat(length / 4)))
            .script(|request| Reply::ok(request.body.clone()))
            .location("client_max_body_size 8m; client_body_buffer_size 16k;")
    };
    let own = |directive: &str| directive.replace("GATEWAY", gateway);
    vec![
        get("get").shows("200 "),
        row("head", Call::head("/")).shows("200 "),
        row("post", Call::post("/", "a body")).shows("200 "),
        put("put", 500),
        put("put_in_a_file", 300_000),
        put("put_large", 600_000),
        row("put_chunked", Call::new("PUT", "/").body("body").chunked()),
        get("large").good(Reply::ok("large ".repeat(200_000))),
        get("unbuffered").good(Reply::ok("large ".repeat(200_000))).location(&own("GATEWAY_buffering off;")),
        get("no_length").good(Reply::ok("good").until_close()),
        get("empty").good(Reply::ok("")),
        get("no_content").good(Reply::status(204)).shows("204"),
        get("not_modified").good(Reply::status(304)).shows("304"),
        get("moved").good(Reply::status(302).header("Location", "http://else.where/")).shows("302"),
        get("not_found").good(Reply::status(404).body("none")).shows("404"),
        get("dies").good(Reply::ok("half").cut_short(8)),
        get("cookies").good(Reply::ok("good").header("Set-Cookie", "a=1").header("Set-Cookie", "b=2")),
        get("many_headers").good((0..40).fold(Reply::ok("good"), |reply, number| {
            reply.header(&format!("X-Header-{number}"), "yes")
        })),
        get("ranges").over_http1([Call::get("/").header("Range", "bytes=1-2").closing()])
            .location(&own("GATEWAY_force_ranges on;"))
            .shows("206 "),
        get("gzip").over_http1([Call::get("/").header("Accept-Encoding", "gzip").closing()])
            .good(Reply::ok("large ".repeat(2_000)).header("Content-Type", "text/html"))
            .location("gzip on;")
            .shows("Content-Encoding: gzip"),
        get("http2").over_http2(Call::get("/")).shows("200"),
        get("posted_over_http2").over_http2(Call::post("/", "a body")).shows("200"),
        get("cached").over_http1([Call::get("/"), Call::get("/"), Call::get("/")])
            .location(&own("GATEWAY_cache c; GATEWAY_cache_key $host$uri; GATEWAY_cache_valid any 1m; \
                            add_header X-Cache $upstream_cache_status;"))
            .walks_elsewhere()
            .shows("X-Cache: HIT"),
        get("included").server(&format!(
            "location = ROW/page {{ ssi on; ssi_types *; return 200 '<!--#include virtual=\"ROW/x\" -->'; }} {}",
            location(gateway, "")
        ))
        .over_http1([Call::get("/page").closing()])
        .walks_elsewhere()
        .shows("good"),
        get("ignored").location(&own("GATEWAY_ignore_headers X-Accel-Redirect;"))
            .good(Reply::ok("good").header("X-Accel-Redirect", "/nowhere")),
    ]
}

async fn run(gateway: &str, protocol: Protocol) {
    Matrix::new(rows(gateway))
        .speaking(protocol)
        .config(|config| {
            config
                .http2()
                .http(&format!("{gateway}_cache_path cache keys_zone=c:1m;"))
        })
        .run()
        .await;
}

#[tokio::test]
async fn fastcgi() {
    run("fastcgi", Protocol::Fastcgi).await;
}

#[tokio::test]
async fn uwsgi() {
    run("uwsgi", Protocol::Uwsgi).await;
}

#[tokio::test]
async fn scgi() {
    run("scgi", Protocol::Scgi).await;
}

/// A gRPC message: a flag, a length of four bytes, the text.
fn message(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len())
        .expect("a short message")
        .to_be_bytes();
    [&[0][..], &length, text.as_bytes()].concat()
}

/// A call of a gRPC client.
fn call(messages: Vec<u8>) -> Call {
    Call::post("/pkg.Service/Method", messages)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "10S")
}

/// A gRPC server's answer with these messages.
fn done(messages: Vec<u8>) -> Reply {
    Reply::ok(messages)
        .header("content-type", "application/grpc")
        .trailer("grpc-status", "0")
        .trailer("grpc-message", "OK")
}

fn grpc(row: Row) -> Row {
    row.server("location ROW/ { client_max_body_size 8m; grpc_pass grpc://TARGET; }")
}

/// Many messages.
fn stream() -> Vec<u8> {
    (0..500)
        .flat_map(|number| message(&format!("message {number}")))
        .collect()
}

fn grpc_matrix(rows: impl IntoIterator<Item = Row>) -> Matrix {
    Matrix::new(rows.into_iter().map(grpc))
        .speaking(Protocol::Http2)
        .config(Config::http2)
}

#[tokio::test]
async fn calls_without_a_body() {
    let failed = Reply::ok("")
        .header("content-type", "application/grpc")
        .header("grpc-status", "5");
    grpc_matrix([
        Row::http2("get", Call::get("/")).shows("200"),
        Row::http2("no_message", call(Vec::new()))
            .good(done(message("hello")))
            .shows("grpc-status"),
        Row::http2("server_streaming", call(Vec::new()))
            .good(done(stream()))
            .shows("message 499"),
        Row::http2("large", call(Vec::new())).good(done(message(&"large ".repeat(50_000)))),
        Row::http2("failed", call(Vec::new()))
            .good(failed)
            .shows("grpc-status"),
        Row::new("http1", Call::get("/")).shows("200"),
        Row::new("head", Call::head("/")).shows("200"),
    ])
    .run()
    .await;
}

/// nginx streams the body of each gRPC call. From an HTTP/1 client it can be read again as long as
/// nothing of it was sent.
#[tokio::test]
async fn calls_over_http1() {
    grpc_matrix(
        [
            Row::new("small", Call::post("/", message("hi"))),
            Row::new("chunked", Call::post("/", message("hi")).chunked()),
            Row::new("large", Call::post("/", vec![b'x'; 500_000])),
        ]
        .map(|row| {
            row.script(|request| Reply::ok(request.body.clone()))
                .shows("200 ")
        }),
    )
    .failing(&[Failure::Refused, Failure::Refused])
    .run()
    .await;
}

/// The same from a client of gRPC.
#[tokio::test]
async fn streamed_calls() {
    let call = |messages| call(messages).with_length();
    let rows = || {
        [
            Row::http2("unary", call(message("hi")))
                .good(done(message("hello")))
                .shows("hello"),
            Row::http2("empty", call(message("")))
                .good(done(message("")))
                .shows("\"grpc-status\": \"0\""),
            Row::http2("client_streaming", call(stream()))
                .good(done(message("hello")))
                .shows("hello"),
            Row::http2("server_streaming", call(message("hi")))
                .good(done(stream()))
                .shows("message 499"),
            Row::http2("both", call(stream()))
                .script(|request| done(request.body.clone()))
                .shows("message 499"),
        ]
    };
    grpc_matrix(rows()).failing(&[]).run().await;
    grpc_matrix(rows())
        .failing(&[Failure::Refused, Failure::Refused])
        .run()
        .await;
}

/// gRPC clients do not tell the length.
#[tokio::test]
async fn a_call_without_a_length_fails_over() {
    let (bad, good) = (
        Backend::refusing(),
        Backend::speaking(Protocol::Http2, |request| done(request.body.clone())).await,
    );
    let pass = "location /pkg.Service { grpc_pass grpc://$upstrand_us; }";
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).server(pass).http2()).await;

    for messages in [message("hi"), stream(), message(&"large ".repeat(50_000))] {
        let answer = nginx.http2().await.call(&call(messages.clone())).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == messages);
        assert_eq!(answer.trailers["grpc-status"], "0");
    }
    nginx.stop().await;
}

/// A call that was sent gets the answer of the hop that it was sent to.
#[tokio::test]
async fn streamed_calls_that_were_sent_do_not_fail_over() {
    let good = Backend::speaking(Protocol::Http2, |_| done(message("hello"))).await;
    for failure in [Failure::SmallBody, Failure::Closed, Failure::Garbage] {
        let bad = failure.speaking(Protocol::Http2).await;
        let pass = "location /pkg.Service { grpc_pass grpc://$upstrand_us; }";
        let statuses = "error timeout 5xx non_idempotent";
        let config = Config::upstrand([&bad, &good])
            .statuses(statuses)
            .server(pass);
        let nginx = Nginx::start(config.http2()).await;

        let answer = nginx.http2().await.call(&call(message("hi"))).await;
        assert_eq!(answer.status, failure.status(), "{failure:?}");
        assert!(
            nginx.error_log().contains("request body already sent"),
            "{failure:?}"
        );
        assert_eq!(good.connections(), 0);
        nginx.stop().await;
    }
}
