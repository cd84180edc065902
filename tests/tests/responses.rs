//! Backends that answer in mutated HTTP: what a client gets through an upstrand of three is what it
//! gets from the right one of them without any. scripts/fuzz-responses.sh runs many more of them under
//! AddressSanitizer.
//!
//! RESPONSES says how many walks (500 without it), RESPONSES_FROM the number of the first one.

mod mutation;

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{Backend, Call, Config, Http1, Nginx, Response, all, number};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tokio::time::{sleep, timeout};

/// Walks with one nginx; after each batch of them its log and its counts are looked at.
const BATCH: u64 = 1_000;

/// Clients at the same time.
const CLIENTS: usize = 24;

/// How often a walk and its members may be asked until they agree.
const ATTEMPTS: u64 = 5;

/// The time before each request, from the second attempt on.
const BREATH: Duration = Duration::from_millis(20);

/// Nothing takes nginx so long.
const HANG: Duration = Duration::from_secs(9);

/// The settings of the locations, for the walks and for the plain ones.
const KINDS: [(&str, &str); 5] = [
    (
        "kept",
        "proxy_http_version 1.1; proxy_set_header Connection '';",
    ),
    ("old", "proxy_http_version 1.0;"),
    (
        "streamed",
        "proxy_http_version 1.1; proxy_buffering off; proxy_request_buffering off;",
    ),
    (
        "cached",
        "proxy_cache responses; proxy_cache_key $uri$proxy_host; proxy_cache_valid any 1m;
         proxy_cache_use_stale error timeout invalid_header http_500 http_503;",
    ),
    (
        "paged",
        "proxy_intercept_errors on; error_page 404 500 502 503 504 /sorry;",
    ),
];

/// The upstrands, each with the statuses that fail in it.
const UPSTRANDS: [(&str, &str); 3] = [
    ("us", "error timeout 5xx"),
    ("poll", "error timeout 200 204 404 5xx"),
    ("bold", "error timeout 5xx non_idempotent"),
];

const MEMBERS: [&str; 3] = ["u1", "u2", "u3"];

#[tokio::test]
async fn mutated_responses_reach_the_client_as_without_an_upstrand() {
    let (first, count) = (number("RESPONSES_FROM", 0), number("RESPONSES", 500));
    let mut tally = Tally::default();

    let numbers: Vec<_> = (first..first + count).collect();
    for batch in numbers.chunks(BATCH as usize) {
        tally.add(run(batch).await);
    }

    println!("{count} walks: {tally:?}");
    assert!(tally.unjudged < count / 20 + 10, "{tally:?}");
}

/// What became of walks.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Those whose client got the answer of the first, second and third member.
    by_member: [u64; 3],
    /// Those whose client got a broken answer, as without an upstrand.
    broken: u64,
    /// Those where timing decides what a client gets.
    unjudged: u64,
    /// Those that agreed at the second look only.
    late: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        for (sum, count) in self.by_member.iter_mut().zip(other.by_member) {
            *sum += count;
        }
        self.broken += other.broken;
        self.unjudged += other.unjudged;
        self.late += other.late;
    }
}

async fn run(batch: &[u64]) -> Tally {
    let mut backends = Vec::new();
    for member in 0..MEMBERS.len() as u64 {
        let script = move |request: &harness::Request| {
            let seed = request.header("x-seed").and_then(|seed| seed.parse().ok());
            // One with X-Accel-Redirect is not cached, in a walk.
            let redirects = !request.target.starts_with("/cached/");
            mutation::reply(seed.expect("a number"), member, redirects)
        };
        backends.push(Backend::each(script).await);
    }
    let dead = Backend::refusing();

    let nginx = Arc::new(Nginx::start(config(&backends, &dead)).await);
    let next = Arc::new(AtomicU64::new(batch[0]));
    let last = batch[batch.len() - 1];
    let tally = Arc::new(Mutex::new(Tally::default()));

    let clients = (0..CLIENTS).map(|_| {
        let (nginx, next, tally) = (nginx.clone(), next.clone(), tally.clone());
        async move {
            loop {
                let seed = next.fetch_add(1, Ordering::SeqCst);
                if seed > last {
                    return;
                }
                let one = Scenario::new(seed).judge(&nginx).await;
                tally.lock().expect("no panic").add(one);
            }
        }
    });
    all(clients).await;

    nothing_was_sent_twice(&backends);
    let nginx = Arc::into_inner(nginx).expect("no client is left");
    if let Err(complaint) = nginx.try_stop().await {
        panic!("walks {} to {last}: {complaint}", batch[0]);
    }
    *tally.lock().expect("no panic")
}

