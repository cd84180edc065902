//! The nginx process.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::call::Call;
use crate::config::Config;
use crate::counts::Counts;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::http3::Http3;
use crate::launch::{self, address, listen, module, stderr_log};
use crate::message::Response;
use crate::patience::{until, within};
use crate::processes::{self, read};
use crate::tls;

/// What must not stand in an error log after a test.
const FORBIDDEN: [&str; 7] = [
    "[alert]",
    "[emerg]",
    "exited on signal",
    "http request count",
    "open socket",
    "Sanitizer",
    "panicked at",
];

/// A running nginx under a folder of its own; its process group is killed when dropped.
pub struct Nginx {
    prefix: TempDir,
    /// None once it has ended.
    master: Option<Child>,
    http1: SocketAddr,
    http2: Option<SocketAddr>,
    tls: Option<SocketAddr>,
    http3: Option<SocketAddr>,
}

/// What `nginx -t` says of a configuration.
#[derive(Debug)]
pub struct Verdict {
    pub code: Option<i32>,
    pub stderr: String,
}

impl Nginx {
    /// Starts it and waits until it answers.
    pub async fn start(mut config: Config) -> Self {
        let prefix = TempDir::new().expect("a temporary folder");
        let http1 = listen();
        let http2 = config.wants_http2().then(listen);
        let tls = config.wants_tls().then(listen);

        let mut lines = format!("listen {};\n", address(&http1));
        if let Some(http2) = &http2 {
            lines += &format!("listen {} http2;\n", address(http2));
        }
        if let Some(tls) = &tls {
            lines += &format!("listen {} ssl http2;\n", address(tls));
        }
        let http3 = config.wants_http3().then(launch::listen_udp);
        if let Some((_, address)) = &http3 {
            lines += &format!("listen {address} quic;\n");
        }
        if tls.is_some() || http3.is_some() {
            config = config.http(tls::settings(prefix.path()));
        }
        let text = config.text(&module(), &lines, &status_socket(prefix.path()));
        let tcp = [Some(&http1), http2.as_ref(), tls.as_ref()];
        let tcp = tcp.into_iter().flatten().map(AsRawFd::as_raw_fd);
        let udp = http3.iter().map(|(socket, _)| socket.as_raw_fd());
        let sockets = tcp.chain(udp).collect();
        let master = launch::spawn(prefix.path(), &config, &text, sockets);

        let mut started = Self {
            http1: address(&http1),
            http2: http2.as_ref().map(address),
            tls: tls.as_ref().map(address),
            http3: http3.as_ref().map(|(_, address)| *address),
            prefix,
            master: Some(master),
        };
        started.until_ready(config.worker_count()).await;
        started
    }

    /// Runs `nginx -t`.
    pub async fn test(config: &Config) -> Verdict {
        let prefix = TempDir::new().expect("a temporary folder");
        let listen = format!("listen unix:{}/test.sock;", prefix.path().display());
        let text = config.text(&module(), &listen, &status_socket(prefix.path()));

        verdict(launch::command(prefix.path(), &text, config.hosts())).await
    }

    /// The version of `NGINX_BINARY`.
    pub async fn version() -> [u32; 3] {
        let output = within("nginx -v", launch::version()).await;
        let text = output.split_once("nginx/").map(|(_, version)| version);
        let mut parts = text.unwrap_or_default().split(['.', ' ', '\n']);
        [(); 3].map(|()| {
            let part = parts.next().and_then(|part| part.parse().ok());
            part.unwrap_or_else(|| panic!("nginx -v says {output:?}"))
        })
    }

    /// Whether `NGINX_BINARY` was built with AddressSanitizer.
    pub fn has_sanitizer() -> bool {
        let binary = fs::read(launch::binary()).expect("NGINX_BINARY is a file");
        let name = b"__asan_init";
        binary.windows(name.len()).any(|window| window == name)
    }

    /// Sends one call on a connection of its own and checks that nothing follows its response.
    pub async fn call(&self, call: Call) -> Response {
        let mut client = self.http1().await;
        let response = client.call(&call.closing()).await;
        let rest = client.rest().await;
        assert!(
            rest.is_empty(),
            "after the response: {:?}",
            String::from_utf8_lossy(&rest)
        );
        response
    }

    pub async fn get(&self, target: &str) -> Response {
        self.call(Call::get(target)).await
    }

    /// A new HTTP/1 connection.
    pub async fn http1(&self) -> Http1 {
        Http1::connect(self.http1).await
    }

    /// The same, with so many bytes of room for what nginx sends.
    pub async fn http1_with_buffer(&self, bytes: u32) -> Http1 {
        Http1::connect_with_buffer(self.http1, bytes).await
    }

    /// A new HTTP/2 connection, where [`Config::http2`] asked for its port.
    pub async fn http2(&self) -> Http2 {
        Http2::connect(self.http2_address()).await
    }

    /// Where [`Config::http2`] had it listen.
    pub fn http2_address(&self) -> SocketAddr {
        self.http2.expect("a configuration with http2")
    }

    /// A new HTTP/1 connection under TLS, where [`Config::tls`] asked for its port.
    pub async fn http1_tls(&self) -> Http1 {
        Http1::connect_tls(self.tls.expect("a configuration with tls")).await
    }

    /// A new HTTP/2 connection under TLS, likewise.
    pub async fn http2_tls(&self) -> Http2 {
        Http2::connect_tls(self.tls.expect("a configuration with tls")).await
    }

    /// A new HTTP/3 connection, where [`Config::http3`] asked for its port.
    pub async fn http3(&self) -> Http3 {
        Http3::connect(self.http3.expect("a configuration with http3")).await
    }

