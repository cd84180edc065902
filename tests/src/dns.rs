//! A name server that knows one answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Answers for every name with the same addresses, for one second; it ends when dropped.
pub struct Dns {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<Ipv4Addr>>>,
    queries: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Dns {
    pub async fn answering(addresses: &[Ipv4Addr]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        let answer = Arc::new(Mutex::new(addresses.to_vec()));

        let queries = Arc::<AtomicUsize>::default();

        let serving = tokio::spawn(serve(socket, answer.clone(), queries.clone()));
        Self {
            address,
            answer,
            queries,
            serving,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it answers from now on.
    pub fn answer(&self, addresses: &[Ipv4Addr]) {
        *self.answer.lock().expect("no panic") = addresses.to_vec();
    }

    /// How many queries came so far.
    pub fn queries(&self) -> usize {
        self.queries.load(Ordering::SeqCst)
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(socket: UdpSocket, answer: Arc<Mutex<Vec<Ipv4Addr>>>, queries: Arc<AtomicUsize>) {
    let mut query = [0; 512];
    while let Ok((length, client)) = socket.recv_from(&mut query).await {
        queries.fetch_add(1, Ordering::SeqCst);
        let addresses = answer.lock().expect("no panic").clone();
        if let Some(response) = response(&query[..length], &addresses) {
            drop(socket.send_to(&response, client).await);
        }
    }
}

/// RFC 1035, 4.1: the header, the question as it came, an A record for each address.
fn response(query: &[u8], addresses: &[Ipv4Addr]) -> Option<Vec<u8>> {
    let id = query.get(..2)?;
    let name = query.get(12..)?.iter().position(|byte| *byte == 0)? + 1;
    let question = query.get(12..12 + name + 4)?;

    let count = u8::try_from(addresses.len()).ok()?;
    let mut response = id.to_vec();
    response.extend([0x84, 0, 0, 1, 0, count, 0, 0, 0, 0]);
    response.extend(question);
    for address in addresses {
        // The name of the question, A, IN, one second, four bytes.
        response.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        response.extend(address.octets());
    }
    Some(response)
}
