//! A server that does what a test tells it, and remembers what it got.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::gateway::{self, Protocol};
use crate::http2_backend;
use crate::message::Request;
use crate::patience::until;
use crate::reply::{Reply, Then};
use crate::tls;
use crate::wire::{Body, Framing, Wire, parse_request};

/// A backend on a port of its own; it ends when dropped.
pub struct Backend {
    address: SocketAddr,
    record: Arc<Record>,
    life: Life,
}

#[derive(Default)]
pub(crate) struct Record {
    connections: AtomicUsize,
    open: AtomicUsize,
    requests: Mutex<Vec<Request>>,
}

impl Record {
    pub(crate) fn add(&self, request: &Request) {
        let mut requests = self.requests.lock().expect("no panic");
        requests.push(request.clone());
    }
}

enum Life {
    Serving(JoinHandle<()>),
    /// Bound, so that nobody else gets the port, but not listening.
    Refusing(#[expect(dead_code, reason = "held for its port")] TcpSocket),
}

pub(crate) type Script = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// When a request is answered.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    WhenWhole,
    AfterHead,
    /// When it is whole, in another protocol than HTTP/1.
    Speaking(Protocol),
}

impl Backend {
    /// Answers every request alike.
    pub async fn answering(reply: Reply) -> Self {
        Self::each(move |_| reply.clone()).await
    }

    /// Answers each request as `script` says.
    pub async fn each(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::serving(Arc::new(script), Moment::WhenWhole).await
    }

    /// Answers without reading the body, and closes.
    pub async fn answering_early(reply: Reply) -> Self {
        Self::serving(Arc::new(move |_| reply.clone()), Moment::AfterHead).await
    }

    /// Answers each request as `script` says, in this protocol.
    pub async fn speaking(
        protocol: Protocol,
        script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let moment = match protocol {
            Protocol::Http1 => Moment::WhenWhole,
            other => Moment::Speaking(other),
        };
        Self::serving(Arc::new(script), moment).await
    }

