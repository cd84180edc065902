//! The order in which the walks of one worker visit the members of an upstrand (spec 4.2).
//!
//! ```text
//!   members   0   1   2   3 | 4   5        main | backup
//!   walk          start -> 2, 3, 0, 1, then 5, 4
//! ```
//!
//! Main members come in cyclic order from a start, each once, then the backup members likewise.
//! Members that are blacklisted when their turn comes are passed over.

use std::cell::Cell;

use crate::blacklist::Blacklist;

/// The arguments of `order`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The start is drawn: once by each worker, or with `per_request` by each walk.
    pub start_random: bool,
    /// No walk depends on the ones before it.
    pub per_request: bool,
}

/// Draws a number below its argument, all equally likely.
pub trait Draw {
    /// A number in `0..n`; `n` is not 0.
    fn below(&mut self, n: usize) -> usize;
}

impl<F: FnMut(usize) -> usize> Draw for F {
    fn below(&mut self, n: usize) -> usize {
        self(n)
    }
}

/// An upstrand's members as one worker sees them: main ones first, then the backup ones, each known
/// by its index.
#[derive(Debug)]
pub struct Rotation {
    order: Order,
    main: Part,
    backup: Part,
    blacklist: Blacklist,
}

/// The members of one part, and where the next walk starts in it.
#[derive(Debug)]
struct Part {
    first: usize,
    len: usize,
    cursor: Cell<usize>,
}

/// One request's way through the members.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Members of the main part that were taken or passed over.
    main_seen: usize,
    main_start: usize,
    backup_seen: usize,
    /// Known once the walk has entered the backups.
    backup_start: Option<usize>,
}

/// How a walk begins.
#[derive(Debug)]
pub struct Begun {
    /// The walk, its first member taken.
    pub walk: Walk,
    /// That member; there is always one.
    pub member: usize,
    /// All members were blacklisted and have been taken in again.
    pub whitelisted: bool,
}

impl Rotation {
    /// The first `main` members of the blacklist are the main ones. There must be a member.
    pub fn new(order: Order, main: usize, blacklist: Blacklist) -> Self {
        let part = |first, len| Part {
            first,
            len,
            cursor: Cell::new(0),
        };

        Self {
            order,
            main: part(0, main),
            backup: part(main, blacklist.len() - main),
            blacklist,
        }
    }

    /// Called once in each worker, before its first walk.
    #[cold]
    pub fn start_worker(&self, draw: &mut impl Draw) {
        if self.order.start_random && !self.order.per_request {
            self.main.draw_cursor(draw);
            self.backup.draw_cursor(draw);
        }
    }

    /// Begins a walk at `now` (milliseconds) and takes its first member.
    #[inline]
    pub fn begin(&self, now: u64, draw: &mut impl Draw) -> Begun {
        let start = self.main.start(self.order, draw);
        let first = self.main.member(start, 0);

        // Most walks find their first member here.
        if self.main.len > 0 && !self.blacklist.contains(first, now) {
            return Begun {
                walk: Walk::new(start, 1),
                member: first,
                whitelisted: false,
            };
        }

        self.search(Walk::new(start, 0), now, draw)
    }

    /// A walk whose first member is left out, or in the backups.
    #[cold]
    fn search(&self, mut walk: Walk, now: u64, draw: &mut impl Draw) -> Begun {
        match self.next(&mut walk, now, draw) {
            Some(member) => Begun {
                walk,
                member,
                whitelisted: false,
            },
            None => self.whitelist(walk, now, draw),
        }
    }

    /// Takes all members in again, for a walk that has found none.
    #[cold]
    fn whitelist(&self, mut walk: Walk, now: u64, draw: &mut impl Draw) -> Begun {
        self.blacklist.clear();
        walk.main_seen = 0;

        Begun {
            member: self.next(&mut walk, now, draw).unwrap_or_default(),
            walk,
            whitelisted: true,
        }
    }

    /// Takes the next member of a walk, if one is left at `now`.
    #[inline]
    pub fn next(&self, walk: &mut Walk, now: u64, draw: &mut impl Draw) -> Option<usize> {
        if let Some((member, seen)) = self.find(&self.main, walk.main_start, walk.main_seen, now) {
            walk.main_seen = seen;
            return Some(member);
        }
        walk.main_seen = self.main.len;

        if !self.has_backup(walk, now) {
            return None;
        }

        let start = match walk.backup_start {
            Some(start) => start,
            None => self.backup.start(self.order, draw),
        };
        walk.backup_start = Some(start);

        let (member, seen) = self.find(&self.backup, start, walk.backup_seen, now)?;
        walk.backup_seen = seen;

        Some(member)
    }

