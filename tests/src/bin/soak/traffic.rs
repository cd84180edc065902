//! The clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::{Call, Daemon, Http1, Http2, Response};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::ledger::Ledger;

const HTTP1_CLIENTS: u64 = 12;
const HTTP2_CLIENTS: u64 = 4;
const WEBSOCKET_CLIENTS: u64 = 2;

/// Pages of the cache.
const PAGES: u32 = 300;

/// Six hops that are silent, and a server that waits for others, take a third of this.
const LONGEST: Duration = Duration::from_secs(9);

/// How often a request may find its connection closed before it was answered: nginx closes those that
/// are idle when it leaves.
const MOST_RETRIES: usize = 5;

/// Clients under way.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    clients: JoinSet<()>,
}

impl Traffic {
    /// Waits until all clients have ended.
    pub async fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.clients.join_all().await;
    }
}

pub fn start(nginx: &Daemon, ledger: &Arc<Ledger>) -> Traffic {
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();

    for number in 0..HTTP1_CLIENTS + HTTP2_CLIENTS + WEBSOCKET_CLIENTS {
        let client = Client {
            http1: nginx.address(0),
            http2: nginx.address(1),
            ledger: ledger.clone(),
            stop: stop.clone(),
            rng: SmallRng::seed_from_u64(number),
        };
        match number {
            0..HTTP1_CLIENTS => clients.spawn(client.http1()),
            number if number < HTTP1_CLIENTS + HTTP2_CLIENTS => clients.spawn(client.http2()),
            _ => clients.spawn(client.websocket()),
        };
    }
    Traffic { stop, clients }
}

struct Client {
    http1: SocketAddr,
    http2: SocketAddr,
    ledger: Arc<Ledger>,
    stop: Arc<AtomicBool>,
    rng: SmallRng,
}

/// A request, and what its client expects.
struct Ask {
    kind: &'static str,
    id: u64,
    call: Call,
    expected: Expected,
}

enum Expected {
    Body(String),
    /// A page with two parts, each of which may be an error page.
    Page,
}

impl Client {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    fn ask(&mut self) -> Ask {
        let id = self.ledger.new_id();
        let body = |id| Expected::Body(format!("id={id}"));
        let get = |path: &str| Call::get(&format!("{path}id={id}"));

        let (kind, call, expected) = match self.rng.random_range(0..20) {
            0..6 => ("get", get("/app?"), body(id)),
            6..8 => ("get first", get("/first?"), body(id)),
            8 => ("get dynamic", get("/dyn?pool=app&"), body(id)),
            9..12 => self.post("post", "/app", id),
            12 => self.post("post bold", "/bold", id),
            13..15 => ("page", get("/page?"), Expected::Page),
            _ => {
                let path = format!("/cache/{}", self.rng.random_range(0..PAGES));
                ("cached", Call::get(&path), Expected::Body(path))
            }
        };
        Ask {
            kind,
            id,
            call,
            expected,
        }
    }

    fn post(&mut self, kind: &'static str, path: &str, id: u64) -> (&'static str, Call, Expected) {
        let length = match self.rng.random_range(0..10) {
            0 => 40_000,
            _ => self.rng.random_range(1..500),
        };
        let call = Call::post(&format!("{path}?id={id}"), vec![b'q'; length]);
        (
            kind,
            call,
            Expected::Body(format!("id={id} {length} bytes")),
        )
    }

    async fn http1(mut self) {
        let mut connection = None;
        while self.goes_on() {
            let ask = self.ask();
            let last = self.rng.random_range(0..50) == 0;
            let call = match last {
                true => ask.call.clone().closing(),
                false => ask.call.clone(),
            };
            let kills = self.ledger.kills();

            let mut answer = None;
            for _ in 0..MOST_RETRIES {
                let is_new = connection.is_none();
                let mut client = match connection.take() {
                    Some(client) => client,
                    None => Http1::connect(self.http1).await,
                };
                // nginx may have closed it.
                client.try_send(&call.bytes()).await;
                match within_patience(&ask.name(), client.try_receive(ask.method())).await {
                    Ok(response) => {
                        answer = Some(response);
                        connection = Some(client);
                        break;
                    }
                    Err(bytes) if bytes.is_empty() && !is_new && self.ledger.kills() == kills => {}
                    Err(_) => break,
                }
            }

            self.judge(&ask, answer.as_ref(), kills);
            if last || answer.is_none_or(|response| response.header("connection") == Some("close"))
            {
                self.close(connection.take(), &ask, kills).await;
            }
        }
    }

