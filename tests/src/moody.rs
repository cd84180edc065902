//! A server whose mood a test changes while it runs.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::backend::{Moment, Script, answer, read_request};
use crate::launch::{address, listen};
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
        let socket = listen();
        let (mood, moods) = watch::channel(Mood::Good);
        Self {
            address: address(&socket),
            mood,
            task: tokio::spawn(run(socket, Arc::new(script), moods)),
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

async fn run(socket: std::net::TcpListener, script: Script, mut moods: watch::Receiver<Mood>) {
    let mut connections = JoinSet::new();

    loop {
        let again = socket.try_clone().expect("a descriptor");
        let listener = TcpListener::from_std(again).expect("a listening socket");
        while *moods.borrow_and_update() != Mood::Refusing {
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted.expect("a listening socket");
                    connections.spawn(serve(Wire::new(stream), script.clone(), moods.clone()));
                }
                changed = moods.changed() => if changed.is_err() { return },
            }
            while connections.try_join_next().is_some() {}
        }
        drop(listener);

        set_listening(&socket, false);
        if moods
            .wait_for(|mood| *mood != Mood::Refusing)
            .await
            .is_err()
        {
            return;
        }
        set_listening(&socket, true);
    }
}

/// Whether the socket takes connections: it stays bound in any case, so that nobody gets its port.
fn set_listening(socket: &std::net::TcpListener, listens: bool) {
    let socket = socket.as_raw_fd();
    // SAFETY: both concern only the socket, which is ours.
    let rc = unsafe {
        match listens {
            true => libc::listen(socket, 1_024),
            false => libc::shutdown(socket, libc::SHUT_RD),
        }
    };
    assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
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
