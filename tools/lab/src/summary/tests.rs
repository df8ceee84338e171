#![allow(clippy::unwrap_used)]

use super::*;
use crate::matrix;
use crate::study;

const STUDY: &str = r#"
name = "t"
title = "t"
source = "s"
about = "a"
[placement]
server = "all"
driver = "all"
[drive]
program = "load"
arguments = []
[[contender]]
name = "nginx"
program = "nginx"
[[factor]]
name = "workers"
title = "workers"
names = ["1", "2", "4", "8"]
[[claim]]
text = "two are faster than one"
metric = "requests_per_s"
of = { workers = "2" }
against = { workers = "1" }
expect = "above"
[[plot]]
kind = "scaling"
title = "scaling"
metric = "requests_per_s"
along = "workers"
"#;

/// Runs on a known curve; `mark` says which are marked.
fn summary(mark: impl Fn(u32, &Case) -> bool) -> Summary {
    let study = study::parse("t.toml", STUDY).unwrap().study;
    let dimensions = matrix::dimensions(&study, 8);
    let cases = matrix::cases(&study, &dimensions, &matrix::Choice::default());
    let mut runs = Vec::new();
    for round in 0..5 {
        for case in &cases {
            let n: f64 = case.level("workers").unwrap().parse().unwrap();
            let rate = 1000.0 * n / (1.0 + 0.1 * (n - 1.0)) + f64::from(round);
            let marks = if mark(round, case) {
                vec!["noise: others took 50 % of the CPUs".to_owned()]
            } else {
                Vec::new()
            };
            let missing = Figure::Missing("no tracefs".to_owned());
            runs.push(Run {
                round,
                position: 0,
                case: case.clone(),
                figures: BTreeMap::from([
                    ("requests_per_s".to_owned(), Figure::Value(rate)),
                    ("contentions_per_s".to_owned(), missing),
                ]),
                marks,
                workers: Ok(vec![30, 10]),
                calls: BTreeMap::from([("read".to_owned(), 1.5)]),
                cores: Vec::new(),
                distribution: vec![(50.0, 10.0 + f64::from(round))],
            });
        }
    }
    sum_up(header(), &study, &dimensions, &cases, &runs)
}

fn header() -> Header {
    Header {
        schema: SCHEMA.to_owned(),
        study: "t".to_owned(),
        study_file: "t.toml".to_owned(),
        study_text: STUDY.to_owned(),
        date: "2026-11-22".to_owned(),
        machine: "m".to_owned(),
        quick: false,
        repetitions: 5,
        seconds: 1.0,
        warmup_s: 0.5,
        seed: 1,
        only: BTreeMap::new(),
        topology: "loopback".to_owned(),
        cpus: 8,
        shared_cpus: false,
        notes: Vec::new(),
        environment: Vec::new(),
        contenders: Vec::new(),
    }
}

#[test]
fn medians_claims_and_laws_are_made_of_the_runs() {
    let summary = summary(|_, _| false);
    assert_eq!((summary.runs, summary.planned), (20, 20));
    let first = &summary.cases[0];
    assert_eq!((first.runs, first.used), (5, 5));
    assert_eq!(
        first.metric("requests_per_s").unwrap().median(),
        Some(1002.0)
    );
    assert_eq!(
        first.metric("contentions_per_s"),
        Some(&MetricSummary::NotAvailable("no tracefs".to_owned()))
    );
    assert_eq!(first.workers, Ok(vec![0.75, 0.25]));
    assert_eq!(first.distribution, [(50.0, 12.0)]);
    let claim = &summary.claims[0];
    assert_eq!(claim.answer.verdict, statistics::Verdict::Seen);
    assert_eq!(claim.answer.pairs, 5);
    assert!((claim.answer.ratio.unwrap() - 2.0 / 1.1).abs() < 0.01);
    let law = summary.laws[0].law.as_ref().unwrap();
    assert!((law.law.sigma - 0.1).abs() < 0.01, "{law:?}");
    assert!(law.sigma.is_some());
}

#[test]
fn marked_runs_are_used_for_no_claim() {
    let one_side = summary(|round, case| round < 3 && case.level("workers") == Some("2"));
    assert_eq!(one_side.claims[0].answer.pairs, 2);
    assert_eq!(
        one_side.claims[0].answer.verdict,
        statistics::Verdict::NotUsable
    );
    let all = summary(|_, _| true);
    let first = &all.cases[0];
    assert_eq!((first.used, first.marks["noise"]), (0, 5));
    assert!(first.metric("requests_per_s").unwrap().median().is_some());
    assert_eq!(all.claims[0].answer.pairs, 0);
}

#[test]
fn a_summary_is_read_as_it_was_written() {
    let summary = summary(|_, _| false);
    let text = serde_json::to_string(&summary).unwrap();
    let read: Summary = serde_json::from_str(&text).unwrap();
    let verdict = |summary: &Summary| summary.claims[0].answer.verdict;
    assert_eq!(verdict(&read), verdict(&summary));
    assert_eq!(read.cases[0].workers, summary.cases[0].workers);
    assert_eq!(read.header, summary.header);
}
