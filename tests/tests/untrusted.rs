//! What a client may send: a `dynamic_upstrand` leads to upstrands and nowhere else, whatever its candidates hold.

use harness::{Backend, Call, Config, Failure, Nginx, Reply};

const LOCATION: &str = "location /dynamic {
dynamic_upstrand $pool $arg_pool $http_x_pool $cookie_pool us;
proxy_pass http://$pool;
proxy_set_header X-Pool $pool;
}";

/// Texts that name no upstrand, though some name an upstream, a server, or one when they are read carelessly.
fn names(server: &str) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "u1",
        "u2",
        server,
        "us.",
        "us:80",
        "us/",
        "us%00",
        "us%0d%0aX-Injected:%20yes",
        "u",
        "uss",
        "$upstrand_us",
        "${upstrand_us}",
        "us@u2",
        "unix:/tmp/socket",
        "..",
        "path",
        "upstrand_us",
        "\u{fc}s",
        "%s%n%p",
    ]
    .map(|name| name.as_bytes().to_vec())
    .to_vec();
    names.extend([
        b"\xff\xfe".to_vec(),
        b"us\xc3".to_vec(),
        b"us\x01".to_vec(),
        b"us\x7f".to_vec(),
        vec![b'u'; 64 * 1024],
        b"us".repeat(32 * 1024),
        vec![0xff; 64 * 1024],
    ]);
    names
}

struct Setup {
    nginx: Nginx,
    good: Backend,
}

async fn setup() -> Setup {
    let (bad, good) = (
        Failure::SmallBody.backend().await,
        Backend::answering(Reply::ok("good")).await,
    );
    let config = Config::upstrand([&bad, &good])
        .server("large_client_header_buffers 4 128k;")
        .server(LOCATION);
    let nginx = Nginx::start(config).await;
    // What it refuses costs no connection: it is kept over all of these.
    Setup { nginx, good }
}

/// The status of a request whose head is made of these pieces.
async fn status(nginx: &Nginx, pieces: &[&[u8]]) -> u16 {
    let mut client = nginx.http1().await;
    client.send(&pieces.concat()).await;
    client.receive("GET").await.status
}

const REST: &[u8] = b"Host: localhost\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn an_argument_names_only_upstrands() {
    let Setup { nginx, good } = setup().await;
    for name in names(&good.address().to_string()) {
        // What ends an argument, or a request line, ends it here, too.
        let pieces: [&[u8]; 4] = [b"GET /dynamic?pool=", &name, b" HTTP/1.1\r\n", REST];
        let status = status(&nginx, &pieces).await;
        assert!(
            matches!(status, 400 | 500),
            "{status} for {:?}",
            String::from_utf8_lossy(&name)
        );
    }
    assert_eq!(good.requests().len(), 0);
    assert_eq!(nginx.get("/dynamic?pool=us").await.text(), "good");
    assert_eq!(nginx.get("/dynamic?pool=US").await.text(), "good");
    nginx.stop().await;
}

#[tokio::test]
async fn a_header_or_a_cookie_names_only_upstrands() {
    let Setup { nginx, good } = setup().await;
    for name in names(&good.address().to_string()) {
        for header in [&b"X-Pool: "[..], b"Cookie: pool="] {
            let pieces: [&[u8]; 5] = [b"GET /dynamic HTTP/1.1\r\n", header, &name, b"\r\n", REST];
            let status = status(&nginx, &pieces).await;
            assert!(
                matches!(status, 400 | 500),
                "{status} for {:?}",
                String::from_utf8_lossy(&name)
            );
        }
    }
    assert_eq!(good.requests().len(), 0);

    let named = Call::get("/dynamic").header("X-Pool", "us");
    assert_eq!(nginx.call(named).await.text(), "good");
    nginx.stop().await;
}

/// nginx takes no such header at all.
#[tokio::test]
async fn a_nul_or_a_line_break_in_a_header_is_refused_or_ends_it() {
    let Setup { nginx, good } = setup().await;
    for value in [&b"us\0"[..], b"\0us", b"us\rX: y", b"u\0s"] {
        let pieces: [&[u8]; 4] = [b"GET /dynamic HTTP/1.1\r\nX-Pool: ", value, b"\r\n", REST];
        assert_eq!(status(&nginx, &pieces).await, 400, "{value:?}");
    }
    assert_eq!(good.requests().len(), 0);

    let pieces: [&[u8]; 2] = [
        b"GET /dynamic HTTP/1.1\r\nX-Pool: us\r\nX-Pool-2: u1\r\n",
        REST,
    ];
    assert_eq!(status(&nginx, &pieces).await, 200);
    nginx.stop().await;
}

/// An empty one is skipped, as if it were not there.
#[tokio::test]
async fn what_reaches_a_backend_is_the_name_in_the_configuration() {
    let Setup { nginx, good } = setup().await;
    assert_eq!(nginx.get("/dynamic?pool=").await.text(), "good");
    assert_eq!(nginx.get("/dynamic?pool=Us").await.text(), "good");
    for request in good.requests() {
        assert_eq!(request.header("host"), Some("u2"));
        assert_eq!(request.header("x-pool"), Some("u2"));
    }
    nginx.stop().await;
}
