//! HTTP/3 clients, seen through an upstrand and without one, where nginx has it. Spec 4.3.

use harness::{Backend, Call, Config, Matrix, Nginx, Reply, Row, all, until};

async fn has_http3() -> bool {
    let has = Nginx::test(&Config::new().http("http3 on;")).await.code == Some(0);
    if !has {
        println!("this nginx has no HTTP/3");
    }
    has
}

fn row(name: &'static str, call: Call) -> Row {
    Row::new(name, Call::get("/")).over_http3(call)
}

fn put(name: &'static str, length: usize) -> Row {
    row(name, Call::new("PUT", "/").body("body".repeat(length / 4)))
        .script(|request| Reply::ok(request.body.clone()))
        .location("client_max_body_size 8m; client_body_buffer_size 16k;")
}

#[tokio::test]
async fn requests() {
    if !has_http3().await {
        return;
    }
    let get = |name| row(name, Call::get("/x?y=z"));
    Matrix::new([
        get("get").shows("200\n"),
        row("head", Call::head("/")).shows("200\n"),
        row("post", Call::post("/", "a body")).shows("200\n"),
        row("delete", Call::new("DELETE", "/")).shows("200\n"),
        put("put", 500).shows("bodybody"),
        put("put_in_a_file", 200_000).shows("bodybody"),
        get("large")
            .good(Reply::ok("large ".repeat(100_000)))
            .shows("large large"),
        get("chunked").good(Reply::ok("large ".repeat(1_000)).chunked()),
        get("no_length").good(Reply::ok("good").until_close()),
        get("no_content").good(Reply::status(204)).shows("204\n"),
        get("not_found")
            .good(Reply::status(404).body("none"))
            .shows("404\n"),
        row("range", Call::get("/").header("range", "bytes=1-2"))
            .location("proxy_force_ranges on;")
            .shows("206\n"),
        get("variables")
            .location("add_header X-Protocol $http3;")
            .shows("h3"),
    ])
    .config(Config::http3)
    .run()
    .await;
}

#[tokio::test]
async fn streams_of_one_connection() {
    if !has_http3().await {
        return;
    }
    let bad = Backend::answering(Reply::status(503).body("failed")).await;
    let good = Backend::each(|request| Reply::ok(request.target.clone())).await;
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).http3()).await;

    let client = nginx.http3().await;
    let answers = all((0..20).map(|number| {
        let client = client.clone();
        async move { client.call(&Call::get(&format!("/{number}"))).await }
    }));
    for (number, answer) in answers.await.iter().enumerate() {
        assert_eq!((answer.status, answer.text()), (200, format!("/{number}")));
    }
    drop(client);
    nginx.stop().await;
}

/// nginx reads it from the frames of a stream, which cannot be read again (design 2.7): the first
/// response is final.
#[tokio::test]
async fn a_streamed_body() {
    if !has_http3().await {
        return;
    }
    let (bad, good) = (
        Backend::refusing(),
        Backend::each(|request| Reply::ok(request.body.clone())).await,
    );
    let config = Config::upstrand([&bad, &good])
        .location("proxy_request_buffering off; proxy_http_version 1.1;");
    let nginx = Nginx::start(config.http3()).await;

    let client = nginx.http3().await;
    let refused = until("a refused connection", async || {
        nginx.error_log().contains("refused").then_some(())
    });
    let put = Call::new("PUT", "/").body("0123456789".repeat(3_000));
    assert_eq!(client.call_pausing(&put, refused).await.status, 502);
    assert!(nginx.error_log().contains("request body already sent"));

    assert_eq!(client.call(&Call::get("/")).await.status, 200);
    drop(client);
    nginx.stop().await;
}
