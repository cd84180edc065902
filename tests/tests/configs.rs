//! Random configurations, and the ones that once were trouble: nginx takes each of them, or refuses
//! it with one line. scripts/fuzz-configs.sh runs many more of them under AddressSanitizer.
//!
//! CONFIGS says how many (300 without it), CONFIGS_FROM the number of the first one.

mod grammar;

use std::fs;
use std::path::Path;

use harness::{Config, Nginx, Verdict, all, number};

/// What nginx says where our line follows its own.
const FIRST_OF_TWO: [&str; 2] = ["duplicate upstream \"", "may not have port"];

#[tokio::test]
async fn random_configurations_are_taken_or_refused_with_one_line() {
    let (first, count) = (number("CONFIGS_FROM", 0), number("CONFIGS", 300));
    let mut taken = 0;

    let seeds: Vec<_> = (first..first + count).collect();
    for seeds in seeds.chunks(4) {
        let verdicts = all(seeds.iter().copied().map(|seed| async move {
            let generated = grammar::configuration(seed);
            let verdict = verdict(&generated.text).await;
            (seed, generated, verdict)
        }));

        for (seed, generated, verdict) in verdicts.await {
            if let Err(complaint) = judge(&verdict, generated.valid) {
                let text = generated.text;
                panic!(
                    "configuration {seed}: {complaint}\n{text}\n{}",
                    verdict.stderr
                );
            }
            taken += u64::from(verdict.code == Some(0));
        }
    }
    println!("{count} configurations, {taken} of them taken");
}

/// A file begins with `# taken` or `# refused: TEXT`.
#[tokio::test]
async fn configurations_that_were_trouble() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/configs");
    let mut count = 0;

    for file in fs::read_dir(folder).expect("the corpus") {
        let path = file.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a text");
        let verdict = verdict(&text).await;

        let expected = text.lines().next().expect("a first line");
        let text = expected.strip_prefix("# refused: ");
        let complaint = match text {
            Some(text) if !verdict.stderr.contains(text) => Err(format!("not: {text}")),
            _ => judge(&verdict, text.is_none()),
        };
        if let Err(complaint) = complaint {
            panic!("{}: {complaint}\n{}", path.display(), verdict.stderr);
        }
        count += 1;
    }
    assert!(count > 0);
}

async fn verdict(http: &str) -> Verdict {
    Nginx::test(&Config::new().http("access_log off;").http(http)).await
}

fn judge(verdict: &Verdict, valid: bool) -> Result<(), String> {
    let lines: Vec<_> = verdict
        .stderr
        .lines()
        .filter(|line| line.contains("[emerg]"))
        .collect();

    if ["ERROR: AddressSanitizer", "runtime error", "panicked"]
        .iter()
        .any(|word| verdict.stderr.contains(word))
    {
        return Err("a fault".to_owned());
    }
    match (verdict.code, &lines[..]) {
        (Some(0), []) => Ok(()),
        (Some(1), _) if valid => Err("refused, though it is valid".to_owned()),
        (Some(1), [_]) => Ok(()),
        (Some(1), [first, second])
            if FIRST_OF_TWO.iter().any(|text| first.contains(text))
                && second.contains("failed to add upstream \"") =>
        {
            Ok(())
        }
        (code, lines) => Err(format!("exit code {code:?} and {} lines", lines.len())),
    }
}
