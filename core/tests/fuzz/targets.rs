//! Executions of the parsers of directives and of the walk, each compared with what the specification says in other
//! words. What is executed comes from a source of numbers: random ones, or a fuzzer's input.

use combined_upstreams_core::blacklist::Blacklist;
use combined_upstreams_core::chunked::{self, Parser};
use combined_upstreams_core::rotation::{Order, Rotation};
use combined_upstreams_core::singlet::Parameters;
use combined_upstreams_core::statuses::{Origin, Statuses};
use combined_upstreams_core::weight;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngCore, SeedableRng};

/// A word of a directive: one that means something, one that nearly does, or any bytes.
fn word(rng: &mut dyn RngCore) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "200",
        "599",
        "600",
        "199",
        "2xx",
        "5xx",
        "6xx",
        "error",
        "timeout",
        "non_idempotent",
        "byname",
        "nobackup",
        "0",
        "32",
        "33",
        "_s_",
    ];
    let mut word = match rng.random_range(0..4) {
        0 => (0..rng.random_range(0..6)).map(|_| rng.random()).collect(),
        1 => rng.random_range(0..1_000).to_string().into_bytes(),
        _ => WORDS.choose(rng).expect("a word").as_bytes().to_vec(),
    };
    if rng.random_range(0..4) == 0 && !word.is_empty() {
        let at = rng.random_range(0..word.len());
        word[at] = rng.random();
    }
    word
}

/// What a word of `next_upstream_statuses` stands for: statuses, and whether it is only of nginx's own.
fn meaning(word: &[u8]) -> Option<(Vec<u16>, bool)> {
    match word {
        b"error" => return Some((vec![502], true)),
        b"timeout" => return Some((vec![504], true)),
        b"non_idempotent" => return Some((vec![], false)),
        _ => {}
    }
    let text = std::str::from_utf8(word).ok()?;
    let status = text
        .parse()
        .ok()
        .filter(|status| (200..600).contains(status));
    status
        .filter(|status: &u16| status.to_string() == text)
        .map(|status| (vec![status], false))
        .or_else(|| {
            let class = (2..6).find(|class| format!("{class}xx") == text)?;
            Some(((class * 100..class * 100 + 100).collect(), false))
        })
}

/// `next_upstream_statuses` and `intercept_statuses`: words, and what they match.
pub fn statuses(rng: &mut dyn RngCore) {
    let mut statuses = Statuses::default();
    let mut expected = Vec::new();
    for _ in 0..rng.random_range(1..4) {
        let word = word(rng);
        let meaning = meaning(&word);
        assert_eq!(statuses.add(&word).is_ok(), meaning.is_some(), "{word:?}");
        expected.extend(meaning);
    }

    let status = rng.random_range(0..1_000);
    let said = |own: bool| {
        let mut words = expected.iter();
        words.any(|(statuses, only_own)| *only_own == own && statuses.contains(&status))
    };
    assert_eq!(statuses.matches(status, Origin::Backend), said(false));
    let made = matches!(status, 500 | 502 | 503 | 504) && said(false) || said(true);
    assert_eq!(statuses.matches(status, Origin::Nginx), made);
}

