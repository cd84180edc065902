//! A row of the matrix: one kind of request.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::call::Call;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::message::{Request, Response};
use crate::nginx::Nginx;
use crate::patience::until;
use crate::reply::Reply;

/// One kind of request, in one kind of location.
///
/// In the text of a location `TARGET` is where the request goes, the good upstream or an upstrand;
/// `GOOD` is the good upstream on either side, and `ROW` the path of the row.
#[derive(Clone)]
pub struct Row {
    pub(crate) name: &'static str,
    pub(crate) server: String,
    pub(crate) beside: String,
    pub(crate) http: String,
    pub(crate) good: Script,
    pub(crate) client: Client,
    pub(crate) shows: Vec<String>,
    pub(crate) hides: Vec<&'static str>,
    pub(crate) volatile: Vec<&'static str>,
    pub(crate) walks: bool,
    pub(crate) polls: bool,
    pub(crate) since: [u32; 3],
}

type Script = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;
type Client = Rc<dyn Fn(Side) -> Pin<Box<dyn Future<Output = Seen>>>>;

/// What a client saw, to be compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen(pub Vec<u8>);

/// A client's way to one side of a row: to the plain location or to one of the upstrands.
#[derive(Clone)]
pub struct Side {
    pub(crate) nginx: Rc<Nginx>,
    pub(crate) host: String,
    pub(crate) row: &'static str,
}

impl Row {
    /// A request in a location of its own, after which the connection closes; see [`Row::calls`].
    pub fn new(name: &'static str, call: Call) -> Self {
        Self::calls(name, [call.closing()])
    }

    /// Requests one after the other, on one connection as long as it lives. Their targets stand
    /// below the row's path.
    pub fn calls(name: &'static str, calls: impl Into<Vec<Call>>) -> Self {
        let calls = calls.into();
        Self::client(name, move |side| over_http1(side, calls.clone()))
    }

    /// A request over HTTP/2.
    pub fn http2(name: &'static str, call: Call) -> Self {
        Self::client(name, move |side| over_http2(side, call.clone()))
    }

    /// The same row for other requests over HTTP/1.
    pub fn over_http1(mut self, calls: impl Into<Vec<Call>>) -> Self {
        let calls = calls.into();
        self.client = Rc::new(move |side| Box::pin(over_http1(side, calls.clone())));
        self.shows.clear();
        self
    }

    /// The same row for requests over HTTP/1 under TLS.
    pub fn over_http1_tls(mut self, calls: impl Into<Vec<Call>>) -> Self {
        let calls = calls.into();
        self.client = Rc::new(move |side| {
            let calls = calls.clone();
            Box::pin(async move {
                let mut client = side.nginx.http1_tls().await;
                let mut seen = Seen::default();
                for call in calls {
                    seen.add(&client.call(&side.at(call)).await);
                }
                seen
            })
        });
        self
    }

    /// The same row for a request over HTTP/2 under TLS.
    pub fn over_http2_tls(mut self, call: Call) -> Self {
        self.client = Rc::new(move |side| {
            let call = side.at(call.clone());
            Box::pin(async move { Seen::of([side.nginx.http2_tls().await.call(&call).await]) })
        });
        self
    }

    /// The same row for a request over HTTP/2.
    pub fn over_http2(mut self, call: Call) -> Self {
        self.client = Rc::new(move |side| Box::pin(over_http2(side, call.clone())));
        self.shows.clear();
        self
    }

    /// The same row for a request over HTTP/3.
    pub fn over_http3(mut self, call: Call) -> Self {
        self.client = Rc::new(move |side| {
            let call = side.at(call.clone());
            Box::pin(async move { Seen::of([side.nginx.http3().await.call(&call).await]) })
        });
        self
    }

    /// Whatever a client may do.
    pub fn client<F>(name: &'static str, client: impl Fn(Side) -> F + 'static) -> Self
    where
        F: Future<Output = Seen> + 'static,
    {
        Self {
            name,
            server: "location ROW/ { proxy_pass http://TARGET; }".to_owned(),
            beside: String::new(),
            http: String::new(),
            good: Arc::new(|_| Reply::ok("good").header("X-Good", "yes")),
            client: Rc::new(move |side| Box::pin(client(side))),
            shows: Vec::new(),
            hides: Vec::new(),
            volatile: Vec::new(),
            walks: true,
            polls: false,
            since: [0; 3],
        }
    }

    /// What the good backend answers.
    pub fn good(self, reply: Reply) -> Self {
        self.script(move |_| reply.clone())
    }

    /// What the good backend answers to each request.
    pub fn script(mut self, good: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        self.good = Arc::new(good);
        self
    }

    /// Adds to the row's location.
    pub fn location(mut self, more: &str) -> Self {
        let end = self.server.rfind('}').expect("a location");
        self.server.insert_str(end, &format!("{more}\n"));
        self
    }

    /// Replaces the `proxy_pass` of the row's location.
    pub fn pass(mut self, pass: &str) -> Self {
        self.server = self.server.replace("proxy_pass http://TARGET;", pass);
        self
    }

    /// Replaces the row's location by others.
    pub fn server(mut self, text: &str) -> Self {
        text.clone_into(&mut self.server);
        self
    }

