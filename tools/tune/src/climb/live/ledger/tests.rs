use super::*;

use Grade::{FarWorse, NotWorse, Worse};

/// Runs with their seconds, and the verdict on the step.
type Step = (&'static [(f64, Grade)], Verdict);

#[test]
fn a_verdict_says_which_runs_were_worse() {
    const STEP: &[(f64, Grade)] = &[(1.0, NotWorse), (2.0, Worse), (3.0, NotWorse)];
    const CASES: &[(Step, f64)] = &[
        ((STEP, Verdict::Kept), 0.0),
        ((STEP, Verdict::Cheaper), 0.0),
        ((STEP, Verdict::NoDifference), 0.0),
        ((STEP, Verdict::Worse), 6.0),
        ((STEP, Verdict::Latency), 6.0),
        ((STEP, Verdict::Errors), 6.0),
        ((STEP, Verdict::Impossible), 2.0),
    ];
    for ((runs, verdict), expected) in CASES {
        let mut ledger = Ledger::new(0.05);
        for (seconds, grade) in *runs {
            ledger.ran(*seconds, *grade);
        }
        assert_eq!(ledger.worse_s(), 2.0);
        ledger.judged(*verdict);
        assert_eq!(ledger.worse_s(), *expected, "{verdict:?}");
    }
}

#[test]
fn no_run_begins_that_could_break_the_bound() {
    // Share, seconds that were worse, the climb's time, a run's, and the wait before it.
    const CASES: &[(f64, f64, f64, f64, f64)] = &[
        (0.05, 0.0, 0.0, 1.0, 19.0),
        (0.05, 0.0, 19.0, 1.0, 0.0),
        (0.05, 1.0, 20.0, 1.0, 19.0),
        (0.5, 1.0, 2.0, 1.0, 1.0),
        (1.0, 9.0, 9.0, 1.0, 0.0),
    ];
    for (share, worse_s, elapsed_s, run_s, expected) in CASES.iter().copied() {
        let mut ledger = Ledger::new(share);
        ledger.ran(worse_s, Worse);
        let wait_s = ledger.wait_s(elapsed_s, run_s);
        assert!((wait_s - expected).abs() < 1e-9, "{share}: {wait_s}");
        // The run is worse: the share is kept at its end all the same.
        let after = (worse_s + run_s) / (elapsed_s + wait_s + run_s);
        assert!(after <= share + 1e-9, "{share}: {after}");
    }
}

#[test]
fn a_step_that_is_far_worse_most_of_the_time_is_given_up() {
    const CASES: &[(&[Grade], bool)] = &[
        (&[FarWorse, FarWorse], false),
        (&[FarWorse, FarWorse, FarWorse], true),
        (&[Worse, Worse, Worse], false),
        (&[NotWorse, FarWorse, Worse, FarWorse, FarWorse], true),
        (
            &[NotWorse, FarWorse, Worse, FarWorse, Worse, FarWorse],
            false,
        ),
    ];
    for (runs, expected) in CASES {
        let mut ledger = Ledger::new(0.05);
        runs.iter().for_each(|grade| ledger.ran(1.0, *grade));
        assert_eq!(ledger.is_given_up(), *expected, "{runs:?}");
        ledger.judged(Verdict::Worse);
        assert!(!ledger.is_given_up());
    }
}
