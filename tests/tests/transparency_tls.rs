//! TLS with clients and with backends, and HTTP/2 with backends, seen through an upstrand and
//! without one. Spec 4.3.

use harness::{Call, Config, Matrix, Protocol, Reply, Row};

fn get(name: &'static str) -> Row {
    Row::new(name, Call::get("/x"))
}

fn put(name: &'static str, length: usize) -> Row {
    Row::new(name, Call::new("PUT", "/").body("body".repeat(length / 4)))
        .script(|request| Reply::ok(request.body.clone()))
        .location("client_max_body_size 8m; client_body_buffer_size 16k;")
}

#[tokio::test]
async fn clients_under_tls() {
    let large = || Reply::ok("large ".repeat(100_000));
    let upload = || Call::new("PUT", "/").body("body".repeat(50_000));
    Matrix::new([
        get("http1")
            .over_http1_tls([Call::get("/"), Call::head("/"), Call::get("/")])
            .shows("200 "),
        get("http2").over_http2_tls(Call::get("/")).shows("200\n"),
        get("large")
            .good(large())
            .over_http1_tls([Call::get("/")])
            .shows("large large"),
        get("large_http2")
            .good(large())
            .over_http2_tls(Call::get("/"))
            .shows("large large"),
        put("put", 0)
            .over_http1_tls([upload(), upload().chunked()])
            .shows("bodybody"),
        put("put_http2", 0)
            .over_http2_tls(upload())
            .shows("bodybody"),
        get("posted")
            .over_http2_tls(Call::post("/", "x"))
            .shows("200\n"),
        get("variables")
            .over_http1_tls([Call::get("/")])
            .location("proxy_set_header X-Scheme $scheme; add_header X-Protocol $ssl_protocol;")
            .shows("X-Protocol: TLSv1."),
    ])
    .config(Config::tls)
    .run()
    .await;
}

#[tokio::test]
async fn backends_under_tls() {
    let rows = || {
        [
            get("get").shows("200 "),
            Row::new("head", Call::head("/")).shows("200 "),
            put("put", 200_000).shows("bodybody"),
            get("large").good(Reply::ok("large ".repeat(100_000))).shows("large large"),
            get("chunked").good(Reply::ok("large ".repeat(1_000)).chunked()),
            get("no_length").good(Reply::ok("good").until_close()),
            get("dies").good(Reply::ok("half").cut_short(8)),
            get("no_content").good(Reply::status(204)).shows("204"),
            get("unbuffered").location("proxy_buffering off;"),
        ]
        .map(|row| row.pass("proxy_pass https://TARGET; proxy_http_version 1.1; proxy_set_header Connection '';"))
    };
    Matrix::new(rows()).speaking(Protocol::Https).run().await;
    Matrix::new(rows())
        .speaking(Protocol::Https)
        .upstream("keepalive 4;")
        .run()
        .await;

    let verified = "proxy_ssl_verify on; proxy_ssl_trusted_certificate certificate.pem; \
                    proxy_ssl_name localhost; proxy_ssl_server_name on;";
    let secure = "proxy_pass https://TARGET;";
    Matrix::new([
        get("verified")
            .pass(secure)
            .location(verified)
            .shows("200 "),
        get("not_reused")
            .pass(secure)
            .location("proxy_ssl_session_reuse off;")
            .shows("200 "),
        get("other_name")
            .pass(secure)
            .location(verified)
            .location("proxy_ssl_verify_depth 0;"),
    ])
    .config(Config::tls)
    .speaking(Protocol::Https)
    .run()
    .await;
}

/// nginx speaks HTTP/2 with the backends of `proxy_pass` since 1.29.4.
#[tokio::test]
async fn backends_over_http2() {
    Matrix::new(
        [
            get("get").shows("200 "),
            Row::new("head", Call::head("/")).shows("200 "),
            put("put", 500).shows("bodybody"),
            put("put_in_a_file", 200_000).shows("bodybody"),
            get("large")
                .good(Reply::ok("large ".repeat(50_000)))
                .shows("large large"),
            get("no_content").good(Reply::status(204)).shows("204"),
            get("not_found")
                .good(Reply::status(404).body("none"))
                .shows("404"),
            get("to_http2").over_http2(Call::get("/")).shows("200"),
            get("trailers")
                .over_http2(Call::get("/").header("te", "trailers"))
                .good(Reply::ok("good").trailer("x-end", "there"))
                .location("proxy_pass_trailers on;")
                .shows("there"),
        ]
        .map(|row| row.location("proxy_http_version 2;").since([1, 29, 4])),
    )
    .speaking(Protocol::Http2)
    .config(Config::http2)
    .run()
    .await;
}
