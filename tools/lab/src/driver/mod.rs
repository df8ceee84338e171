//! Drivers make the load: ours by default, wrk and ab for comparison, or any command that prints
//! `METRIC VALUE` lines. Each becomes a command line, and its output becomes figures.

mod ab;
mod command;
mod load;
mod wrk;

use std::collections::BTreeMap;
use std::path::Path;

use crate::metric::Figure;
use crate::study::model::{Count, Drive};
use crate::template::{self, Values};

/// The order for a driver.
pub(crate) struct Order<'a> {
    pub(crate) drive: &'a Drive,
    pub(crate) values: &'a Values,
    /// Words of the case's levels, templates.
    pub(crate) of_levels: &'a [String],
    pub(crate) seconds: f64,
    pub(crate) warmup_s: f64,
    /// The folder for its files.
    pub(crate) folder: &'a Path,
    /// Whether it shares CPUs with the server.
    pub(crate) is_shared: bool,
}

/// The result of a driver.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reading {
    /// By metric; a missing one was not measured.
    pub(crate) figures: BTreeMap<String, Figure>,
    /// Why the driver was the limit, if it was; `None` if it does not know.
    pub(crate) limited: Option<Option<String>>,
    /// Percent of requests to microseconds.
    pub(crate) distribution: Vec<(f64, f64)>,
}

impl Reading {
    fn set(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), Figure::Value(value));
    }
}

/// The command line of the driver.
///
/// # Errors
/// The message.
pub(crate) fn words(order: &Order<'_>) -> Result<Vec<String>, String> {
    let mut values = order.values.clone();
    // Programs of which the lab knows nothing are told how long they run.
    values.insert("seconds".to_owned(), order.seconds.to_string());
    let fill = |word: &String| template::fill(word, &values).map_err(|error| error.to_string());
    let arguments = order.of_levels.iter().chain(&order.drive.arguments);
    let arguments: Vec<String> = arguments.map(fill).collect::<Result<_, String>>()?;
    match order.drive.program.get_ref().as_str() {
        "wrk" => Ok(wrk::words(order, arguments)),
        "ab" => Ok(ab::words(order, arguments)),
        "command" => {
            let command: Result<Vec<String>, String> =
                order.drive.command.iter().map(fill).collect();
            Ok(command?.into_iter().chain(arguments).collect())
        }
        _ => Ok(load::words(order, arguments)),
    }
}

/// Reads the driver's output.
///
/// # Errors
/// The message, if it is not a report.
pub(crate) fn read(order: &Order<'_>, output: &str) -> Result<Reading, String> {
    match order.drive.program.get_ref().as_str() {
        "wrk" => wrk::read(output),
        "ab" => ab::read(output),
        "command" => command::read(output),
        _ => load::read(order, output),
    }
}

/// The command line that sends the requests whose system calls are counted.
///
/// # Errors
/// The message.
pub(crate) fn counting_words(count: &Count, values: &Values) -> Result<Vec<String>, String> {
    let fill = |word: &String| template::fill(word, values).map_err(|error| error.to_string());
    let arguments = count.arguments.iter().map(fill);
    let arguments: Vec<String> = arguments.collect::<Result<_, String>>()?;
    Ok(match count.program.get_ref().as_str() {
        "ab" => ab::counting_words(count.requests, arguments),
        _ => load::counting_words(values, count.requests, arguments),
    })
}

/// The number of failed requests in the output of such a command.
///
/// # Errors
/// The message, if it is not a report.
pub(crate) fn failed(count: &Count, output: &str) -> Result<f64, String> {
    let reading = match count.program.get_ref().as_str() {
        "ab" => ab::read(output)?,
        _ => load::figures(output)?.0,
    };
    let errors = reading.figures.get("errors").and_then(Figure::value);
    Ok(errors.unwrap_or_default())
}

/// Whether a driver has its own warm-up; for others the lab runs the driver once before.
pub(crate) fn drops_warmup(drive: &Drive) -> bool {
    drive.program.get_ref() == "load"
}

/// Seconds for drivers that only accept whole ones.
fn whole_seconds(seconds: f64) -> String {
    (seconds.ceil().max(1.0) as u64).to_string()
}

/// A number at the start of a text.
fn number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text
        .find(|byte: char| !byte.is_ascii_digit() && byte != '.')
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests;
