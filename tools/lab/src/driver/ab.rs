//! ab, the driver of study S4: one thread, one request per connection unless `-k` is given.

use super::{Order, Reading, number, whole_seconds};

/// More requests than ab can make, so that the time ends the run.
const REQUESTS_MAX: &str = "100000000";

pub(super) fn words(order: &Order<'_>, arguments: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = ["ab", "-q", "-t"].map(str::to_owned).to_vec();
    words.push(whole_seconds(order.seconds));
    // These words must follow -t, which alone would stop at 50,000 requests.
    words.extend(["-n", REQUESTS_MAX].map(str::to_owned));
    words.extend(arguments);
    words
}

pub(super) fn counting_words(requests: u64, arguments: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = ["ab", "-q", "-n"].map(str::to_owned).to_vec();
    words.push(requests.to_string());
    words.extend(arguments);
    words
}

pub(super) fn read(output: &str) -> Result<Reading, String> {
    let mut reading = Reading::default();
    let mut failed = 0.0;
    for line in output.lines() {
        let value = |start: &str| line.strip_prefix(start).and_then(number);
        if let Some(rate) = value("Requests per second:") {
            reading.set("requests_per_s", rate);
        }
        failed += value("Failed requests:").unwrap_or_default();
        failed += value("Non-2xx responses:").unwrap_or_default();
        let fields: Vec<&str> = line.split_whitespace().collect();
        // "Total:        0    5   3.1      4      45": milliseconds.
        if let ["Total:", _, mean, deviation, median, _] = fields.as_slice() {
            for (name, field) in [
                ("latency_mean_us", mean),
                ("latency_stdev_us", deviation),
                ("latency_p50_us", median),
            ] {
                if let Some(ms) = number(field) {
                    reading.set(name, ms * 1e3);
                }
            }
        }
        if let [percent, ms, ..] = fields.as_slice()
            && let Some(percent) = percent.strip_suffix('%').and_then(number)
            && let Some(ms) = number(ms)
        {
            reading.distribution.push((percent, ms * 1e3));
            if [75.0, 90.0, 99.0].contains(&percent) {
                reading.set(&format!("latency_p{percent:.0}_us"), ms * 1e3);
            }
        }
    }
    if !reading.figures.contains_key("requests_per_s") {
        return Err("ab printed no rate".to_owned());
    }
    reading.set("errors", failed);
    Ok(reading)
}
