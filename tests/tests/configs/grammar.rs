//! Random configurations of upstreams with the module's directives.

#[path = "upstrands.rs"]
mod upstrands;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// A configuration, to stand in http.
pub struct Generated {
    pub text: String,
    /// It was made of valid lines only.
    pub valid: bool,
}

/// The configuration of this number: always the same one.
pub fn configuration(seed: u64) -> Generated {
    let mut rng = SmallRng::seed_from_u64(seed);
    let valid = rng.random_bool(0.4);
    let mut generator = Generator {
        rng,
        valid,
        declared: Vec::new(),
        zones: 0,
    };
    let text = generator.http();
    Generated { text, valid }
}

/// Names of upstreams; a valid configuration uses each of them once.
const NAMES: [&str; 14] = [
    "a",
    "h",
    "h_s_",
    "u1",
    "with-dash",
    "with.dot",
    "UPPER",
    "127.0.0.",
    "~",
    "é",
    "x/y",
    "a b",
    "x{y}",
    "h1",
];

const SERVERS: [&str; 9] = [
    "127.0.0.1",
    "127.0.0.1:8080",
    "127.0.0.1:8080",
    "127.0.0.2:1",
    "[::1]",
    "[::1]:65535",
    "unix:/tmp/socket",
    "localhost:80",
    "localhost",
];

const WEIGHTS: [&str; 9] = [
    "1",
    "2",
    "7",
    "100",
    "2147483646",
    "2147483647",
    "2147483648",
    "0",
    "-1",
];
const COUNTS: [&str; 6] = ["0", "1", "2", "1000", "-1", "x"];
const TIMES: [&str; 7] = [
    "0",
    "1",
    "10s",
    "1h30m",
    "500ms",
    "-1",
    "9999999999999999999y",
];

/// Lines that choose a balancer, then others of nginx's.
const BALANCERS: [&str; 8] = [
    "least_conn;",
    "ip_hash;",
    "hash $uri;",
    "hash $uri consistent;",
    "hash '' consistent;",
    "random;",
    "random two;",
    "random two least_conn;",
];

struct Generator {
    rng: SmallRng,
    valid: bool,
    declared: Vec<String>,
    zones: usize,
}

impl Generator {
    fn http(&mut self) -> String {
        let mut text = String::new();
        let mut names = NAMES.to_vec();

        for _ in 0..self.rng.random_range(1..6) {
            if !self.valid && self.one_in(6) {
                text += &self.server_block();
            }
            let name = if !self.errs() {
                let index = self.rng.random_range(0..names.len());
                names.swap_remove(index).to_owned()
            } else {
                self.name()
            };
            text += &self.upstream(&name);
            self.declared.push(name);
        }
        text += &self.upstrands();
        text
    }

    /// A server that names upstreams by URL.
    fn server_block(&mut self) -> String {
        let port = self.pick(&["", "", ":80", ":8080"]);
        let name = self.any_name();
        let listen = self.rng.random::<u64>();
        format!(
            "server {{ listen unix:/tmp/{listen}.sock; location / {{ proxy_pass http://{name}{port}; }} }}\n"
        )
    }

    fn upstream(&mut self, name: &str) -> String {
        let mut lines = Vec::new();
        if !self.errs() {
            // One that is no backup.
            lines.push("server 127.0.0.1:8080;".to_owned());
        }
        for _ in 0..self.rng.random_range(0..9) {
            let line = self.line(name);
            lines.push(line);
        }
        if self.valid {
            // At most one balancer, and then what stands upon it.
            let balancer = self.rng.random_range(0..2 * BALANCERS.len());
            lines.extend(BALANCERS.get(balancer).map(|line| (*line).to_owned()));
            let (mut before, mut after) = (self.singlets(), self.keepalive());
            if self.one_in(2) {
                std::mem::swap(&mut before, &mut after);
            }
            lines.extend([before, after]);
            if self.one_in(2) {
                let at = self.rng.random_range(0..=lines.len());
                lines.insert(at, "extend_single_peers;".to_owned());
            }
        }
        format!("upstream \"{name}\" {{\n    {}\n}}\n", lines.join("\n    "))
    }

    fn line(&mut self, host: &str) -> String {
        if self.valid {
            return match self.rng.random_range(0..4) {
                0 => self.add_upstream(host),
                1 if self.zones < 30 => self.zone(),
                _ => self.server(),
            };
        }

        match self.rng.random_range(0..12) {
            0..4 => self.server(),
            4..6 => self.add_upstream(host),
            6..8 => self.combine(),
            8 if self.one_in(3) => "extend_single_peers;".to_owned(),
            9 => self.pick(&BALANCERS).to_owned(),
            10 => self.zone(),
            _ => self.keepalive(),
        }
    }

