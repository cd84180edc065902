//! How an nginx process is started.

use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

use tokio::process::{Child, Command};

use crate::config::{self, Config};

/// Where distributions put libraries.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// Starts nginx with this text of the configuration and these listening sockets, as the leader of a process group.
pub(crate) fn spawn(prefix: &Path, config: &Config, text: &str, sockets: Vec<RawFd>) -> Child {
    let mut command = command(prefix, text, config.hosts());
    command.envs(config.variables().iter().cloned());
    if let Some(bytes) = config.file_limit() {
        limit_files(&mut command, bytes);
    }
    inherit(&mut command, sockets);
    tie_to_this_thread(&mut command);

    let stderr = fs::File::create(stderr_log(prefix)).expect("a writable folder");
    let child = command.process_group(0).stderr(stderr).spawn();
    child.expect("NGINX_BINARY starts")
}

/// What nginx says before it has opened its error log.
pub(crate) fn stderr_log(prefix: &Path) -> PathBuf {
    prefix.join("stderr.log")
}

/// The command for nginx with this configuration, under this prefix. It finds these hosts, and no
/// others, if there are any.
pub(crate) fn command(prefix: &Path, config: &str, hosts: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments(prefix, config));
    command.stdin(Stdio::null()).kill_on_drop(true);

    if !hosts.is_empty() {
        find_hosts(&mut command, prefix, hosts);
    }
    command
}

/// The same, by a shell that leaves when nginx runs: nginx is replaced only once its first parent has gone.
pub(crate) fn orphan(prefix: &Path, config: &str) -> Command {
    let stderr = fs::File::create(stderr_log(prefix)).expect("a writable folder");
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg("\"$@\" & until [ -s \"$0\" ]; do sleep 0.05; done");
    command.arg(prefix.join("nginx.pid"));
    command.arg(binary()).args(arguments(prefix, config));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    command
}

/// nginx's arguments; its configuration is written for it.
fn arguments(prefix: &Path, config: &str) -> [PathBuf; 6] {
    let file = prefix.join("nginx.conf");
    fs::write(&file, config).expect("a writable folder");

    let log = prefix.join("error.log");
    [
        "-p".into(),
        prefix.into(),
        "-c".into(),
        file,
        "-e".into(),
        log,
    ]
}

/// Puts nss_wrapper between nginx and the machine's own hosts.
fn find_hosts(command: &mut Command, prefix: &Path, hosts: &str) {
    let file = prefix.join("hosts");
    fs::write(&file, hosts).expect("a writable folder");

    let mut libraries = LIBRARIES
        .iter()
        .map(|folder| Path::new(folder).join("libnss_wrapper.so"));
    let library = libraries.find(|path| path.exists());

    let options = std::env::var("ASAN_OPTIONS").unwrap_or_default();
    command
        .env("LD_PRELOAD", library.expect("libnss_wrapper is installed"))
        .env("NSS_WRAPPER_HOSTS", file)
        // What AddressSanitizer wants: it comes second, and sees all calls of the C library.
        .env(
            "ASAN_OPTIONS",
            format!("{options}:verify_asan_link_order=0"),
        )
        .env("NSS_WRAPPER_DISABLE_DEEPBIND", "1");
}

/// Where this nginx puts bodies that do not fit into memory; each is the name of the module that does.
pub(crate) fn temporary_folders() -> impl Iterator<Item = &'static str> {
    static ARGUMENTS: LazyLock<String> = LazyLock::new(|| {
        let output = std::process::Command::new(binary())
            .arg("-V")
            .stdin(Stdio::null())
            .output();
        let output = output.expect("NGINX_BINARY starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    });

    ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .into_iter()
        .filter(|name| !ARGUMENTS.contains(&format!("--without-http_{name}_module")))
}

/// What `nginx -v` says.
pub(crate) async fn version() -> String {
    let output = Command::new(binary())
        .arg("-v")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = output.await.expect("NGINX_BINARY starts");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Hands the sockets to nginx in the way in which one nginx hands them to the next, so that no
/// port is ever free for others between two steps. (nginx itself crashes on such sockets under
/// `master_process off`.)
pub(crate) fn inherit(command: &mut Command, sockets: Vec<RawFd>) {
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

/// Lets writes fail that would make a file larger than this.
fn limit_files(command: &mut Command, bytes: u64) {
    let limit = move || {
        let most = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: bytes,
        };
        // SAFETY: both are async-signal-safe and concern only the new process.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &most);
        }
        Ok(())
    };
    // SAFETY: the closure neither allocates nor locks.
    unsafe { command.pre_exec(limit) };
}

/// Lets the kernel end a process with the thread that runs the test, however that ends.
pub(crate) fn tie_to_this_thread(command: &mut Command) {
    let tie = || {
        // SAFETY: prctl is async-signal-safe and concerns only the new process.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
        Ok(())
    };
    // SAFETY: the closure neither allocates nor locks.
    unsafe { command.pre_exec(tie) };
}

/// A listening socket on a free port, as nginx wants to inherit one.
pub(crate) fn listen() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    listener
}

/// The same for QUIC, with its address.
pub(crate) fn listen_udp() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_nonblocking(true).expect("a socket");
    let address = socket.local_addr().expect("a bound socket");
    (socket, address)
}

pub(crate) fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("a bound socket")
}

pub(crate) fn binary() -> String {
    variable("NGINX_BINARY")
}

pub(crate) fn module() -> String {
    variable("NGINX_MODULE")
}

/// How a configuration begins that a test writes itself.
pub fn module_line() -> String {
    config::start(&module())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!(
            "{name} is not set: NGINX_BINARY is an nginx, NGINX_MODULE our module built for it, or \
             empty where nginx has it built in"
        )
    })
}
