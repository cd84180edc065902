//! Caches, seen through an upstrand and without one. Spec 4.3.
//!
//! The key is the same on each side and for all members, and holds the side.

use std::time::Duration;

use harness::{Call, Matrix, Reply, Request, Row, Seen, Side};

const CACHE: &str = "proxy_cache c; proxy_cache_key $host$uri; \
                     add_header X-Cache $upstream_cache_status always;";

fn matrix(rows: impl IntoIterator<Item = Row>) -> Matrix {
    let rows = rows
        .into_iter()
        .map(|row| row.location(CACHE).walks_elsewhere());
    Matrix::new(rows).config(|config| {
        let limits = "proxy_cache_path cache keys_zone=c:4m inactive=10m;";
        config.http(limits)
    })
}

fn gets(name: &'static str, count: usize) -> Row {
    Row::calls(name, vec![Call::get("/"); count])
}

fn cacheable(seconds: usize) -> Reply {
    Reply::ok("good").header("Cache-Control", &format!("max-age={seconds}"))
}

#[tokio::test]
async fn what_is_kept() {
    let valid = "proxy_cache_valid any 1m;";
    matrix([
        gets("hit", 3).location(valid).shows("X-Cache: HIT"),
        gets("hit_large", 2)
            .good(Reply::ok("large ".repeat(100_000)))
            .location(valid)
            .shows("X-Cache: HIT"),
        gets("hit_chunked", 2)
            .good(Reply::ok("large ".repeat(100_000)).chunked())
            .location("proxy_http_version 1.1;")
            .location(valid)
            .shows("X-Cache: HIT"),
        gets("by_header", 2)
            .good(cacheable(60))
            .shows("X-Cache: HIT"),
        gets("by_expires", 2)
            .good(Reply::ok("good").header("X-Accel-Expires", "60"))
            .shows("X-Cache: HIT"),
        gets("forbidden", 2)
            .good(Reply::ok("good").header("Cache-Control", "no-store"))
            .location(valid)
            .hides("HIT"),
        gets("cookie", 2)
            .good(Reply::ok("good").header("Set-Cookie", "a=1"))
            .location(valid)
            .hides("HIT"),
        gets("not_valid", 2).hides("HIT"),
        gets("negative", 3)
            .good(Reply::status(404).body("none"))
            .location("proxy_cache_valid 404 1m;")
            .shows("X-Cache: HIT"),
        gets("minimum_uses", 4)
            .location(valid)
            .location("proxy_cache_min_uses 2;")
            .shows("HIT"),
        gets("no_cache", 2)
            .location(valid)
            .location("proxy_no_cache 1;")
            .hides("HIT"),
        Row::calls(
            "bypass",
            [Call::get("/"), Call::get("/?fresh=1"), Call::get("/")],
        )
        .location(valid)
        .location("proxy_cache_bypass $arg_fresh;")
        .shows("X-Cache: BYPASS"),
        Row::calls(
            "methods",
            [
                Call::head("/"),
                Call::get("/"),
                Call::head("/"),
                Call::post("/", "x"),
            ],
        )
        .location(valid)
        .shows("X-Cache: HIT"),
        Row::calls("posts", [Call::post("/", "x"), Call::post("/", "x")])
            .location(valid)
            .location("proxy_cache_methods POST;")
            .shows("X-Cache: HIT"),
        Row::calls(
            "ranges",
            [
                Call::get("/").header("Range", "bytes=1-2"),
                Call::get("/").header("Range", "bytes=2-3"),
                Call::get("/"),
                Call::get("/").header("Range", "bytes=9-"),
            ],
        )
        .good(Reply::ok("good").header("Accept-Ranges", "bytes"))
        .location(valid)
        .shows("206 Partial"),
        Row::calls(
            "conditions",
            [
                Call::get("/"),
                Call::get("/").header("If-None-Match", "\"tag\""),
                Call::get("/").header("If-None-Match", "\"other\""),
            ],
        )
        .good(
            Reply::ok("good")
                .header("ETag", "\"tag\"")
                .header("Last-Modified", "Mon, 05 May 2025 05:05:05 GMT"),
        )
        .location(valid)
        .shows("304 Not Modified"),
        Row::calls(
            "vary",
            [
                Call::get("/").header("Accept", "a"),
                Call::get("/").header("Accept", "b"),
                Call::get("/").header("Accept", "a"),
            ],
        )
        .good(Reply::ok("good").header("Vary", "Accept"))
        .location(valid)
        .shows("X-Cache: HIT"),
        gets("no_conversion", 2)
            .location(valid)
            .location("proxy_cache_convert_head off;")
            .shows("HIT"),
        gets("limited_offset", 2)
            .location(valid)
            .location("proxy_cache_max_range_offset 1;"),
    ])
    .run()
    .await;
}

