//! Random upstrands, and the directives and variables that lead to them.

use rand::Rng;
use rand::seq::IndexedRandom;

use super::Generator;

/// Names of upstrands; the first ones can be spelled as variables, the last ones are bad.
const NAMES: [&str; 11] = [
    "us", "app", "A1", "n_", "eu-1", "x.y", "é", "a/b", "path", "$x", "a b",
];
const GOOD_NAMES: usize = 8;
const SPELLED: usize = 4;

/// Patterns of which the first ones match something in any configuration.
const PATTERNS: [&str; 10] = [
    "~.", "~*.", "~^.*$", "~1$", "~*_S_", "~(", "~[", "~(?=h).", "~(.)\\1", "~",
];
const TIMES: [&str; 8] = ["0", "1ms", "1m30s", "1M", "3", "-1", "x", "99999999999y"];
const STATUSES: [&str; 14] = [
    "200",
    "404",
    "599",
    "2xx",
    "3xx",
    "4xx",
    "5xx",
    "error",
    "timeout",
    "non_idempotent",
    "199",
    "600",
    "x",
    "",
];
const URIS: [&str; 7] = ["/sorry", "/a?b=c", "@named", "/$uri", "$uri", "sorry", ""];
const TRIES: [&str; 5] = ["0", "1", "1000", "-1", "x"];

impl Generator {
    /// Some upstrands, and perhaps a server that uses them.
    pub fn upstrands(&mut self) -> String {
        let mut text = String::new();
        let mut names = NAMES[..GOOD_NAMES].to_vec();
        let mut declared = Vec::new();

        for _ in 0..self.rng.random_range(0..4) {
            let name = if self.errs() {
                self.pick(&NAMES)
            } else {
                let index = self.rng.random_range(0..names.len());
                names.swap_remove(index)
            };
            text += &self.upstrand(name);
            declared.push(name);
        }
        if !declared.is_empty() && self.one_in(2) {
            text += &self.server_of(&declared);
        }
        text
    }

    fn upstrand(&mut self, name: &str) -> String {
        let mut lines = Vec::new();
        if !self.errs() {
            lines.push(self.member());
        }
        for _ in 0..self.rng.random_range(0..4) {
            lines.push(self.member());
        }
        // Each of these once, and now and then a line that is none.
        let kinds: Vec<_> = (0..7).filter(|_| self.one_in(3)).collect();
        for kind in kinds {
            let at = self.rng.random_range(0..=lines.len());
            let line = self.line_of_upstrand(kind);
            if self.errs() {
                lines.push(line.clone());
            }
            lines.insert(at, line);
        }
        if self.errs() {
            lines.push(
                self.pick(&["server 127.0.0.1;", "order", "upstream", "}", "zone z 1m;"])
                    .to_owned(),
            );
        }
        format!("upstrand \"{name}\" {{\n    {}\n}}\n", lines.join("\n    "))
    }

    fn member(&mut self) -> String {
        let declared = self.declared.choose(&mut self.rng).cloned();
        let name = match declared {
            Some(name) if !self.errs() && self.one_in(2) => name,
            _ if self.errs() => self.any_name(),
            _ => self.value(&PATTERNS, 3).to_owned(),
        };
        let mut text = format!("upstream \"{}\"", name.replace('\\', "\\\\"));
        if self.one_in(3) {
            text += " backup";
        }
        if self.one_in(3) {
            text += &format!(" blacklist_interval={}", self.value(&TIMES, 5));
        }
        if self.errs() {
            text += self.pick(&[" backup", " weight=1", " blacklist_interval=1", " \"\""]);
        }
        text + ";"
    }

    fn line_of_upstrand(&mut self, kind: usize) -> String {
        match kind {
            0 => {
                let orders = [
                    "start_random",
                    "per_request",
                    "start_random per_request",
                    "",
                    "random",
                ];
                format!("order {};", self.value(&orders, 3))
            }
            1 => format!("next_upstream_statuses {};", self.statuses(10)),
            2 => format!("next_upstream_timeout {};", self.value(&TIMES, 5)),
            3 => format!("next_upstream_tries {};", self.value(&TRIES, 3)),
            4 => {
                let (statuses, uri) = (self.statuses(9), self.value(&URIS, 5));
                format!("intercept_statuses {statuses} \"{uri}\";")
            }
            5 => format!(
                "intercept_errors {};",
                self.value(&["on", "off", "maybe"], 2)
            ),
            _ => "include /nonexistent/*.conf;".to_owned(),
        }
    }

    /// Some of the first so many statuses, which are good here.
    fn statuses(&mut self, good: usize) -> String {
        let count = self.rng.random_range(1..4);
        let statuses: Vec<_> = (0..count).map(|_| self.value(&STATUSES, good)).collect();
        statuses.join(" ")
    }

    fn server_of(&mut self, upstrands: &[&'static str]) -> String {
        let listen = self.rng.random::<u64>();
        let mut locations = String::new();
        for number in 0..self.rng.random_range(0..4) {
            let dynamic = self.dynamic(number + 1, upstrands);
            let variable = match self.spelled(upstrands) {
                Some(name) if self.one_in(2) => format!("upstrand_{name}"),
                _ => format!("d{}", number + 1),
            };
            locations +=
                &format!("location /{number} {{ {dynamic} proxy_pass http://${variable}; }}\n");
        }
        let dynamic = self.dynamic(0, upstrands);
        format!("server {{\nlisten unix:/tmp/{listen}.sock;\n{dynamic}\n{locations}}}\n")
    }

    /// A definition of the variable of this number.
    fn dynamic(&mut self, number: usize, upstrands: &[&'static str]) -> String {
        let name = match self.errs() {
            true => self
                .pick(&["d0", "$d0 $d0", "$", "$arg_x", "$upstrand_us"])
                .to_owned(),
            false => format!("$d{number}"),
        };
        let mut candidates = vec![self.pick(&["$arg_pool", "$http_x_pool", "$host", "$d0"])];
        if self.one_in(2) {
            let literal = if self.errs() {
                "nobody"
            } else {
                self.pick(upstrands)
            };
            candidates.push(literal);
        }
        if self.errs() {
            candidates.push(self.pick(&["us", "$", "$unheard_of"]));
        }
        format!("dynamic_upstrand {name} {};", candidates.join(" "))
    }

    /// One whose name can stand in a variable.
    fn spelled(&mut self, upstrands: &[&'static str]) -> Option<&'static str> {
        let spelled = |name: &&&'static str| NAMES[..SPELLED].contains(*name);
        let names: Vec<_> = upstrands.iter().filter(spelled).copied().collect();
        names.choose(&mut self.rng).copied()
    }
}
