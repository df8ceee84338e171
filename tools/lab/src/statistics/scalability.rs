//! The Universal Scalability Law: X(N) = λN / (1 + σ(N−1) + κN(N−1)).
//!
//! σ is contention (queueing), κ coherence (communication of all with all). N/X is
//! linear in 1/λ, σ/λ and κ/λ, so the fit with relative errors is a linear least-squares problem,
//! and the coefficients that may not be negative are found by trying which of them are 0: no
//! iteration, nothing that may not converge.

use serde::{Deserialize, Serialize};

/// Three coefficients need at least three points.
const POINTS_MIN: usize = 3;

/// A fitted law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Law {
    /// Throughput of one.
    pub(crate) lambda: f64,
    /// Contention, σ.
    pub(crate) sigma: f64,
    /// Coherence, κ.
    pub(crate) kappa: f64,
    /// Share of the variance that the law explains.
    pub(crate) r_squared: f64,
}

impl Law {
    /// X(N).
    pub(crate) fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// The N of the largest X, where there is one.
    pub(crate) fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0 && self.sigma < 1.0)
            .then(|| ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0))
    }
}

/// Fits points (N, X).
///
/// # Errors
/// In words, when they do not determine a law.
pub(crate) fn fit(points: &[(f64, f64)]) -> Result<Law, String> {
    let points: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|(n, x)| *n >= 1.0 && *x > 0.0)
        .collect();
    let mut places: Vec<u64> = points.iter().map(|(n, _)| n.to_bits()).collect();
    places.sort_unstable();
    places.dedup();
    if places.len() < POINTS_MIN {
        return Err(format!(
            "a fit needs {POINTS_MIN} levels, there are {}",
            places.len()
        ));
    }
    // Which of the terms are in: bit 0 contention, bit 1 coherence.
    let candidates = (0..4_u8).filter_map(|terms| solve(&points, terms));
    candidates
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(law, _)| law)
        .ok_or_else(|| "no law fits".to_owned())
}

/// The law with these terms and the sum of its squared relative errors; `None` where a coefficient
/// would be negative.
fn solve(points: &[(f64, f64)], terms: u8) -> Option<(Law, f64)> {
    let row = |n: f64, x: f64| {
        let weight = x / n;
        let contention = if terms & 1 == 1 { n - 1.0 } else { 0.0 };
        let coherence = if terms & 2 == 2 { n * (n - 1.0) } else { 0.0 };
        [weight, weight * contention, weight * coherence]
    };
    let mut matrix = [[0.0; 4]; 3];
    for (n, x) in points {
        let row = row(*n, *x);
        for i in 0..3 {
            for j in 0..3 {
                matrix[i][j] += row[i] * row[j];
            }
            // The right-hand side is 1 for every point.
            matrix[i][3] += row[i];
        }
    }
    for (term, line) in matrix.iter_mut().enumerate().skip(1) {
        if terms & (1 << (term - 1)) == 0 {
            *line = [0.0; 4];
            line[term] = 1.0;
        }
    }
    let [a, b, c] = eliminate(matrix)?;
    if a <= 0.0 || b < 0.0 || c < 0.0 {
        return None;
    }
    let law = Law {
        lambda: 1.0 / a,
        sigma: b / a,
        kappa: c / a,
        r_squared: 0.0,
    };
    let errors: f64 = points
        .iter()
        .map(|(n, x)| {
            let row = row(*n, *x);
            (row[0] * a + row[1] * b + row[2] * c - 1.0).powi(2)
        })
        .sum();
    let middle = points.iter().map(|(_, x)| x).sum::<f64>() / points.len() as f64;
    let all: f64 = points.iter().map(|(_, x)| (x - middle).powi(2)).sum();
    let left: f64 = points.iter().map(|(n, x)| (x - law.at(*n)).powi(2)).sum();
    let r_squared = if all > 0.0 { 1.0 - left / all } else { 1.0 };
    Some((Law { r_squared, ..law }, errors))
}

/// Gauss with row exchange.
fn eliminate(mut matrix: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let best = (column..3).max_by(|a, b| {
            matrix[*a][column]
                .abs()
                .total_cmp(&matrix[*b][column].abs())
        })?;
        matrix.swap(column, best);
        if matrix[column][column].abs() < 1e-12 {
            return None;
        }
        for other in 0..3 {
            if other != column {
                let factor = matrix[other][column] / matrix[column][column];
                let pivot = matrix[column];
                for (cell, above) in matrix[other].iter_mut().zip(pivot) {
                    *cell -= factor * above;
                }
            }
        }
    }
    Some(std::array::from_fn(|at| matrix[at][3] / matrix[at][at]))
}
