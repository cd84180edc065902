//! Configurations that are tested, refused and changed while nginx serves.

use harness::{Backend, Config, Failure, Nginx, Reply, until};

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

#[tokio::test]
async fn a_test_of_the_configuration_changes_nothing() {
    let (bad, good) = pair().await;
    let nginx = Nginx::start(Config::upstrand([&bad, &good])).await;
    let workers = nginx.workers();

    let verdict = nginx.test_again().await;
    assert_eq!(verdict.code, Some(0), "{}", verdict.stderr);
    write(
        &nginx,
        &file_of(&nginx).replace("upstream u1;", "upstream u3;"),
    );
    let verdict = nginx.test_again().await;
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
