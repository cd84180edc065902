//! An allocation that fails costs at most the request that needed it: each in turn fails, and the client gets an error
//! or a closed connection, and the next request is served.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use harness::{Backend, Call, Config, Http1, Nginx, Reply, number};
use tempfile::TempDir;

/// What shows a walk.
const VARIABLES: &str = "$upstrand_path $upstrand_addr $upstrand_status $upstrand_cache_status \
                         $upstrand_connect_time $upstrand_header_time $upstrand_response_time \
                         $upstrand_response_length";

/// An nginx of which single allocations can be made to fail.
struct Frail {
    nginx: Nginx,
    folder: TempDir,
}

impl Frail {
    async fn start(config: Config) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("left"), [0; 8]).expect("a writable folder");
        let library = compile(folder.path());
        let config = config
            .environment("LD_PRELOAD", &library)
            .environment("FAILING_MALLOC", path(&folder.path().join("left")));
        Self {
            nginx: Nginx::start(config).await,
            folder,
        }
    }

    /// Lets the allocation of this number fail, counted from now on; 0: none.
    fn fail(&self, number: i64) {
        // Not truncated: nginx has mapped it.
        let file = OpenOptions::new()
            .write(true)
            .open(self.folder.path().join("left"));
        let written = file.and_then(|mut file| file.write_all(&number.to_ne_bytes()));
        written.expect("a writable file");
    }

    /// Whether it has come to that allocation.
    fn has_failed(&self) -> bool {
        fs::read(self.folder.path().join("left")).expect("a file") == [0; 8]
    }
}

/// Compiles the library that lets allocations fail.
fn compile(folder: &Path) -> String {
    let library = folder.join("failing_malloc.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/failing_malloc.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .status();
    assert!(status.expect("a C compiler").success());
    path(&library).to_owned()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Requests through all that the module does, and the method of each.
fn calls() -> Vec<(&'static str, Call)> {
    let body = "0123456789".repeat(4_000);
    vec![
        ("GET", Call::get("/")),
        ("GET", Call::get("/cached")),
        ("GET", Call::get("/page")),
        ("GET", Call::get("/intercepted")),
        ("GET", Call::get("/named")),
        ("GET", Call::get("/dynamic?pool=us")),
        ("HEAD", Call::head("/")),
        ("PUT", Call::new("PUT", "/").body(body.clone())),
        ("POST", Call::post("/", body.clone())),
        ("PUT", Call::new("PUT", "/streamed").body(body.clone())),
        ("PUT", Call::new("PUT", "/streamed").body(body).chunked()),
    ]
}

async fn config(backends: &[Backend; 3]) -> Config {
    let [refusing, bad, good] = backends;
    let members = [refusing, bad, good];
    Config::upstrand(members)
        .log_format(VARIABLES)
        .http("proxy_cache_path cache keys_zone=cache:1m;")
        .http("proxy_http_version 1.1; lingering_timeout 20ms;")
        .http("upstrand bad { upstream u1; upstream u2; order per_request;")
        .http("next_upstream_statuses error timeout 5xx; intercept_statuses 5xx /sorry; }")
        .http("upstrand named { upstream u2; intercept_statuses 5xx @sorry; }")
        .server("dynamic_upstrand $pool $arg_pool us;")
        .server("location /cached { proxy_pass http://$upstrand_us; proxy_cache cache; proxy_cache_valid any 1s; }")
        .server("location /page { proxy_pass http://$upstrand_us; ssi on; ssi_types *; }")
        .server("location /intercepted { proxy_pass http://$upstrand_bad; }")
        .server("location /named { proxy_pass http://$upstrand_named; }")
        .server("location /dynamic { proxy_pass http://$pool; }")
        .server("location /streamed { proxy_pass http://$upstrand_us; proxy_request_buffering off; }")
        .server("location /sorry { return 503 'sorry'; }")
        .server("location @sorry { proxy_pass http://$upstrand_us; }")
}

#[tokio::test]
async fn each_allocation_may_fail() {
    if Nginx::has_sanitizer() {
        println!("skipped: the sanitizer has an allocator of its own");
        return;
    }
    let most = number("ALLOCATIONS", 400);
    let page = "<!--#include virtual=\"/dynamic\" --> <!--#echo var=\"upstrand_path\" -->";
    let backends = [
        Backend::refusing(),
        Backend::answering(Reply::status(503).header("X-Bad", "yes").body("bad")).await,
        Backend::each(move |request| match request.target.as_str() {
            "/page" => Reply::ok(page),
            _ => Reply::ok("good"),
        })
        .await,
    ];
    let frail = Frail::start(config(&backends).await).await;
    let mut failures = 0;

    for (method, call) in calls() {
        for number in 1.. {
            assert!(
                number <= most,
                "{call:?} needs more than {most} allocations"
            );

            frail.fail(number as i64);
            let mut client = frail.nginx.http1().await;
            ask(&mut client, method, &call).await;
            let has_failed = frail.has_failed();
            frail.fail(0);
            frail.nginx.idle().await;

            let answer = frail.nginx.get("/").await;
            let seen = (answer.status, answer.text());
            assert_eq!(
                seen,
                (200, "good".to_owned()),
                "after allocation {number} of {call:?}"
            );
            if !has_failed {
                break;
            }
            failures += 1;
        }
    }

    println!("{failures} allocations failed");
    let complaints = frail.nginx.try_stop().await.err().unwrap_or_default();
    let left: Vec<_> = complaints
        .lines()
        .filter(|line| !line.contains("12: Cannot allocate memory"))
        .collect();
    assert!(left.is_empty(), "{left:#?}");
}

/// The client gets something, or the connection is closed; it does not hang.
async fn ask(client: &mut Http1, method: &str, call: &Call) {
    client.try_send(&call.clone().closing().bytes()).await;
    if client.try_receive(method).await.is_ok() {
        client.rest().await;
    }
}
