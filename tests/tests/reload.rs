//! Walks go on whatever happens to the processes of nginx.

use std::time::Duration;

use harness::{Backend, Call, Config, Failure, Nginx, Reply, until};

async fn good() -> Backend {
    Backend::answering(Reply::ok("good")).await
}

#[tokio::test]
async fn after_each_of_two_reloads() {
    let (bad, good) = (Failure::SmallBody.backend().await, good().await);
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).workers(2)).await;

    for _ in 0..2 {
        nginx.reload().await;
        assert_eq!(nginx.get("/").await.text(), "good");
    }
    nginx.stop().await;
}

#[tokio::test]
async fn across_a_reload() {
    let bad = Backend::answering(Reply::status(503).slowly(Duration::from_millis(50))).await;
    let good = good().await;
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;

    let mut client = nginx.http1().await;
    client.send(&Call::get("/").bytes()).await;
    bad.received(1).await;
    nginx.reload().await;
    assert_eq!(
        good.requests().len(),
        0,
        "the walk is still on its first hop"
    );
    assert_eq!(client.receive("GET").await.text(), "good");
    nginx.stop().await;
}

/// A reload that fails builds the filters anew, and workers that start after it inherit them. The
/// slice filter shows whether ours is still the first: it gives up where it sees a failed hop.
#[tokio::test]
async fn in_a_worker_that_starts_after_a_failed_reload() {
    let whole = Reply::status(206)
        .header("Content-Range", "bytes 0-3/4")
        .body("good");
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(whole).await,
    );
    let slices = "slice 4; proxy_set_header Range $slice_range;";
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(slices)).await;
    assert_eq!(nginx.get("/").await.text(), "good");
    let [worker] = nginx.workers()[..] else {
        panic!("one worker")
    };

    let file = nginx.prefix().join("nginx.conf");
    let config = std::fs::read_to_string(&file).expect("the configuration");
    std::fs::write(&file, config + "no_such_directive;").expect("a writable folder");
    nginx.signal(libc::SIGHUP);
    until("a failed reload", async || {
        nginx.error_log().contains("[emerg]").then_some(())
    })
    .await;

    // SAFETY: the worker is a process of the nginx that this test started.
    unsafe { libc::kill(worker, libc::SIGTERM) };
    until("another worker", async || {
        (!nginx.workers().contains(&worker)).then_some(())
    })
    .await;
    assert_eq!(nginx.get("/").await.text(), "good");

    let complaint = nginx.try_stop().await.expect_err("the failed reload");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.contains("no_such_directive"), "{complaint}");
}
