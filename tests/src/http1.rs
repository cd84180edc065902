//! An HTTP/1 client that keeps every byte.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;

use crate::call::Call;
use crate::message::Response;
use crate::patience::within;
use crate::tls;
use crate::wire::{Body, Framing, Wire, parse_response};

/// Time between two parts of what is sent slowly: nginx sees each of them alone.
const BREATH: Duration = Duration::from_millis(10);

/// One connection of a client.
pub struct Http1 {
    wire: Wire,
}

impl Http1 {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = within("connecting", TcpStream::connect(address))
            .await
            .expect("nginx listens");
        Self {
            wire: Wire::new(stream),
        }
    }

    /// Like [`Http1::connect`], with so many bytes of room for what nginx sends.
    pub(crate) async fn connect_with_buffer(address: SocketAddr, bytes: u32) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(bytes).expect("a socket");
        let stream = within("connecting", socket.connect(address))
            .await
            .expect("nginx listens");
        Self {
            wire: Wire::new(stream),
        }
    }

    /// A connection under TLS.
    pub(crate) async fn connect_tls(address: SocketAddr) -> Self {
        let stream = within("connecting", TcpStream::connect(address))
            .await
            .expect("nginx listens");
        let stream = within("the TLS handshake", tls::connect(stream, "http/1.1")).await;
        Self {
            wire: Wire::new(stream),
        }
    }

    /// Sends one call and receives its response.
    pub async fn call(&mut self, call: &Call) -> Response {
        self.send(&call.bytes()).await;
        self.receive(&call.method).await
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        let sent = self.try_send(bytes).await;
        assert!(sent, "nginx closed the connection before it had read all");
    }

    /// Sends what nginx takes; false: it closed the connection before it had read all.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        within("sending", self.wire.write(bytes)).await
    }

    /// Sends the bytes in ten parts, each some time after the other.
    pub async fn send_slowly(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(bytes.len().div_ceil(10).max(1)) {
            self.send(part).await;
            sleep(BREATH).await;
        }
    }

    /// The next response, to a request of this method; a 1xx counts as one.
    pub async fn receive(&mut self, method: &str) -> Response {
        match self.try_receive(method).await {
            Ok(response) => response,
            Err(bytes) => panic!(
                "no response to {method}, but {:?}",
                String::from_utf8_lossy(&bytes)
            ),
        }
    }

    /// The same, or all that came where there was no response.
    pub async fn try_receive(&mut self, method: &str) -> Result<Response, Vec<u8>> {
        within(&format!("the response to {method}"), self.read(method)).await
    }

    /// Bytes after an upgrade: `count` of them.
    pub async fn exactly(&mut self, count: usize) -> Vec<u8> {
        let bytes = self.try_exactly(count).await;
        bytes.unwrap_or_else(|| panic!("the connection ended before {count} bytes"))
    }

    /// The same; None: the connection ended before.
    pub async fn try_exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        within(&format!("{count} bytes"), self.wire.exactly(count)).await
    }

    /// Says that it will send no more.
    pub async fn finish(&mut self) {
        within("the end of sending", self.wire.finish()).await;
    }

    /// All that comes until nginx closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        within("the end of the connection", self.wire.rest()).await
    }

    async fn read(&mut self, method: &str) -> Result<Response, Vec<u8>> {
        let Some(head) = self.wire.head().await else {
            return Err(self.wire.rest().await);
        };
        let Some((status, headers)) = parse_response(&head) else {
            return Err([head, self.wire.rest().await].concat());
        };

        let bodiless = method == "HEAD" || status < 200 || matches!(status, 204 | 304);
        let framing = match Framing::of(&headers) {
            _ if bodiless => Framing::Length(0),
            said => said.unwrap_or(Framing::UntilClose),
        };
        let Body {
            bytes: body,
            trailers,
            whole,
        } = self.wire.body(framing).await;

        let raw = self.wire.raw();
        Ok(Response {
            status,
            headers,
            body,
            trailers,
            raw,
            whole,
        })
    }
}
