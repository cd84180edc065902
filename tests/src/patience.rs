//! Waiting, never without an end.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// How long any one wait may take before it is a failure.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Time between two looks at a condition that nobody announces.
const LOOK: Duration = Duration::from_millis(5);

/// What `wait` yields. Panics, naming `what`, once [`PATIENCE`] is over.
pub async fn within<T>(what: &str, wait: impl Future<Output = T>) -> T {
    match timeout(PATIENCE, wait).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing after {PATIENCE:?}"),
    }
}

/// The first value that `look` finds. Panics, naming `what`, once [`PATIENCE`] is over.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;

    loop {
        if let Some(value) = within(what, look()).await {
            return value;
        }
        assert!(Instant::now() < end, "{what}: not so after {PATIENCE:?}");
        sleep(LOOK).await;
    }
}

/// What the futures yield, in their order, when all run at the same time.
pub async fn all<T: Send + 'static>(
    futures: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let mut tasks = JoinSet::new();
    for (index, future) in futures.into_iter().enumerate() {
        tasks.spawn(async move { (index, future.await) });
    }

    let mut values = tasks.join_all().await;
    values.sort_by_key(|(index, _)| *index);
    values.into_iter().map(|(_, value)| value).collect()
}
