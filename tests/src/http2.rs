//! An HTTP/2 client, by prior knowledge.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use http::HeaderMap;
use tokio::net::TcpStream;

use crate::call::Call;
use crate::message::Response;
use crate::patience::within;
use crate::tls;
use crate::wire::Stream;

/// One connection of a client; its clones send streams on the same one.
#[derive(Clone)]
pub struct Http2 {
    streams: SendRequest<Bytes>,
}

impl Http2 {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).await.expect("HTTP/2")
    }

    /// A new connection; None: it was closed before it could be used.
    pub async fn try_connect(address: SocketAddr) -> Option<Self> {
        Self::over(stream(address).await).await
    }

    /// A connection under TLS.
    pub(crate) async fn connect_tls(address: SocketAddr) -> Self {
        let stream = within(
            "the TLS handshake",
            tls::connect(stream(address).await, "h2"),
        )
        .await;
        Self::over(stream).await.expect("HTTP/2")
    }

    async fn over(stream: impl Stream + 'static) -> Option<Self> {
        let handshake = within("the HTTP/2 handshake", h2::client::handshake(stream));
        let (streams, connection) = handshake.await.ok()?;
        tokio::spawn(connection);
        Some(Self { streams })
    }

    /// Sends one call on a stream of its own and receives its response.
    pub async fn call(&self, call: &Call) -> Response {
        self.call_pausing(call, async {}).await
    }

    /// The same; None: the stream or the connection was closed without a response.
    pub async fn try_call(&self, call: &Call) -> Option<Response> {
        self.try_call_pausing(call, async {}).await
    }

    /// As [`Http2::call`], but sends the second half of the body only when `pause` is over.
    pub async fn call_pausing(&self, call: &Call, pause: impl Future<Output = ()>) -> Response {
        let response = self.try_call_pausing(call, pause).await;
        response.expect("a response")
    }

    async fn try_call_pausing(
        &self,
        call: &Call,
        pause: impl Future<Output = ()>,
    ) -> Option<Response> {
        within(
            &format!("the response to {}", call.target),
            self.exchange(call, pause),
        )
        .await
    }

    async fn exchange(&self, call: &Call, pause: impl Future<Output = ()>) -> Option<Response> {
        let request = call.request("http").expect("a request");

        let mut streams = self.streams.clone().ready().await.ok()?;
        let (response, mut sending) = streams.send_request(request, call.body.is_empty()).ok()?;
        if !call.body.is_empty() {
            let mut body = Bytes::from(call.body.clone());
            let early = body.split_to(body.len() / 2);

            sending.send_data(early, false).ok()?;
            pause.await;
            // The answer may be there already, and the stream closed.
            let _ = sending.send_data(body, true);
        }

        let (head, incoming) = response.await.ok()?.into_parts();
        Some(Response::framed(head, read(incoming).await))
    }
}

async fn stream(address: SocketAddr) -> TcpStream {
    within("connecting", TcpStream::connect(address))
        .await
        .expect("nginx listens")
}

/// The body, the trailers, and whether the stream came to its end.
async fn read(mut incoming: RecvStream) -> (Vec<u8>, HeaderMap, bool) {
    let mut body = Vec::new();
    while let Some(data) = incoming.data().await {
        match data {
            Ok(data) => {
                incoming
                    .flow_control()
                    .release_capacity(data.len())
                    .expect("data received");
                body.extend(data);
            }
            Err(_) => return (body, HeaderMap::new(), false),
        }
    }

    match incoming.trailers().await {
        Ok(trailers) => (body, trailers.unwrap_or_default(), true),
        Err(_) => (body, HeaderMap::new(), false),
    }
}
