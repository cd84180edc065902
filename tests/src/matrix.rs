//! Rows, each crossed with every way in which the hops before the good one fail.
//!
//! A row's request goes to a plain `proxy_pass` to the good upstream, and to upstrands whose first
//! one or two hops fail. What the client sees, what the good backend gets and what the logs say of
//! it must be the same, volatile values aside.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use crate::backend::Backend;
use crate::config::Config;
use crate::failure::Failure;
use crate::gateway::Protocol;
use crate::message::Request;
use crate::nginx::Nginx;
use crate::reply::Reply;
use crate::row::{Row, Seen, Side};
use crate::transcript::{ErrorLine, Line, contains, difference, settled};

/// How many exchanges are under way at the same time,
const AT_ONCE: usize = 20;

/// and how many that mostly wait for a hop to time out.
const WAITING_AT_ONCE: usize = 30;

/// What lets a hop time out in good time, and a good one not: many exchanges share the machine.
const TIMEOUTS: &str = "proxy_read_timeout 4s; fastcgi_read_timeout 4s; uwsgi_read_timeout 4s; \
                        scgi_read_timeout 4s; grpc_read_timeout 4s; memcached_read_timeout 4s;";

/// How many differences of one row are shown.
const SHOWN: usize = 4;

/// Rows that share one nginx.
pub struct Matrix {
    rows: Vec<Row>,
    failures: Vec<Failure>,
    protocol: Protocol,
    config: Config,
    /// What stands in each upstream beside its server; none: connections are not kept.
    upstream: Option<String>,
}

impl Matrix {
    pub fn new(rows: impl IntoIterator<Item = Row>) -> Self {
        Self {
            rows: rows.into_iter().collect(),
            failures: Failure::ALL.to_vec(),
            protocol: Protocol::Http1,
            config: Config::new(),
            upstream: None,
        }
    }

    /// Crosses the rows with these failures only; each has a backend of its own.
    pub fn failing(mut self, failures: &[Failure]) -> Self {
        self.failures = failures.to_vec();
        self
    }

