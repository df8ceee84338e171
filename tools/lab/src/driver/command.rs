//! Any program that prints `METRIC VALUE` lines: the user's own driver, or a scripted one in tests.

use super::Reading;
use crate::metric;

pub(super) fn read(output: &str) -> Result<Reading, String> {
    let mut reading = Reading::default();
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let value: f64 = value
            .trim()
            .parse()
            .map_err(|_| format!("cannot read the line \"{line}\""))?;
        if name == "client_limited" {
            reading.limited = Some((value > 0.0).then(|| "the driver reported it".to_owned()));
            continue;
        }
        if metric::find(name).is_none() {
            return Err(format!("unknown metric \"{name}\""));
        }
        reading.set(name, value);
    }
    if reading.figures.is_empty() {
        Err("it printed no figures".to_owned())
    } else {
        Ok(reading)
    }
}
