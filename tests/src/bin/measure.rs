//! Measures commands against each other: `measure COUNT COMMAND...`, each command one argument for a
//! shell. Runs them in turn COUNT times and prints a line for each: the least milliseconds of a
//! processor's time that a run took, and the most kilobytes of memory.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

struct Usage {
    milliseconds: f64,
    kilobytes: i64,
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let count: Option<u32> = arguments.next().and_then(|count| count.parse().ok());
    let commands: Vec<String> = arguments.collect();

    let Some(count) = count.filter(|count| *count > 0 && !commands.is_empty()) else {
        eprintln!("usage: measure COUNT COMMAND...");
        return ExitCode::FAILURE;
    };

    let mut least: Vec<Option<Usage>> = commands.iter().map(|_| None).collect();
    for _ in 0..count {
        for (command, least) in commands.iter().zip(&mut least) {
            let Some(usage) = run(command) else {
                eprintln!("measure: this fails: {command}");
                return ExitCode::FAILURE;
            };
            *least = Some(match least.take() {
                Some(before) => Usage {
                    milliseconds: before.milliseconds.min(usage.milliseconds),
                    kilobytes: before.kilobytes.max(usage.kilobytes),
                },
                None => usage,
            });
        }
    }

    for usage in least.into_iter().flatten() {
        println!("{:.1} {}", usage.milliseconds, usage.kilobytes);
    }
    ExitCode::SUCCESS
}

/// None: the command failed.
fn run(command: &str) -> Option<Usage> {
    let mut shell = Command::new("/bin/sh");
    shell.arg0("sh").arg("-c").arg(format!("exec {command}"));
    let child = shell
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let pid = i32::try_from(child.id()).ok()?;

    let mut status = 0;
    // SAFETY: zeros are a valid rusage; wait4 writes both, and the child is ours to wait for.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, 0, &mut usage) == pid).then_some(usage)
    }?;

    let milliseconds =
        |time: libc::timeval| time.tv_sec as f64 * 1_000.0 + time.tv_usec as f64 / 1_000.0;
    (status == 0).then(|| Usage {
        milliseconds: milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
        kilobytes: usage.ru_maxrss,
    })
}
