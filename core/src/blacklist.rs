//! Members that failed and are left out for a while (spec 4.4).

use std::cell::Cell;

/// Until when each member of an upstrand is left out, in one worker. Times are in milliseconds of
/// one monotonic clock, whose reading comes in as `now`.
#[derive(Clone, Debug, Default)]
pub struct Blacklist {
    members: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// `blacklist_interval`, in milliseconds; none: the member is never left out.
    interval: Option<u64>,
    /// 0: it is not left out.
    until: Cell<u64>,
}

impl Blacklist {
    /// An entry a member, with its `blacklist_interval` in milliseconds.
    pub fn new(intervals: impl IntoIterator<Item = Option<u64>>) -> Self {
        let members = intervals
            .into_iter()
            .map(|interval| Entry {
                interval,
                until: Cell::new(0),
            })
            .collect();

        Self { members }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether the member is left out at `now`.
    #[inline]
    pub fn contains(&self, member: usize, now: u64) -> bool {
        self.members
            .get(member)
            .is_some_and(|entry| now < entry.until.get())
    }

    /// Leaves the member out for its interval from `now` on.
    pub fn add(&self, member: usize, now: u64) {
        if let Some(entry) = self.members.get(member) {
            if let Some(interval) = entry.interval {
                entry.until.set(now.saturating_add(interval));
            }
        }
    }

    /// Takes all members in again.
    pub fn clear(&self) {
        for entry in &self.members {
            entry.until.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_out_for_its_interval() {
        let blacklist = Blacklist::new([Some(500), Some(100)]);
        assert!(!blacklist.contains(0, 1000));

        blacklist.add(0, 1000);
        assert!(blacklist.contains(0, 1000));
        assert!(blacklist.contains(0, 1499));
        assert!(!blacklist.contains(0, 1500));
        assert!(!blacklist.contains(1, 1000));
    }

    #[test]
    fn a_later_failure_begins_the_interval_again() {
        let blacklist = Blacklist::new([Some(500)]);
        blacklist.add(0, 1000);
        blacklist.add(0, 1400);
        assert!(blacklist.contains(0, 1899));
        assert!(!blacklist.contains(0, 1900));
    }

    #[test]
    fn without_an_interval_a_member_stays() {
        let blacklist = Blacklist::new([None, Some(0)]);
        blacklist.add(0, 1000);
        blacklist.add(1, 1000);
        assert!(!blacklist.contains(0, 1000));
        assert!(!blacklist.contains(1, 1000));
    }

    #[test]
    fn cleared() {
        let blacklist = Blacklist::new([Some(500), Some(500)]);
        blacklist.add(0, 1000);
        blacklist.add(1, 1200);

        blacklist.clear();
        assert!(!blacklist.contains(0, 1200));
        assert!(!blacklist.contains(1, 1200));
    }

    #[test]
    fn intervals_that_reach_past_the_end_of_time() {
        let blacklist = Blacklist::new([Some(u64::MAX)]);
        blacklist.add(0, 1000);
        assert!(blacklist.contains(0, u64::MAX - 1));
    }

    #[test]
    fn members_that_do_not_exist_are_not_there() {
        let blacklist = Blacklist::new([Some(1)]);
        blacklist.add(7, 1000);
        assert!(!blacklist.contains(7, 1000));
    }
}