fn config(backends: &[Backend], dead: &Backend) -> Config {
    let mut http = String::from(
        "keepalive_requests 1000000;
         proxy_cache_path cache keys_zone=responses:10m inactive=1h max_size=100m;
         proxy_read_timeout 500ms;
         proxy_ignore_headers X-Accel-Limit-Rate;\n",
    );
    for (name, backend) in MEMBERS
        .iter()
        .chain(&["dead"])
        .zip(backends.iter().chain([dead]))
    {
        let address = backend.address();
        // Apart for walks and for plain requests: what a backend sends too much on a connection that nginx keeps
        // is taken for the answer to the next request.
        for name in [name.to_string(), format!("walk_{name}")] {
            writeln!(
                http,
                "upstream {name} {{ server {address}; keepalive 16; }}"
            )
            .expect("a string");
        }
    }

    let mut server = String::from(
        "location /sorry { internal; return 200 'an error page'; }
         location /ping { return 418; }\n",
    );
    for (upstrand, statuses) in UPSTRANDS {
        for (variant, first) in [("", MEMBERS[0]), ("_dead", "dead")] {
            for (pages, name) in [("off", ""), ("on", "_pages")] {
                writeln!(
                    http,
                    "upstrand {upstrand}{variant}{name} {{ upstream walk_{first}; upstream walk_u2; upstream walk_u3;
                     order per_request; next_upstream_statuses {statuses}; intercept_errors {pages}; }}"
                )
                .expect("a string");
            }
        }
    }

    for (kind, settings) in KINDS {
        let pages = if kind == "paged" { "_pages" } else { "" };
        for (upstrand, _) in UPSTRANDS {
            for variant in ["", "_dead"] {
                let name = format!("{upstrand}{variant}");
                writeln!(
                    server,
                    "location /{kind}/{name}/ {{ proxy_pass http://$upstrand_{name}{pages}; {settings} }}"
                )
                .expect("a string");
            }
        }
        for name in MEMBERS.iter().chain(&["dead"]) {
            // In a walk it is ignored.
            writeln!(
                server,
                "location /{kind}/{name}/ {{ set $to {name}; proxy_pass http://$to; {settings}
                 proxy_ignore_headers X-Accel-Redirect X-Accel-Limit-Rate; }}"
            )
            .expect("a string");
        }
    }
    Config::new().http(&http).server(&server)
}

/// A POST or PATCH is sent once. (Of the others nginx repeats those whose kept connection closes.)
fn nothing_was_sent_twice(backends: &[Backend]) {
    let mut counts = HashMap::new();
    for request in backends.iter().flat_map(Backend::requests) {
        let may_repeat = !matches!(request.method.as_str(), "POST" | "PATCH");
        if !may_repeat && !request.target.contains("/bold") {
            *counts.entry(request.target).or_insert(0) += 1;
        }
    }
    for (target, count) in counts {
        assert!(count == 1, "{target} was sent {count} times");
    }
}

/// What one client asks for.
struct Scenario {
    seed: u64,
    kind: &'static str,
    upstrand: &'static str,
    statuses: &'static str,
    dead: bool,
    call: Call,
    method: &'static str,
    length: usize,
}

