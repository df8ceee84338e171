#![allow(clippy::unwrap_used)]

use super::*;
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
name = "a"
program = "nginx"
[[contender]]
name = "b"
program = "nginx"
[[factor]]
name = "x"
title = "x"
names = ["1", "2", "3"]
quick = ["1"]
[[factor]]
name = "cores"
title = "cores"
scale = "cpus"
[[without]]
at = { contender = "b", x = "3" }
why = "b has no 3"
"#;

fn study_and_dimensions(cpus: usize) -> (Study, Vec<Dimension>) {
    let study = study::parse("t.toml", STUDY).unwrap().study;
    let dimensions = dimensions(&study, cpus);
    (study, dimensions)
}

#[test]
fn every_combination_except_those_left_out_is_a_case() {
    let (study, dimensions) = study_and_dimensions(4);
    let cases = cases(&study, &dimensions, &Choice::default());
    // 2 contenders, 3 levels, 1 2 4 cores, less b at 3 for each of them.
    assert_eq!(cases.len(), 2 * 3 * 3 - 3);
    assert_eq!(cases[0].label(), "a, x 1, cores 1");
    assert_eq!(cases[0].level("x"), Some("1"));
}

#[test]
fn quick_and_only_choose_levels() {
    let (study, dimensions) = study_and_dimensions(2);
    let quick = Choice {
        quick: true,
        ..Choice::default()
    };
    assert_eq!(cases(&study, &dimensions, &quick).len(), 2 * 2);
    let only = Choice {
        quick: true,
        only: BTreeMap::from([("x".to_owned(), vec!["2".to_owned()])]),
    };
    let chosen = cases(&study, &dimensions, &only);
    assert!(chosen.iter().all(|case| case.level("x") == Some("2")));
    assert_eq!(chosen.len(), 2 * 2);
}

#[test]
fn the_scale_ends_with_the_machines_cpus() {
    let levels = |cpus| {
        let (_, dimensions) = study_and_dimensions(cpus);
        let names = dimensions[2].levels.iter().map(|level| level.name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(levels(1), "1");
    assert_eq!(levels(2), "1 2");
    assert_eq!(levels(6), "1 2 4 6");
    assert_eq!(levels(8), "1 2 4 8");
}

#[test]
fn rounds_mirror_each_other_and_keep_rivals_together() {
    let (study, dimensions) = study_and_dimensions(2);
    let cases = cases(&study, &dimensions, &Choice::default());
    let first = order(&cases, 0, 7);
    let mut mirrored = order(&cases, 1, 7);
    mirrored.reverse();
    assert_eq!(first, mirrored);
    assert_ne!(first, order(&cases, 2, 7));
    assert_eq!(first, order(&cases, 0, 7));
    let mut sorted = first.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..cases.len()).collect::<Vec<_>>());
    for (place, index) in first.iter().enumerate() {
        let at = &cases[*index].at[1..];
        let rival = cases
            .iter()
            .position(|case| case.at[1..] == *at && case.at[0] != cases[*index].at[0]);
        if let Some(rival) = rival {
            let other = first.iter().position(|index| *index == rival).unwrap();
            assert_eq!(place.abs_diff(other), 1, "{}", cases[*index].label());
        }
    }
}
