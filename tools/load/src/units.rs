//! The units of wrk's command line and output: `15k`, `600s`, `1.50ms`, `2.3GB`.
//!
//! Scripts parse these texts, so the rounding, the thresholds and the missing last unit of each
//! scale are wrk's. Nothing here prints; it turns numbers into text and text into numbers.

use std::time::Duration;

/// Why a number with a unit was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitError {
    /// There is no number at the start.
    NoNumber,
    /// The letters after the number are no unit of this scale.
    UnknownUnit,
    /// The value does not fit, or is negative.
    OutOfRange,
}

impl std::fmt::Display for UnitError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            UnitError::NoNumber => "a number was expected",
            UnitError::UnknownUnit => "unknown unit",
            UnitError::OutOfRange => "value out of range",
        })
    }
}

impl std::error::Error for UnitError {}

/// A scale: each unit is `scale` times the one before it.
struct Scale {
    scale: f64,
    base: &'static str,
    units: &'static [&'static str],
}

const TIME_US: Scale = Scale {
    scale: 1000.0,
    base: "us",
    units: &["ms", "s"],
};
const TIME_S: Scale = Scale {
    scale: 60.0,
    base: "s",
    units: &["m", "h"],
};
const BINARY: Scale = Scale {
    scale: 1024.0,
    base: "",
    units: &["K", "M", "G", "T", "P"],
};
const METRIC: Scale = Scale {
    scale: 1000.0,
    base: "",
    units: &["k", "M", "G", "T", "P"],
};

/// wrk moves to the next unit at this share of it (`0.85ms`, not `850us`).
const NEXT_UNIT_SHARE: f64 = 0.85;

/// Reads a count such as `15000`, `15k` or `1M`.
///
/// # Errors
/// When there is no number, the unit is unknown, or the value does not fit.
pub(crate) fn parse_metric(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = split(text)?;
    let value = number * factor(unit, &METRIC)?;
    if value > u64::MAX as f64 {
        return Err(UnitError::OutOfRange);
    }
    Ok(value as u64)
}

/// Reads a rate per second such as `20000`, `20k` or `0.5`.
///
/// # Errors
/// As [`parse_metric`]; zero is out of range.
pub(crate) fn parse_rate(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text)?;
    let value = number * factor(unit, &METRIC)?;
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(UnitError::OutOfRange)
    }
}

/// Reads a time: seconds without a unit, else `s`, `m`, `h` as wrk, and `ms`, `us`.
///
/// # Errors
/// As [`parse_metric`].
pub(crate) fn parse_time(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text)?;
    let seconds = match unit.to_ascii_lowercase().as_str() {
        "ms" => number / 1e3,
        "us" => number / 1e6,
        _ => number * factor(unit, &TIME_S)?,
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| UnitError::OutOfRange)
}

/// Microseconds as wrk prints them: `64.14ms`, `1.10s`, `0.85m`.
pub(crate) fn format_time_us(us: f64) -> String {
    if us >= 1e6 {
        format_scaled(us / 1e6, &TIME_S, 2)
    } else {
        format_scaled(us, &TIME_US, 2)
    }
}

/// Microseconds as everything but wrk's text shows them: `850 us`, `64.1 ms`, `1.10 s`.
pub fn show_time_us(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{} us", three_digits(us)),
        us if us < 1e6 => format!("{} ms", three_digits(us / 1e3)),
        us => format!("{} s", three_digits(us / 1e6)),
    }
}

/// Bytes as everything but wrk's text shows them: `512 B`, `1.50 KiB`.
pub fn show_bytes(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut amount = bytes;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if amount < 1000.0 {
            break;
        }
        amount /= 1024.0;
        unit = next;
    }
    match unit {
        "B" => format!("{amount:.0} B"),
        unit => format!("{} {unit}", three_digits(amount)),
    }
}

