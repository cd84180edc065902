//! An upstrand behind an `auth_request`, and an `auth_request` that is one. Spec 4.7.

use harness::{Backend, Config, Failure, Nginx, Reply};

/// `/page` comes from `page` once the upstrand has allowed it.
fn guarded(config: Config, page: &Backend) -> Config {
    let address = page.address();
    config.server(&format!(
        "location = /page {{
            auth_request /auth;
            auth_request_set $user $upstream_http_x_user;
            add_header X-User $user;
            proxy_pass http://{address};
        }}"
    ))
}

async fn page() -> Backend {
    Backend::answering(Reply::ok("the page")).await
}

#[tokio::test]
async fn permission_goes_past_every_kind_of_failure() {
    for failure in Failure::ALL {
        let bad = failure.backend().await;
        let allowing = Backend::answering(Reply::status(204).header("X-User", "ann")).await;
        let page = page().await;
        let config = Config::upstrand([&bad, &allowing]).location(failure.settings());
        let nginx = Nginx::start(guarded(config, &page)).await;

        let answer = nginx.get("/page").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "the page"),
            "after {failure:?}"
        );
        assert_eq!(answer.header("x-user"), Some("ann"), "after {failure:?}");
        nginx.stop().await;
    }
}

#[tokio::test]
async fn so_does_refusal() {
    for failure in Failure::ALL {
        let bad = failure.backend().await;
        let denying = Reply::status(401)
            .header("WWW-Authenticate", "Basic realm=here")
            .body("who?");
        let (denying, page) = (Backend::answering(denying).await, page().await);
        let config = Config::upstrand([&bad, &denying]).location(failure.settings());
        let nginx = Nginx::start(guarded(config, &page)).await;

        let answer = nginx.get("/page").await;
        assert_eq!(answer.status, 401, "after {failure:?}");
        assert_eq!(
            answer.header("www-authenticate"),
            Some("Basic realm=here"),
            "after {failure:?}"
        );
        assert_eq!(page.requests().len(), 0);
        nginx.stop().await;
    }
}

#[tokio::test]
async fn when_all_fail_nobody_gets_in() {
    for failure in Failure::ALL {
        let (first, second, page) = (
            failure.backend().await,
            failure.backend().await,
            page().await,
        );
        let config = Config::upstrand([&first, &second]).location(failure.settings());
        let nginx = Nginx::start(guarded(config, &page)).await;

        let answer = nginx.get("/page").await;
        assert_eq!(answer.status, 500, "{failure:?}");
        assert!(
            nginx.error_log().contains("auth request unexpected status"),
            "{failure:?}"
        );
        assert_eq!(page.requests().len(), 0);
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_guarded_upstrand_walks_on() {
    for failure in [Failure::Refused, Failure::SmallBody, Failure::EndlessBody] {
        let (bad, page) = (failure.backend().await, page().await);
        let allowing = Backend::answering(Reply::status(204)).await;
        let allow = format!(
            "location = /allow {{ proxy_pass http://{}; }}",
            allowing.address()
        );
        let config = Config::upstrand([&bad, &page])
            .location("auth_request /allow;")
            .server(&allow);
        let nginx = Nginx::start(config).await;

        let answer = nginx.get("/").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "the page"),
            "after {failure:?}"
        );
        assert_eq!(allowing.requests().len(), 1);
        nginx.stop().await;
    }
}