/// The parameters of `combine_server_singlets`, and the names that they make.
pub fn singlets(rng: &mut dyn RngCore) {
    let words: Vec<_> = (0..rng.random_range(0..5)).map(|_| word(rng)).collect();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let (host, server) = (word(rng), word(rng));
    let number = rng.random_range(1..100_000);

    match Parameters::parse(&words) {
        Ok(parameters) => {
            let name = parameters.name(&host, number, &server);
            assert!(name.starts_with(&host));
            assert_eq!(parameters.nobackup, words.last() == Some(&&b"nobackup"[..]));
            let digits = number.to_string();
            let by_number = name.ends_with(digits.as_bytes());
            assert!(by_number || words.contains(&&b"byname"[..]), "{name:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Weights that are multiplied and added up.
pub fn weights(rng: &mut dyn RngCore) {
    let number = |rng: &mut dyn RngCore| rng.random::<u64>() >> rng.random_range(0..64);
    let (weight, factor) = (number(rng), number(rng));
    let product = u128::from(weight) * u128::from(factor);
    let fits = product <= i32::MAX as u128;
    assert_eq!(
        weight::multiply(weight, factor).ok().map(u128::from),
        fits.then_some(product)
    );

    let servers: Vec<_> = (0..rng.random_range(0..5))
        .map(|_| (number(rng), number(rng)))
        .collect();
    let total = servers.iter().fold(0_u128, |total, (a, b)| {
        total.saturating_add(u128::from(*a) * u128::from(*b))
    });
    assert_eq!(
        weight::check_total(servers).is_ok(),
        total <= i32::MAX as u128
    );
}

/// Of the last chunk and its trailers nginx's parser keeps no size.
pub fn chunks(rng: &mut dyn RngCore) {
    let parser = Parser {
        state: rng.random_range(0..15),
        size: rng.random::<u64>() >> rng.random_range(0..64),
    };
    let decoded = rng.random::<u64>() >> rng.random_range(0..64);
    let Some(framing) = chunked::frame(decoded, parser) else {
        return;
    };

    let before = std::str::from_utf8(&framing.before).expect("ASCII");
    let size = before
        .strip_suffix("\r\n")
        .map(|size| u64::from_str_radix(size, 16));
    let left = if parser.state == 4 { parser.size } else { 0 };
    match size {
        Some(size) => assert_eq!(size.expect("a size"), decoded + left),
        None => assert_eq!((before, decoded), ("", 0)),
    }
    if matches!(parser.state, 1..=3) {
        let after = std::str::from_utf8(&framing.after).expect("ASCII");
        let digits = after
            .trim_start_matches("\r\n")
            .trim_end_matches([';', '\r']);
        assert_eq!(u64::from_str_radix(digits, 16), Ok(parser.size));
    }
}

/// Whatever fails, and however time passes: a walk takes each member at most once, main ones first, and none that
/// is left out.
pub fn walks(rng: &mut dyn RngCore) {
    let (main, backup) = (rng.random_range(0..7), rng.random_range(0..5));
    if main + backup == 0 {
        return;
    }
    let order = Order {
        start_random: rng.random(),
        per_request: rng.random(),
    };
    let intervals: Vec<_> = (0..main + backup)
        .map(|_| rng.random_bool(0.5).then(|| rng.random_range(0..30)))
        .collect();
    let rotation = Rotation::new(order, main, Blacklist::new(intervals.clone()));
    let mut draws = SmallRng::seed_from_u64(rng.random());
    let mut draw = |n| draws.random_range(0..n);
    rotation.start_worker(&mut draw);

    let mut now = rng.random::<u64>() >> rng.random_range(1..64);
    let mut out = vec![0; main + backup];
    for _ in 0..rng.random_range(1..5) {
        let is_out = |out: &[u64], member: usize, now| now < out[member];
        let begun_full = (0..main + backup).all(|member| is_out(&out, member, now));
        let mut begun = rotation.begin(now, &mut draw);
        assert_eq!(begun.whitelisted, begun_full);
        if begun_full {
            out.fill(0);
        }

        let mut visited = vec![begun.member];
        assert!(!is_out(&out, begun.member, now));
        loop {
            let current = visited[visited.len() - 1];
            if rng.random() {
                rotation.fail(current, now);
                if let Some(interval) = intervals[current] {
                    out[current] = now.saturating_add(interval);
                }
            }
            now = now.saturating_add(rng.random_range(0..10));

            let Some(next) = rotation.next(&mut begun.walk, now, &mut draw) else {
                break;
            };
            assert!(!visited.contains(&next) && !is_out(&out, next, now));
            assert!(next >= main || current < main);
            visited.push(next);
        }
        assert!(!rotation.has_next(&begun.walk, now));
    }
}