/// Three digits, or the whole number where it has more.
fn three_digits(value: f64) -> String {
    let digits = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// Whole seconds as wrk prints them in its first line: `30s`, `10m`.
pub(crate) fn format_time_s(seconds: f64) -> String {
    format_scaled(seconds, &TIME_S, 0)
}

/// Bytes in powers of 1024 without the final `B`.
pub(crate) fn format_binary(bytes: f64) -> String {
    format_scaled(bytes, &BINARY, 2)
}

/// A count in powers of 1000.
pub(crate) fn format_metric(count: f64) -> String {
    format_scaled(count, &METRIC, 2)
}

fn format_scaled(value: f64, scale: &Scale, precision: usize) -> String {
    let mut amount = value;
    let mut unit = scale.base;
    // The last unit is never reached: that is wrk's behaviour, and its readers rely on it.
    for pair in scale.units.windows(2) {
        if amount < scale.scale * NEXT_UNIT_SHARE {
            break;
        }
        amount /= scale.scale;
        unit = pair[0];
    }
    format!("{amount:.precision$}{unit}")
}

fn split(text: &str) -> Result<(f64, &str), UnitError> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().map_err(|_| UnitError::NoNumber)?;
    Ok((number, unit.trim()))
}

fn factor(unit: &str, scale: &Scale) -> Result<f64, UnitError> {
    if unit.is_empty() || unit.eq_ignore_ascii_case(scale.base) {
        return Ok(1.0);
    }
    let position = scale
        .units
        .iter()
        .position(|name| name.eq_ignore_ascii_case(unit));
    let power = position.ok_or(UnitError::UnknownUnit)? + 1;
    Ok(scale.scale.powi(i32::try_from(power).unwrap_or(i32::MAX)))
}

/// A number of things: `1 thread`, `2 threads`.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bytes_have_a_space_before_their_unit() {
        let times = [
            (2.5, "2.50 us"),
            (850.0, "850 us"),
            (1500.0, "1.50 ms"),
            (64_140.0, "64.1 ms"),
            (1_100_000.0, "1.10 s"),
            (600e6, "600 s"),
        ];
        for (us, expected) in times {
            assert_eq!(show_time_us(us), expected);
        }
        let sizes = [
            (512.0, "512 B"),
            (1536.0, "1.50 KiB"),
            (1_638_400.0, "1.56 MiB"),
        ];
        for (bytes, expected) in sizes {
            assert_eq!(show_bytes(bytes), expected);
        }
    }

    #[test]
    fn one_thing_is_no_plural() {
        let counts = [(0, "0 threads"), (1, "1 thread"), (2, "2 threads")];
        for (number, expected) in counts {
            assert_eq!(counted(number, "thread"), expected);
        }
    }

    #[test]
    fn counts_rates_and_times_are_read_with_units() {
        let counts = [("10", Ok(10)), ("15k", Ok(15_000)), ("1M", Ok(1_000_000))];
        for (text, expected) in counts {
            assert_eq!(parse_metric(text), expected, "{text}");
        }
        assert_eq!(parse_metric("ten"), Err(UnitError::NoNumber));
        assert_eq!(parse_metric("10q"), Err(UnitError::UnknownUnit));
        assert_eq!(parse_rate("0"), Err(UnitError::OutOfRange));
        let times = [
            ("30", 30_000),
            ("600s", 600_000),
            ("2m", 120_000),
            ("250ms", 250),
        ];
        for (text, expected_ms) in times {
            assert_eq!(
                parse_time(text),
                Ok(Duration::from_millis(expected_ms)),
                "{text}"
            );
        }
    }

    #[test]
    fn texts_are_those_of_wrk() {
        let times = [
            (0.0, "0.00us"),
            (635.91, "635.91us"),
            (850.0, "0.85ms"),
            (64_140.0, "64.14ms"),
            (900_000.0, "900.00ms"),
            (1_100_000.0, "1.10s"),
            (51_000_000.0, "0.85m"),
        ];
        for (us, expected) in times {
            assert_eq!(format_time_us(us), expected);
        }
        assert_eq!(format_time_s(30.0), "30s");
        assert_eq!(format_time_s(600.0), "10m");
        assert_eq!(format_binary(1536.0), "1.50K");
        assert_eq!(format_metric(56_200.0), "56.20k");
    }
}