/// What a client gets.
struct Outcome {
    /// None: no response.
    status: Option<u16>,
    head: String,
    body: Vec<u8>,
    whole: bool,
    /// What came after the response.
    rest: String,
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(!seed);
        let (kind, _) = KINDS[rng.random_range(0..KINDS.len())];
        let (upstrand, statuses) = UPSTRANDS[rng.random_range(0..UPSTRANDS.len())];
        let methods = [
            "GET", "GET", "GET", "GET", "HEAD", "PUT", "DELETE", "POST", "PATCH",
        ];
        let method = methods.choose(&mut rng).expect("a method");

        let mut call = Call::new(method, "").header("X-Seed", &seed.to_string());
        let mut length = 0;
        if !matches!(*method, "GET" | "HEAD") {
            length = *[1, 100, 5_000, 40_000].choose(&mut rng).expect("one");
            call = call.body(vec![b'q'; length]);
            if rng.random_bool(0.3) {
                call = call.chunked();
            }
        }
        Self {
            seed,
            kind,
            upstrand,
            statuses,
            dead: rng.random_bool(0.1),
            call,
            method,
            length,
        }
    }

    /// Compares the walk with the answers of its members, a second time if they differ: on a busy
    /// machine a timeout may come too early, and a connection may be closed under a request.
    async fn judge(&self, nginx: &Nginx) -> Tally {
        let mut complaints = Vec::new();
        for attempt in 0..ATTEMPTS {
            match self.look(nginx, attempt).await {
                Ok(mut tally) => {
                    tally.late = attempt.min(1);
                    return tally;
                }
                Err(complaint) => complaints.push(complaint),
            }
        }
        panic!("walk {}: {}", self.seed, complaints.join("\nagain: "));
    }

    async fn look(&self, nginx: &Nginx, attempt: u64) -> Result<Tally, String> {
        let mut tally = Tally::default();
        let expected = self.expected(nginx, attempt).await;
        let got = self.ask(nginx, &self.walk(), attempt).await;

        let Some((member, expected)) = expected else {
            tally.unjudged = 1;
            return Ok(tally);
        };
        let status = expected[0].status;
        // Where the member's second answer is another one, for what came before on its connection, the walk
        // may have gone on.
        let alike = |expected: &&Outcome| expected.status == status;
        for (got, expected) in got.iter().zip(expected.iter().take_while(alike)) {
            if !got.agrees(expected) {
                return Err(format!(
                    "{} of {} bytes, {} {}, dead: {}, member {member}\nexpected {expected:?}\ngot {got:?}",
                    self.method, self.length, self.kind, self.upstrand, self.dead
                ));
            }
        }
        match expected[0].whole {
            true => tally.by_member[member] = 1,
            false => tally.broken = 1,
        }
        Ok(tally)
    }

    fn walk(&self) -> String {
        let variant = if self.dead { "_dead" } else { "" };
        format!("{}{variant}", self.upstrand)
    }

    /// The answer of the first member that does not fail, or of the last that may be asked. None:
    /// timing decides.
    async fn expected(&self, nginx: &Nginx, attempt: u64) -> Option<(usize, Vec<Outcome>)> {
        let repeatable = !matches!(self.method, "POST" | "PATCH") || self.upstrand == "bold";
        // A body that fits into nginx's buffer is none that it streams.
        let streamed = self.kind == "streamed" && self.length > 16_384;

        for (index, member) in MEMBERS.into_iter().enumerate() {
            let is_dead = index == 0 && self.dead;
            let name = if is_dead { "dead" } else { member };
            let outcomes = self.ask(nginx, name, attempt).await;
            let status = outcomes[0].status?;

            let is_last = index + 1 == MEMBERS.len();
            if is_last || !self.fails(status) || !is_dead && (!repeatable || streamed) {
                return Some((index, outcomes));
            }
        }
        None
    }

    fn fails(&self, status: u16) -> bool {
        status / 100 == 5
            || self
                .statuses
                .split(' ')
                .any(|word| word == status.to_string())
    }

    async fn receive(&self, client: &mut Http1) -> Outcome {
        let mut received = client.try_receive(self.method).await;
        while matches!(&received, Ok(response) if response.status < 200 && response.whole) {
            received = client.try_receive(self.method).await;
        }
        Outcome::new(received, client.rest().await)
    }

    /// Sends the request, and once more where there is a cache.
    async fn ask(&self, nginx: &Nginx, location: &str, attempt: u64) -> Vec<Outcome> {
        // What was sent too much may still come, and then nginx closes the connection.
        sleep(BREATH * attempt as u32).await;

        let mut outcomes = Vec::new();
        let times = if self.kind == "cached" { 2 } else { 1 };
        for time in 0..times {
            let target = format!("/{}/{location}/{}/{attempt}?{time}", self.kind, self.seed);
            let mut client = nginx.http1().await;
            let call = self.call.clone().with_target(&target).bytes();
            let ping = Call::get("/ping").closing().bytes();
            // nginx may close when it has seen enough.
            client.try_send(&[call, ping].concat()).await;

            match timeout(HANG, self.receive(&mut client)).await {
                Ok(outcome) => outcomes.push(outcome),
                Err(_) => panic!("walk {}: {} {target} hangs", self.seed, self.method),
            }
        }
        outcomes
    }
}

