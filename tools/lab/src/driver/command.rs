//! Any program that prints `METRIC VALUE` lines: a driver of one's own, or a scripted one in tests.

use super::Told;
use crate::metric;

pub(super) fn read(output: &str) -> Result<Told, String> {
    let mut told = Told::default();
    for line in output.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let value: f64 = value
            .trim()
            .parse()
            .map_err(|_| format!("cannot read the line \"{line}\""))?;
        if name == "client_limited" {
            told.limited = Some((value > 0.0).then(|| "the driver says so".to_owned()));
            continue;
        }
        if metric::find(name).is_none() {
            return Err(format!("unknown metric \"{name}\""));
        }
        told.set(name, value);
    }
    match told.figures.is_empty() {
        true => Err("it printed no figures".to_owned()),
        false => Ok(told),
    }
}
