//! An upgrade works on any hop. Spec 4.3.

use harness::{Backend, Call, Config, Failure, Nginx, Reply};

const UPGRADE: &str = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; \
                       proxy_set_header Connection upgrade;";

fn upgrade() -> Call {
    Call::get("/")
        .header("Upgrade", "websocket")
        .header("Connection", "Upgrade")
}

#[tokio::test]
async fn an_upgrade_goes_past_every_kind_of_failure() {
    for failure in Failure::ALL {
        for failing in 0..3 {
            let mut members = Vec::new();
            for _ in 0..failing {
                members.push(failure.backend().await);
            }
            members.push(Backend::answering(Reply::upgrade("websocket")).await);
            let nginx = Nginx::start(
                Config::upstrand(&members)
                    .location(UPGRADE)
                    .location(failure.settings()),
            )
            .await;

            let mut client = nginx.http1().await;
            let answer = client.call(&upgrade()).await;
            assert_eq!(answer.status, 101, "after {failing} {failure:?}");
            assert_eq!(answer.header("upgrade"), Some("websocket"));
            assert_eq!(answer.header("x-failed"), None);
            for message in ["one", "another", &"long ".repeat(20_000)] {
                client.send(message.as_bytes()).await;
                assert!(
                    client.exactly(message.len()).await == message.as_bytes(),
                    "after {failing} {failure:?}"
                );
            }

            drop(client);
            members[failing].deserted().await;
            assert!(
                nginx
                    .logged()
                    .await
                    .ends_with(&format!("(u{}) 101]", failing + 1))
            );
            nginx.stop().await;
        }
    }
}

#[tokio::test]
async fn a_backend_that_declines_the_upgrade_is_heard() {
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::ok("no socket here")).await,
    );
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(UPGRADE)).await;

    let mut client = nginx.http1().await;
    for _ in 0..2 {
        let answer = client.call(&upgrade()).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "no socket here")
        );
    }
    nginx.stop().await;
}
