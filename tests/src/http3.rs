//! An HTTP/3 client.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3_quinn::{BidiStream, OpenStreams};
use http::HeaderMap;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, TokioRuntime,
};
use tokio::task::JoinHandle;

use crate::call::Call;
use crate::message::Response;
use crate::patience::within;
use crate::tls;

/// One connection of a client; its clones send streams on the same one. It ends with the last.
#[derive(Clone)]
pub struct Http3 {
    streams: SendRequest<OpenStreams, Bytes>,
    #[expect(dead_code, reason = "held for its end")]
    connection: Arc<Connection>,
}

struct Connection {
    driver: JoinHandle<()>,
    endpoint: Endpoint,
}

/// The connection's id is empty, so that there is no other to offer: nginx closes a connection whose offer it takes for
/// one too many, when it comes a second time.
#[derive(Debug)]
struct NoIds;

impl ConnectionIdGenerator for NoIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&[])
    }

    fn cid_len(&self) -> usize {
        0
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

fn endpoint() -> Endpoint {
    let mut config = EndpointConfig::default();
    config.cid_generator(|| Box::new(NoIds));

    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    Endpoint::new(config, None, socket, Arc::new(TokioRuntime)).expect("a socket")
}

impl Http3 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let mut endpoint = endpoint();
        let config = QuicClientConfig::try_from(tls::client("h3")).expect("TLS 1.3");
        endpoint.set_default_client_config(ClientConfig::new(Arc::new(config)));

        let connecting = endpoint.connect(address, tls::NAME).expect("an address");
        let connection = within("the QUIC handshake", connecting)
            .await
            .expect("QUIC");

        // nginx takes an unknown frame at the end of a stream for a body that was broken off.
        let mut builder = h3::client::builder();
        builder.send_grease(false);
        let handshake = builder.build(h3_quinn::Connection::new(connection));
        let (mut driver, streams) = within("HTTP/3", handshake).await.expect("HTTP/3");
        let driver = tokio::spawn(async move {
            drop(std::future::poll_fn(|context| driver.poll_close(context)).await);
        });
        Self {
            streams,
            connection: Arc::new(Connection { driver, endpoint }),
        }
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
        let request = call.request("https").expect("a request");
        let mut stream = self
            .streams
            .clone()
            .send_request(request)
            .await
            .expect("a stream");
        if !call.body.is_empty() {
            let mut body = Bytes::from(call.body.clone());
            let early = body.split_to(body.len() / 2);

            // The answer may be there already, and the stream closed.
            let _ = stream.send_data(early).await;
            pause.await;
            let _ = stream.send_data(body).await;
        }
        let _ = stream.finish().await;

        let head = stream
            .recv_response()
            .await
            .expect("a response")
            .into_parts()
            .0;
        Response::framed(head, read(&mut stream).await)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
        self.endpoint.close(0_u32.into(), b"");
    }
}

/// The body, the trailers, and whether the stream came to its end.
async fn read(stream: &mut RequestStream<BidiStream<Bytes>, Bytes>) -> (Vec<u8>, HeaderMap, bool) {
    let mut body = Vec::new();
    loop {
        match stream.recv_data().await {
            Ok(Some(mut data)) => body.extend(data.copy_to_bytes(data.remaining())),
            Ok(None) => break,
            Err(_) => return (body, HeaderMap::new(), false),
        }
    }

    match stream.recv_trailers().await {
        Ok(trailers) => (body, trailers.unwrap_or_default(), true),
        Err(_) => (body, HeaderMap::new(), false),
    }
}