    /// Refuses every connection.
    pub fn refusing() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .expect("a free port");
        Self {
            address: socket.local_addr().expect("a bound socket"),
            record: Arc::default(),
            life: Life::Refusing(socket),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far, those broken off included.
    pub fn requests(&self) -> Vec<Request> {
        self.record.requests.lock().expect("no panic").clone()
    }

    /// Waits for `count` requests and returns them.
    pub async fn received(&self, count: usize) -> Vec<Request> {
        let what = format!("{count} requests at {}", self.address);
        until(&what, async || {
            Some(self.requests()).filter(|requests| requests.len() >= count)
        })
        .await
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.record.connections.load(Ordering::SeqCst)
    }

    /// Waits until all its connections are closed.
    pub async fn deserted(&self) {
        let what = format!("no connection left at {}", self.address);
        let open = &self.record.open;
        until(&what, async || {
            (open.load(Ordering::SeqCst) == 0).then_some(())
        })
        .await;
    }

    async fn serving(script: Script, moment: Moment) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let record = Arc::<Record>::default();

        let serving = accept(listener, script, moment, record.clone());
        Self {
            address,
            record,
            life: Life::Serving(tokio::spawn(serving)),
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        if let Life::Serving(task) = &self.life {
            task.abort();
        }
    }
}

async fn accept(listener: TcpListener, script: Script, moment: Moment, record: Arc<Record>) {
    let mut connections = JoinSet::new();

    while let Ok((stream, _)) = listener.accept().await {
        let connection = record.connections.fetch_add(1, Ordering::SeqCst) + 1;
        record.open.fetch_add(1, Ordering::SeqCst);

        let (script, record) = (script.clone(), record.clone());
        connections.spawn(async move {
            serve(stream, connection, script, moment, &record).await;
            record.open.fetch_sub(1, Ordering::SeqCst);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(
    stream: TcpStream,
    connection: usize,
    script: Script,
    moment: Moment,
    record: &Record,
) {
    match moment {
        Moment::Speaking(Protocol::Http2) => {
            return http2_backend::serve(stream, connection, &script, record).await;
        }
        Moment::Speaking(protocol) if protocol != Protocol::Https => {
            return serve_gateway(stream, connection, &script, protocol, record).await;
        }
        _ => {}
    }
    let mut wire = match moment {
        Moment::Speaking(Protocol::Https) => match tls::accept(stream).await {
            Some(stream) => Wire::new(stream),
            None => return,
        },
        _ => Wire::new(stream),
    };

    while let Some(request) = read_request(&mut wire, connection, moment).await {
        let broken_off = !request.whole && moment != Moment::AfterHead;
        record.add(&request);
        if broken_off || !answer(&mut wire, &request, &script(&request)).await {
            return;
        }
    }
}

/// One request of a connection in one of the CGI-like protocols.
async fn serve_gateway(
    stream: TcpStream,
    connection: usize,
    script: &Script,
    protocol: Protocol,
    record: &Record,
) {
    let mut wire = Wire::new(stream);
    let Some(request) = gateway::read(protocol, &mut wire, connection).await else {
        return;
    };
    record.add(&request);

    let reply = script(&request);
    wire.write(&gateway::write(protocol, &reply, request.method == "HEAD"))
        .await;
    match reply.then {
        Then::Stall => drop(wire.rest().await),
        Then::Endless => {
            let more = match protocol {
                Protocol::Fastcgi => gateway::stdout(&[b'~'; 16 * 1024]),
                _ => vec![b'~'; 16 * 1024],
            };
            while wire.write(&more).await {}
        }
        Then::Next | Then::Close | Then::Echo => {}
    }
}

pub(crate) async fn read_request(
    wire: &mut Wire,
    connection: usize,
    moment: Moment,
) -> Option<Request> {
    let head = wire.head().await?;
    let (method, target, version, headers) = parse_request(&head)?;

    let framing = Framing::of(&headers).unwrap_or(Framing::Length(0));
    let body = match moment {
        Moment::WhenWhole | Moment::Speaking(_) => wire.body(framing).await,
        Moment::AfterHead => Body {
            bytes: Vec::new(),
            trailers: Default::default(),
            whole: false,
        },
    };

    let raw = wire.raw();
    let Body {
        bytes: body, whole, ..
    } = body;
    Some(Request {
        method,
        target,
        version,
        headers,
        body,
        raw,
        whole,
        connection,
    })
}

/// Whether the connection can take another request.
pub(crate) async fn answer(wire: &mut Wire, request: &Request, reply: &Reply) -> bool {
    // A response to HEAD is whole without the body that would stall, or never end.
    let then = match reply.then {
        Then::Stall | Then::Endless if request.method == "HEAD" && !reply.is_raw() => Then::Next,
        then => then,
    };
    let goes_on = then == Then::Next && request.whole && request.keeps_alive();
    let closing = matches!(then, Then::Next | Then::Close) && !goes_on;

    let bytes = reply.bytes(request.method == "HEAD", closing);
    match reply.pause {
        None => drop(wire.write(&bytes).await),
        Some(pause) => {
            for part in bytes.chunks(bytes.len().div_ceil(10).max(1)) {
                sleep(pause).await;
                wire.write(part).await;
            }
        }
    }

    match then {
        Then::Next | Then::Close => {}
        Then::Stall => drop(wire.rest().await),
        Then::Endless => while wire.write(&[b'~'; 16 * 1024]).await {},
        Then::Echo => echo(wire).await,
    }
    if !goes_on {
        wire.finish().await;
    }
    goes_on
}

async fn echo(wire: &mut Wire) {
    loop {
        let bytes = wire.some().await;
        if bytes.is_empty() || !wire.write(&bytes).await {
            return;
        }
    }
}
