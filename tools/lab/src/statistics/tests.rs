#![allow(clippy::unwrap_used)]

use super::*;
use crate::study::model::Expect;

/// Sums of twelve uniform numbers less 6 have mean 0 and deviation 1, and are normal enough.
fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

fn rounds(seed: u64, count: usize, ratio: f64, noise: f64) -> Vec<(f64, f64)> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count)
        .map(|_| {
            // A round's own drift falls on both, and the pairing takes it out.
            let drift = 1.0 + 0.2 * random.f64();
            let against = 1000.0 * drift * (1.0 + noise * normal(&mut random));
            let of = 1000.0 * ratio * drift * (1.0 + noise * normal(&mut random));
            (of, against)
        })
        .collect()
}

#[test]
fn medians_and_fairness_are_known() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
    assert_eq!(median(&[4.0, 1.0, 3.0, 100.0]), Some(3.5));
    assert_eq!(fairness(&[5, 5, 5, 5]), Some(1.0));
    assert_eq!(fairness(&[20, 0, 0, 0]), Some(0.25));
    assert_eq!(fairness(&[0, 0]), None);
    assert_eq!(fairness(&[]), None);
}

#[test]
fn few_values_have_no_interval() {
    assert_eq!(interval(&[1.0, 2.0], median, 1), None);
    assert!(interval(&[1.0, 2.0, 3.0], median, 1).is_some());
    let same = interval(&[7.0; 5], median, 1).unwrap();
    assert_eq!((same.low, same.high), (7.0, 7.0));
}

#[test]
fn intervals_are_the_same_for_the_same_seed() {
    let values = [1.37, 4.11, 2.93, 8.59, 5.21, 7.73];
    assert_eq!(interval(&values, mean, 3), interval(&values, mean, 3));
    assert_ne!(interval(&values, mean, 3), interval(&values, mean, 4));
}

/// The truth is within 95 % intervals in about 95 of 100 experiments, however few the values.
#[test]
fn bootstrap_intervals_have_their_coverage() {
    type Statistic = fn(&[f64]) -> Option<f64>;
    const EXPERIMENTS: u32 = 400;
    let cases: [(usize, Statistic); 5] =
        [(5, mean), (6, mean), (10, mean), (6, median), (10, median)];
    for (count, statistic) in cases {
        let mut random = fastrand::Rng::with_seed(42);
        let covered = (0..EXPERIMENTS).filter(|experiment| {
            let values: Vec<f64> = (0..count).map(|_| 10.0 + normal(&mut random)).collect();
            let bounds = interval(&values, statistic, u64::from(*experiment)).unwrap();
            (bounds.low..=bounds.high).contains(&10.0)
        });
        let share = covered.count() as f64 / f64::from(EXPERIMENTS);
        assert!((0.91..=0.995).contains(&share), "{count} values: {share}");
    }
}

#[test]
fn a_paired_ratio_is_what_was_planted() {
    let pairs: Vec<(f64, f64)> = [100.0, 120.0, 90.0, 110.0]
        .iter()
        .map(|against| (against * 1.25, *against))
        .collect();
    let answer = answer(&pairs, Expect::Above, 1);
    assert!((answer.ratio.unwrap() - 1.25).abs() < 1e-9);
    assert_eq!(answer.pairs, 4);
    assert_eq!(answer.verdict, Verdict::Seen);
    // Values that no ratio has are no pairs.
    let broken = super::answer(&[(0.0, 1.0), (1.0, 0.0)], Expect::Open, 1);
    assert_eq!((broken.pairs, broken.verdict), (0, Verdict::NotUsable));
}

#[test]
fn verdicts_follow_what_was_expected() {
    let above = rounds(1, 8, 1.2, 0.01);
    let below = rounds(2, 8, 0.8, 0.01);
    let equal: Vec<(f64, f64)> = vec![(1.0, 1.01), (1.01, 1.0), (1.0, 1.0), (1.0, 1.0)];
    let cases = [
        (&above, Expect::Above, Verdict::Seen),
        (&above, Expect::Below, Verdict::Opposite),
        (&above, Expect::Same, Verdict::Opposite),
        (&above, Expect::Open, Verdict::Above),
        (&below, Expect::Below, Verdict::Seen),
        (&below, Expect::Above, Verdict::Opposite),
        (&below, Expect::Open, Verdict::Below),
        (&equal, Expect::Above, Verdict::NoDifference),
        (&equal, Expect::Same, Verdict::NoDifference),
    ];
    for (pairs, expect, verdict) in cases {
        assert_eq!(answer(pairs, expect, 9).verdict, verdict, "{expect:?}");
    }
}

