//! An nginx that is nobody's child: only such a one can be replaced by another binary while it serves.

use std::collections::HashSet;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::path::Path;

use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::launch::{self, address, listen};
use crate::patience::{until, within};
use crate::processes;

/// A running nginx under a folder of its own; all that belongs to it is killed when dropped.
pub struct Daemon {
    prefix: TempDir,
    /// The master process.
    master: i32,
    sockets: Vec<TcpListener>,
    /// All master processes so far.
    masters: HashSet<i32>,
}

impl Daemon {
    /// Starts it with so many sockets, and the configuration that `text` makes of their addresses, which
    /// must say `pid nginx.pid`.
    pub async fn start(sockets: usize, text: impl Fn(&Path, &[SocketAddr]) -> String) -> Self {
        let prefix = TempDir::new().expect("a temporary folder");
        let sockets: Vec<_> = (0..sockets).map(|_| listen()).collect();
        let addresses: Vec<_> = sockets.iter().map(address).collect();

        let mut command = launch::orphan(prefix.path(), &text(prefix.path(), &addresses));
        launch::inherit(
            &mut command,
            sockets.iter().map(AsRawFd::as_raw_fd).collect(),
        );
        let status = within("nginx in the background", command.status()).await;
        assert!(status.expect("a shell").success());

        let mut started = Self {
            prefix,
            master: 0,
            sockets,
            masters: HashSet::new(),
        };
        started.find_master().await;
        started.workers_ready(&[]).await;
        started
    }

    pub fn address(&self, socket: usize) -> SocketAddr {
        address(&self.sockets[socket])
    }

    /// A connection to one of its sockets.
    pub async fn connect(&self, socket: usize) -> TcpStream {
        let stream = within("connecting", TcpStream::connect(self.address(socket))).await;
        stream.expect("nginx listens")
    }

    /// The folder that holds everything nginx reads and writes.
    pub fn prefix(&self) -> &Path {
        self.prefix.path()
    }

    /// The id of the master process.
    pub fn master(&self) -> i32 {
        self.master
    }

    /// The ids of the workers, those that are about to leave included.
    pub fn workers(&self) -> Vec<i32> {
        processes::workers(self.master)
    }

    /// Those that are not about to leave.
    pub fn serving_workers(&self) -> Vec<i32> {
        let serving = |pid: &i32| !processes::title(*pid).contains("shutting down");
        self.workers().into_iter().filter(serving).collect()
    }

    /// Sends a signal to the master process.
    pub fn signal(&self, signal: i32) {
        processes::signal(self.master, signal);
    }

    /// Reads its configuration anew and waits until new workers have taken over.
    pub async fn reload(&self) {
        let old = self.workers();
        self.signal(libc::SIGHUP);
        self.workers_ready(&old).await;
    }

    /// Kills a worker, without a chance to end anything, and waits for another in its place.
    pub async fn kill_worker(&self) {
        let Some(worker) = self.serving_workers().first().copied() else {
            return;
        };
        let old = self.workers();
        processes::signal(worker, libc::SIGKILL);
        until("a worker in place of one that was killed", async || {
            let workers = self.serving_workers();
            workers.iter().any(|pid| !old.contains(pid)).then_some(())
        })
        .await;
    }

    /// Has the binary replaced by itself, as for an upgrade, and waits until the old processes have gone.
    pub async fn upgrade(&mut self) {
        let old = self.master;
        self.signal(libc::SIGUSR2);
        self.find_master().await;
        self.workers_ready(&[]).await;

        processes::signal(old, libc::SIGWINCH);
        until("the old master without workers", async || {
            processes::workers(old).is_empty().then_some(())
        })
        .await;

        processes::signal(old, libc::SIGQUIT);
        until("the end of the old master", async || {
            processes::is_gone(old).then_some(())
        })
        .await;
    }

    /// Stops it gracefully, and returns its error log.
    pub async fn stop(mut self) -> String {
        self.signal(libc::SIGQUIT);
        let master = self.master;
        until("the end of nginx after SIGQUIT", async || {
            processes::is_gone(master).then_some(())
        })
        .await;
        self.masters.clear();
        fs::read_to_string(self.prefix().join("error.log")).unwrap_or_default()
    }

    /// Reads the file of the master's id until there is another one.
    async fn find_master(&mut self) {
        let file = self.prefix().join("nginx.pid");
        let old = self.master;
        self.master = until("another master process", async || {
            let text = fs::read_to_string(&file).ok()?;
            text.trim().parse().ok().filter(|pid| *pid != old)
        })
        .await;
        self.masters.insert(self.master);
    }

    async fn workers_ready(&self, old: &[i32]) {
        until("two new workers", async || {
            let new = self.serving_workers();
            let new = new.iter().filter(|pid| !old.contains(pid)).count();
            (new == 2 && self.serving_workers().len() == 2).then_some(())
        })
        .await;
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.prefix().join("error.log");
            eprintln!(
                "error log of the nginx in question:\n{}",
                processes::read(&log)
            );
        }
        for master in &self.masters {
            // The daemon's processes are its children, and of its process group.
            for worker in processes::workers(*master) {
                processes::signal(worker, libc::SIGKILL);
            }
            processes::signal(*master, libc::SIGKILL);
        }
    }
}
