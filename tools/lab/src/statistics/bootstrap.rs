//! Confidence intervals by resampling.
//!
//! Percentile intervals of few values are too narrow; they are widened here as T. Hesterberg,
//! "What Teachers Should Know About the Bootstrap" (2015), section 4.5.3, does: the share cut off
//! on each side is taken from Student's distribution with n-1 degrees of freedom.

use serde::{Deserialize, Serialize};

/// Resamples: the interval's ends move by less than its hundredth from seed to seed.
const RESAMPLES: usize = 4000;

/// With fewer values there is no useful interval.
pub(crate) const VALUES_MIN: usize = 3;

/// Student's 97.5 % quantile for 2, 3 ... 30 degrees of freedom.
const STUDENT: &[f64] = &[
    4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
    2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052,
    2.048, 2.045, 2.042,
];

/// The range that contains the true value in 95 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// The interval of a statistic. `None` for fewer than three values.
pub fn interval(
    values: &[f64],
    statistic: fn(&[f64]) -> Option<f64>,
    seed: u64,
) -> Option<Interval> {
    if values.len() < VALUES_MIN {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut resampled: Vec<f64> = Vec::with_capacity(RESAMPLES);
    let mut sample = vec![0.0; values.len()];
    for _ in 0..RESAMPLES {
        for slot in &mut sample {
            *slot = values[random.usize(..values.len())];
        }
        resampled.push(statistic(&sample)?);
    }
    resampled.sort_unstable_by(f64::total_cmp);
    let cut = cut(values.len());
    Some(Interval {
        low: quantile(&resampled, cut),
        high: quantile(&resampled, 1.0 - cut),
    })
}

/// The share of resamples to cut off on each side for so many values.
fn cut(count: usize) -> f64 {
    let student = STUDENT.get(count - VALUES_MIN).copied().unwrap_or(1.96);
    let count = count as f64;
    normal_tail(student * (count / (count - 1.0)).sqrt())
}

/// The share of a normal distribution above `x` deviations, for x > 0: Abramowitz and Stegun,
/// 26.2.17, right to 7 digits.
fn normal_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let coefficients = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum: f64 = coefficients
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

/// A quantile of sorted values, linear between neighbours.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = sorted[at.floor() as usize];
    let above = sorted[at.ceil() as usize];
    below + (above - below) * at.fract()
}
