//! The processes of an nginx.

use std::fs;
use std::path::Path;

/// The ids of a master's worker processes, those that are about to leave included.
pub(crate) fn workers(master: i32) -> Vec<i32> {
    let children = read(Path::new(&format!("/proc/{master}/task/{master}/children")));
    let children = children
        .split_whitespace()
        .map(|pid| pid.parse().expect("a process id"));
    children
        .filter(|pid| title(*pid).contains("worker process"))
        .collect()
}

/// What a process calls itself: nginx names its kinds of processes so.
pub(crate) fn title(pid: i32) -> String {
    read(Path::new(&format!("/proc/{pid}/cmdline")))
}

/// The resident memory of a process, in bytes.
pub fn memory(pid: i32) -> usize {
    let statm = read(Path::new(&format!("/proc/{pid}/statm")));
    let pages: usize = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("statm");
    // SAFETY: sysconf only returns a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * usize::try_from(page).expect("a page size")
}

/// How many descriptors a process has open.
pub fn descriptors(pid: i32) -> usize {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    entries.expect("a process of ours").count()
}

/// Sends a signal to a process of an nginx that a test has started.
pub(crate) fn signal(pid: i32, signal: i32) {
    // SAFETY: kill touches no memory; the id is that of a process of ours.
    unsafe { libc::kill(pid, signal) };
}

/// Whether it has ended; one that nobody has waited for has ended, too.
pub(crate) fn is_gone(pid: i32) -> bool {
    let stat = read(Path::new(&format!("/proc/{pid}/stat")));
    stat.is_empty() || stat.contains(") Z ")
}

pub(crate) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
