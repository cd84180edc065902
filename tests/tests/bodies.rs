//! Request bodies arrive whole at every hop; failed response bodies cost no time. Spec 4.3 and 4.5.

use std::path::Path;
use std::time::{Duration, Instant};

use harness::{Backend, Call, Config, Failure, Nginx, Reply};

/// A body of this length in which no part looks like another.
fn body(length: usize) -> Vec<u8> {
    let words = (0..).flat_map(|number: u32| format!("{number} ").into_bytes());
    words.take(length).collect()
}

async fn echo() -> Backend {
    Backend::each(|request| Reply::ok(request.body.clone())).await
}

fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder)
        .expect("a folder of nginx")
        .map(|entry| entry.expect("an entry").path());
    entries
        .map(|path| if path.is_dir() { files(&path) } else { 1 })
        .sum()
}

#[tokio::test]
async fn a_body_in_memory_arrives_whole_after_every_kind_of_failure() {
    for failure in Failure::ALL {
        let (bad, good) = (failure.backend().await, echo().await);
        let nginx =
            Nginx::start(Config::upstrand([&bad, &good]).location(failure.settings())).await;

        for call in [
            Call::new("PUT", "/").body(body(500)),
            Call::new("PUT", "/").body(body(500)).chunked(),
        ] {
            assert!(
                nginx.call(call).await.body == body(500),
                "after {failure:?}"
            );
        }
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_body_in_a_temporary_file_arrives_whole_after_every_kind_of_failure() {
    for failure in Failure::ALL {
        let (first, second, good) = (
            failure.backend().await,
            failure.backend().await,
            echo().await,
        );
        let nginx = Nginx::start(
            Config::upstrand([&first, &second, &good])
                .location(failure.settings())
                .location("client_body_buffer_size 1k;"),
        )
        .await;

        for call in [
            Call::new("PUT", "/").body(body(300_000)),
            Call::new("PUT", "/").body(body(300_000)).chunked(),
        ] {
            assert!(
                nginx.call(call).await.body == body(300_000),
                "after {failure:?}"
            );
        }
        assert!(
            nginx
                .error_log()
                .contains("a client request body is buffered to a temporary file")
        );
        assert_eq!(files(&nginx.prefix().join("client_body")), 0);
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_body_partly_in_memory_arrives_whole() {
    let (bad, good) = (Failure::SmallBody.backend().await, echo().await);
    let nginx = Nginx::start(
        Config::upstrand([&bad, &good])
            .location("client_body_buffer_size 64k; client_max_body_size 8m;"),
    )
    .await;

    for length in [64 * 1024, 64 * 1024 + 1, 5_000_000] {
        assert!(
            nginx
                .call(Call::new("PUT", "/").body(body(length)))
                .await
                .body
                == body(length),
            "{length} bytes"
        );
    }
    nginx.stop().await;
}

#[tokio::test]
async fn a_posted_body_arrives_whole_after_a_refused_connection() {
    let (first, second, good) = (Backend::refusing(), Backend::refusing(), echo().await);
    let nginx = Nginx::start(
        Config::upstrand([&first, &second, &good]).location("client_body_buffer_size 1k;"),
    )
    .await;

    for length in [100, 300_000] {
        assert!(
            nginx.call(Call::post("/", body(length))).await.body == body(length),
            "{length} bytes"
        );
    }
    nginx.stop().await;
}

#[tokio::test]
async fn a_body_arrives_whole_although_the_first_backend_did_not_read_it() {
    let bad = Backend::answering_early(Reply::status(503)).await;
    let good = echo().await;
    let nginx =
        Nginx::start(Config::upstrand([&bad, &good]).location("client_max_body_size 8m;")).await;

    let answer = nginx
        .call(Call::new("PUT", "/").body(body(5_000_000)))
        .await;
    assert_eq!(answer.status, 200);
    assert!(answer.body == body(5_000_000));
    nginx.stop().await;
}

#[tokio::test]
async fn a_body_kept_in_a_file_is_cleaned_up_after_the_last_hop() {
    let (bad, good) = (Failure::SmallBody.backend().await, echo().await);
    let nginx =
        Nginx::start(Config::upstrand([&bad, &good]).location("client_body_in_file_only clean;"))
            .await;

    assert!(nginx.call(Call::new("PUT", "/").body(body(300))).await.body == body(300));
    nginx.logged().await;
    assert_eq!(files(&nginx.prefix().join("client_body")), 0);
    nginx.stop().await;
}

#[tokio::test]
async fn a_failed_body_that_does_not_end_costs_no_time() {
    for failure in [Failure::StalledBody, Failure::EndlessBody] {
        for buffering in ["proxy_buffering on;", "proxy_buffering off;"] {
            let (bad, good) = (
                failure.backend().await,
                Backend::answering(Reply::ok("good")).await,
            );
            let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(buffering)).await;

            let start = Instant::now();
            assert_eq!(
                nginx.get("/").await.text(),
                "good",
                "{failure:?}, {buffering}"
            );
            assert!(
                start.elapsed() < Duration::from_secs(2),
                "{failure:?}, {buffering}"
            );

            bad.deserted().await;
            nginx.stop().await;
        }
    }
}

#[tokio::test]
async fn a_large_good_body_arrives_whole_with_and_without_buffering() {
    for settings in [
        "proxy_buffering on;",
        "proxy_buffering off;",
        "proxy_max_temp_file_size 0;",
        "sendfile on;",
    ] {
        let bad = Failure::LargeBody.backend().await;
        let good = Backend::answering(Reply::ok(body(5_000_000))).await;
        let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(settings)).await;

        let answer = nginx.get("/").await;
        assert!(
            answer.status == 200 && answer.body == body(5_000_000),
            "{settings}"
        );
        nginx.stop().await;
    }
}
