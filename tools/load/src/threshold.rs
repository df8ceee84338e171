//! `--fail-if`: what must not be, as an exit status for scripts.

use std::time::Duration;

use crate::tally::Tally;
use crate::units::{format_metric, parse_rate, parse_time, show_time_us};

/// A condition that makes the run a failure, as `p99>20ms`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Threshold {
    text: String,
    figure: Figure,
    is_above: bool,
    /// In nanoseconds for times.
    limit: f64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Percentile(f64),
    Mean,
    Max,
    /// Answered requests per second.
    Rate,
    Errors,
}

/// What is wrong with a condition, for the command line.
const FORM: &str = "a condition is FIGURE>VALUE or FIGURE<VALUE; figures are p50, p99.9 and all \
                    other percentiles, mean, max, rate and errors: 'p99>20ms', 'rate<1000'";

/// Reads a condition.
///
/// # Errors
/// The form of conditions.
pub(crate) fn parse(text: &str) -> Result<Threshold, String> {
    let place = text.find(['>', '<']).ok_or(FORM)?;
    let (name, rest) = text.split_at(place);
    let value = rest.get(1..).unwrap_or_default().trim();
    let figure = match name.trim() {
        "mean" => Figure::Mean,
        "max" => Figure::Max,
        "rate" => Figure::Rate,
        "errors" => Figure::Errors,
        name => Figure::Percentile(percent(name.strip_prefix('p').ok_or(FORM)?)?),
    };
    let limit = match figure {
        Figure::Percentile(_) | Figure::Mean | Figure::Max => {
            parse_time(value).map_err(|_| FORM)?.as_nanos() as f64
        }
        Figure::Errors if value == "0" => 0.0,
        Figure::Rate | Figure::Errors => parse_rate(value).map_err(|_| FORM)?,
    };
    Ok(Threshold {
        text: text.to_owned(),
        figure,
        is_above: rest.starts_with('>'),
        limit,
    })
}

/// Reads a percentile, 0 to 100.
///
/// # Errors
/// In words.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().parse().ok();
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("\"{text}\" is not a percentile from 0 to 100"))
}

impl Threshold {
    /// A line for a person where the condition holds; `None` where it does not.
    pub(crate) fn breach(&self, tally: &Tally, measured: Duration) -> Option<String> {
        let seconds = measured.as_secs_f64();
        let value = match self.figure {
            Figure::Percentile(percent) => tally.latency.percentile(percent) as f64,
            Figure::Mean => tally.latency.mean(),
            Figure::Max => tally.latency.max() as f64,
            Figure::Rate => tally.completed as f64 / seconds,
            Figure::Errors => tally.errors.total() as f64,
        };
        let holds = if self.is_above {
            value > self.limit
        } else {
            value < self.limit
        };
        // Without an answer there is no latency that could be within a limit.
        let is_time = !matches!(self.figure, Figure::Rate | Figure::Errors);
        if is_time && tally.completed == 0 {
            return Some(format!("Failed: {} (nothing was answered)", self.text));
        }
        let shown = if is_time {
            show_time_us(value / 1e3)
        } else {
            format_metric(value)
        };
        holds.then(|| format!("Failed: {} (it is {shown})", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally() -> Tally {
        let mut tally = Tally::default();
        for ms in 1..=100 {
            tally.latency.record(ms * 1_000_000);
        }
        tally.completed = 100;
        tally
    }

    #[test]
    fn conditions_hold_or_do_not() {
        let cases = [
            ("p99>20ms", Some("Failed: p99>20ms (it is 99")),
            ("p50 > 60ms", None),
            ("p99.9<1s", Some("Failed: p99.9<1s (it is 99.9")),
            ("mean>1s", None),
            ("max>99ms", Some("Failed: max>99ms")),
            ("rate<60", Some("Failed: rate<60 (it is 50.00")),
            ("rate<50", None),
            ("errors>0", None),
        ];
        for (text, expected) in cases {
            let threshold = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let breach = threshold.breach(&tally(), Duration::from_secs(2));
            match expected {
                None => assert_eq!(breach, None, "{text}"),
                Some(expected) => {
                    let breach = breach.unwrap_or_default();
                    assert!(breach.starts_with(expected), "{text}: {breach}");
                }
            }
        }
    }

    #[test]
    fn a_run_without_an_answer_is_within_no_time() {
        let breach =
            parse("p99>20ms").map(|one| one.breach(&Tally::default(), Duration::from_secs(1)));
        assert_eq!(
            breach,
            Ok(Some("Failed: p99>20ms (nothing was answered)".to_owned()))
        );
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["", "p99", "p99=3ms", "p101>1ms", "q>1", "p99>fast", "rate<"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