    /// The folder that holds everything nginx reads and writes.
    pub fn prefix(&self) -> &Path {
        self.prefix.path()
    }

    pub fn error_log(&self) -> String {
        read(&self.prefix().join("error.log"))
    }

    /// Waits for `count` lines of the access log and returns them all.
    pub async fn access_log(&self, count: usize) -> Vec<String> {
        let path = self.prefix().join("access.log");
        until(&format!("{count} lines in the access log"), async || {
            let lines: Vec<_> = read(&path).lines().map(str::to_owned).collect();
            (lines.len() >= count).then_some(lines)
        })
        .await
    }

    /// The only line of the access log, once it is there.
    pub async fn logged(&self) -> String {
        let mut lines = self.access_log(1).await;
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }

    /// The ids of the worker processes.
    pub fn workers(&self) -> Vec<i32> {
        processes::workers(self.pid())
    }

    /// The resident memory of the only worker, in bytes.
    pub fn worker_memory(&self) -> usize {
        let [worker] = self.workers()[..] else {
            panic!("more than one worker")
        };
        processes::memory(worker)
    }

    /// Changes the text of its configuration, which it reads at the next reload.
    pub fn rewrite(&self, change: impl FnOnce(String) -> String) {
        let file = self.prefix().join("nginx.conf");
        fs::write(&file, change(read(&file))).expect("a writable folder");
    }

    /// Runs `nginx -t` for the configuration of this nginx while it serves.
    pub async fn test_again(&self) -> Verdict {
        let text = read(&self.prefix().join("nginx.conf"));
        verdict(launch::command(self.prefix(), &text, "")).await
    }

    /// Reads its configuration anew and waits until new workers have taken over.
    pub async fn reload(&self) {
        let old = self.workers();
        self.signal(libc::SIGHUP);

        until("new workers after a reload", async || {
            let log = self.error_log();
            // Behind the # stands the thread, or 0 where nginx has none.
            let leaving = |pid: &i32| {
                [*pid, 0].iter().any(|thread| {
                    log.contains(&format!(" {pid}#{thread}: gracefully shutting down"))
                })
            };
            let new = self.workers().iter().any(|pid| !old.contains(pid));
            (new && old.iter().all(leaving)).then_some(())
        })
        .await;
    }

    /// Sends a signal to the master process.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the process is our child and not yet waited for, so the id is still its own.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Stops it gracefully. Panics if it, its log or its counts show anything wrong.
    pub async fn stop(self) {
        if let Err(complaint) = self.try_stop().await {
            panic!("{complaint}");
        }
    }

    /// Like [`Nginx::stop`], but returns what is wrong: the lines of the error log that should not
    /// be there.
    pub async fn try_stop(mut self) -> Result<(), String> {
        self.idle().await;
        let left = self.temporary_files();
        if !left.is_empty() {
            return Err(format!("temporary files left: {left:?}"));
        }

        self.signal(libc::SIGQUIT);
        let master = self.master.as_mut().expect("a running nginx");
        let status = within("the end of nginx after SIGQUIT", master.wait())
            .await
            .expect("a child");
        self.master = None;
        if !status.success() {
            return Err(format!("nginx ended with {status}"));
        }

        let forbidden = |line: &&str| FORBIDDEN.iter().any(|word| line.contains(word));
        let log = self.error_log();
        let lines: Vec<_> = log.lines().filter(forbidden).collect();
        if lines.is_empty() {
            Ok(())
        } else {
            Err(lines.join("\n"))
        }
    }

    /// Waits until no request is under way, by stub_status.
    pub async fn idle(&self) {
        until("every request ended (stub_status)", async || {
            Counts::of(&status_socket(self.prefix()))
                .await
                .filter(Counts::idle)
        })
        .await;
    }

    /// What stands in nginx's folders for temporary files.
    fn temporary_files(&self) -> Vec<PathBuf> {
        let folders = launch::temporary_folders().map(|folder| self.prefix().join(folder));
        folders.flat_map(|folder| files(&folder)).collect()
    }

    async fn until_ready(&mut self, workers: usize) {
        let status = status_socket(self.prefix());
        until("an nginx that answers, with all its workers", async || {
            let master = self.master.as_mut().expect("a started nginx");
            if let Ok(Some(status)) = master.try_wait() {
                let stderr = read(&stderr_log(self.prefix()));
                panic!("nginx did not start ({status}):\n{stderr}");
            }
            Counts::of(&status)
                .await
                .filter(|_| self.workers().len() == workers)
        })
        .await;
    }

    fn pid(&self) -> i32 {
        let id = self
            .master
            .as_ref()
            .and_then(Child::id)
            .expect("a running nginx");
        i32::try_from(id).expect("a process id")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Some(id) = self.master.as_ref().and_then(Child::id) {
            let group = i32::try_from(id).expect("a process id");
            // SAFETY: the group is led by our child, which was not yet waited for.
            unsafe { libc::kill(-group, libc::SIGKILL) };
            assert!(std::thread::panicking(), "a test has to stop() its nginx");
        }
        if std::thread::panicking() {
            eprintln!("error log of the nginx in question:\n{}", self.error_log());
        }
    }
}

async fn verdict(mut command: Command) -> Verdict {
    let output = within("nginx -t", command.arg("-t").output()).await;
    let output = output.expect("NGINX_BINARY starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Verdict {
        code: output.status.code(),
        stderr,
    }
}

/// The files in a folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

fn status_socket(prefix: &Path) -> PathBuf {
    prefix.join("status.sock")
}
