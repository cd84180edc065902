//! A server whose mood a test changes while it runs.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::backend::{Moment, Script, answer, read_request};
use crate::message::Request;
use crate::reply::Reply;
use crate::wire::Wire;

/// What a server does with connections and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Answers as its script says.
    Good,
    /// Answers 503.
    Failing,
    /// Takes requests and closes.
    Closing,
    /// Takes requests and says nothing until its mood changes; then it closes.
    Hanging,
    /// Refuses connections.
    Refusing,
}

/// A server that keeps no requests, on a port of its own; it ends when dropped.
pub struct Moody {
    address: SocketAddr,
    mood: watch::Sender<Mood>,
    task: JoinHandle<()>,
}

impl Moody {
    /// Begins in a good mood.
    pub async fn new(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let port = bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let (mood, moods) = watch::channel(Mood::Good);
        Self {
            address: port.local_addr().expect("a bound socket"),
            mood,
            task: tokio::spawn(run(port, Arc::new(script), moods)),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the mood, of the connections that are open as well.
    pub fn set_mood(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }
}

impl Drop for Moody {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// `port` is bound, and never listens: so nobody else gets the port while connections are refused.
async fn run(port: TcpSocket, script: Script, mut moods: watch::Receiver<Mood>) {
    let address = port.local_addr().expect("a bound socket");
    let mut connections = JoinSet::new();

    loop {
        let listener = bind(address).listen(1_024).expect("a bound socket");
        while *moods.borrow_and_update() != Mood::Refusing {
            tokio::select! {
                accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(Wire::new(stream), script.clone(), moods.clone()));
                },
                changed = moods.changed() => if changed.is_err() { return },
            }
            while connections.try_join_next().is_some() {}
        }
        drop(listener);

        if moods
            .wait_for(|mood| *mood != Mood::Refusing)
            .await
            .is_err()
        {
            return;
        }
    }
}

fn bind(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("a socket");
    socket.bind(address).expect("a free port");
    socket
}

async fn serve(mut wire: Wire, script: Script, mut moods: watch::Receiver<Mood>) {
    while let Some(request) = read_request(&mut wire, 0, Moment::WhenWhole).await {
        if !request.whole {
            return;
        }

        let mood = *moods.borrow_and_update();
        let goes_on = match mood {
            Mood::Good => answer(&mut wire, &request, &script(&request)).await,
            Mood::Failing => {
                let sorry = Reply::status(503).body("sorry");
                answer(&mut wire, &request, &sorry).await
            }
            Mood::Hanging => {
                // It ends with the server, too.
                let _ = moods.wait_for(|mood| *mood != Mood::Hanging).await;
                false
            }
            Mood::Closing | Mood::Refusing => false,
        };
        if !goes_on {
            return;
        }
    }
}