    fn server(&mut self) -> String {
        let server = self.pick(&SERVERS);
        let parameters = self.parameters(&["backup", "down", "resolve"]);
        format!("server {server}{parameters};")
    }

    fn add_upstream(&mut self, host: &str) -> String {
        let name = if self.valid {
            match self.declared.choose(&mut self.rng) {
                Some(name) => name.clone(),
                None => return self.server(),
            }
        } else if self.one_in(20) {
            host.to_owned()
        } else if self.errs() {
            self.any_name()
        } else {
            match self.declared.choose(&mut self.rng) {
                Some(name) => name.clone(),
                None => return self.server(),
            }
        };
        let parameters =
            self.parameters(&["backup", "down", "backupfoo", "weight", "slow_start=1"]);
        format!("add_upstream \"{name}\"{parameters};")
    }

    /// Parameters of a server; of the flags only the first is good.
    fn parameters(&mut self, flags: &[&'static str]) -> String {
        let mut text = String::new();
        let mut kinds: Vec<_> = (0..5).collect();

        for _ in 0..self.pick(&[0, 0, 0, 1, 1, 2, 3]) {
            let index = self.rng.random_range(0..kinds.len());
            // Mostly each once.
            let kind = if self.errs() {
                kinds[index]
            } else {
                kinds.swap_remove(index)
            };
            text += &match kind {
                0 => format!(" weight={}", self.value(&WEIGHTS, 3)),
                1 => format!(" max_fails={}", self.value(&COUNTS, 4)),
                2 => format!(" fail_timeout={}", self.value(&TIMES, 4)),
                3 => format!(" max_conns={}", self.value(&COUNTS, 4)),
                _ => format!(" {}", self.value(flags, 1)),
            };
        }
        text
    }

    /// One of the first so many values, which are good, or, now and then, any.
    fn value(&mut self, values: &[&'static str], good: usize) -> &'static str {
        match self.errs() {
            true => self.pick(values),
            false => self.pick(&values[..good]),
        }
    }

    /// Whether something may be wrong here.
    fn errs(&mut self) -> bool {
        !self.valid && self.one_in(12)
    }

    fn combine(&mut self) -> String {
        if !self.errs() {
            return self.singlets();
        }
        let words = [
            "_s_", "byname", "nobackup", "2", "0", "32", "33", "-1", "\"\"", "é", "x/y", "$x",
        ];
        let mut text = "combine_server_singlets".to_owned();
        for _ in 0..self.pick(&[0, 1, 1, 2, 2, 3, 4]) {
            text += " ";
            text += self.pick(&words);
        }
        text + ";"
    }

    /// A valid line of singlets, with a suffix that makes their names unlike all others.
    fn singlets(&mut self) -> String {
        let suffix = format!("_{:x}_", self.rng.random::<u64>());
        let long = "n".repeat(1_000);
        let suffix = if self.one_in(10) {
            format!("{suffix}{long}")
        } else {
            suffix
        };
        let width = self.pick(&["", " 0", " 2", " 32"]);
        let nobackup = self.pick(&["", " nobackup"]);
        format!("combine_server_singlets {suffix}{width}{nobackup};")
    }

    fn zone(&mut self) -> String {
        self.zones += 1;
        if !self.errs() {
            return format!("zone z{} 1m;", self.zones);
        }
        let size = self.pick(&["", " 32k", " 64k", " 64k", " 1m", " 1k", " x"]);
        format!("zone z{}{size};", self.rng.random_range(0..3))
    }

    fn keepalive(&mut self) -> String {
        let count = self.value(&["1", "8", "1000", "0", "x"], 3);
        format!("keepalive {count};")
    }

    fn name(&mut self) -> String {
        match self.rng.random_range(0..20) {
            0 => String::new(),
            1 => "n".repeat(3_000),
            _ => self.pick(&NAMES).to_owned(),
        }
    }

    /// One of an upstream that there is, or of a singlet, or any.
    fn any_name(&mut self) -> String {
        match (
            self.rng.random_range(0..4),
            self.declared.choose(&mut self.rng).cloned(),
        ) {
            (0, Some(name)) => name + "1",
            (1, Some(name)) => name.to_uppercase(),
            (2, Some(name)) => name,
            _ => self.name(),
        }
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.rng.random_range(0..values.len())]
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.rng.random_range(0..count) == 0
    }
}
