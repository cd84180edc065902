//! The nginx process.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::call::Call;
use crate::config::Config;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::message::Response;
use crate::patience::{until, within};

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
}

/// What `nginx -t` says of a configuration.
#[derive(Debug)]
pub struct Verdict {
    pub code: Option<i32>,
    pub stderr: String,
}

/// How many connections and requests nginx counts.
#[derive(Debug, PartialEq)]
struct Counts {
    active: usize,
    reading: usize,
    writing: usize,
    waiting: usize,
}

impl Nginx {
    /// Starts it and waits until it answers.
    pub async fn start(config: Config) -> Self {
        let prefix = TempDir::new().expect("a temporary folder");
        let http1 = listen();
        let http2 = config.wants_http2().then(listen);

        let mut lines = format!("listen {};\n", address(&http1));
        if let Some(http2) = &http2 {
            lines += &format!("listen {} http2;\n", address(http2));
        }
        let mut command = nginx(
            prefix.path(),
            &config.text(&module(), &lines, &status_socket(prefix.path())),
        );

        let sockets = [Some(&http1), http2.as_ref()].into_iter().flatten();
        inherit(&mut command, sockets.map(AsRawFd::as_raw_fd).collect());
        tie_to_this_thread(&mut command);
        let stderr = fs::File::create(prefix.path().join("stderr.log")).expect("a writable folder");
        let master = command
            .process_group(0)
            .stderr(stderr)
            .spawn()
            .expect("NGINX_BINARY starts");

        let mut started = Self {
            http1: address(&http1),
            http2: http2.as_ref().map(address),
            prefix,
            master: Some(master),
        };
        started.until_it_answers().await;
        started
    }

    /// Runs `nginx -t`.
    pub async fn test(config: &Config) -> Verdict {
        let prefix = TempDir::new().expect("a temporary folder");
        let listen = format!("listen unix:{}/test.sock;", prefix.path().display());
        let text = config.text(&module(), &listen, &status_socket(prefix.path()));

        let output = nginx(prefix.path(), &text).arg("-t").output();
        let output = within("nginx -t", output)
            .await
            .expect("NGINX_BINARY starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Verdict {
            code: output.status.code(),
            stderr,
        }
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

    /// A new HTTP/2 connection, where [`Config::http2`] asked for its port.
    pub async fn http2(&self) -> Http2 {
        Http2::connect(self.http2.expect("a configuration with http2")).await
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
        let master = self.pid();
        let children = read(Path::new(&format!("/proc/{master}/task/{master}/children")));
        children
            .split_whitespace()
            .map(|pid| pid.parse().expect("a process id"))
            .collect()
    }

    /// The resident memory of the only worker, in bytes.
    pub fn worker_memory(&self) -> usize {
        let [worker] = self.workers()[..] else {
            panic!("more than one worker")
        };
        let statm = read(Path::new(&format!("/proc/{worker}/statm")));
        let pages: usize = statm
            .split_whitespace()
            .nth(1)
            .and_then(|pages| pages.parse().ok())
            .expect("statm");
        // SAFETY: sysconf only returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        pages * usize::try_from(page).expect("a page size")
    }

    /// Reads its configuration anew and waits until new workers have taken over.
    pub async fn reload(&self) {
        let old = self.workers();
        self.signal(libc::SIGHUP);

        until("new workers after a reload", async || {
            let leaving = |pid: &i32| {
                self.error_log()
                    .contains(&format!(" {pid}#{pid}: gracefully shutting down"))
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

    /// Like [`Nginx::stop`], but returns what is wrong: the lines of the error log that should not be there.
    pub async fn try_stop(mut self) -> Result<(), String> {
        until("every request ended (stub_status)", async || {
            Counts::of(self.prefix()).await.filter(Counts::idle)
        })
        .await;

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

    async fn until_it_answers(&mut self) {
        let prefix = self.prefix.path();
        let master = self.master.as_mut().expect("a started nginx");

        until("an answer of nginx", async || {
            if let Ok(Some(status)) = master.try_wait() {
                panic!(
                    "nginx did not start ({status}):\n{}",
                    read(&prefix.join("stderr.log"))
                );
            }
            Counts::of(prefix).await
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

impl Counts {
    /// What stub_status says; None while nobody answers.
    async fn of(prefix: &Path) -> Option<Self> {
        let mut stream = UnixStream::connect(status_socket(prefix)).await.ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;

        let number = |name: &str| {
            let after = text.split_once(name)?.1;
            after.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            active: number("Active connections:")?,
            reading: number("Reading:")?,
            writing: number("Writing:")?,
            waiting: number("Waiting:")?,
        })
    }

    /// Nothing but idle connections and the one that asks.
    fn idle(&self) -> bool {
        self.active == self.waiting + 1 && self.reading == 0 && self.writing == 1
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

/// The command for nginx with this configuration, under this prefix.
fn nginx(prefix: &Path, config: &str) -> Command {
    let file = prefix.join("nginx.conf");
    fs::write(&file, config).expect("a writable folder");

    let mut command = Command::new(variable("NGINX_BINARY"));
    command
        .arg("-p")
        .arg(prefix)
        .arg("-c")
        .arg(file)
        .arg("-e")
        .arg(prefix.join("error.log"));
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Hands the sockets to nginx in the way in which one nginx hands them to the next, so that no port is ever free for
/// others between two steps. (nginx itself crashes on such sockets under `master_process off`.)
fn inherit(command: &mut Command, sockets: Vec<i32>) {
    let list: String = sockets.iter().map(|socket| format!("{socket};")).collect();
    command.env("NGINX", list);

    let keep_open = move || {
        for socket in &sockets {
            // SAFETY: fcntl is async-signal-safe and clears only a flag of a descriptor of ours.
            if unsafe { libc::fcntl(*socket, libc::F_SETFD, 0) } == -1 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure neither allocates nor locks.
    unsafe { command.pre_exec(keep_open) };
}

/// Lets the kernel end nginx with the thread that runs the test, however that ends.
fn tie_to_this_thread(command: &mut Command) {
    let tie = || {
        // SAFETY: prctl is async-signal-safe and concerns only the new process.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
        Ok(())
    };
    // SAFETY: the closure neither allocates nor locks.
    unsafe { command.pre_exec(tie) };
}

/// A listening socket on a free port, as nginx wants to inherit one.
fn listen() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    listener
}

fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a bound socket")
}

fn status_socket(prefix: &Path) -> PathBuf {
    prefix.join("status.sock")
}

fn module() -> String {
    variable("NGINX_MODULE")
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: these tests need NGINX_BINARY (an nginx) and NGINX_MODULE (our module built for it)")
    })
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