/// Two cases that differ by 3 %, with noise of 1 % and drift of 20 %: found in nearly all of 200
/// experiments. Two equal ones: claimed to differ in about 5 of 100, as a 95 % interval says.
#[test]
fn three_percent_are_found_and_no_false_difference_is_claimed() {
    const EXPERIMENTS: u64 = 200;
    let count = |ratio: f64| {
        (0..EXPERIMENTS)
            .filter(|seed| {
                let pairs = rounds(*seed, 8, ratio, 0.01);
                let verdict = answer(&pairs, Expect::Open, *seed).verdict;
                matches!(verdict, Verdict::Above | Verdict::Below)
            })
            .count()
    };
    assert!(count(1.03) >= 190, "3 % were found {} times", count(1.03));
    assert!(count(1.0) <= 16, "nothing was claimed {} times", count(1.0));
}

#[test]
fn unpaired_runs_need_more_difference() {
    let a = [100.0, 103.0, 98.0, 101.0, 99.0];
    let twice: Vec<f64> = a.iter().map(|value| value * 2.0).collect();
    let (ratio, bounds) = unpaired(&twice, &a, 1).unwrap();
    assert!((ratio - 2.0).abs() < 1e-9);
    assert!(bounds.low > 1.5 && bounds.high < 2.5);
    let (_, same) = unpaired(&a, &a, 1).unwrap();
    assert!(same.low <= 1.0 && same.high >= 1.0);
    assert_eq!(unpaired(&a[..2], &a, 1), None);
}

fn curve(law: &Law, numbers: &[f64]) -> Vec<(f64, f64)> {
    numbers.iter().map(|n| (*n, law.at(*n))).collect()
}

#[test]
fn the_scalability_law_is_found_again() {
    let numbers = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let cases = [
        (1000.0, 0.05, 0.001),
        (1000.0, 0.05, 0.0),
        (20_000.0, 0.0, 0.0),
        (5.0, 0.0, 0.01),
        (300.0, 0.9, 0.0),
    ];
    for (lambda, sigma, kappa) in cases {
        let law = Law {
            lambda,
            sigma,
            kappa,
            r_squared: 1.0,
        };
        let found = fit(&curve(&law, &numbers)).unwrap();
        assert!((found.lambda / lambda - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.sigma - sigma).abs() < 1e-6, "{found:?}");
        assert!((found.kappa - kappa).abs() < 1e-6, "{found:?}");
    }
}

#[test]
fn the_scalability_law_withstands_noise() {
    let law = Law {
        lambda: 1000.0,
        sigma: 0.08,
        kappa: 0.002,
        r_squared: 1.0,
    };
    let mut random = fastrand::Rng::with_seed(5);
    let points: Vec<(f64, f64)> = curve(&law, &[1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0])
        .into_iter()
        .map(|(n, x)| (n, x * (1.0 + 0.01 * normal(&mut random))))
        .collect();
    let found = fit(&points).unwrap();
    assert!((found.sigma - 0.08).abs() < 0.03, "{found:?}");
    assert!((found.kappa - 0.002).abs() < 0.001, "{found:?}");
    assert!(found.r_squared > 0.98, "{found:?}");
    let peak = law.peak().unwrap();
    assert!((found.peak().unwrap() / peak - 1.0).abs() < 0.2);
}

#[test]
fn too_few_points_for_a_law_are_refused() {
    let error = fit(&[(1.0, 10.0), (2.0, 18.0)]).unwrap_err();
    assert_eq!(error, "a fit needs 3 levels, there are 2");
    assert!(fit(&[(1.0, 10.0), (1.0, 11.0), (1.0, 12.0)]).is_err());
    assert!(fit(&[]).is_err());
    // More than linear: neither coefficient may be negative.
    let law = fit(&[(1.0, 1.0), (2.0, 3.0), (4.0, 9.0)]).unwrap();
    assert_eq!((law.sigma, law.kappa), (0.0, 0.0));
}
