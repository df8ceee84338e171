//! What a metric makes of the values that it is given: its mode, and what that keeps of one key.

use std::collections::VecDeque;

use turnpike_conf::value;

/// Longest text of a value that is read; Angie's.
const VALUE_BYTES_MAX: usize = 255;

/// How many values a mean is of, where nothing is said; Angie's.
const MEAN_COUNT: usize = 10;

/// The weight of a new value in an exponential average, in hundredths, where nothing is said;
/// Angie's.
const FACTOR_PERCENT: i64 = 90;

/// The most that a new value may weigh, in hundredths; Angie's.
const FACTOR_PERCENT_MAX: i64 = 99;

/// What values become.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mode {
    /// The number of values.
    Count,
    Min,
    Max,
    Last,
    /// The sum of all values.
    Gauge,
    /// The mean of the last values; of those, where there is a window, that are younger.
    Mean {
        count: usize,
        window_ms: Option<u64>,
    },
    /// An average in which a new value has this weight.
    Exponential {
        factor: f64,
    },
    Histogram(Vec<Bound>),
}

/// The upper end of a bucket.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) text: String,
    pub(super) value: f64,
}

/// What is kept of the values of one key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Count(u64),
    Number(f64),
    /// The last values, each with its time in milliseconds.
    Values(VecDeque<(f64, u64)>),
    /// How many values are up to each bound, and how many there are, with their sum; that only
    /// grows, so there is none once a value was negative.
    Buckets {
        counts: Vec<u64>,
        count: u64,
        sum: Option<f64>,
    },
}

impl Mode {
    /// Reads a mode and its parameters.
    ///
    /// # Errors
    /// Angie's message, without its place.
    pub(super) fn read(words: &[&str]) -> Result<Mode, String> {
        let (mode, rest) = match words {
            ["average", "mean", rest @ ..] | ["average mean", rest @ ..] => {
                return mean(rest);
            }
            ["average", "exp", rest @ ..] | ["average exp", rest @ ..] => {
                return exponential(rest);
            }
            ["histogram", rest @ ..] => return histogram(rest),
            ["count", rest @ ..] => (Mode::Count, rest),
            ["min", rest @ ..] => (Mode::Min, rest),
            ["max", rest @ ..] => (Mode::Max, rest),
            ["last", rest @ ..] => (Mode::Last, rest),
            ["gauge", rest @ ..] => (Mode::Gauge, rest),
            [other, ..] => return Err(format!("unknown mode \"{other}\"")),
            [] => return Err("unknown mode \"\"".to_owned()),
        };
        match rest.first() {
            None => Ok(mode),
            Some(other) => Err(format!("unknown parameter \"{other}\"")),
        }
    }