    /// Whether a member is left for the walk at `now`.
    pub fn has_next(&self, walk: &Walk, now: u64) -> bool {
        self.find(&self.main, walk.main_start, walk.main_seen, now)
            .is_some()
            || self.has_backup(walk, now)
    }

    /// A hop of the member failed at `now`.
    pub fn fail(&self, member: usize, now: u64) {
        self.blacklist.add(member, now);
    }

    /// A walk enters the backups only to take one: a start that is not yet drawn does not matter.
    fn has_backup(&self, walk: &Walk, now: u64) -> bool {
        let start = walk.backup_start.unwrap_or(0);
        self.find(&self.backup, start, walk.backup_seen, now)
            .is_some()
    }

    /// The next member of the part that is not blacklisted, and how many are then seen.
    #[inline]
    fn find(&self, part: &Part, start: usize, seen: usize, now: u64) -> Option<(usize, usize)> {
        (seen..part.len)
            .map(|step| (part.member(start, step), step + 1))
            .find(|(member, _)| !self.blacklist.contains(*member, now))
    }
}

impl Walk {
    fn new(main_start: usize, main_seen: usize) -> Self {
        Self {
            main_seen,
            main_start,
            backup_seen: 0,
            backup_start: None,
        }
    }
}

impl Part {
    fn draw_cursor(&self, draw: &mut impl Draw) {
        if self.len > 1 {
            self.cursor.set(draw.below(self.len));
        }
    }

    /// Where a walk starts in this part; the cursor moves on.
    fn start(&self, order: Order, draw: &mut impl Draw) -> usize {
        if self.len <= 1 {
            return 0;
        }

        match (order.per_request, order.start_random) {
            (true, true) => draw.below(self.len),
            (true, false) => 0,
            (false, _) => {
                let start = self.cursor.get();
                let next = start + 1;
                self.cursor.set(if next == self.len { 0 } else { next });
                start
            }
        }
    }

