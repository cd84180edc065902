//! Walks go on whatever happens to the processes of nginx.

use std::cell::Cell;
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

/// Sends requests, each on a connection of its own, until `stop` is set; returns how many.
async fn client(nginx: &Nginx, stop: &Cell<bool>) -> usize {
    let mut count = 0;
    while !stop.get() {
        let answer = nginx.get("/").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "good"));
        count += 1;
    }
    count
}

#[tokio::test]
async fn while_upstrands_come_and_go() {
    let (bad, good) = (Failure::SmallBody.backend().await, good().await);
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).workers(2)).await;
    let stop = Cell::new(false);

    let changes = async {
        for change in [
            // One is added before the other, which is renamed; then its members change places; then
            // the new one takes over, and the other goes.
            &[(
                "upstrand us {",
                "upstrand new { upstream u2; }\nupstrand us {",
            )][..],
            &[
                ("upstrand us {", "upstrand other {"),
                ("$upstrand_us;", "$upstrand_other;"),
            ],
            &[("upstream u1;\nupstream u2;", "upstream u2;\nupstream u1;")],
            &[("$upstrand_other;", "$upstrand_new;")],
            &[("upstrand other {", "upstrand unused {")],
        ] {
            for (from, to) in change {
                nginx.rewrite(|config| {
                    assert!(config.contains(from), "no {from} in {config}");
                    config.replace(from, to)
                });
            }
            let verdict = nginx.test_again().await;
            assert_eq!(verdict.code, Some(0), "{}", verdict.stderr);
            nginx.reload().await;
        }
        stop.set(true);
    };
    let client = || client(&nginx, &stop);
    let ((), a, b, c) = tokio::join!(changes, client(), client(), client());
    assert!([a, b, c].iter().all(|served| *served > 0));
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

    nginx.rewrite(|config| config + "no_such_directive;");
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
