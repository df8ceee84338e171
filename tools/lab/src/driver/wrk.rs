//! wrk, the closed-loop driver of the studies S1, S2 and S5. It does not know whether it was the
//! limit; the lab uses its CPU time instead.

use super::{Order, Reading, number, whole_seconds};

pub(super) fn words(order: &Order<'_>, arguments: Vec<String>) -> Vec<String> {
    let mut words = vec!["wrk".to_owned(), "--latency".to_owned(), "-d".to_owned()];
    words.push(whole_seconds(order.seconds));
    words.extend(arguments);
    words
}

pub(super) fn read(output: &str) -> Result<Reading, String> {
    let mut reading = Reading::default();
    for line in output.lines() {
        let line = line.trim();
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let Some(rate) = line.strip_prefix("Requests/sec:").and_then(number) {
            reading.set("requests_per_s", rate);
        }
        if let ["Latency", mean, deviation, ..] = fields.as_slice()
            && let (Some(mean), Some(deviation)) = (time_us(mean), time_us(deviation))
        {
            reading.set("latency_mean_us", mean);
            reading.set("latency_stdev_us", deviation);
        }
        if let [percent, value] = fields.as_slice()
            && let Some(percent) = percent.strip_suffix('%').and_then(|text| text.parse().ok())
            && let Some(value) = time_us(value)
        {
            reading.distribution.push((percent, value));
            reading.set(&format!("latency_p{percent:.0}_us"), value);
        }
        if line.starts_with("Socket errors:") || line.starts_with("Non-2xx") {
            let counts = line.split(|byte: char| !byte.is_ascii_digit());
            let sum: f64 = counts.filter_map(|count| count.parse::<f64>().ok()).sum();
            let before = reading
                .figures
                .get("errors")
                .and_then(|figure| figure.value());
            // "Non-2xx or 3xx responses: N" contains other digits.
            let own = if line.starts_with("Non-2xx") {
                5.0
            } else {
                0.0
            };
            reading.set("errors", before.unwrap_or_default() + sum - own);
        }
    }
    if !reading.figures.contains_key("requests_per_s") {
        return Err("wrk printed no rate".to_owned());
    }
    if !reading.figures.contains_key("errors") {
        reading.set("errors", 0.0);
    }
    Ok(reading)
}

/// wrk's times: `12.3us`, `4.5ms`, `6.7s`, `1.2m`.
fn time_us(text: &str) -> Option<f64> {
    let value = number(text)?;
    let unit = text.trim_start_matches(|byte: char| byte.is_ascii_digit() || byte == '.');
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 6e7,
        _ => return None,
    };
    Some(value * factor)
}
