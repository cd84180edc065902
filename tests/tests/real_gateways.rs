//! Walks to servers that others have written: uwsgi, which speaks three protocols, and gRPC's own
//! server and client. Spec 4.3.

use std::path::{Path, PathBuf};

use harness::{Backend, Call, Config, Nginx, Program};
use tempfile::TempDir;

/// Python, for which the distribution packages gRPC.
const PYTHON: &str = "/usr/bin/python3";

const PARAMETERS: [&str; 5] = [
    "REQUEST_METHOD $request_method",
    "REQUEST_URI $request_uri",
    "CONTENT_LENGTH $content_length",
    "SERVER_PROTOCOL $server_protocol",
    "HOP $upstrand_us",
];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("gateways")
        .join(name)
}

/// `u0` refuses; `u1` and `u2` are the server on the socket.
fn config(refusing: &Backend, socket: &Path) -> Config {
    let (refusing, socket) = (refusing.address(), socket.display());
    Config::new().http(&format!(
        "upstream u0 {{ server {refusing}; }}
         upstream u1 {{ server unix:{socket}; }}
         upstream u2 {{ server unix:{socket}; }}
         upstrand us {{
         upstream u0; upstream u1; upstream u2;
         order per_request; next_upstream_statuses error 5xx non_idempotent;
         }}"
    ))
}

/// The same requests in one of the protocols of uwsgi.
async fn walk_to_uwsgi(gateway: &str) {
    let folder = TempDir::new().expect("a temporary folder");
    let socket = folder.path().join("socket");
    let listen = format!("--{gateway}-socket={}", socket.display());
    let app = format!("--wsgi-file={}", file("app.py").display());
    let arguments = [
        "--plugin=python3",
        "--master",
        "--die-on-term",
        "--no-orphans",
        "--threads=4",
        "--buffer-size=32768",
        &listen,
        "--chmod-socket=666",
        &app,
    ];
    let _uwsgi = Program::serving(&socket, "uwsgi", &arguments).await;

    let parameters: String = PARAMETERS
        .iter()
        .map(|parameter| format!("{gateway}_param {parameter};\n"))
        .collect();
    let refusing = Backend::refusing();
    let config = config(&refusing, &socket).server(&format!(
        "location / {{ {gateway}_pass $upstrand_us; {parameters} client_max_body_size 2m; add_header X-Path $upstrand_path; }}"
    ));
    let nginx = Nginx::start(config).await;

    for call in [
        Call::get("/x?y=z"),
        Call::new("PUT", "/put").body("body".repeat(100_000)),
        Call::post("/post", "a body"),
    ] {
        let answer = nginx.call(call.clone()).await;
        assert_eq!((answer.status, answer.header("x-hop")), (200, Some("u2")));
        assert_eq!(answer.header("x-path"), Some("u0 -> u1 -> u2"));
        assert_eq!(answer.header("x-failed"), None);
        assert!(
            answer
                .text()
                .starts_with(&format!("{} {} ", call.method(), call.target()))
        );
        assert!(answer.body.ends_with(call.sends()));
    }
    nginx.stop().await;
}

#[tokio::test]
async fn uwsgi() {
    walk_to_uwsgi("uwsgi").await;
}

#[tokio::test]
async fn fastcgi() {
    walk_to_uwsgi("fastcgi").await;
}

#[tokio::test]
async fn scgi() {
    walk_to_uwsgi("scgi").await;
}

#[tokio::test]
async fn grpc() {
    let folder = TempDir::new().expect("a temporary folder");
    let socket = folder.path().join("socket");
    let (server, client) = (file("grpc_server.py"), file("grpc_client.py"));
    let arguments = [
        server.to_str().expect("a path"),
        socket.to_str().expect("a path"),
    ];
    let _server = Program::serving(&socket, PYTHON, &arguments).await;

    let refusing = Backend::refusing();
    let config = config(&refusing, &socket)
        .server("location / { grpc_pass grpc://$upstrand_us; }")
        .http2();
    let nginx = Nginx::start(config).await;

    let address = nginx.http2_address().to_string();
    let said = Program::output(PYTHON, &[client.to_str().expect("a path"), &address]).await;
    let lines = [
        "unary hi there",
        "300006",
        "client 1,2,3",
        "100 server 99 hi",
        "both 1",
        "both 2",
        "NOT_FOUND no such thing",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), lines);

    let logged = nginx.access_log(6).await;
    assert!(
        logged.iter().all(|line| line.contains(" 200")),
        "{logged:?}"
    );
    assert_eq!(
        nginx
            .error_log()
            .matches("upstream \"u0\" failed with 502, trying \"u1\"")
            .count(),
        6
    );
    nginx.stop().await;
}