    /// Adds to the row's server, behind its location.
    pub fn beside(mut self, text: &str) -> Self {
        self.beside += &format!("{text}\n");
        self
    }

    /// Adds to `http {}`.
    pub fn http(mut self, text: &str) -> Self {
        self.http += &format!("{text}\n");
        self
    }

    /// What stands in what the client sees: a row that fails on both sides is none.
    pub fn shows(mut self, text: &str) -> Self {
        self.shows.push(text.to_owned());
        self
    }

    /// What must not stand in what the client sees.
    pub fn hides(mut self, text: &'static str) -> Self {
        self.hides.push(text);
        self
    }

    /// A header that differs from one response to the next.
    pub fn volatile(mut self, header: &'static str) -> Self {
        self.volatile.push(header);
        self
    }

    /// The client's own request makes no hop, or not always: what its log line says of a walk is
    /// not looked at.
    pub fn walks_elsewhere(mut self) -> Self {
        self.walks = false;
        self
    }

    /// The client asks again and again: lines of the logs that are alike count once.
    pub fn polls(mut self) -> Self {
        self.polls = true;
        self
    }

    /// The first version of nginx that knows what the row needs.
    pub fn since(mut self, version: [u32; 3]) -> Self {
        self.since = version;
        self
    }

    /// The row's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the row adds to the server on the side whose number is `side`.
    pub(crate) fn text(&self, side: usize) -> String {
        let target = match side {
            0 => "good00".to_owned(),
            _ => format!("$upstrand_us{side:02}"),
        };
        let text = format!("{}\n{}", self.server, self.beside);
        text.replace("TARGET", &target)
            .replace("GOOD", &format!("good{side:02}"))
            .replace("ROW", &format!("/{}", self.name))
    }
}

async fn over_http1(side: Side, calls: Vec<Call>) -> Seen {
    let mut seen = Seen::default();
    let mut client = side.http1().await;

    for call in calls {
        seen.add(&client.call(&side.at(call.clone())).await);
        if call.closes() {
            seen.0.extend(client.rest().await);
            client = side.http1().await;
        }
    }
    seen
}

async fn over_http2(side: Side, call: Call) -> Seen {
    let client = side.http2().await;
    Seen::of([client.call(&side.at(call)).await])
}

impl Side {
    pub async fn http1(&self) -> Http1 {
        self.nginx.http1().await
    }

    /// The same, with so many bytes of room for what nginx sends.
    pub async fn http1_with_buffer(&self, bytes: u32) -> Http1 {
        self.nginx.http1_with_buffer(bytes).await
    }

    pub async fn http2(&self) -> Http2 {
        self.nginx.http2().await
    }

    /// The call as it reaches this side.
    pub fn at(&self, call: Call) -> Call {
        call.below(&format!("/{}", self.row)).host(&self.host)
    }

    /// Sends the call again and again until the answer's `X-Cache` is another than this.
    pub async fn until_not(&self, state: &str, call: Call) -> Seen {
        Seen::of([self.answer_but(state, call).await])
    }

    /// What so many clients see that send the call at the same time, in the order of `X-Cache`.
    pub async fn crowd(&self, call: Call, clients: usize) -> Seen {
        self.crowd_until_not("", call, clients).await
    }

    /// The same, each of them polling as with [`Side::until_not`].
    pub async fn crowd_until_not(&self, state: &'static str, call: Call, clients: usize) -> Seen {
        let mut crowd = JoinSet::new();
        for _ in 0..clients {
            let (side, call) = (self.clone(), call.clone());
            crowd.spawn_local(async move { side.answer_but(state, call).await });
        }

        let mut answers = Vec::new();
        while let Some(answer) = crowd.join_next().await {
            answers.push(answer.expect("an answer"));
        }
        answers.sort_by_key(|answer| answer.header("x-cache").map(str::to_owned));
        Seen::of(answers)
    }

    async fn answer_but(&self, state: &str, call: Call) -> Response {
        until(&format!("an answer that is no {state}"), async || {
            let answer = self.nginx.call(self.at(call.clone())).await;
            Some(answer).filter(|answer| answer.header("x-cache") != Some(state))
        })
        .await
    }

    /// The name of this side's server.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn nginx(&self) -> &Nginx {
        &self.nginx
    }
}

impl Seen {
    pub fn of(responses: impl IntoIterator<Item = Response>) -> Self {
        let mut seen = Self::default();
        for response in responses {
            seen.add(&response);
        }
        seen
    }

    /// Adds a response: every byte of its head, and its body without what frames it, which is not
    /// the same each time.
    pub fn add(&mut self, response: &Response) {
        let Response {
            status,
            headers,
            body,
            trailers,
            raw,
            whole,
        } = response;

        match raw.windows(4).position(|window| window == b"\r\n\r\n") {
            Some(end) => self.0.extend(&raw[..end + 4]),
            None => {
                self.0.extend(format!("{status}\n").bytes());
                for (name, value) in headers {
                    self.0.extend(format!("{name}: {value:?}\n").bytes());
                }
                self.0.push(b'\n');
            }
        }
        self.0.extend(body);
        self.0
            .extend(format!("\n[trailers {trailers:?}, whole: {whole}]\n").bytes());
    }
}
