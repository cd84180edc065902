//! The text of an nginx.conf, from what a test cares about.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::backend::Backend;
use crate::launch;

/// A configuration: one server on a port of the harness, and what a test adds to each level.
///
/// With [`Config::upstrand`], `/` goes through upstrand `us` and `/plain` straight to its last
/// member.
#[derive(Clone, Debug)]
pub struct Config {
    workers: usize,
    http2: bool,
    tls: bool,
    environment: Vec<(String, String)>,
    largest_file: Option<u64>,
    connections: usize,
    main: String,
    http3: bool,
    modules: String,
    hosts: String,
    http: String,
    server: String,
    /// Further servers on the same ports: their names and what stands in them.
    virtual_servers: Vec<(String, String)>,
    log_format: Option<String>,
    location: String,
    upstrand: Option<Upstrand>,
}

#[derive(Clone, Debug)]
struct Upstrand {
    members: Vec<SocketAddr>,
    /// What stands in the upstrand beside its members.
    directives: String,
    /// What stands in each upstream beside its server.
    upstream: String,
    statuses: String,
}

impl Config {
    /// A server without any location.
    pub fn new() -> Self {
        Self {
            workers: 1,
            http2: false,
            tls: false,
            environment: Vec::new(),
            largest_file: None,
            connections: 4_000,
            main: String::new(),
            http3: false,
            modules: String::new(),
            hosts: String::new(),
            http: String::new(),
            server: String::new(),
            virtual_servers: Vec::new(),
            log_format: None,
            location: String::new(),
            upstrand: None,
        }
    }

