//! Everything that nginx does with an answer on its way to the client, seen through an upstrand and
//! without one. Spec 4.5.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::{Backend, Call, Config, Matrix, Nginx, Reply, Request, Row, Seen};

fn get(name: &'static str) -> Row {
    Row::new(name, Call::get("/"))
}

fn text(body: impl Into<Vec<u8>>) -> Reply {
    Reply::ok(body).header("Content-Type", "text/html")
}

fn words() -> String {
    (0..20_000).map(|number| format!("{number} ")).collect()
}

/// Answers with the part that is asked for.
fn parts(request: &Request) -> Reply {
    let whole = words();
    let Some(range) = request.header("range") else {
        return Reply::ok(whole);
    };

    let ends = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'));
    let (first, last) = ends.expect("a range");
    let first: usize = first.parse().expect("a number");
    if first >= whole.len() {
        return Reply::status(416).header("Content-Range", &format!("bytes */{}", whole.len()));
    }
    let last = last
        .parse::<usize>()
        .unwrap_or(usize::MAX)
        .min(whole.len() - 1);
    Reply::status(206)
        .header(
            "Content-Range",
            &format!("bytes {first}-{last}/{}", whole.len()),
        )
        .header("ETag", "\"words\"")
        .body(&whole.as_bytes()[first..=last])
}

#[tokio::test]
async fn bodies_that_are_changed() {
    let asking = |name| Row::new(name, Call::get("/").header("Accept-Encoding", "gzip"));
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(words().as_bytes()).expect("memory");
    let packed = text(packed.finish().expect("memory")).header("Content-Encoding", "gzip");
    let koi8 = "charset koi8-r; source_charset utf-8; override_charset on;";

    Matrix::new([
        asking("gzip")
            .good(text(words()))
            .location("gzip on;")
            .shows("Content-Encoding: gzip"),
        asking("gzip_http2")
            .good(text(words()))
            .location("gzip on; gzip_vary on;")
            .over_http2(Call::get("/").header("accept-encoding", "gzip")),
        asking("gzip_chunked")
            .good(text(words()).chunked())
            .location("gzip on; proxy_http_version 1.1;"),
        asking("gzip_not_proxied")
            .good(text(words()))
            .location("gzip on; gzip_proxied off;"),
        asking("packed")
            .good(packed.clone())
            .location("gunzip on; gzip_proxied any;")
            .shows("gzip"),
        get("gunzip")
            .good(packed.clone())
            .location("gunzip on;")
            .shows("0 1 2 3 4 5")
            .hides("gzip"),
        get("gunzip_sub")
            .good(packed)
            .location("gunzip on; sub_filter '7 8 9' '789';")
            .shows("789"),
        get("sub")
            .good(text("a good, good page"))
            .location("sub_filter good better; sub_filter_once off;")
            .shows("a better, better page"),
        get("sub_last_modified")
            .good(
                text("a good page")
                    .header("Last-Modified", "Mon, 05 May 2025 05:05:05 GMT")
                    .header("ETag", "\"x\""),
            )
            .location("sub_filter good better; sub_filter_last_modified on;")
            .shows("Last-Modified"),
        get("charset")
            .good(text("страница"))
            .location(koi8)
            .http("charset_map koi8-r utf-8 { D3 D181; D4 D182; }")
            .shows("charset=koi8-r"),
        get("charset_of_backend")
            .good(text("page").header("X-Accel-Charset", "koi8-r"))
            .shows("charset=koi8-r"),
        get("unbuffered_gzip")
            .good(text("short"))
            .location("proxy_buffering off;"),
        get("unbuffered_by_backend").good(text(words()).header("X-Accel-Buffering", "no")),
        get("added")
            .good(text("page"))
            .location("add_before_body ROW/static; add_after_body ROW/static;")
            .beside("location = ROW/static { return 200 'static'; }")
            .shows("staticpagestatic"),
    ])
    .config(Config::http2)
    .run()
    .await;
}

