//! Caching under a walk: what was delivered is kept, what failed is not. Spec 4.3.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::{Backend, Config, Failure, Nginx, Reply, until};

/// A key that all members share, instead of nginx's, which holds the member's name.
const COMMON_KEY: &str = "proxy_cache_key $uri;";

/// Whatever is cacheable at all is kept.
const ANY: &str = "proxy_cache_valid any 1m;";

fn cached(members: [&Backend; 2]) -> Config {
    let cache = "proxy_cache c; add_header X-Cache $upstream_cache_status always;";
    Config::upstrand(members)
        .http("proxy_cache_path cache keys_zone=c:1m;")
        .location(cache)
}

async fn good() -> Backend {
    Backend::answering(Reply::ok("good")).await
}

#[tokio::test]
async fn the_good_answer_is_kept_and_the_failed_one_is_asked_for_again() {
    let (bad, good) = (Failure::SmallBody.backend().await, good().await);
    let nginx = Nginx::start(cached([&bad, &good]).location(ANY)).await;

    for (state, asked) in [("MISS", 1), ("HIT", 2), ("HIT", 3)] {
        let answer = nginx.get("/").await;
        assert_eq!(
            (
                answer.status,
                answer.text().as_str(),
                answer.header("x-cache")
            ),
            (200, "good", Some(state))
        );
        assert_eq!((bad.requests().len(), good.requests().len()), (asked, 1));
    }
    nginx.stop().await;
}

#[tokio::test]
async fn under_a_common_key_no_failure_answers_for_another_member() {
    for failure in Failure::ALL {
        let (bad, good) = (failure.backend().await, good().await);
        let nginx = Nginx::start(
            cached([&bad, &good])
                .location(ANY)
                .location(COMMON_KEY)
                .location(failure.settings()),
        )
        .await;

        for state in ["MISS", "HIT"] {
            let answer = nginx.get("/").await;
            assert_eq!(
                (answer.status, answer.text().as_str()),
                (200, "good"),
                "after {failure:?}"
            );
            assert_eq!(answer.header("x-cache"), Some(state), "after {failure:?}");
        }
        assert_eq!(good.requests().len(), 1, "after {failure:?}");
        nginx.stop().await;
    }
}

#[tokio::test]
async fn when_all_fail_the_last_answer_is_kept() {
    let bad = Failure::SmallBody.backend().await;
    let last = Backend::answering(Reply::status(500).body("last")).await;
    let nginx = Nginx::start(cached([&bad, &last]).location(ANY)).await;

    for _ in 0..3 {
        let answer = nginx.get("/").await;
        assert_eq!((answer.status, answer.text().as_str()), (500, "last"));
    }
    assert_eq!((bad.requests().len(), last.requests().len()), (3, 1));
    nginx.stop().await;
}

#[tokio::test]
async fn a_kept_failure_does_not_end_the_walk() {
    let bad = Failure::SmallBody.backend().await;
    let good = good().await;
    let same_member_elsewhere = "location = /first { proxy_pass http://u1; proxy_cache c; \
                                 proxy_cache_valid any 1m; \
                                 proxy_cache_key $proxy_host; }";
    let config = cached([&bad, &good])
        .location(ANY)
        .location("proxy_cache_key $proxy_host;")
        .server(same_member_elsewhere);
    let nginx = Nginx::start(config).await;

    assert_eq!(nginx.get("/first").await.status, 503);
    assert_eq!(nginx.get("/").await.text(), "good");
    assert_eq!(
        bad.requests().len(),
        1,
        "the failed hop came from the cache"
    );
    nginx.stop().await;
}

/// Answers 200 until it is told to fail.
async fn until_broken(body: &'static str, broken: &Arc<AtomicBool>) -> Backend {
    let broken = broken.clone();
    Backend::each(move |_| match broken.load(Ordering::SeqCst) {
        false => Reply::ok(body),
        true => Reply::status(503).body("failed"),
    })
    .await
}

#[tokio::test]
async fn stale_content_is_served_only_when_no_member_is_good() {
    let (first_broken, second_broken) =
        (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let first = until_broken("first", &first_broken).await;
    let second = until_broken("second", &second_broken).await;
    let stale = "proxy_cache_valid 200 1s; proxy_cache_use_stale error timeout http_503;";
    let nginx = Nginx::start(
        cached([&first, &second])
            .location(COMMON_KEY)
            .location(stale),
    )
    .await;

    let answer = nginx.get("/").await;
    assert_eq!(
        (answer.text().as_str(), answer.header("x-cache")),
        ("first", Some("MISS"))
    );

    first_broken.store(true, Ordering::SeqCst);
    second_broken.store(true, Ordering::SeqCst);
    let answer = until("the end of the answer's second", async || {
        Some(nginx.get("/").await).filter(|answer| answer.header("x-cache") != Some("HIT"))
    })
    .await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "first"));
    assert_eq!(answer.header("x-cache"), Some("STALE"));
    assert_eq!(
        second.requests().len(),
        1,
        "the other member was asked first"
    );

    second_broken.store(false, Ordering::SeqCst);
    let answer = nginx.get("/").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "second"));
    nginx.stop().await;
}