    /// All backends speak this.
    pub fn speaking(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Changes the configuration that all rows share.
    pub fn config(mut self, change: impl FnOnce(Config) -> Config) -> Self {
        self.config = change(self.config);
        self
    }

    /// Adds to each upstream. Connections to backends that are kept are not waited for.
    pub fn upstream(mut self, text: &str) -> Self {
        self.upstream = Some(text.to_owned());
        self
    }

    /// Runs all rows. Panics with all differences if there are any.
    pub async fn run(mut self) {
        let version = Nginx::version().await;
        self.rows.retain(|row| {
            let known = row.since <= version;
            if !known {
                println!("{}: skipped, nginx {:?} and later", row.name, row.since);
            }
            known
        });

        if self.rows.is_empty() {
            return;
        }

        let ways = self.ways();
        let mut bad = Vec::new();
        for failure in &self.failures {
            bad.push(failure.speaking(self.protocol).await);
        }
        let mut good = Vec::new();
        for _ in &ways {
            good.push(self.good().await);
        }

        let nginx = Rc::new(Nginx::start(self.text(version, &ways, &bad, &good)).await);
        let exchange = self.exchange(&nginx, &ways);
        let seen = LocalSet::new().run_until(exchange).await;

        nginx.idle().await;
        if self.upstream.is_none() {
            for backend in good.iter().chain(&bad) {
                backend.deserted().await;
            }
        }
        let (access_log, error_log) = (nginx.access_log(0).await, nginx.error_log());
        let outcome = Outcome {
            access_log: access_log.iter().map(|line| Line::parse(line)).collect(),
            error_log: error_log.lines().filter_map(ErrorLine::parse).collect(),
            bad: bad.iter().map(|bad| bad.address().to_string()).collect(),
            good: good.iter().map(Backend::requests).collect(),
            ways,
            seen,
        };
        let differences: Vec<_> = self
            .rows
            .iter()
            .flat_map(|row| shortened(outcome.judge(row)))
            .collect();
        let nginx = Rc::into_inner(nginx).expect("no client left");
        nginx.stop().await;
        assert!(differences.is_empty(), "\n{}", differences.join("\n"));
    }

    /// The failing hops of each side: none on the first, which is plain, nor on the second, whose
    /// first hop is good.
    fn ways(&self) -> Vec<Vec<Hop>> {
        let hops = self.failures.iter().enumerate();
        let hops: Vec<_> = hops
            .map(|(place, failure)| Hop {
                place,
                failure: *failure,
            })
            .collect();

        let one = hops.iter().map(|first| vec![*first]);
        let next = hops.iter().cycle().skip(1);
        let two = hops.iter().zip(next);
        let two = two.map(|(first, second)| vec![*first, *second]);
        [Vec::new(), Vec::new()]
            .into_iter()
            .chain(one)
            .chain(two)
            .collect()
    }

    /// A backend that answers the requests of all rows, told by their paths.
    async fn good(&self) -> Backend {
        let scripts: BTreeMap<_, _> = self
            .rows
            .iter()
            .map(|row| (row.name.to_owned(), row.good.clone()))
            .collect();
        let script = move |request: &Request| match scripts.get(row_of(&request.target)) {
            Some(script) => script(request),
            None => Reply::status(404).body("no row"),
        };
        Backend::speaking(self.protocol, script).await
    }

    fn text(
        &self,
        version: [u32; 3],
        ways: &[Vec<Hop>],
        bad: &[Backend],
        good: &[Backend],
    ) -> Config {
        let more = match &self.upstream {
            Some(more) => more,
            // nginx keeps connections of its own accord since then.
            None if version >= [1, 29, 7] => "keepalive 0;",
            None => "",
        };
        let mut config = self.config.clone().log_format(Line::FORMAT);
        for (place, (failure, backend)) in self.failures.iter().zip(bad).enumerate() {
            let name = Hop {
                place,
                failure: *failure,
            }
            .name();
            let server = backend.address();
            config = config.http(&format!("upstream {name} {{ server {server}; {more} }}"));
        }

        for (side, (way, good)) in ways.iter().zip(good).enumerate() {
            let server = good.address();
            config = config.http(&format!(
                "upstream good{side:02} {{ server {server}; {more} }}"
            ));

            let members = way.iter().map(|hop| format!("upstream {}; ", hop.name()));
            let members: String = members.collect();
            config = config.http(&format!(
                "upstrand us{side:02} {{ {members}upstream good{side:02}; order per_request; \
                 next_upstream_statuses error timeout 5xx non_idempotent; }}"
            ));

            let slow = way.iter().any(|hop| hop.failure == Failure::Timeout);
            let mut text = if slow { TIMEOUTS } else { "" }.to_owned();
            for row in &self.rows {
                text += &format!("\n{}", row.text(side));
            }
            config = config.virtual_server(&format!("side{side:02}"), &text);
        }
        for row in &self.rows {
            config = config.http(&row.http);
        }
        config
    }

    /// What the clients see: for each row, side by side. None: the client gave up.
    async fn exchange(
        &self,
        nginx: &Rc<Nginx>,
        ways: &[Vec<Hop>],
    ) -> BTreeMap<(&'static str, usize), Seen> {
        let places = Rc::new(Semaphore::new(AT_ONCE));
        let waiting = Rc::new(Semaphore::new(WAITING_AT_ONCE));
        let mut exchanges = JoinSet::new();

        for row in &self.rows {
            for (number, way) in ways.iter().enumerate() {
                let side = Side {
                    nginx: nginx.clone(),
                    host: format!("side{number:02}"),
                    row: row.name,
                };
                let slow = way.iter().any(|hop| hop.failure == Failure::Timeout);
                let places = if slow {
                    waiting.clone()
                } else {
                    places.clone()
                };
                let row = row.clone();
                exchanges.spawn_local(async move {
                    let _place = places.acquire().await.expect("never closed");
                    ((row.name, number), (row.client)(side).await)
                });
            }
        }

        let mut seen = BTreeMap::new();
        while let Some(exchange) = exchanges.join_next().await {
            // Who panics has said why.
            seen.extend(exchange.ok());
        }
        seen
    }
}

/// A hop that fails.
#[derive(Clone, Copy)]
struct Hop {
    /// The place of its failure among those of the matrix.
    place: usize,
    failure: Failure,
}

impl Hop {
    /// The name of its upstream.
    fn name(self) -> String {
        format!("{:?}{}", self.failure, self.place)
    }
}

impl fmt::Debug for Hop {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

/// All that came of the rows.
struct Outcome {
    ways: Vec<Vec<Hop>>,
    seen: BTreeMap<(&'static str, usize), Seen>,
    good: Vec<Vec<Request>>,
    bad: Vec<String>,
    access_log: Vec<Line>,
    error_log: Vec<ErrorLine>,
}

impl Outcome {
    /// What is wrong with a row.
    fn judge(&self, row: &Row) -> Vec<String> {
        let mut wrong = Vec::new();
        let plain = self.client_bytes(row, 0).unwrap_or_default();
        for text in &row.shows {
            if !contains(&plain, text) {
                let plain = String::from_utf8_lossy(&plain[..plain.len().min(500)]);
                wrong.push(format!("{}: no {text:?} in {plain:?}", row.name));
            }
        }

        for (side, way) in self.ways.iter().enumerate() {
            let mut complain = |what: &str, difference: Option<String>| {
                if let Some(difference) = difference {
                    wrong.push(format!("{} after {way:?}: {what}: {difference}", row.name));
                }
            };

            match self.client_bytes(row, side) {
                Some(seen) => {
                    complain("client", difference(&plain, &seen));
                    for text in &row.hides {
                        if contains(&seen, text) {
                            complain("client", Some(format!("shows {text:?}")));
                        }
                    }
                }
                None => complain("client", Some("gave up".to_owned())),
            }
            complain(
                "good backend",
                difference(&self.backend_bytes(row, 0), &self.backend_bytes(row, side)),
            );
            complain(
                "error log",
                difference(&self.errors(row, 0), &self.errors(row, side)),
            );
            complain("access log", self.compare_lines(row, side, way));
        }
        wrong
    }

