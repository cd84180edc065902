//! Who has got what: every request has an id.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many complaints are kept.
const MOST_COMPLAINTS: usize = 20;

/// The books of a soak.
#[derive(Default)]
pub struct Ledger {
    next_id: AtomicU64,
    finished: AtomicU64,
    kills: AtomicU64,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    /// How often backends got each POST that must not be repeated.
    delivered: Vec<u8>,
    /// How often each way to end has come: a status, or what happened instead of one.
    ends: BTreeMap<String, u64>,
    complaints: Vec<String>,
    complaint_count: usize,
}

impl Ledger {
    pub fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::SeqCst)
    }

    /// How many requests have come to an end.
    pub fn finished(&self) -> u64 {
        self.finished.load(Ordering::SeqCst)
    }

    /// A request of this kind has ended so.
    pub fn finish(&self, kind: &str, end: &str) {
        self.finished.fetch_add(1, Ordering::SeqCst);
        let mut books = self.books.lock().expect("no panic");
        *books.ends.entry(format!("{kind} {end}")).or_default() += 1;
    }

    /// A backend has got the whole of a POST.
    pub fn delivered(&self, id: u64, may_repeat: bool) {
        if may_repeat {
            return;
        }
        let mut books = self.books.lock().expect("no panic");
        let place = usize::try_from(id).expect("an id");
        if books.delivered.len() <= place {
            books.delivered.resize(place + 100_000, 0);
        }
        books.delivered[place] += 1;
    }

    /// A worker is about to be killed, with all that it serves, or it was.
    pub fn kill(&self) {
        self.kills.fetch_add(1, Ordering::SeqCst);
    }

    /// How often that was said.
    pub fn kills(&self) -> u64 {
        self.kills.load(Ordering::SeqCst)
    }

    pub fn complain(&self, text: String) {
        let mut books = self.books.lock().expect("no panic");
        books.complaint_count += 1;
        if books.complaints.len() < MOST_COMPLAINTS {
            books.complaints.push(text);
        }
    }

    /// What is wrong.
    pub fn complaints(&self) -> Vec<String> {
        let books = self.books.lock().expect("no panic");
        let mut complaints = books.complaints.clone();
        if books.complaint_count > complaints.len() {
            complaints.push(format!("{} in all", books.complaint_count));
        }
        let repeated = books.delivered.iter().enumerate();
        let repeated = repeated.filter(|(_, count)| **count > 1);
        complaints
            .extend(repeated.map(|(id, count)| format!("POST {id} was delivered {count} times")));
        complaints
    }

    pub fn summary(&self) -> String {
        let books = self.books.lock().expect("no panic");
        let delivered = books.delivered.iter().filter(|count| **count > 0).count();
        let mut text = format!(
            "{} requests, {delivered} POSTs delivered once",
            self.finished()
        );
        for (end, count) in &books.ends {
            text += &format!("\n  {end}: {count}");
        }
        text
    }
}

/// The id in a target; 0: there is none.
pub fn id_of(target: &str) -> u64 {
    let after = target.split_once("id=").map(|(_, after)| after);
    let digits = after.and_then(|after| after.split('&').next());
    digits
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_default()
}
