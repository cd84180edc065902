//! nginx's own filters, error pages and logs see only the response that the client gets.
//! Spec 4.5, 4.7 and 6.

use std::io::Read;

use flate2::read::GzDecoder;
use harness::{Backend, Call, Config, Failure, Nginx, Reply};

async fn text(body: &str) -> Backend {
    Backend::answering(Reply::ok(body).header("Content-Type", "text/plain")).await
}

#[tokio::test]
async fn gzip_compresses_the_good_body() {
    let body = "a good body ".repeat(2_000);
    for failure in [Failure::Refused, Failure::SmallBody, Failure::LargeBody] {
        let (bad, good) = (failure.backend().await, text(&body).await);
        let gzip = "gzip on; gzip_types text/plain;";
        let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(gzip)).await;

        let answer = nginx
            .call(Call::get("/").header("Accept-Encoding", "gzip"))
            .await;
        let mut unpacked = String::new();
        GzDecoder::new(&answer.body[..])
            .read_to_string(&mut unpacked)
            .expect("gzip");
        assert_eq!(
            (answer.status, answer.header("content-encoding")),
            (200, Some("gzip"))
        );
        assert!(unpacked == body, "after {failure:?}");
        nginx.stop().await;
    }
}

#[tokio::test]
async fn sub_filter_edits_the_good_body() {
    for failure in [Failure::Refused, Failure::SmallBody, Failure::LargeBody] {
        let (bad, good) = (
            failure.backend().await,
            text("a good body, a good one").await,
        );
        let sub = "sub_filter good better; sub_filter_once off; sub_filter_types *;";
        let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(sub)).await;

        let (answer, plain) = (nginx.get("/").await, nginx.get("/plain").await);
        assert_eq!(
            answer.text(),
            "a better body, a better one",
            "after {failure:?}"
        );
        assert_eq!(answer.undated(), plain.undated());
        nginx.stop().await;
    }
}

#[tokio::test]
async fn headers_are_added_once() {
    let (bad, good) = (Failure::SmallBody.backend().await, text("good").await);
    let headers = "add_header X-Path $upstrand_path; add_header X-All $upstream_status; \
                   expires 1h;";
    let nginx = Nginx::start(Config::upstrand([&bad, &good]).location(headers)).await;

    let answer = nginx.get("/").await;
    let paths: Vec<_> = answer.headers.get_all("x-path").iter().collect();
    assert_eq!(paths, ["u1 -> u2"]);
    assert_eq!(answer.header("x-all"), Some("503 : 200"));
    assert_eq!(answer.headers.get_all("cache-control").iter().count(), 1);
    nginx.stop().await;
}

/// A page of two includes, the first through the upstrand, the second plain from its last member.
async fn page() -> Backend {
    let include = r#"<!--#include virtual="/x" --> and <!--#include virtual="/plain/x" -->"#;
    Backend::answering(Reply::ok(include)).await
}

fn with_page(config: Config, page: &Backend) -> Config {
    let pass = format!(
        "location = /page {{ ssi on; ssi_types *; proxy_pass http://{}; }}",
        page.address()
    );
    config.server(&pass)
}

#[tokio::test]
async fn an_include_goes_past_every_kind_of_failure() {
    let good = text("good").await;
    for failure in Failure::ALL {
        let (bad, page) = (failure.backend().await, page().await);
        let config = Config::upstrand([&bad, &good]).location(failure.settings());
        let nginx = Nginx::start(with_page(config, &page)).await;

        let answer = nginx.get("/page").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "good and good"),
            "after {failure:?}"
        );
        nginx.stop().await;
    }
}

#[tokio::test]
async fn an_include_of_which_all_hops_fail_is_what_a_plain_one_would_be() {
    for failure in [Failure::Refused, Failure::SmallBody, Failure::Closed] {
        let (first, second, page) = (
            failure.backend().await,
            failure.backend().await,
            page().await,
        );
        let nginx = Nginx::start(with_page(Config::upstrand([&first, &second]), &page)).await;

        let answer = nginx.get("/page").await.text();
        let (through_upstrand, plain) = answer.split_once(" and ").expect("two includes");
        assert_eq!(through_upstrand, plain, "{failure:?}");
        assert!(!plain.is_empty(), "{failure:?}");
        nginx.stop().await;
    }
}

#[tokio::test]
async fn a_stub_stands_in_only_when_all_hops_fail() {
    let stub = "<!--#block name=\"stub\" -->stub<!--#endblock -->\
                <!--#include virtual=\"/x\" stub=\"stub\" --> and \
                <!--#include virtual=\"/plain/x\" stub=\"stub\" -->";
    let page = Backend::answering(Reply::ok(stub)).await;

    for failure in [Failure::Refused, Failure::Closed] {
        let (first, second, good) = (
            failure.backend().await,
            failure.backend().await,
            text("good").await,
        );
        for (last, expected) in [(&good, "good and good"), (&second, "stub and stub")] {
            let config = with_page(Config::upstrand([&first, last]), &page);
            let nginx = Nginx::start(config).await;

            assert_eq!(
                nginx.get("/page").await.text(),
                expected,
                "after {failure:?}"
            );
            nginx.stop().await;
        }
    }
}