    fn client_bytes(&self, row: &Row, side: usize) -> Option<Vec<u8>> {
        let seen = self.seen.get(&(row.name, side))?;
        Some(settled(&seen.0, &row.volatile))
    }

    fn backend_bytes(&self, row: &Row, side: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let requests = self.good[side].iter();
        let mut requests: Vec<_> = requests
            .filter(|request| row_of(&request.target) == row.name)
            .collect();
        requests.sort_by_key(|request| &request.target);
        for request in requests {
            let head = request
                .raw
                .windows(4)
                .position(|window| window == b"\r\n\r\n");
            bytes.extend(&request.raw[..head.map_or(0, |end| end + 4)]);
            bytes.extend(&request.body);
            bytes.extend(format!("\n[whole: {}]\n", request.whole).bytes());
        }
        settled(&bytes, &row.volatile)
    }

    fn errors(&self, row: &Row, side: usize) -> Vec<u8> {
        let server = format!("side{side:02}");
        let of_bad = |line: &ErrorLine| {
            let upstream = line.upstream.as_ref();
            upstream.is_some_and(|upstream| self.bad.iter().any(|bad| upstream.contains(bad)))
        };
        let lines = self.error_log.iter().filter(|line| {
            line.server == server && row_of(&line.target) == row.name && !of_bad(line)
        });

        let mut lines: Vec<_> = lines.map(|line| line.text.as_str()).collect();
        lines.sort_unstable();
        if row.polls {
            lines.dedup();
        }
        settled(lines.join("\n").as_bytes(), &[])
    }

    fn lines(&self, row: &Row, side: usize) -> Vec<&Line> {
        let host = format!("side{side:02}");
        let mut lines: Vec<_> = self
            .access_log
            .iter()
            .filter(|line| line.host == host && row_of(&line.target) == row.name)
            .collect();
        lines.sort_by(|one, other| one.same.cmp(&other.same));
        if row.polls {
            lines.dedup_by(|one, other| one.same == other.same);
        }
        lines
    }

    fn compare_lines(&self, row: &Row, side: usize, way: &[Hop]) -> Option<String> {
        let text = |lines: &[&Line]| {
            let lines: Vec<_> = lines.iter().map(|line| line.same.as_str()).collect();
            lines.join("\n").into_bytes()
        };
        let lines = self.lines(row, side);
        let same = difference(&text(&self.lines(row, 0)), &text(&lines));
        if same.is_some() || side == 0 || !row.walks {
            return same;
        }

        let names = way.iter().map(|hop| hop.name() + " -> ");
        let path = names.collect::<String>() + &format!("good{side:02}");
        let hops = way
            .iter()
            .map(|hop| format!("({}) {} ", hop.name(), hop.failure.status()));
        let statuses = hops.collect::<String>() + &format!("(good{side:02})");
        let strays = lines
            .iter()
            .find(|line| line.path != path || !line.statuses.starts_with(&statuses));
        strays.map(|line| {
            format!(
                "walk {:?} {:?}, not {path:?} {statuses:?}",
                line.path, line.statuses
            )
        })
    }
}

/// The first few of what is wrong with a row: the others mostly say the same.
fn shortened(mut wrong: Vec<String>) -> Vec<String> {
    let more = wrong.len().saturating_sub(SHOWN);
    wrong.truncate(SHOWN);
    if more > 0 {
        wrong.push(format!("... and {more} more of this row"));
    }
    wrong
}

/// The row that a path belongs to.
fn row_of(target: &str) -> &str {
    let path = target.trim_start_matches('/');
    path.split(['/', '?']).next().unwrap_or_default()
}
