//! Configurations that are tested, refused and changed while nginx serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::{Backend, Call, Config, Failure, Nginx, Reply, until};
use tokio::task::JoinHandle;

async fn pair() -> (Backend, Backend) {
    (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::ok("good")).await,
    )
}

fn file_of(nginx: &Nginx) -> String {
    std::fs::read_to_string(nginx.prefix().join("nginx.conf")).expect("the configuration")
}

fn write(nginx: &Nginx, config: &str) {
    std::fs::write(nginx.prefix().join("nginx.conf"), config).expect("a writable folder");
}

/// Asks again and again, each time on a new connection, until it is told to stop: how often it was answered.
fn load(nginx: &Arc<Nginx>, stop: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let (nginx, stop) = (nginx.clone(), stop.clone());
    tokio::spawn(async move {
        let mut count = 0;
        while !stop.load(Ordering::SeqCst) {
            let answer = nginx.call(Call::get("/")).await;
            assert_eq!((answer.status, answer.text().as_str()), (200, "good"));
            count += 1;
        }
        count
    })
}

#[tokio::test]
async fn a_test_of_the_configuration_changes_nothing() {
    let (bad, good) = pair().await;
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;
    let workers = nginx.workers();

    let verdict = nginx.test_own_configuration().await;
    assert_eq!(verdict.code, Some(0), "{}", verdict.stderr);
    write(
        &nginx,
        &file_of(&nginx).replace("upstream u1;", "upstream u3;"),
    );
    let verdict = nginx.test_own_configuration().await;
    assert_eq!(verdict.code, Some(1));
    assert!(
        verdict.stderr.contains("upstream \"u3\" is not found"),
        "{}",
        verdict.stderr
    );

    assert_eq!(nginx.get("/").await.text(), "good");
    assert_eq!(nginx.workers(), workers);
    let complaint = nginx.try_stop().await.expect_err("the failed test");
    assert!(
        complaint.lines().all(|line| line.contains("is not found")),
        "{complaint}"
    );
}

#[tokio::test]
async fn failed_reloads_leave_everything_as_it_was() {
    let (bad, good) = pair().await;
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;
    let config = file_of(&nginx);

    for (number, (good, bad)) in [
        ("upstream u1;", "upstream u9;"),
        ("order per_request;", "order sideways;"),
        (
            "next_upstream_statuses error timeout 5xx;",
            "next_upstream_statuses 700;",
        ),
        (
            "proxy_pass http://$upstrand_us;",
            "proxy_pass http://$upstrand_gone;",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        write(&nginx, &config.replace(good, bad));
        nginx.signal(libc::SIGHUP);
        until("a failed reload", async || {
            (nginx.error_log().matches("[emerg]").count() > number).then_some(())
        })
        .await;
        assert_eq!(nginx.get("/").await.text(), "good", "after {bad}");
    }

    write(&nginx, &config);
    nginx.reload().await;
    assert_eq!(nginx.get("/").await.text(), "good");
    let complaint = nginx.try_stop().await.expect_err("the failed reloads");
    assert_eq!(complaint.lines().count(), 4, "{complaint}");
}

#[tokio::test]
async fn upstrands_come_go_and_change_under_load() {
    let (bad, good) = pair().await;
    let nginx = Arc::new(Nginx::start(Config::upstrand([&bad, &good]).workers(2)).await);
    let config = file_of(&nginx);
    let stop = Arc::new(AtomicBool::new(false));
    let clients = [load(&nginx, &stop), load(&nginx, &stop)];

    let block = &config[config.find("upstrand us {").expect("it")..];
    let block = &block[..=block.find('}').expect("its end")];
    let another = format!("upstrand other {{ upstream u2; upstream u1 backup; }}\n{block}");
    for changed in [
        config.replace(block, &another),
        config
            .replace("upstrand us {", "upstrand renamed {")
            .replace("$upstrand_us", "$upstrand_renamed"),
        config.replace("upstream u1;\nupstream u2;", "upstream u2;\nupstream u1;"),
        config.replace(
            "upstream u1;\nupstream u2;",
            "upstream u1 blacklist_interval=1s;\nupstream u2 backup;",
        ),
        config
            .replace("proxy_pass http://$upstrand_us;", "proxy_pass http://u2;")
            .replace(block, ""),
    ] {
        assert_ne!(changed, config);
        // The log's format names variables that the module always has.
        write(&nginx, &changed);
        nginx.reload().await;
    }
    write(&nginx, &config);
    nginx.reload().await;

    stop.store(true, Ordering::SeqCst);
    for client in clients {
        assert!(client.await.expect("no panic") > 0);
    }
    Arc::into_inner(nginx)
        .expect("no client is left")
        .stop()
        .await;
}
