//! Random choices of the run: requests per connection, Poisson gaps, weighted targets.
//!
//! The generator is seeded per thread, so that a run can be repeated; it is not for secrets.

/// Most requests one connection may be given; beyond it "unlimited" is meant.
const CONNREQS_MAX: u32 = u32::MAX - 1;

/// A small fast generator, one per thread.
#[derive(Debug, Clone)]
pub(crate) struct Random(fastrand::Rng);

impl Random {
    /// A generator whose series depends on `seed` alone.
    pub(crate) fn new(seed: u64) -> Self {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number in `0.0..1.0`.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.f64()
    }

    /// An exponentially distributed number with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

/// How many requests a connection carries before it is closed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Connreqs {
    /// Until the server closes it.
    Unlimited,
    /// Always as many.
    Fixed(u32),
    /// Evenly drawn from a range, ends included.
    Range(u32, u32),
    /// (requests, weight): the weight is the share of connections, not of requests.
    Weighted(Vec<(u32, f64)>),
}

/// Why `--connreqs` was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnreqsError;

impl std::fmt::Display for ConnreqsError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("expected N, FIRST-LAST or N:WEIGHT,N:WEIGHT,...")
    }
}

impl std::error::Error for ConnreqsError {}

impl std::str::FromStr for Connreqs {
    type Err = ConnreqsError;

    fn from_str(text: &str) -> Result<Self, ConnreqsError> {
        if text.contains(':') {
            return text
                .split(',')
                .map(parse_weight)
                .collect::<Result<_, _>>()
                .map(Self::Weighted);
        }
        if let Some((first, last)) = text.split_once('-') {
            let (first, last) = (parse_count(first)?, parse_count(last)?);
            return if first <= last {
                Ok(Self::Range(first, last))
            } else {
                Err(ConnreqsError)
            };
        }
        Ok(Self::Fixed(parse_count(text)?))
    }
}

impl Connreqs {
    /// Draws the number of requests of one connection; `u32::MAX` is unlimited.
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        match self {
            Connreqs::Unlimited => u32::MAX,
            Connreqs::Fixed(count) => *count,
            Connreqs::Range(first, last) => {
                let width = u64::from(last - first) + 1;
                first + u32::try_from(random.next() % width).unwrap_or(0)
            }
            Connreqs::Weighted(weights) => {
                draw_weighted(weights.iter().map(|(_, weight)| *weight), random)
                    .and_then(|index| weights.get(index))
                    .map_or(1, |(count, _)| *count)
            }
        }
    }

    /// The mean number of requests of a connection, where there is one.
    pub(crate) fn mean(&self) -> Option<f64> {
        match self {
            Connreqs::Unlimited => None,
            Connreqs::Fixed(count) => Some(f64::from(*count)),
            Connreqs::Range(first, last) => Some((f64::from(*first) + f64::from(*last)) / 2.0),
            Connreqs::Weighted(weights) => {
                let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
                let sum: f64 = weights
                    .iter()
                    .map(|(n, weight)| f64::from(*n) * weight)
                    .sum();
                Some(sum / total)
            }
        }
    }
}

/// Draws an index with the probability its weight has among all; `None` without weights.
pub(crate) fn draw_weighted(
    weights: impl Iterator<Item = f64> + Clone,
    random: &mut Random,
) -> Option<usize> {
    let total: f64 = weights.clone().sum();
    let mut point = random.unit() * total;
    let mut last = None;
    for (index, weight) in weights.enumerate() {
        last = Some(index);
        if point < weight {
            break;
        }
        point -= weight;
    }
    last
}

fn parse_count(text: &str) -> Result<u32, ConnreqsError> {
    let count = crate::units::parse_metric(text).map_err(|_| ConnreqsError)?;
    let count = u32::try_from(count).map_err(|_| ConnreqsError)?;
    if (1..=CONNREQS_MAX).contains(&count) {
        Ok(count)
    } else {
        Err(ConnreqsError)
    }
}

fn parse_weight(text: &str) -> Result<(u32, f64), ConnreqsError> {
    let (count, weight) = text.split_once(':').ok_or(ConnreqsError)?;
    let weight: f64 = weight.trim().parse().map_err(|_| ConnreqsError)?;
    if weight > 0.0 && weight.is_finite() {
        Ok((parse_count(count)?, weight))
    } else {
        Err(ConnreqsError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connreqs_are_read() {
        let cases = [
            ("4", Ok(Connreqs::Fixed(4))),
            ("4-14", Ok(Connreqs::Range(4, 14))),
            (
                "1:35,4:40,14:25",
                Ok(Connreqs::Weighted(vec![(1, 35.0), (4, 40.0), (14, 25.0)])),
            ),
            ("0", Err(ConnreqsError)),
            ("14-4", Err(ConnreqsError)),
            ("1:0", Err(ConnreqsError)),
            ("1:2,", Err(ConnreqsError)),
            ("x", Err(ConnreqsError)),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Connreqs>(), expected, "{text}");
        }
    }

    #[test]
    fn draws_follow_the_weights() {
        let mix: Connreqs = "1:35,4:40,14:25".parse().expect("weights");
        let mut random = Random::new(7);
        let mut seen = [0_u32; 15];
        for _ in 0..100_000 {
            seen[mix.draw(&mut random) as usize] += 1;
        }
        for (count, share) in [(1, 0.35), (4, 0.40), (14, 0.25)] {
            let measured = f64::from(seen[count]) / 100_000.0;
            assert!((measured - share).abs() < 0.01, "{count} {measured}");
        }
        assert!((mix.mean().expect("a mean") - 5.45).abs() < 1e-9);
        let range = Connreqs::Range(4, 14);
        assert!((0..1000).all(|_| (4..=14).contains(&range.draw(&mut random))));
    }

    #[test]
    fn exponential_gaps_have_mean_one() {
        let mut random = Random::new(1);
        let sum: f64 = (0..100_000).map(|_| random.exponential()).sum();
        assert!((sum / 100_000.0 - 1.0).abs() < 0.02);
    }
}