#[tokio::test]
async fn many_includes_of_one_page_each_walk_on_their_own() {
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::each(|request| Reply::ok(request.target.clone())).await,
    );
    let includes: String = (0..30)
        .map(|number| format!("<!--#include virtual=\"/{number}\" -->"))
        .collect();
    let page = Backend::answering(Reply::ok(includes)).await;
    let nginx = Nginx::start(with_page(Config::upstrand([&bad, &good]), &page)).await;

    let expected: String = (0..30).map(|number| format!("/{number}")).collect();
    assert_eq!(nginx.get("/page").await.text(), expected);
    assert_eq!(bad.requests().len(), 30);
    nginx.stop().await;
}

const ERROR_PAGE: &str = "error_page 404 502 503 504 =200 /oops;";
const OOPS: &str = "location = /oops { return 200 oops; }";
const INTERCEPT: &str = "proxy_intercept_errors on;";

#[tokio::test]
async fn an_error_page_does_not_hijack_a_hop() {
    for failure in Failure::ALL {
        let (bad, good) = (failure.backend().await, text("good").await);
        let config = Config::upstrand([&bad, &good]).location(failure.settings());
        let nginx =
            Nginx::start(config.location(ERROR_PAGE).location(INTERCEPT).server(OOPS)).await;

        let answer = nginx.get("/").await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "good"),
            "after {failure:?}"
        );
        nginx.stop().await;
    }
}

#[tokio::test]
async fn an_error_page_does_not_act_on_the_last_response() {
    let last = Backend::answering(Reply::status(503).body("last")).await;
    let bad = Failure::SmallBody.backend().await;
    let nginx = Nginx::start(
        Config::upstrand([&bad, &last])
            .location(ERROR_PAGE)
            .server(OOPS),
    )
    .await;

    let answer = nginx.get("/").await;
    assert_eq!((answer.status, answer.text().as_str()), (503, "last"));
    nginx.stop().await;
}

#[tokio::test]
async fn an_error_page_does_not_act_on_what_nginx_makes_last() {
    let (first, second) = (Backend::refusing(), Backend::refusing());
    let nginx = Nginx::start(
        Config::upstrand([&first, &second])
            .location(ERROR_PAGE)
            .server(OOPS),
    )
    .await;

    let answer = nginx.get("/").await;
    assert_eq!(answer.status, 502);
    assert!(
        answer.text().contains("<h1>502 Bad Gateway</h1>"),
        "{}",
        answer.text()
    );
    nginx.stop().await;
}

#[tokio::test]
async fn intercepted_errors_give_the_stock_page() {
    for (status, title) in [
        (503, "503 Service Temporarily Unavailable"),
        (404, "404 Not Found"),
    ] {
        let bad = Failure::SmallBody.backend().await;
        let last = Backend::answering(Reply::status(status).body("last")).await;
        let config = Config::upstrand([&bad, &last])
            .location(ERROR_PAGE)
            .location(INTERCEPT)
            .server(OOPS);
        let nginx = Nginx::start(config).await;

        let answer = nginx.get("/").await;
        assert_eq!(answer.status, status);
        assert!(
            answer.text().contains(&format!("<h1>{title}</h1>")),
            "{}",
            answer.text()
        );
        nginx.stop().await;
    }
}

#[tokio::test]
async fn the_log_shows_each_server_of_each_hop() {
    let (refusing, good) = (Backend::refusing(), text("good").await);
    let second = Failure::SmallBody.backend().await;
    let second_server = format!("server {};", second.address());
    let nginx = Nginx::start(Config::upstrand([&refusing, &good]).upstream(&second_server)).await;

    assert_eq!(nginx.get("/").await.text(), "good");
    assert_eq!(
        nginx.logged().await,
        "GET / 200 [u1 -> u2] [(u1) 502, 503 (u2) 200]"
    );
    nginx.stop().await;
}

#[tokio::test]
async fn a_request_without_a_hop_has_no_path() {
    let good = text("good").await;
    let plain = "location = /none { add_header X-Upstrand $upstrand_us; return 204; }";
    let nginx = Nginx::start(Config::upstrand([&good]).server(plain)).await;

    assert_eq!(nginx.get("/none").await.header("x-upstrand"), Some("u1"));
    nginx.get("/plain").await;
    assert_eq!(
        nginx.access_log(2).await,
        ["GET /none 204 [-] [-]", "GET /plain 200 [-] [-]"]
    );
    nginx.stop().await;
}
