//! What clients can reach with the names that they send: the upstrands of the configuration, where
//! it lets them choose, and nothing else. Spec 5; docs/security.md.

use harness::{Backend, Call, Config, Nginx, Reply, Response};

/// A client chooses the upstrand by an argument, a header or a cookie; else it is `us`.
const POOL: &str = "location / {
dynamic_upstrand $pool $arg_pool $http_x_pool $cookie_pool us;
proxy_pass http://$pool;
}";

struct Site {
    nginx: Nginx,
    backends: [Backend; 3],
}

impl Site {
    /// The upstrands `us` and `other`, and an upstream `hidden` that is in neither.
    async fn start() -> Self {
        let serving = |text: &'static str| Backend::answering(Reply::ok(text));
        let backends = [
            serving("us").await,
            serving("other").await,
            serving("hidden").await,
        ];
        let [us, other, hidden] = &backends;
        let config = Config::upstrand([us])
            .http("large_client_header_buffers 4 128k;")
            .http(&format!(
                "upstream o1 {{ server {}; }} upstrand other {{ upstream o1; }}
                 upstream hidden {{ server {}; }}",
                other.address(),
                hidden.address()
            ))
            .virtual_server("pool", POOL);
        let nginx = Nginx::start(config).await;
        Self { nginx, backends }
    }

    async fn ask(&self, call: Call) -> Response {
        self.nginx.call(call.host("pool")).await
    }

    /// Ends it; the hidden upstream has never been asked.
    async fn end(self) {
        assert_eq!(self.backends[2].requests().len(), 0);
        self.nginx.stop().await;
    }
}

#[tokio::test]
async fn names_of_upstrands_choose_them() {
    let site = Site::start().await;
    for (name, expected) in [
        ("other", "other"),
        ("OTHER", "other"),
        ("us", "us"),
        ("", "us"),
    ] {
        for call in [
            Call::get(&format!("/?pool={name}")),
            Call::get("/").header("X-Pool", name),
            Call::get("/").header("Cookie", &format!("pool={name}")),
        ] {
            assert_eq!(site.ask(call).await.text(), expected, "{name:?}");
        }
    }
    site.end().await;
}

/// Neither variables, nor upstreams, nor anything else can be named.
#[tokio::test]
async fn other_names_reach_nothing() {
    let long = "x".repeat(65_536);
    let nearly = format!("us{long}");
    let names = [
        "hidden",
        "u1",
        "o1",
        "$upstrand_us",
        "upstrand_us",
        "us/",
        "us:80",
        "us\t",
        "us#",
        "us%00",
        "us%0a",
        "us%0d%0aX: y",
        "../us",
        "127.0.0.1",
        "unix:/tmp/x",
        "path",
        "status",
        "args",
        "pool",
        "u",
        "uss",
        "~us",
        "*",
        "us;other",
        "\u{ff}\u{fe}",
        &long,
        &nearly,
    ];
    let site = Site::start().await;
    for name in names {
        let answer = site.ask(Call::get("/").header("X-Pool", name)).await;
        assert_eq!(answer.status, 500, "{name:.20}");
    }
    for name in names.map(|name| name.replace([' ', '\t', '#'], "%20")) {
        let answer = site.ask(Call::get(&format!("/?pool={name}"))).await;
        assert_eq!(answer.status, 500, "{name:.20}");
    }

    // The worker has lived through all of it, and others are served.
    assert_eq!(site.ask(Call::get("/?pool=other")).await.text(), "other");
    site.end().await;
}

/// nginx refuses some bytes before anybody looks; invalid UTF-8 is a name like any other.
#[tokio::test]
async fn bytes_that_are_no_text_reach_nothing() {
    let site = Site::start().await;
    for (bytes, expected) in [
        (
            &b"GET / HTTP/1.1\r\nHost: pool\r\nX-Pool: us\0\r\n\r\n"[..],
            400,
        ),
        (b"GET /?pool=us\0 HTTP/1.1\r\nHost: pool\r\n\r\n", 400),
        (
            b"GET / HTTP/1.1\r\nHost: pool\r\nX-Pool: us\n other\r\n\r\n",
            400,
        ),
        (
            b"GET / HTTP/1.1\r\nHost: pool\r\nX-Pool: \xff\xfe\xc0\x80\r\n\r\n",
            500,
        ),
        (
            b"GET /?pool=\xff\xfe\xc0\x80 HTTP/1.1\r\nHost: pool\r\n\r\n",
            500,
        ),
        (
            b"GET / HTTP/1.1\r\nHost: pool\r\nCookie: pool=\xf0\x9f\x92\r\n\r\n",
            500,
        ),
    ] {
        let mut client = site.nginx.http1().await;
        client.send(bytes).await;
        let answer = client.receive("GET").await;
        assert_eq!(
            answer.status,
            expected,
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
    assert_eq!(site.ask(Call::get("/")).await.text(), "us");
    site.end().await;
}

/// What a client sends stands in no line of the module's own.
#[tokio::test]
async fn names_from_clients_are_not_logged_by_the_module() {
    let site = Site::start().await;
    let name = "forged%0aline";
    site.ask(Call::get("/").header("X-Pool", name)).await;

    let log = site.nginx.error_log();
    let ours = log.lines().filter(|line| line.contains("upstrand"));
    assert!(
        ours.clone().all(|line| !line.contains(name)),
        "{:?}",
        ours.collect::<Vec<_>>()
    );
    site.end().await;
}