impl Debug for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            status,
            head,
            body,
            whole,
            rest,
        } = self;
        let (length, body) = (
            body.len(),
            String::from_utf8_lossy(&body[..body.len().min(300)]),
        );
        write!(
            f,
            "{status:?}, whole: {whole}, {head:?}, {length} bytes {body:?}, then {rest:?}"
        )
    }
}

impl Outcome {
    fn new(received: Result<Response, Vec<u8>>, rest: Vec<u8>) -> Self {
        let rest = undated(&rest);
        match received {
            Ok(response) => {
                let head = undated(&response.raw);
                Self {
                    status: status_of(&response.raw),
                    head: head.split("\r\n\r\n").next().unwrap_or_default().to_owned(),
                    body: response.body,
                    whole: response.whole,
                    rest,
                }
            }
            Err(bytes) => Self {
                status: status_of(&bytes),
                head: String::new(),
                whole: !bytes.is_empty(),
                body: undated(&bytes).into_bytes(),
                rest,
            },
        }
    }

    /// How much of a broken answer goes out before nginx closes depends on how it came in, and so does which part
    /// of the head nginx takes for the body of an HTTP/0.9 response.
    fn agrees(&self, expected: &Self) -> bool {
        if (self.status, expected.status) == (Some(0), Some(0)) {
            return true;
        }
        if self.whole && expected.whole {
            return (&self.head, &self.body, &self.rest)
                == (&expected.head, &expected.body, &expected.rest);
        }
        let unsaid = self.status.is_none() || expected.status.is_none();
        self.whole == expected.whole && (unsaid || self.head == expected.head)
    }
}

/// The status that nginx saw. What it does not take for HTTP/1 passes as it is, without a header of nginx's, as an
/// HTTP/0.9 response, which has no status: 0. None: there was no response.
fn status_of(bytes: &[u8]) -> Option<u16> {
    if bytes.is_empty() {
        return None;
    }

    let text = String::from_utf8_lossy(bytes);
    let (line, more) = text.split_once("\r\n").unwrap_or_default();
    // The answer to the ping may stand right behind what is no line.
    let nginx = more.starts_with("Server: nginx/") && !line.ends_with("HTTP/1.1 418 ");
    let said = line.strip_prefix("HTTP/1.1 ").filter(|_| nginx);
    said.map_or(Some(0), |line| line.get(..3)?.parse().ok())
}

fn undated(bytes: &[u8]) -> String {
    let same = |line: &&str| !line.starts_with("Date: ");
    String::from_utf8_lossy(bytes)
        .split_inclusive("\r\n")
        .filter(same)
        .collect()
}
