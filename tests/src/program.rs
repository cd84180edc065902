//! A program that a test runs beside nginx.

use std::path::Path;
use std::process::Stdio;

use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::launch::tie_to_this_thread;
use crate::patience::{until, within};

/// A server on a unix socket; it is killed when dropped.
pub struct Program {
    #[expect(dead_code, reason = "held for its end")]
    child: Child,
}

impl Program {
    /// Starts it and waits until it listens.
    pub async fn serving(socket: &Path, program: &str, arguments: &[&str]) -> Self {
        let child = command(program, arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.expect("an installed program");

        until(&format!("{program} listens"), async || {
            let ended = child.try_wait().expect("a child");
            assert!(ended.is_none(), "{program} ended: {ended:?}");
            UnixStream::connect(socket).await.ok()
        })
        .await;
        Self { child }
    }

    /// Runs it to its end, and returns what it says.
    pub async fn output(program: &str, arguments: &[&str]) -> String {
        let output = within(program, command(program, arguments).output()).await;
        let output = output.expect("an installed program");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    tie_to_this_thread(&mut command);
    command
}