    /// The backends as upstreams `u1`, `u2`, ..., in this order the members of `us`, which starts
    /// at the first and goes on after `error timeout 5xx`.
    pub fn upstrand<'a>(members: impl IntoIterator<Item = &'a Backend>) -> Self {
        let upstrand = Upstrand {
            members: members.into_iter().map(Backend::address).collect(),
            directives: "order per_request;".to_owned(),
            upstream: String::new(),
            statuses: "error timeout 5xx".to_owned(),
        };
        Self {
            upstrand: Some(upstrand),
            ..Self::new()
        }
    }

    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// A second port, for HTTP/2.
    pub fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// A further port, for HTTP/1 and HTTP/2 under TLS.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Sets a variable in nginx's environment.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets nginx write no file larger than this, in bytes: what goes beyond fails as on a full disk.
    pub fn largest_file(mut self, bytes: u64) -> Self {
        self.largest_file = Some(bytes);
        self
    }

    /// Replaces the 4000 `worker_connections`.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Adds before `events {}`.
    pub fn main(mut self, text: &str) -> Self {
        add(&mut self.main, text);
        self
    }

    /// A further port, for HTTP/3.
    pub fn http3(mut self) -> Self {
        self.http3 = true;
        self
    }

    /// Loads a further module.
    pub fn load_module(mut self, file: &str) -> Self {
        add(&mut self.modules, &format!("load_module {file};"));
        self
    }

    /// A name that nginx finds this address for, beside others, when it reads the configuration.
    pub fn host(mut self, name: &str, address: IpAddr) -> Self {
        add(&mut self.hosts, &format!("{address} {name}"));
        self
    }

    /// Adds to `http {}`.
    pub fn http(mut self, text: &str) -> Self {
        add(&mut self.http, text);
        self
    }

    /// Adds to `server {}`.
    pub fn server(mut self, text: &str) -> Self {
        add(&mut self.server, text);
        self
    }

    /// Adds a server that requests for this host reach.
    pub fn virtual_server(mut self, name: &str, text: &str) -> Self {
        self.virtual_servers
            .push((name.to_owned(), text.to_owned()));
        self
    }

    /// Replaces what stands in a line of the access log.
    pub fn log_format(mut self, format: &str) -> Self {
        self.log_format = Some(format.to_owned());
        self
    }

    /// Adds to the locations of the upstrand.
    pub fn location(mut self, text: &str) -> Self {
        add(&mut self.location, text);
        self
    }

    /// Adds to each upstream.
    pub fn upstream(mut self, text: &str) -> Self {
        add(&mut self.members().upstream, text);
        self
    }

    /// Adds to the upstrand.
    pub fn upstrand_block(mut self, text: &str) -> Self {
        add(&mut self.members().directives, text);
        self
    }

    /// Replaces `error timeout 5xx`; none at all if empty.
    pub fn statuses(mut self, statuses: &str) -> Self {
        statuses.clone_into(&mut self.members().statuses);
        self
    }

    fn members(&mut self) -> &mut Upstrand {
        self.upstrand
            .as_mut()
            .expect("a configuration with an upstrand")
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.workers
    }

    pub(crate) fn file_limit(&self) -> Option<u64> {
        self.largest_file
    }

    pub(crate) fn variables(&self) -> &[(String, String)] {
        &self.environment
    }

    pub(crate) fn wants_http3(&self) -> bool {
        self.http3
    }

    /// In the form of /etc/hosts.
    pub(crate) fn hosts(&self) -> &str {
        &self.hosts
    }

    pub(crate) fn wants_tls(&self) -> bool {
        self.tls
    }

    pub(crate) fn wants_http2(&self) -> bool {
        self.http2
    }

    /// The whole text. `listen` are the `listen` lines of the server, `status` the socket of
    /// stub_status.
    pub(crate) fn text(&self, module: &str, listen: &str, status: &Path) -> String {
        let Self {
            workers,
            connections,
            main,
            modules,
            http,
            server,
            ..
        } = self;
        let status = status.display();
        let temporary: String = launch::temporary_folders()
            .map(|name| format!("{name}_temp_path {name};\n"))
            .collect();
        let (walk, upstrand, locations) = match &self.upstrand {
            None => ("", String::new(), String::new()),
            Some(upstrand) => (
                " [$upstrand_path] [$upstrand_status]",
                upstrand.text(),
                upstrand.locations(&self.location),
            ),
        };

        let start = start(module);
        let format = match &self.log_format {
            Some(format) => format.clone(),
            None => format!("$request_method $request_uri $status{walk}"),
        };
        let virtual_servers: String = self
            .virtual_servers
            .iter()
            .map(|(name, text)| {
                format!(
                    "server {{\n{listen}\nserver_name {name};\naccess_log access.log walk;\n{text}\n}}\n"
                )
            })
            .collect();

        format!(
            "{start}
{modules}
daemon off;
worker_processes {workers};
pid nginx.pid;
error_log error.log info;
{main}
events {{ worker_connections {connections}; }}
http {{
{temporary}log_format walk '{format}';
{upstrand}{http}
server {{
listen unix:{status};
access_log off;
location / {{ stub_status; }}
}}
server {{
{listen}
access_log access.log walk;
{locations}{server}
}}
{virtual_servers}}}
"
        )
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Upstrand {
    fn text(&self) -> String {
        let mut upstreams = String::new();
        let mut members = String::new();
        for (index, server) in self.members.iter().enumerate() {
            let (name, more) = (name(index), &self.upstream);
            upstreams += &format!("upstream {name} {{\nserver {server};\n{more}}}\n");
            members += &format!("upstream {name};\n");
        }

        let statuses = match self.statuses.as_str() {
            "" => String::new(),
            statuses => format!("next_upstream_statuses {statuses};\n"),
        };
        let directives = &self.directives;
        format!("{upstreams}upstrand us {{\n{members}{statuses}{directives}\n}}\n")
    }

    fn locations(&self, more: &str) -> String {
        let last = name(self.members.len() - 1);
        format!(
            "location / {{\nproxy_pass http://$upstrand_us;\n{more}}}\n\
             location /plain {{\nproxy_pass http://{last};\n{more}}}\n"
        )
    }
}

fn name(index: usize) -> String {
    format!("u{}", index + 1)
}

fn add(to: &mut String, text: &str) {
    to.push_str(text);
    to.push('\n');
}

/// How any configuration begins: with the module, where nginx does not have it built in, and, for root, with
/// workers that may write where the test does.
pub(crate) fn start(module: &str) -> String {
    let user = if is_root() { "user root;" } else { "" };
    match module {
        "" => user.to_owned(),
        module => format!("load_module {module};\n{user}"),
    }
}

fn is_root() -> bool {
    // SAFETY: geteuid only returns a number.
    unsafe { libc::geteuid() == 0 }
}