/// A row whose client is given an answer that soon expires, and then what `then` sees.
fn expiring<F>(name: &'static str, then: impl Fn(Side) -> F + Clone + 'static) -> Row
where
    F: Future<Output = Seen> + 'static,
{
    Row::client(name, move |side| {
        let then = then.clone();
        async move {
            let first = Call::get("/").header("X-Seconds", "1");
            let mut seen = Seen::of([side.nginx().call(side.at(first)).await]);
            seen.0.extend(then(side).await.0);
            seen
        }
    })
    .polls()
    .script(|request| match request.header("x-fail") {
        Some(_) => Reply::status(503).body("failed"),
        None if request.header("if-none-match").is_some() => {
            Reply::status(304).header("Cache-Control", "max-age=60")
        }
        None => fresh(request),
    })
}

/// An answer that is good for as long as the request says, else for a minute.
fn fresh(request: &Request) -> Reply {
    let seconds = request.header("x-seconds").unwrap_or("60");
    Reply::ok("good").header("Cache-Control", &format!("max-age={seconds}"))
}

#[tokio::test]
async fn what_has_expired() {
    let failing = Call::get("/").header("X-Fail", "yes");
    let stale = "proxy_cache_use_stale error timeout http_503;";
    let updating = "proxy_cache_use_stale updating;";

    matrix([
        expiring("expired", |side| async move {
            side.until_not("HIT", Call::get("/")).await
        })
        .shows("X-Cache: EXPIRED"),
        expiring("revalidated", |side| async move {
            side.until_not("HIT", Call::get("/")).await
        })
        .location("proxy_cache_revalidate on;")
        .script(|request| match request.header("if-none-match") {
            Some(_) => Reply::status(304).header("Cache-Control", "max-age=60"),
            None => fresh(request).header("ETag", "\"tag\""),
        })
        .shows("X-Cache: REVALIDATED"),
        expiring("stale", {
            let failing = failing.clone();
            move |side| {
                let failing = failing.clone();
                async move { side.until_not("HIT", failing).await }
            }
        })
        .location(stale)
        .shows("X-Cache: STALE"),
        expiring("failed", move |side| {
            let failing = failing.clone();
            async move { side.until_not("HIT", failing).await }
        })
        .shows("503"),
        expiring("updating", |side| async move {
            side.crowd_until_not("HIT", Call::get("/"), 5).await
        })
        .script(|request| {
            fresh(request).slowly(match request.header("x-seconds") {
                Some(_) => Duration::ZERO,
                None => Duration::from_millis(100),
            })
        })
        .location(updating)
        .shows("X-Cache: UPDATING"),
        expiring("in_the_background", |side| async move {
            let mut seen = side.until_not("HIT", Call::get("/")).await;
            seen.0
                .extend(side.until_not("STALE", Call::get("/")).await.0);
            seen.0
                .extend(side.until_not("UPDATING", Call::get("/")).await.0);
            seen
        })
        .script(|request| {
            fresh(request).slowly(match request.header("x-seconds") {
                Some(_) => Duration::ZERO,
                None => Duration::from_millis(50),
            })
        })
        .location(updating)
        .location("proxy_cache_background_update on;")
        .shows("X-Cache: STALE"),
    ])
    .run()
    .await;
}

/// Ten clients that come at the same time: one asks, the others wait for its answer.
#[tokio::test]
async fn locks() {
    let crowd = |name, clients| {
        Row::client(name, move |side| async move { side.crowd(Call::get("/"), clients).await })
            .location("proxy_cache_lock on; proxy_cache_lock_timeout 9s; proxy_cache_lock_age 9s; proxy_cache_valid any 1m;")
    };
    matrix([
        crowd("locked", 10)
            .good(Reply::ok("good").slowly(Duration::from_millis(30)))
            .shows("X-Cache: HIT"),
        crowd("locked_large", 10)
            .good(Reply::ok("large ".repeat(100_000)).slowly(Duration::from_millis(30))),
        crowd("locked_not_kept", 2).good(Reply::status(404).header("Cache-Control", "no-store")),
    ])
    .run()
    .await;
}
