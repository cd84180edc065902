//! What goes wrong, and what administrators do.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use harness::{Daemon, Mood, Moody, until};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;

use crate::ledger::Ledger;

/// The time between two changes.
const TICK: Duration = Duration::from_millis(250);

const BAD_MOODS: [Mood; 4] = [Mood::Failing, Mood::Closing, Mood::Hanging, Mood::Refusing];

/// What must not stand in an error log. (What nginx says of a worker that was killed is counted.)
const FORBIDDEN: [&str; 5] = [
    "[alert]",
    "[emerg]",
    "exited on signal",
    "Sanitizer",
    "panicked at",
];

/// What nginx says when a worker was killed: that it was, and later that it had left something in shared memory.
const OF_KILLS: [&str; 2] = [
    "exited on signal 9",
    "ignore long locked inactive cache entry",
];

/// The troublemaker, who holds what is in trouble.
pub struct Chaos {
    pub nginx: Daemon,
    backends: Vec<Moody>,
    ledger: Arc<Ledger>,
    rng: SmallRng,
    ticks: u64,
    counts: Counts,
    upgraded: bool,
    complaints: Vec<String>,
}

#[derive(Debug, Default)]
struct Counts {
    moods: u64,
    reloads: u64,
    reopens: u64,
    kills: u64,
    upgrades: u64,
}

impl Chaos {
    pub fn new(nginx: Daemon, backends: Vec<Moody>, ledger: Arc<Ledger>) -> Self {
        Self {
            nginx,
            backends,
            ledger,
            rng: SmallRng::seed_from_u64(0),
            ticks: 0,
            counts: Counts::default(),
            upgraded: false,
            complaints: Vec::new(),
        }
    }

    /// Makes a backend fail and lets others come back, and some time pass.
    pub async fn trouble_backends(&mut self) {
        let bad = BAD_MOODS[self.rng.random_range(0..BAD_MOODS.len())];
        for mood in [bad, Mood::Good, Mood::Good] {
            let index = self.rng.random_range(0..self.backends.len());
            self.backends[index].set_mood(mood);
        }
        self.counts.moods += 1;
        self.ticks += 1;
        sleep(TICK).await;
    }

    /// Reloads, reopens or kills something every few ticks, and upgrades once when `late`.
    pub async fn trouble_processes(&mut self, late: bool) {
        if late && self.counts.reloads > 2 && !self.upgraded {
            self.nginx.upgrade().await;
            self.counts.upgrades += 1;
            self.upgraded = true;
        } else if self.ticks % 28 == 0 {
            // Also for what begins while it is being killed.
            self.ledger.kill();
            self.nginx.kill_worker().await;
            self.ledger.kill();
            self.counts.kills += 1;
        } else if self.ticks % 8 == 0 {
            self.nginx.reload().await;
            self.counts.reloads += 1;
        } else if self.ticks % 20 == 5 {
            self.reopen().await;
            self.counts.reopens += 1;
        }
    }

    pub fn summary(&self) -> String {
        format!("{:?}", self.counts)
    }

    /// Ends nginx, and tells what is wrong with its logs.
    pub async fn stop(mut self) -> Vec<String> {
        let log = self.nginx.stop().await;
        self.complaints.extend(complaints(&log));
        self.complaints
    }

    /// As logrotate does it.
    async fn reopen(&mut self) {
        let folder = self.nginx.prefix().to_owned();
        for log in ["error.log", "access.log"] {
            fs::rename(folder.join(log), folder.join(log.to_owned() + ".1")).expect("a log");
        }
        self.nginx.signal(libc::SIGUSR1);
        until("new logs", async || {
            let exist = ["error.log", "access.log"].map(|log| folder.join(log).exists());
            (exist == [true, true]).then_some(())
        })
        .await;

        // Workers that have not opened the new one yet still write to the old one.
        let old = fs::read(folder.join("error.log.1")).expect("a log");
        self.complaints
            .extend(complaints(&String::from_utf8_lossy(&old)));
    }
}

fn complaints(log: &str) -> Vec<String> {
    let forbidden = |line: &&str| {
        FORBIDDEN.iter().any(|word| line.contains(word))
            && !OF_KILLS.iter().any(|word| line.contains(word))
    };
    log.lines().filter(forbidden).map(str::to_owned).collect()
}