#[tokio::test]
async fn headers_that_are_changed() {
    let cookie = Reply::ok("good")
        .header("Set-Cookie", "a=1; Domain=inner.test; Path=/inner/")
        .header("Set-Cookie", "b=2; Path=/inner/; Secure")
        .header("Location", "http://inner.test/there")
        .header("Refresh", "5; url=http://inner.test/there")
        .header("Cache-Control", "private")
        .header("Expires", "Thu, 01 Jan 2099 00:00:00 GMT")
        .header("Link", "</style.css>; rel=preload")
        .header("Server", "inner")
        .header("X-Inner", "secret");
    let rows = [
        get("plain").shows("Domain=inner.test"),
        get("add_header")
            .location(
                "add_header X-Added 'yes, $upstream_http_x_inner'; add_header X-Always a always;",
            )
            .shows("X-Added: yes, secret"),
        get("add_header_inherited")
            .location("add_header X-Host $host;")
            .shows("X-Host: side##"),
        get("expires")
            .location("expires 1h;")
            .volatile("Expires")
            .shows("max-age=3600"),
        get("expires_epoch")
            .location("expires epoch;")
            .shows("Cache-Control: no-cache"),
        get("cookie_domain")
            .location("proxy_cookie_domain inner.test outer.test;")
            .shows("Domain=outer.test"),
        get("cookie_path")
            .location("proxy_cookie_path /inner/ /outer/;")
            .shows("Path=/outer/"),
        get("cookie_flags")
            .location("proxy_cookie_flags a httponly; proxy_cookie_flags b nosecure samesite=lax;")
            .shows("HttpOnly"),
        get("redirect")
            .location("proxy_redirect http://inner.test/ http://outer.test/;")
            .shows("Location: http://outer.test/there"),
        get("redirect_regex")
            .location("proxy_redirect ~^http://inner(.*)$ /outer$1;")
            .shows("Location: http"),
        get("hide")
            .location("proxy_hide_header X-Inner;")
            .hides("secret"),
        get("pass")
            .location("proxy_pass_header Server;")
            .shows("Server: inner"),
        get("ignore")
            .location("proxy_ignore_headers Cache-Control Expires Set-Cookie X-Accel-Redirect;"),
        get("no_tokens")
            .location("server_tokens off;")
            .shows("Server: nginx\r\n"),
        get("request_headers").location(
            "proxy_set_header X-Uri $request_uri; proxy_set_header X-Own $proxy_host; \
                  proxy_set_header Host $host;",
        ),
        get("no_request_headers").location("proxy_pass_request_headers off;"),
        get("method").location("proxy_method OPTIONS;"),
        get("not_kept").location("keepalive_timeout 0;"),
        Row::calls("unchunked", [Call::get("/")])
            .location("chunked_transfer_encoding off; gunzip on;"),
    ];
    Matrix::new(rows.map(|row| row.good(cookie.clone())))
        .run()
        .await;

    // Trailers of nginx's own need a client that takes them.
    Matrix::new([
        Row::calls("http1", [Call::get("/").header("TE", "trailers")])
            .good(Reply::ok("good").until_close())
            .location("add_trailer X-Trailer $status;"),
        Row::http2("http2", Call::get("/").header("te", "trailers"))
            .location("add_trailer X-Trailer yes;")
            .shows("x-trailer"),
    ])
    .config(Config::http2)
    .run()
    .await;
}

#[tokio::test]
async fn slices_and_ranges() {
    let slices = "slice 60k; proxy_set_header Range $slice_range; proxy_http_version 1.1;";
    let range = |range| Call::get("/").header("Range", range).closing();
    let rows = [
        get("whole").shows("19998 19999"),
        get("middle")
            .over_http1([range("bytes=25000-45000")])
            .shows("206 Partial Content"),
        get("end")
            .over_http1([range("bytes=-15000")])
            .shows("206 Partial Content"),
        get("head").over_http1([Call::head("/").closing()]),
        get("none").over_http1([range("bytes=9000000-")]),
        get("http2").over_http2(Call::get("/")).shows("19998 19999"),
        get("unbuffered")
            .location("proxy_buffering off;")
            .shows("19998 19999"),
    ];
    Matrix::new(rows.map(|row| row.script(parts).location(slices)))
        .config(Config::http2)
        .run()
        .await;
}

#[tokio::test]
async fn ways_to_write() {
    let large = |name| {
        get(name)
            .good(text(words().repeat(10)))
            .shows("19998 19999")
    };
    Matrix::new([
        large("sendfile").location("sendfile on; tcp_nopush on;"),
        large("no_sendfile").location("sendfile off; output_buffers 2 4k;"),
        large("threads").location("aio threads; aio_write on; sendfile on;"),
        large("threads_no_sendfile").location("aio threads; aio_write on;"),
        large("directio").location("directio 4k;"),
        large("few_buffers").location("proxy_buffers 2 4k; proxy_busy_buffers_size 4k; proxy_buffer_size 4k;"),
        large("no_file").location("proxy_max_temp_file_size 0; proxy_buffers 2 4k; proxy_busy_buffers_size 4k; proxy_buffer_size 4k;"),
        large("small_file").location("proxy_max_temp_file_size 64k; proxy_temp_file_write_size 32k;"),
        large("unbuffered").location("proxy_buffering off; proxy_buffer_size 4k;"),
        large("postponed").location("postpone_output 0;"),
        large("limited").location("proxy_limit_rate 5m;"),
    ])
    .run()
    .await;
}

