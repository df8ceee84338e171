use std::collections::BTreeMap;

use super::*;

fn run(figures: &[(&str, f64)]) -> Run {
    Run {
        round: 0,
        position: 0,
        case: crate::matrix::Case { at: Vec::new() },
        marks: Vec::new(),
        figures: figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Figure::Value(*value)))
            .collect::<BTreeMap<_, _>>(),
        workers: Ok(Vec::new()),
        calls: BTreeMap::new(),
        cores: Vec::new(),
        distribution: Vec::new(),
    }
}

/// Figures, why the driver was the limit, and the marks.
type Case = (
    &'static [(&'static str, f64)],
    Option<&'static str>,
    &'static [&'static str],
);

#[test]
fn runs_are_marked_with_their_faults() {
    let cases: &[Case] = &[
        (&[("foreign_share", 0.05), ("steal_share", 0.01)], None, &[]),
        (&[], None, &[]),
        (
            &[("foreign_share", 0.25)],
            None,
            &["noise: others took 25 % of the CPUs"],
        ),
        (
            &[("steal_share", 0.5)],
            None,
            &["noise: the hypervisor took 50 % of the CPUs"],
        ),
        (&[("errors", 9.0)], None, &[]),
        (
            &[("errors", 11.0)],
            None,
            &["errors: 11 of 1000 requests failed"],
        ),
        (
            &[],
            Some("no port; no file"),
            &["client-limited: no port, no file"],
        ),
    ];
    for (figures, limited, expected) in cases {
        assert_eq!(
            marks(&run(figures), *limited, 1000.0),
            *expected,
            "{figures:?}"
        );
    }
}
