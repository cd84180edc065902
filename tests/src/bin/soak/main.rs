//! Mixed traffic through upstrands while backends fail and come back, and while nginx is reloaded, reopened,
//! killed in part and upgraded: `soak SECONDS [REQUESTS]`. It ends when both are over. scripts/soak.sh runs it.

mod chaos;
mod config;
mod ledger;
mod traffic;

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::{Daemon, descriptors, memory, until};

use chaos::Chaos;
use ledger::Ledger;

/// How much of the time each part takes, in percent: getting warm, everything, and at last only the backends' moods.
const PARTS: [(u32, Processes); 3] = [
    (10, Processes::Troubled),
    (60, Processes::Troubled),
    (30, Processes::Calm),
];

/// How much nginx may have grown when its work is done, in bytes.
const GROWTH: usize = 4_000_000;

/// How many more descriptors it may have then: connections to backends are kept, and the channels between its
/// processes come and go.
const MORE_DESCRIPTORS: usize = 40;

/// Whether nginx's processes are reloaded, killed and upgraded.
#[derive(Clone, Copy, PartialEq)]
enum Processes {
    Troubled,
    Calm,
}

/// What nginx holds when it has nothing to do.
#[derive(Debug)]
struct Holdings {
    master_bytes: usize,
    master_descriptors: usize,
    worker_bytes: usize,
    worker_descriptors: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = env::args().skip(1).map(|text| text.parse::<u32>());
    let (Some(Ok(seconds)), requests) = (arguments.next(), arguments.next()) else {
        panic!("usage: soak SECONDS [REQUESTS]");
    };
    let requests = requests.map_or(0, |count| count.expect("a number of requests"));

    let ledger = Arc::new(Ledger::default());
    let backends = config::backends(&ledger).await;
    let nginx = Daemon::start(2, |prefix, sockets| {
        config::text(prefix, sockets, &backends)
    })
    .await;
    let mut chaos = Chaos::new(nginx, backends, ledger.clone());
    let mut holdings = Vec::new();
    let started = Instant::now();

    for (percent, processes) in PARTS {
        let time = Duration::from_secs(seconds.into()) * percent / 100;
        let count = u64::from(requests) * u64::from(percent) / 100;
        run(&mut chaos, &ledger, processes, time, count).await;

        if processes == Processes::Troubled {
            chaos.nginx.reload().await;
        }
        holdings.push(measure(&chaos.nginx).await);
    }

    let seconds = started.elapsed().as_secs();
    println!("{} in {seconds} s", ledger.summary());
    println!("{}", chaos.summary());
    for (holdings, when) in holdings
        .iter()
        .zip(["warm", "after the trouble", "at last"])
    {
        println!("{when}: {holdings:?}");
    }

    let mut complaints = ledger.complaints();
    complaints.extend(growth(&holdings));
    complaints.extend(chaos.stop().await);
    for complaint in &complaints {
        println!("complaint: {complaint}");
    }
    assert!(complaints.is_empty(), "{} complaints", complaints.len());
}

/// Traffic, with trouble, for so long and for so many requests.
async fn run(
    chaos: &mut Chaos,
    ledger: &Arc<Ledger>,
    processes: Processes,
    time: Duration,
    count: u64,
) {
    let traffic = traffic::start(&chaos.nginx, ledger);
    let (began, first) = (Instant::now(), ledger.finished());

    while began.elapsed() < time || ledger.finished() < first + count {
        chaos.trouble_backends().await;
        if processes == Processes::Troubled {
            let passed = began.elapsed() >= time / 2 && ledger.finished() >= first + count / 2;
            chaos.trouble_processes(passed).await;
        }
    }
    traffic.stop().await;
}

/// Waits until nginx has only the workers that are to serve, and looks at them.
async fn measure(nginx: &Daemon) -> Holdings {
    until("the end of the workers that are leaving", async || {
        (nginx.workers().len() == 2).then_some(())
    })
    .await;

    let workers = nginx.workers();
    let most = |what: fn(i32) -> usize| workers.iter().map(|pid| what(*pid)).max();
    Holdings {
        master_bytes: memory(nginx.master()),
        master_descriptors: descriptors(nginx.master()),
        worker_bytes: most(memory).expect("two workers"),
        worker_descriptors: most(descriptors).expect("two workers"),
    }
}

fn growth(holdings: &[Holdings]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (before, after) in holdings.iter().zip(&holdings[1..]) {
        let bytes = [
            (before.master_bytes, after.master_bytes),
            (before.worker_bytes, after.worker_bytes),
        ];
        let descriptors = [
            (before.master_descriptors, after.master_descriptors),
            (before.worker_descriptors, after.worker_descriptors),
        ];
        let grew = |(before, after): &(usize, usize), more| *after > before + more;
        if bytes.iter().any(|pair| grew(pair, GROWTH))
            || descriptors.iter().any(|pair| grew(pair, MORE_DESCRIPTORS))
        {
            complaints.push(format!("nginx has grown: {before:?}, then {after:?}"));
        }
    }
    complaints
}
