//! An upstrand in every context in which nginx makes a request, seen beside a plain proxy_pass.
//! Spec 4.6 and 4.7.

use harness::{Backend, Call, Config, Matrix, Nginx, Reply, Request, Row};

fn get(name: &'static str) -> Row {
    Row::new(name, Call::get("/page")).walks_elsewhere()
}

/// Answers `/page` with this page, `/pageN` with those that follow, and all else with its path.
fn pages(row: Row, pages: &[&str]) -> Row {
    let name = row.name();
    let pages: Vec<_> = pages
        .iter()
        .map(|page| page.replace("ROW", &format!("/{name}")))
        .collect();
    row.script(move |request| {
        let path = request.target.rsplit('/').next().unwrap_or_default();
        let page = match path.strip_prefix("page") {
            Some("") => pages.first(),
            Some(number) => number
                .parse()
                .ok()
                .and_then(|number: usize| pages.get(number - 1)),
            None => None,
        };
        Reply::ok(
            page.cloned()
                .unwrap_or_else(|| format!("[{}]", request.target)),
        )
        .header("Content-Type", "text/html")
    })
}

/// A page of the good upstream, and what it includes of the upstrand.
const INCLUDING: &str = "location = ROW/page { ssi on; proxy_pass http://GOOD; }
                         location ROW/ { ssi on; proxy_pass http://TARGET; }";

fn including(name: &'static str, page: &[&str]) -> Row {
    pages(get(name).server(INCLUDING), page)
}

#[tokio::test]
async fn includes() {
    Matrix::new([
        including("one", &["a <!--#include virtual=\"ROW/x\" --> b"]).shows("a [/one/x] b"),
        including("parallel", &[&(0..12)
            .map(|number| format!("<!--#include virtual=\"ROW/{number}\" -->"))
            .collect::<String>()])
        .shows("[/parallel/0][/parallel/1][/parallel/2]"),
        including("waiting", &["<!--#include virtual=\"ROW/1\" wait=\"yes\" -->, \
                               <!--#include virtual=\"ROW/2\" wait=\"yes\" -->"])
            .shows("[/waiting/1], [/waiting/2]"),
        including("set", &["<!--#include virtual=\"ROW/1\" set=\"one\" -->got <!--#echo var=\"one\" -->"])
            .shows("got [/set/1]"),
        including("stub", &["<!--#block name=\"s\" -->stub<!--#endblock -->\
                            <!--#include virtual=\"ROW/1\" stub=\"s\" -->"])
            .shows("[/stub/1]"),
        including("nested", &[
            "1 <!--#include virtual=\"ROW/page2\" --> 1",
            "2 <!--#include virtual=\"ROW/page3\" --> 2",
            "3 <!--#include virtual=\"ROW/x\" --> 3",
        ])
        .shows("1 2 3 [/nested/x] 3 2 1"),
        including("file", &["<!--#include file=\"x\" -->"]).shows("[/file/x]"),
        including("conditional", &["<!--#if expr=\"$host\" --><!--#include virtual=\"ROW/1\" --><!--#endif -->"])
            .shows("[/conditional/1]"),
        including("large", &["<!--#include virtual=\"ROW/1\" --><!--#include virtual=\"ROW/2\" -->"])
            .script(|request| match request.target.ends_with("page") {
                true => Reply::ok("<!--#include virtual=\"/large/1\" --><!--#include virtual=\"/large/2\" -->")
                    .header("Content-Type", "text/html"),
                false => Reply::ok(request.target.repeat(50_000)),
            })
            .shows("/large/1/large/1"),
        // Here the page itself comes from the upstrand, and some of what it includes does not.
        pages(
            get("from_upstrand").server(
                "location = ROW/page { ssi on; proxy_pass http://TARGET; }
                 location ROW/plain/ { proxy_pass http://GOOD; }
                 location ROW/ { proxy_pass http://TARGET; }",
            ),
            &["<!--#include virtual=\"ROW/plain/x\" --> <!--#include virtual=\"ROW/x\" -->"],
        )
        .shows("[/from_upstrand/plain/x] [/from_upstrand/x]"),
        // Both walks have the request's own page in common, and a second upstrand.
        pages(
            get("gzip").server("location ROW/ { ssi on; gzip on; gzip_min_length 1; proxy_pass http://TARGET; }")
                .over_http1([Call::get("/page").header("Accept-Encoding", "gzip").closing()]),
            &["<!--#include virtual=\"ROW/1\" -->"],
        )
        .shows("Content-Encoding: gzip"),
        including("http2", &["a <!--#include virtual=\"ROW/x\" --> b"])
            .over_http2(Call::get("/page"))
            .shows("a [/http2/x] b"),
        including("head", &["a <!--#include virtual=\"ROW/x\" --> b"])
            .over_http1([Call::head("/page"), Call::get("/page").closing()]),
        including("post", &["a <!--#include virtual=\"ROW/x\" --> b"])
            .over_http1([Call::post("/page", "body").closing()])
            .shows("a [/post/x] b"),
    ])
    .config(Config::http2)
    .run()
    .await;
}

/// Says 204 to those who may pass, else 403 or 401.
fn guard(request: &Request) -> Reply {
    match request.target.rsplit('/').next() {
        Some("auth") => Reply::status(204)
            .header("X-User", "ann")
            .header("Set-Cookie", "session=1"),
        Some("forbid") => Reply::status(403).body("no"),
        Some("ask") => Reply::status(401)
            .header("WWW-Authenticate", "Basic realm=here")
            .body("who"),
        _ => Reply::ok(format!(
            "page for {}",
            request.header("x-user").unwrap_or("nobody")
        )),
    }
}

#[tokio::test]
async fn subrequests_of_other_modules() {
    let auth = "auth_request_set $user $upstream_http_x_user; proxy_set_header X-User $user;";
    let guarded = |name, page: &str, guard_pass: &str, uri: &str| {
        get(name)
            .server(&format!(
                "location = ROW/page {{ auth_request ROW/{uri}; {auth} proxy_pass http://{page}; }}
                 location ROW/ {{ proxy_pass_request_body off; proxy_set_header Content-Length '';
                     proxy_pass http://{guard_pass}; }}"
            ))
            .script(guard)
    };
    Matrix::new([
        guarded("auth", "GOOD", "TARGET", "auth").shows("page for ann"),
        guarded("auth_forbids", "GOOD", "TARGET", "forbid").shows("403 Forbidden"),
        guarded("auth_asks", "GOOD", "TARGET", "ask").shows("Basic realm=here"),
        guarded("auth_of_upstrand", "TARGET", "GOOD", "auth").shows("page for ann"),
        guarded("auth_both", "TARGET", "TARGET", "auth").shows("page for ann"),
        guarded("auth_post", "TARGET", "TARGET", "auth")
            .over_http1([Call::post("/page", "x".repeat(100_000)).closing()])
            .shows("page for ann"),
        get("mirror").server(
            "location = ROW/page { mirror ROW/mirror; proxy_pass http://GOOD; }
             location = ROW/mirror { internal; proxy_pass http://TARGET; }",
        ),
        get("mirror_of_upstrand").server(
            "location = ROW/page { mirror ROW/mirror; proxy_pass http://TARGET; }
             location = ROW/mirror { internal; proxy_pass http://GOOD; }",
        ),
        get("mirror_both").over_http1([Call::new("PUT", "/page").body("x".repeat(100_000)).closing()]).server(
            "location ROW/ { client_body_buffer_size 1k; mirror ROW/mirror; proxy_pass http://TARGET; }
             location = ROW/mirror { internal; proxy_pass http://TARGET; }",
        ),
        get("mirror_without_body").over_http1([Call::post("/page", "body").closing()]).server(
            "location ROW/ { mirror ROW/mirror; mirror_request_body off; proxy_pass http://TARGET; }
             location = ROW/mirror { internal; proxy_pass_request_body off; \
                 proxy_set_header Content-Length ''; proxy_pass http://TARGET; }",
        ),
        pages(get("addition").server(
            "location = ROW/page { add_before_body ROW/before; add_after_body ROW/after; proxy_pass http://TARGET; }
             location ROW/ { proxy_pass http://TARGET; }",
        ), &["page"])
        .shows("[/addition/before]page[/addition/after]"),
    ])
    .run()
    .await;
}

#[tokio::test]
async fn redirects_inside_nginx() {
    let passing = |name, locations: &str| {
        let last = "location ROW/inner/ { proxy_pass http://TARGET; }";
        get(name)
            .server(&format!("{locations} {last}"))
            .script(|request| match request.target.ends_with("/away") {
                true => Reply::ok("outer")
                    .header(
                        "X-Accel-Redirect",
                        &request.target.replace("away", "inner/x"),
                    )
                    .header("Set-Cookie", "outer=1"),
                false => Reply::ok(format!("[{}]", request.target)),
            })
    };
    Matrix::new([
        passing("rewrite", "location = ROW/page { rewrite ^ ROW/inner/x?a=b last; }").shows("/inner/x?a=b]"),
        passing("rewrite_break", "location = ROW/page { rewrite ^ ROW/x break; proxy_pass http://TARGET; }")
            .shows("[/rewrite_break/x]"),
        passing("server_rewrite", "rewrite ^ROW/page$ ROW/inner/y;").shows("/inner/y]"),
        passing("try_files", "location = ROW/page { try_files /none ROW/inner/x; }").shows("[/try_files/inner/x]"),
        passing("try_named", "location = ROW/page { try_files /none @try_named; } \
                 location @try_named { proxy_pass http://TARGET; }").shows("[/try_named/page]"),
        passing("error_page", "location = ROW/page { error_page 404 ROW/inner/x; return 404; }")
            .shows("HTTP/1.1 404"),
        passing("error_page_changed", "location = ROW/page { error_page 404 = ROW/inner/x; return 404; }")
            .shows("HTTP/1.1 200"),
        passing("error_page_named", "location = ROW/page { error_page 404 = @error_page_named; return 404; } \
                 location @error_page_named { proxy_pass http://TARGET; }").shows("HTTP/1.1 200"),
        passing("error_page_posted", "location = ROW/page { error_page 404 = @error_page_posted; return 404; } \
                 location @error_page_posted { proxy_pass http://TARGET; }")
            .over_http1([Call::post("/page", "body").closing()]),
        passing("accel", "location = ROW/away { proxy_pass http://GOOD; }")
            .over_http1([Call::get("/away").closing()])
            .shows("[/accel/inner/x]"),
        passing("if", "location = ROW/page { if ($arg_x = '') { proxy_pass http://TARGET; } }")
            .shows("[/if/page]"),
        passing("limit_except", "location = ROW/page { limit_except GET { deny all; proxy_pass http://TARGET; } \
                 proxy_pass http://TARGET; }").shows("[/limit_except/page]"),
        passing("nested_location", "location ROW/page { location ROW/page { proxy_pass http://TARGET; } }")
            .shows("page]"),
        passing("regex_location", "location ~ ^ROW/pag(.)$ { proxy_pass http://TARGET; }").shows("page]"),
        passing("index", "location = ROW/ { index inner/x; root /; }")
            .over_http1([Call::get("/").closing()]),
        passing("with_uri", "location = ROW/page { proxy_pass http://TARGET/other/uri?x=$arg_y; }")
            .over_http1([Call::get("/page?y=z").closing()]),
        passing("port", "location = ROW/page { set $nothing ''; proxy_pass http://TARGET$nothing$request_uri; }"),
    ])
    .run()
    .await;
}

/// The variable evaluated elsewhere changes nothing of a walk, nor of a plain `proxy_pass`.
#[tokio::test]
async fn the_variable_elsewhere() {
    let pass = |name, more: &str| {
        Row::new(name, Call::get("/page"))
            .server(&format!(
                "location ROW/ {{ {more} proxy_pass http://TARGET; }}"
            ))
            .shows("200 Scripted")
    };
    let other = "$upstrand_other";
    Matrix::new([
        pass(
            "add_header",
            &format!("add_header X-Name {other}; expires off;"),
        )
        .hides("503"),
        pass("if", &format!("if ({other} = 'nobody') {{ return 500; }}")),
        pass(
            "set",
            &format!("set $kept {other}; proxy_set_header X-Kept $kept;"),
        ),
        pass("map", "proxy_set_header X-Mapped $mapped;").http(&format!(
            "map {other} $mapped {{ default none; first yes; }}"
        )),
        pass(
            "request_header",
            &format!("proxy_set_header X-Name {other};"),
        ),
        pass(
            "sub_filter",
            &format!("sub_filter_types *; sub_filter good {other};"),
        ),
        pass(
            "limit",
            &format!("proxy_cache_bypass {other}; proxy_no_cache {other};"),
        ),
        pass("own", "set $own TARGET;"),
    ])
    .config(|config| config.http("upstream first { server 127.0.0.1:1; } upstream second { server 127.0.0.1:1; } \
        upstrand other { upstream first; upstream second; order per_request; next_upstream_statuses 5xx; }"))
    .run()
    .await;
}

/// An upstrand inside the failover location of another: its walk begins where the other ended.
#[tokio::test]
async fn walks_after_walks() {
    let failing = "upstrand NAME { upstream Refused0; upstream Refused1; order per_request; \
                   next_upstream_statuses error; intercept_statuses error ROW/next; }";
    let tier = |name: &'static str| {
        get(name)
            .http(
                &failing
                    .replace("NAME", name)
                    .replace("ROW", &format!("/{name}")),
            )
            .server(&format!(
                "location = ROW/page {{ proxy_pass http://$upstrand_{name}; }}
                 location = ROW/next {{ proxy_pass http://TARGET; }}"
            ))
    };
    Matrix::new([
        tier("tiers").shows("200"),
        tier("tiers_posted")
            .over_http1([Call::post("/page", "body").closing()])
            .shows("200"),
        tier("tiers_of_head")
            .over_http1([Call::head("/page").closing()])
            .shows("200"),
        tier("tiers_http2")
            .over_http2(Call::get("/page"))
            .shows("200"),
    ])
    .config(Config::http2)
    .failing(&[
        harness::Failure::Refused,
        harness::Failure::Refused,
        harness::Failure::SmallBody,
    ])
    .run()
    .await;
}

/// Nobody waits for what comes of a post_action: it asks one upstream, the first (design 2.7).
#[tokio::test]
async fn a_post_action_asks_one_upstream() {
    let bad = Backend::answering(Reply::status(503)).await;
    let good = Backend::answering(Reply::ok("good")).await;
    let config = Config::upstrand([&bad, &good])
        .server("location = /page { post_action /; return 200 page; }");
    let nginx = Nginx::start(config).await;

    for count in 1..=3 {
        assert_eq!(nginx.get("/page").await.text(), "page");
        bad.received(count).await;
        nginx.idle().await;
    }
    assert_eq!((bad.requests().len(), good.requests().len()), (3, 0));
    nginx.stop().await;
}