    /// Nothing may follow the last response of a connection.
    async fn close(&self, connection: Option<Http1>, ask: &Ask, kills: u64) {
        let Some(mut client) = connection else { return };
        let rest = client.rest().await;
        if !rest.is_empty() && self.ledger.kills() == kills {
            let rest = String::from_utf8_lossy(&rest);
            self.ledger
                .complain(format!("after {} {}: {rest:?}", ask.kind, ask.id));
        }
    }

    async fn http2(mut self) {
        let mut connection = None;
        while self.goes_on() {
            let ask = self.ask();
            let kills = self.ledger.kills();

            let mut answer = None;
            for _ in 0..MOST_RETRIES {
                let client = match connection.take() {
                    Some(client) => client,
                    None => match Http2::try_connect(self.http2).await {
                        Some(client) => client,
                        None => continue,
                    },
                };
                match within_patience(&ask.name(), client.try_call(&ask.call)).await {
                    Some(response) => {
                        answer = Some(response);
                        connection = Some(client);
                        break;
                    }
                    // nginx also says GOAWAY on a new connection that it has not used yet.
                    None if self.ledger.kills() == kills => {}
                    None => break,
                }
            }
            self.judge(&ask, answer.as_ref(), kills);
        }
    }

    async fn websocket(mut self) {
        while self.goes_on() {
            let kills = self.ledger.kills();
            let call = Call::get(&format!("/ws?id={}", self.ledger.new_id()))
                .header("Upgrade", "websocket")
                .header("Connection", "Upgrade");
            let mut client = Http1::connect(self.http1).await;
            client.try_send(&call.bytes()).await;

            let received = within_patience("a WebSocket", client.try_receive("GET")).await;
            let end = match received {
                Ok(response) if response.status == 101 => match self.echoes(&mut client).await {
                    true => "101",
                    false => "broken",
                },
                Ok(response) if matches!(response.status, 502..=504) => "refused",
                _ => "lost",
            };
            self.ledger.finish("websocket", end);
            if matches!(end, "broken" | "lost") && self.ledger.kills() == kills {
                self.ledger.complain(format!("a WebSocket was {end}"));
            }
        }
    }

    async fn echoes(&mut self, client: &mut Http1) -> bool {
        for _ in 0..self.rng.random_range(1..20) {
            let message = vec![b'm'; self.rng.random_range(1..5_000)];
            client.try_send(&message).await;
            if client.try_exactly(message.len()).await.as_ref() != Some(&message) {
                return false;
            }
        }
        true
    }

    /// Books a request; complains of one that was lost, though no worker was killed meanwhile, and of an answer that
    /// is not its own.
    fn judge(&self, ask: &Ask, answer: Option<&Response>, kills: u64) {
        let killed = self.ledger.kills() != kills;
        let end = match answer {
            None if killed => "killed".to_owned(),
            None => "lost".to_owned(),
            Some(answer) if !answer.whole && killed => "killed".to_owned(),
            Some(answer) => answer.status.to_string(),
        };
        self.ledger.finish(ask.kind, &end);

        let is_own = match answer {
            None => killed,
            Some(answer) if !answer.whole => killed,
            Some(answer) => ask.is_answered_by(answer),
        };
        if !is_own {
            let text = answer.map(|answer| (answer.status, answer.whole, answer.text()));
            self.ledger
                .complain(format!("{} {}: {text:?}", ask.kind, ask.id));
        }
    }
}

/// What `wait` yields. Panics, naming the request, after a time that no request takes.
async fn within_patience<T>(request: &str, wait: impl Future<Output = T>) -> T {
    match timeout(LONGEST, wait).await {
        Ok(value) => value,
        Err(_) => panic!("no answer to {request} after {LONGEST:?}"),
    }
}

impl Ask {
    fn name(&self) -> String {
        format!("{} {}", self.kind, self.id)
    }

    fn method(&self) -> &'static str {
        match self.kind {
            "post" | "post bold" => "POST",
            _ => "GET",
        }
    }

    fn is_answered_by(&self, answer: &Response) -> bool {
        match (&self.expected, answer.status) {
            (_, 502..=504) => true,
            (Expected::Body(body), 200) => answer.text() == *body,
            (Expected::Page, 200) => {
                let text = answer.text();
                let parts = text
                    .strip_prefix('[')
                    .and_then(|text| text.strip_suffix(']'));
                let own = format!("id={}", self.id);
                let is_own = |part: &str| part == own || !part.contains("id=");
                parts
                    .and_then(|parts| parts.split_once('|'))
                    .is_some_and(|(first, second)| is_own(first) && is_own(second))
            }
            _ => false,
        }
    }
}
