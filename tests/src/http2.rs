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
        Self::over(stream(address).await).await
    }

    /// A connection under TLS.
    pub(crate) async fn connect_tls(address: SocketAddr) -> Self {
        let stream = stream(address).await;
        Self::over(within("the TLS handshake", tls::connect(stream, "h2")).await).await
    }

    async fn over(stream: impl Stream + 'static) -> Self {
        let (streams, connection) = within("the HTTP/2 handshake", h2::client::handshake(stream))
            .await
            .expect("HTTP/2");
        tokio::spawn(connection);
        Self { streams }
    }

    /// Sends one call on a stream of its own and receives its response.
    pub async fn call(&self, call: &Call) -> Response {
        self.call_pausing(call, async {}).await
    }

    /// The same, but sends the second half of the body only when `pause` is over.
    pub async fn call_pausing(&self, call: &Call, pause: impl Future<Output = ()>) -> Response {
        within(
            &format!("the response to {}", call.target),
            self.exchange(call, pause),
        )
        .await
    }

    async fn exchange(&self, call: &Call, pause: impl Future<Output = ()>) -> Response {
        let request = call.request("http").expect("a request");

        let mut streams = self.streams.clone().ready().await.expect("a stream");
        let (response, mut sending) = streams
            .send_request(request, call.body.is_empty())
            .expect("a request sent");
        if !call.body.is_empty() {
            let mut body = Bytes::from(call.body.clone());
            let early = body.split_to(body.len() / 2);

            sending.send_data(early, false).expect("a body sent");
            pause.await;
            // The answer may be there already, and the stream closed.
            let _ = sending.send_data(body, true);
        }

        let (head, incoming) = response.await.expect("a response").into_parts();
        let (body, trailers, whole) = read(incoming).await;
        Response {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            trailers,
            raw: Vec::new(),
            whole,
        }
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