    fn member(&self, start: usize, step: usize) -> usize {
        let place = start + step;
        self.first
            + if place < self.len {
                place
            } else {
                place - self.len
            }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    const CURSOR: Order = Order {
        start_random: false,
        per_request: false,
    };
    const START_RANDOM: Order = Order {
        start_random: true,
        per_request: false,
    };
    const PER_REQUEST: Order = Order {
        start_random: false,
        per_request: true,
    };
    const BOTH: Order = Order {
        start_random: true,
        per_request: true,
    };
    const INTERVAL: u64 = 1000;

    fn rotation(order: Order, main: usize, backup: usize) -> Rotation {
        let intervals = vec![Some(INTERVAL); main + backup];
        Rotation::new(order, main, Blacklist::new(intervals))
    }

    fn no_draw(_: usize) -> usize {
        panic!("nothing is drawn in this order")
    }

    /// All members of one walk, each hop of which fails without being blacklisted.
    fn members(rotation: &Rotation, now: u64, draw: &mut impl Draw) -> Vec<usize> {
        let Begun {
            mut walk, member, ..
        } = rotation.begin(now, draw);
        let mut members = vec![member];
        while rotation.has_next(&walk, now) {
            members.push(rotation.next(&mut walk, now, draw).unwrap());
        }
        assert_eq!(rotation.next(&mut walk, now, draw), None);
        members
    }

    #[test]
    fn cursors_move_on_with_each_walk() {
        let r = rotation(CURSOR, 3, 2);
        let walk = || members(&r, 0, &mut no_draw);
        assert_eq!(walk(), [0, 1, 2, 3, 4]);
        assert_eq!(walk(), [1, 2, 0, 4, 3]);
        assert_eq!(walk(), [2, 0, 1, 3, 4]);
        assert_eq!(walk(), [0, 1, 2, 4, 3]);
    }

    #[test]
    fn the_backup_cursor_moves_only_when_a_walk_enters_the_backups() {
        let r = rotation(CURSOR, 2, 2);
        r.begin(0, &mut no_draw);
        r.begin(0, &mut no_draw);
        assert_eq!(members(&r, 0, &mut no_draw), [0, 1, 2, 3]);
        r.begin(0, &mut no_draw);
        assert_eq!(members(&r, 0, &mut no_draw), [0, 1, 3, 2]);
    }

    #[test]
    fn has_next_alone_does_not_enter_the_backups() {
        let r = rotation(CURSOR, 1, 2);
        let begun = r.begin(0, &mut no_draw);
        assert!(r.has_next(&begun.walk, 0));
        assert_eq!(members(&r, 0, &mut no_draw), [0, 1, 2]);
    }

    #[test]
    fn per_request_starts_at_the_first() {
        let r = rotation(PER_REQUEST, 3, 2);
        for _ in 0..3 {
            assert_eq!(members(&r, 0, &mut no_draw), [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn start_random_draws_once_a_worker() {
        let r = rotation(START_RANDOM, 4, 3);
        let mut drawn = [2, 1].into_iter();
        r.start_worker(&mut |_| drawn.next().unwrap());
        assert_eq!(members(&r, 0, &mut no_draw), [2, 3, 0, 1, 5, 6, 4]);
        assert_eq!(members(&r, 0, &mut no_draw), [3, 0, 1, 2, 6, 4, 5]);
        assert_eq!(members(&r, 0, &mut no_draw), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn both_draw_in_each_walk_for_each_part() {
        let r = rotation(BOTH, 3, 2);
        r.start_worker(&mut no_draw);
        let mut drawn = [1, 1, 2, 0].into_iter();
        let mut draw = |_| drawn.next().unwrap();
        assert_eq!(members(&r, 0, &mut draw), [1, 2, 0, 4, 3]);
        assert_eq!(members(&r, 0, &mut draw), [2, 0, 1, 3, 4]);
    }

    #[test]
    fn only_backups() {
        for order in [CURSOR, PER_REQUEST] {
            let r = rotation(order, 0, 2);
            assert_eq!(members(&r, 0, &mut no_draw), [0, 1]);
        }
        let r = rotation(CURSOR, 0, 2);
        members(&r, 0, &mut no_draw);
        assert_eq!(members(&r, 0, &mut no_draw), [1, 0]);
        assert_eq!(members(&rotation(BOTH, 0, 2), 0, &mut |_| 1), [1, 0]);
    }

    #[test]
    fn blacklisted_members_are_passed_over() {
        let r = rotation(CURSOR, 3, 2);
        r.fail(0, 0);
        r.fail(3, 0);
        assert_eq!(members(&r, 999, &mut no_draw), [1, 2, 4]);
        assert_eq!(members(&r, 999, &mut no_draw), [1, 2, 4]);
        assert_eq!(members(&r, 1000, &mut no_draw), [2, 0, 1, 3, 4]);
    }

    #[test]
    fn a_walk_that_finds_no_backup_has_not_entered_them() {
        let r = rotation(CURSOR, 1, 2);
        r.fail(1, 0);
        r.fail(2, 0);
        assert_eq!(members(&r, 0, &mut no_draw), [0]);
        assert_eq!(members(&r, INTERVAL, &mut no_draw), [0, 1, 2]);
    }

    #[test]
    fn a_full_blacklist_is_cleared_and_all_members_are_visited() {
        let r = rotation(PER_REQUEST, 2, 1);
        (0..3).for_each(|member| r.fail(member, 0));

        let mut begun = r.begin(500, &mut no_draw);
        assert!(begun.whitelisted);
        assert_eq!(begun.member, 0);
        r.fail(0, 500);
        assert_eq!(r.next(&mut begun.walk, 500, &mut no_draw), Some(1));
        r.fail(1, 500);
        assert_eq!(r.next(&mut begun.walk, 500, &mut no_draw), Some(2));
        assert_eq!(r.next(&mut begun.walk, 500, &mut no_draw), None);

        assert!(!r.begin(500, &mut no_draw).whitelisted);
    }

    #[test]
    fn a_member_that_another_walk_blacklists_is_passed_over_at_once() {
        let r = rotation(PER_REQUEST, 3, 0);
        let mut begun = r.begin(0, &mut no_draw);
        r.fail(1, 5);
        assert_eq!(r.next(&mut begun.walk, 5, &mut no_draw), Some(2));
    }

    /// What the specification says, without cursors: the members of a part from `start` on that
    /// are not blacklisted.
    fn naive_part(first: usize, len: usize, start: usize, out: &[bool]) -> Vec<usize> {
        let mut cycle: Vec<usize> = (first..first + len).collect();
        cycle.rotate_left(start.min(len));
        cycle.retain(|member| !out[*member]);
        cycle
    }

    /// Every order, 0 to 4 members in each part, every set of blacklisted members.
    #[test]
    fn all_small_upstrands_agree_with_a_naive_model() {
        for (order, main, backup) in [CURSOR, START_RANDOM, PER_REQUEST, BOTH]
            .into_iter()
            .flat_map(|order| (0..=4).map(move |main| (order, main)))
            .flat_map(|(order, main)| (0..=4).map(move |backup| (order, main, backup)))
            .filter(|(_, main, backup)| main + backup > 0)
        {
            for set in 0_u32..1 << (main + backup) {
                check_against_the_model(order, main, backup, set);
            }
        }
    }

    fn check_against_the_model(order: Order, main: usize, backup: usize, set: u32) {
        let n = main + backup;
        let r = rotation(order, main, backup);
        let mut rng = SmallRng::seed_from_u64(u64::from(set));
        r.start_worker(&mut |n| rng.random_range(0..n));

        let mut cursors = [r.main.cursor.get(), r.backup.cursor.get()];
        let mut out: Vec<bool> = (0..n).map(|member| set & (1 << member) != 0).collect();
        (0..n).filter(|m| out[*m]).for_each(|m| r.fail(m, 0));

        for _ in 0..6 {
            let mut drawn = Vec::new();
            let begun_full = out.iter().all(|out| *out);
            let walked = members(&r, 0, &mut |n| {
                drawn.push(rng.random_range(0..n));
                drawn[drawn.len() - 1]
            });

            if begun_full {
                out.fill(false);
            }
            let mut drawn = drawn.into_iter();
            let mut start = |part: usize, len: usize| match (order.per_request, len) {
                (_, 0 | 1) => 0,
                (true, _) if order.start_random => drawn.next().unwrap(),
                (true, _) => 0,
                (false, _) => {
                    let start = cursors[part];
                    cursors[part] = (start + 1) % len;
                    start
                }
            };

            let mut expected = naive_part(0, main, start(0, main), &out);
            if out[main..].iter().any(|out| !out) {
                expected.extend(naive_part(main, backup, start(1, backup), &out));
            }
            assert_eq!(walked, expected, "{order:?} {main} {backup} {set:b}");
        }
    }

    proptest::proptest! {
        /// Whatever fails when, and however time passes: a walk visits no member twice, takes none
        /// that is blacklisted, leaves none that is not, and ends.
        #[test]
        fn invariants_of_a_walk(
            main in 0_usize..5,
            backup in 0_usize..5,
            order in 0..4,
            intervals in proptest::collection::vec(proptest::option::of(0_u64..50), 10),
            steps in proptest::collection::vec((0_u64..20, proptest::bool::ANY), 60),
            seed in proptest::num::u64::ANY,
        ) {
            let n = main + backup;
            proptest::prop_assume!(n > 0);
            let order = Order { start_random: order & 1 != 0, per_request: order & 2 != 0 };
            let intervals: Vec<_> = intervals.into_iter().take(n).collect();
            let r = Rotation::new(order, main, Blacklist::new(intervals));
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut draw = |n| rng.random_range(0..n);
            r.start_worker(&mut draw);

            let mut now = 0;
            let mut steps = steps.into_iter();
            'walks: loop {
                let mut begun = r.begin(now, &mut draw);
                let mut visited = vec![begun.member];
                loop {
                    let Some((pass, fails)) = steps.next() else { break 'walks };
                    now += pass;
                    let current = visited[visited.len() - 1];
                    if fails {
                        r.fail(current, now);
                    }
                    let left = r.has_next(&begun.walk, now);
                    let next = r.next(&mut begun.walk, now, &mut draw);
                    proptest::prop_assert_eq!(left, next.is_some());
                    let Some(next) = next else { break };
                    proptest::prop_assert!(!visited.contains(&next));
                    proptest::prop_assert!(!r.blacklist.contains(next, now));
                    proptest::prop_assert!(next >= main || current < main);
                    visited.push(next);
                }
            }
        }
    }

    /// Pearson's chi-square of 4000 starts over 4 members, against the 99.9 % quantile for 3
    /// degrees of freedom.
    #[test]
    fn per_request_start_random_is_uniform() {
        let r = rotation(BOTH, 4, 0);
        let mut rng = SmallRng::seed_from_u64(20_250_415);
        let mut counts = [0_u32; 4];
        for _ in 0..4000 {
            counts[r.begin(0, &mut |n| rng.random_range(0..n)).member] += 1;
        }
        let chi_square: f64 = counts
            .iter()
            .map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi_square < 16.27, "{chi_square} {counts:?}");
    }
}
