//! The matrix of clients and of what they asked for: read, shown and judged. It asks nobody.

use std::fmt::Write as _;

use crate::outcome::Outcome;

/// What each client is asked to do.
pub(super) const CELLS: [&str; 6] = ["page", "post", "large", "certificate", "resumed", "early"];

/// How a cell went: its name, and why it failed.
pub(super) type Found = (String, Result<(), String>);

/// A client that speaks one version of HTTP.
pub(super) struct Row {
    pub(super) client: &'static str,
    pub(super) protocol: &'static str,
    pub(super) found: Vec<Found>,
}

/// Cells that a client is not asked for.
struct Unasked {
    client: &'static str,
    cells: &'static [&'static str],
    reason: &'static str,
}

const UNASKED: &[Unasked] = &[
    Unasked {
        client: "curl",
        cells: &["early"],
        reason: "curl has an option for early data only from 8.11 on; Debian's is older",
    },
    Unasked {
        client: "Python",
        cells: &["early"],
        reason: "Python's ssl module sends no early data",
    },
    Unasked {
        client: "Go",
        cells: &["early"],
        reason: "Go's crypto/tls sends no early data",
    },
    Unasked {
        client: "Chromium",
        cells: &["certificate"],
        reason: "Chromium without a window chooses a certificate only by a policy for the whole \
                 machine, which a test must not write",
    },
    Unasked {
        client: "OpenSSL",
        cells: &["page", "post", "large", "certificate"],
        reason: "s_client speaks TLS but no HTTP; it is asked only for sessions",
    },
];

/// The lines `CELL pass` and `CELL fail: REASON` of a program. Other lines say nothing.
pub(super) fn read(said: &str) -> Vec<Found> {
    let cells = said.lines().filter_map(|line| {
        let (cell, rest) = line.split_once(' ')?;
        let result = match rest.strip_prefix("fail: ") {
            Some(reason) => Err(reason.to_owned()),
            None if rest == "pass" => Ok(()),
            None => return None,
        };
        Some((cell.to_owned(), result))
    });
    cells.collect()
}

/// The matrix as a table, with the reasons below.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<10}{:<10}", "client", "protocol");
    for cell in CELLS {
        let _ = write!(text, "{cell:<13}"); // a String takes all
    }
    for row in rows {
        let _ = write!(text, "\n{:<10}{:<10}", row.client, row.protocol);
        for cell in CELLS {
            let shown = match (row.result(cell), row.unasked(cell)) {
                (Some(Ok(())), _) => "pass".to_owned(),
                (Some(Err(_)), _) => "fail".to_owned(),
                (None, Some(number)) => format!("({number})"),
                (None, None) => "missing".to_owned(),
            };
            let _ = write!(text, "{shown:<13}");
        }
    }
    text.push('\n');
    for (number, unasked) in (1..).zip(UNASKED) {
        let _ = writeln!(text, "({number}) {}", unasked.reason);
    }
    text.lines()
        .fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// Says which cells should be otherwise.
pub(super) fn judge(rows: &[Row]) -> Outcome {
    let mut wrong = Vec::new();
    for row in rows {
        for cell in CELLS {
            let what = match (row.result(cell), row.unasked(cell)) {
                (Some(Err(reason)), _) => reason.as_str(),
                (Some(Ok(())), Some(_)) => "was asked for now, drop it from the reasons",
                (None, None) => "is missing",
                (Some(Ok(())), None) | (None, Some(_)) => continue,
            };
            wrong.push(format!("{}, {}, {cell}: {what}", row.client, row.protocol));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

impl Row {
    fn result(&self, cell: &str) -> Option<&Result<(), String>> {
        let found = self.found.iter().find(|(name, _)| name == cell);
        found.map(|(_, result)| result)
    }

    /// The number of the reason why the client is not asked for a cell.
    fn unasked(&self, cell: &str) -> Option<usize> {
        let place = UNASKED
            .iter()
            .position(|unasked| unasked.client == self.client && unasked.cells.contains(&cell));
        place.map(|place| place + 1)
    }
}

#[cfg(test)]
mod tests;