    /// The name, which is also that of the only metric of a zone.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Mode::Count => "count",
            Mode::Min => "min",
            Mode::Max => "max",
            Mode::Last => "last",
            Mode::Gauge => "gauge",
            Mode::Mean { .. } => "average mean",
            Mode::Exponential { .. } => "average exp",
            Mode::Histogram(_) => "histogram",
        }
    }

    /// Bytes that Angie takes in the zone for one key.
    pub(super) fn state_bytes(&self) -> usize {
        let words = match self {
            Mode::Mean {
                count,
                window_ms: None,
            } => count.saturating_add(1),
            Mode::Mean { count, .. } => count.saturating_mul(2).saturating_add(1),
            Mode::Histogram(bounds) => bounds.len(),
            _ => 1,
        };
        words.saturating_mul(size_of::<u64>())
    }

    /// The state after the first value.
    pub(super) fn begin(&self, value: f64, now_ms: u64) -> State {
        match self {
            Mode::Count => State::Count(1),
            Mode::Mean { .. } => State::Values(VecDeque::from([(value, now_ms)])),
            Mode::Histogram(bounds) => State::Buckets {
                counts: bounds
                    .iter()
                    .map(|bound| u64::from(value <= bound.value))
                    .collect(),
                count: 1,
                sum: grown(
                    bounds.iter().all(|bound| bound.value >= 0.0).then_some(0.0),
                    value,
                ),
            },
            _ => State::Number(value),
        }
    }

    /// Adds a value.
    pub(super) fn update(&self, state: &mut State, value: f64, now_ms: u64) {
        match (self, state) {
            (Mode::Count, State::Count(count)) => *count += 1,
            (Mode::Mean { count: most, .. }, State::Values(values)) => {
                push(values, (value, now_ms), *most);
            }
            (_, State::Number(number)) => *number = self.combined(*number, value),
            (Mode::Histogram(bounds), State::Buckets { counts, count, sum }) => {
                for (up_to, bound) in counts.iter_mut().zip(bounds) {
                    *up_to += u64::from(value <= bound.value);
                }
                *count += 1;
                *sum = grown(*sum, value);
            }
            _ => {}
        }
    }

    /// Adds what was kept of another key, whose values came later.
    pub(super) fn merge(&self, state: &mut State, other: &State) {
        match (self, state, other) {
            (_, State::Count(count), State::Count(more)) => *count += more,
            (_, State::Number(number), State::Number(more)) => {
                *number = self.combined(*number, *more);
            }
            (Mode::Mean { count: most, .. }, State::Values(values), State::Values(more)) => {
                for value in more {
                    push(values, *value, *most);
                }
            }
            (
                _,
                State::Buckets { counts, count, sum },
                State::Buckets {
                    counts: more_counts,
                    count: more,
                    sum: more_sum,
                },
            ) => {
                for (up_to, more) in counts.iter_mut().zip(more_counts) {
                    *up_to += more;
                }
                *count += more;
                *sum = more_sum.and_then(|more| grown(*sum, more));
            }
            _ => {}
        }
    }

    /// What a number becomes with another.
    fn combined(&self, number: f64, other: f64) -> f64 {
        match self {
            Mode::Min => number.min(other),
            Mode::Max => number.max(other),
            Mode::Gauge => finite(number + other),
            Mode::Exponential { factor } => finite(number * (1.0 - factor) + other * factor),
            _ => other,
        }
    }

    /// The number that is shown of a state; `None` for one in buckets.
    pub(super) fn number(&self, state: &State, now_ms: u64) -> Option<f64> {
        match (self, state) {
            (Mode::Mean { window_ms, .. }, State::Values(values)) => {
                let is_young = |time_ms: u64| match window_ms {
                    None => true,
                    Some(window_ms) => now_ms.saturating_sub(time_ms) < *window_ms,
                };
                let young = values.iter().filter(|(_, time_ms)| is_young(*time_ms));
                let (mut sum, mut count) = (0.0, 0.0);
                for (value, _) in young {
                    sum = finite(sum + value);
                    count += 1.0;
                }
                Some(if count == 0.0 { 0.0 } else { sum / count })
            }
            (_, State::Number(number)) => Some(*number),
            (_, State::Count(count)) => Some(*count as f64),
            _ => None,
        }
    }

    /// Appends a state as variables show it.
    pub(super) fn append(&self, state: &State, now_ms: u64, out: &mut Vec<u8>) {
        let text = match state {
            State::Count(count) => count.to_string(),
            State::Buckets { counts, .. } => {
                let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
                counts.join(" ")
            }
            _ => self.number(state, now_ms).unwrap_or_default().to_string(),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

/// Keeps a value as the last of so many.
fn push(values: &mut VecDeque<(f64, u64)>, value: (f64, u64), most: usize) {
    while values.len() >= most {
        values.pop_front();
    }
    values.push_back(value);
}

/// A sum with another value, if that is not negative.
fn grown(sum: Option<f64>, value: f64) -> Option<f64> {
    sum.filter(|_| value >= 0.0).map(|sum| finite(sum + value))
}

/// A number that JSON and Prometheus can say: what grows out of reach stays at the end.
fn finite(number: f64) -> f64 {
    number.clamp(f64::MIN, f64::MAX)
}

fn mean(words: &[&str]) -> Result<Mode, String> {
    let (mut count, mut window_ms) = (MEAN_COUNT, None);
    for word in words {
        if let Some(text) = word.strip_prefix("window=") {
            window_ms = match text {
                "off" => None,
                _ => match value::milliseconds(text) {
                    None => return Err(format!("bad window value \"{text}\"")),
                    Some(0) => return Err("the average window cannot be zero".to_owned()),
                    Some(window_ms) => Some(window_ms),
                },
            };
        } else if let Some(text) = word.strip_prefix("count=") {
            let number = value::number(text).and_then(|count| usize::try_from(count).ok());
            count = match number {
                None => return Err(format!("bad count value \"{text}\"")),
                Some(0) => return Err("average count must be greater than 0".to_owned()),
                Some(count) => count,
            };
        } else {
            return Err(format!("invalid parameter \"{word}\""));
        }
    }
    Ok(Mode::Mean { count, window_ms })
}

fn exponential(words: &[&str]) -> Result<Mode, String> {
    let mut percent = FACTOR_PERCENT;
    for word in words {
        let text = word.strip_prefix("factor=");
        let text = text.ok_or_else(|| format!("invalid parameter \"{word}\""))?;
        percent = value::number(text)
            .filter(|percent| *percent <= FACTOR_PERCENT_MAX)
            .ok_or_else(|| format!("bad factor value \"{text}\""))?;
    }
    let factor = percent as f64 / 100.0;
    Ok(Mode::Exponential { factor })
}

fn histogram(words: &[&str]) -> Result<Mode, String> {
    let mut bounds: Vec<Bound> = Vec::new();
    for text in words {
        let value = bound(text).ok_or_else(|| format!("bad bucket value \"{text}\""))?;
        if bounds.iter().any(|other| other.value == value) {
            return Err(format!("duplicated bucket \"{text}\""));
        }
        let text = (*text).to_owned();
        bounds.push(Bound { text, value });
    }
    if bounds.is_empty() {
        return Err("empty histogram".to_owned());
    }
    Ok(Mode::Histogram(bounds))
}

/// A bound: a number, or `inf`.
fn bound(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let is_named = text.contains(['n', 'N']);
    let is_sound = value.is_finite() || (value == f64::INFINITY && is_named);
    is_sound.then_some(value)
}

/// The number at the beginning of a text: 0 if the text is empty, 1 if it begins with none.
pub(super) fn leading_number(text: &[u8]) -> f64 {
    let text = &text[..text.len().min(VALUE_BYTES_MAX)];
    if text.is_empty() {
        return 0.0;
    }
    let text = text.trim_ascii_start();
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let has = |at: usize, any: &[u8]| text.get(at).is_some_and(|byte| any.contains(byte));
    let sign = usize::from(has(0, b"+-"));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if has(end, b".") {
        fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return 1.0;
    }
    if has(end, b"eE") {
        let sign = usize::from(has(end + 1, b"+-"));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number = text.get(..end).unwrap_or_default();
    let number = std::str::from_utf8(number).ok();
    finite(number.and_then(|text| text.parse().ok()).unwrap_or(1.0))
}
