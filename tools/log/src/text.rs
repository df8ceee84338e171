//! The summary as text, and the words that the page has too.

use std::fmt::Write as _;

use turnpike_load::{show_bytes, show_time_us};

use crate::busiest::Counts;
use crate::summary::{List, Summary};

/// The most lines of requests over time: with the rest, two screens.
const INTERVALS: usize = 30;

/// The width of a bar, in characters.
const BAR: usize = 40;

/// The report.
pub(crate) fn show(summary: &Summary, top: usize) -> String {
    let mut out = format!("{}\n", head(summary));
    if let Some(note) = unknown(summary) {
        // A write to a string cannot fail.
        let _ = writeln!(out, "{note}");
    }
    let _ = writeln!(out, "\nStatuses");
    let most = summary.statuses.values().copied().max().unwrap_or(0);
    for (status, count) in &summary.statuses {
        let share = share(*count, summary.requests);
        let bar = bar(*count, most);
        let _ = writeln!(
            out,
            "{status:>12} {:>11} {share:>7}  {bar}",
            grouped(*count)
        );
    }
    if let Some(times) = times(summary) {
        let _ = writeln!(out, "\nTimes of requests\n  {times}");
    }
    over_time(&mut out, summary);
    for list in summary.lists(top) {
        table(&mut out, &list, summary.requests);
    }
    out
}

/// The first line: how many requests, from when to when, and how many bytes.
pub(crate) fn head(summary: &Summary) -> String {
    let mut head = format!("{} requests", grouped(summary.requests));
    if let Some((first_s, last_s)) = summary.times_s {
        let (first, last) = (moment(first_s), moment(last_s));
        let _ = write!(head, " from {first} to {last}");
    }
    let bytes = show_bytes(summary.all.body_bytes as f64);
    let _ = write!(head, ", {bytes} sent in bodies");
    head
}

/// What is said of lines in no known format.
pub(crate) fn unknown(summary: &Summary) -> Option<String> {
    let place = summary.unknown_first.as_ref()?;
    let count = grouped(summary.unknown);
    Some(format!(
        "Not counted: {count} lines in neither of the formats combined and json, the first in \
         {place}"
    ))
}

/// The percentiles of the times of requests, if the log has times.
pub(crate) fn times(summary: &Summary) -> Option<String> {
    let times = &summary.times_us;
    (times.count() > 0).then(|| {
        let at = |percent| show_time_us(times.percentile(percent) as f64);
        format!(
            "half within {}, 90 % within {}, 99 % within {}, the longest {}",
            at(50.0),
            at(90.0),
            at(99.0),
            show_time_us(times.max() as f64)
        )
    })
}

/// The name of an interval of so many seconds.
pub(crate) fn interval(length_s: i64) -> &'static str {
    match length_s {
        60 => "minute",
        600 => "ten minutes",
        3600 => "hour",
        86_400 => "day",
        _ => "30 days",
    }
}

/// A time of the log's clock, to the minute.
pub(crate) fn moment(time_s: i64) -> String {
    match jiff::Timestamp::from_second(time_s) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => "?".to_owned(),
    }
}

/// The cells of a line of a list, behind which its name stands.
pub(crate) fn cells(counts: &Counts, all: u64) -> [String; 7] {
    let time = |seconds: Option<f64>| match seconds {
        Some(seconds) => show_time_us(seconds * 1e6),
        None => "-".to_owned(),
    };
    let longest = (counts.timed > 0).then_some(counts.seconds_max);
    [
        grouped(counts.requests),
        share(counts.requests, all),
        show_bytes(counts.body_bytes as f64),
        grouped(counts.refused),
        grouped(counts.failed),
        time(counts.seconds_average()),
        time(longest),
    ]
}

/// What stands over the cells.
pub(crate) const COLUMNS: [&str; 7] = [
    "requests", "share", "sent", "4xx", "5xx", "average", "longest",
];

/// What is said under a list that does not show everything, or not exactly.
pub(crate) fn note(list: &List<'_>) -> Option<String> {
    let List {
        thing,
        count,
        lost_max,
        ..
    } = *list;
    let rest = count.saturating_sub(list.lines.len());
    match (rest, lost_max) {
        (_, lost) if lost > 0 => Some(format!(
            "there are too many to count all; a {thing} may have up to {} more requests",
            grouped(lost)
        )),
        (0, _) => None,
        (rest, _) => Some(format!("and {} more", grouped(rest as u64))),
    }
}

fn over_time(out: &mut String, summary: &Summary) {
    let (length_s, intervals) = summary.timeline.at_most(INTERVALS);
    if intervals.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nRequests per {}", interval(length_s));
    let most = intervals.iter().map(|(_, counts)| counts.requests).max();
    for (start_s, counts) in &intervals {
        let failed = match counts.failed {
            0 => String::new(),
            failed => format!("  {} with 5xx", grouped(failed)),
        };
        let _ = writeln!(
            out,
            "{:>18} {:>11}  {}{failed}",
            moment(*start_s),
            grouped(counts.requests),
            bar(counts.requests, most.unwrap_or(0))
        );
    }
    if summary.timeline.left_out > 0 {
        let left_out = grouped(summary.timeline.left_out);
        let _ = writeln!(
            out,
            "  not shown: {left_out} requests at times far from these"
        );
    }
}

fn table(out: &mut String, list: &List<'_>, all: u64) {
    let rows = list.lines.iter().map(|(_, counts)| cells(counts, all));
    let rows: Vec<[String; 7]> = rows.collect();
    let mut widths = COLUMNS.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let _ = writeln!(out, "\n{}", list.title);
    let line = |out: &mut String, cells: &[&str; 7], name: &str| {
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(out, "  {cell:>width$}");
        }
        let _ = writeln!(out, "  {name}");
    };
    line(out, &COLUMNS, list.thing);
    for (row, (name, _)) in rows.iter().zip(&list.lines) {
        line(out, &row.each_ref().map(String::as_str), name);
    }
    if let Some(note) = note(list) {
        let _ = writeln!(out, "  {note}");
    }
}

fn bar(count: u64, most: u64) -> String {
    let length = (count as f64 / most.max(1) as f64 * BAR as f64).ceil();
    "█".repeat(length as usize)
}

/// A share in per cent.
pub(crate) fn share(count: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * count as f64 / all.max(1) as f64)
}

/// A number with a comma before each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