/// What is stored is what is delivered, never what a failed hop sent.
#[tokio::test]
async fn stored_answers() {
    let stored = |name| {
        Row::client(name, move |side| async move {
            let mut client = side.http1().await;
            let mut seen = Seen::of([client.call(&side.at(Call::get("/file").closing())).await]);
            let file = side
                .nginx()
                .prefix()
                .join(format!("stored/{}-{name}", side.host()));
            harness::until("the stored file", async || {
                std::fs::read(&file).ok().map(|file| seen.0.extend(file))
            })
            .await;
            seen
        })
        .location(&format!(
            "root stored; proxy_store $document_root/$host-{name};"
        ))
    };
    Matrix::new([
        stored("small").shows("true]\ngood"),
        stored("large")
            .good(Reply::ok(words()))
            .shows("true]\n0 1 2 3"),
        stored("chunked")
            .good(Reply::ok(words()).chunked())
            .location("proxy_http_version 1.1;"),
    ])
    .run()
    .await;
}

/// Headers that stand in the response before the walk are kept, and only they. nginx has room for
/// twenty in each part of its list.
#[tokio::test]
async fn headers_from_before_the_walk() {
    for (before, failed) in [
        (0, 40),
        (1, 1),
        (19, 1),
        (19, 3),
        (20, 1),
        (21, 1),
        (21, 40),
        (45, 60),
    ] {
        let redirecting = (0..before).fold(
            Reply::ok("").header("X-Accel-Redirect", "/inner"),
            |reply, number| reply.header("Set-Cookie", &format!("before={number}")),
        );
        let failing = (0..failed).fold(Reply::status(503), |reply, number| {
            reply.header(&format!("X-Failed-{number}"), "yes")
        });
        let outer = Backend::answering(redirecting).await;
        let bad = Backend::answering(failing).await;
        let good = Backend::answering(Reply::ok("good").header("X-Good", "yes")).await;
        let servers = format!(
            "location = /outer {{ proxy_pass http://{0}; }}
             location = /inner {{ proxy_pass http://$upstrand_us; }}",
            outer.address()
        );
        let nginx = Nginx::start(Config::upstrand([&bad, &good]).server(&servers)).await;

        let answer = nginx.get("/outer").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "good"));
        let names: Vec<_> = answer.headers.keys().map(|name| name.to_string()).collect();
        let cookies = answer.headers.get_all("set-cookie").iter();
        let expected: Vec<_> = (0..before)
            .map(|number| format!("before={number}"))
            .collect();
        assert!(cookies.eq(&expected), "{before} and {failed}: {answer:?}");
        assert!(
            names.iter().all(|name| !name.starts_with("x-failed")),
            "{before} and {failed}: {names:?}"
        );
        assert_eq!(answer.header("x-good"), Some("yes"));
        nginx.stop().await;
    }
}

/// What a failed hop allows, or sets, for its own response holds for no other.
#[tokio::test]
async fn what_a_failed_hop_allows_is_forgotten() {
    let failing = Reply::status(503)
        .header("Accept-Ranges", "bytes")
        .header("X-Accel-Limit-Rate", "7")
        .header("Cache-Control", "max-age=60");
    let bad = Backend::answering(failing).await;
    let good = Backend::answering(Reply::ok("0123456789")).await;
    let cache = "proxy_cache c; limit_rate 64k;";
    let config = Config::upstrand([&bad, &good])
        .http("proxy_cache_path cache keys_zone=c:1m;")
        .location(cache)
        .log_format("$upstrand_path $status $limit_rate");
    let nginx = Nginx::start(config).await;

    for _ in 0..2 {
        let answer = nginx
            .call(Call::get("/").header("Range", "bytes=2-5"))
            .await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"));
    }
    assert_eq!(nginx.access_log(2).await, ["u1 -> u2 200 65536"; 2]);
    nginx.stop().await;
}

/// Where Debian keeps the modules of its nginx.
const MODULES: &str = "/usr/lib/nginx/modules";

const STYLESHEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/filters/title.xslt");

/// The smallest picture: one transparent dot.
const DOT: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// A row for a filter that is a module of its own, where this nginx can load it.
async fn with_module(name: &str, row: Row) {
    let config = Config::new().load_module(&format!("{MODULES}/ngx_http_{name}_module.so"));
    if Nginx::test(&config).await.code != Some(0) {
        println!("this nginx has no {name} module");
        return;
    }
    Matrix::new([row]).config(|_| config).run().await;
}

#[tokio::test]
async fn pictures_that_are_looked_at() {
    let row = get("image_filter")
        .good(Reply::ok(DOT).header("Content-Type", "image/gif"))
        .location("image_filter size;")
        .shows("\"width\": 1");
    with_module("image_filter", row).await;
}

#[tokio::test]
async fn documents_that_are_transformed() {
    let document = "<page><title>good</title><body>long</body></page>";
    let row = get("xslt_filter")
        .good(Reply::ok(document).header("Content-Type", "text/xml"))
        .location(&format!("xslt_stylesheet {STYLESHEET};"))
        .shows("<h1>good</h1>");
    with_module("xslt_filter", row).await;
}
