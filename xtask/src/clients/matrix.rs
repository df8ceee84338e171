//! A matrix of clients and of what they asked for: read, shown and judged. It asks nobody.

use std::fmt::Write as _;

use crate::outcome::Outcome;

/// How a cell went: its name, and why it failed.
pub(super) type Found = (String, Result<(), String>);

/// A matrix: what its clients are asked to do, and what they are not.
pub(super) struct Matrix {
    /// What tells the rows of a client apart, as the heading of the second column.
    pub(super) variant: &'static str,
    pub(super) cells: &'static [&'static str],
    pub(super) unasked: &'static [Unasked],
}

/// A row of it.
pub(super) struct Row {
    pub(super) client: &'static str,
    pub(super) variant: String,
    pub(super) found: Vec<Found>,
}

/// Cells that a client is not asked for.
pub(super) struct Unasked {
    pub(super) client: &'static str,
    pub(super) cells: &'static [&'static str],
    pub(super) reason: &'static str,
}

/// The least width of the columns of a client, of its variant, and of a cell.
const WIDTHS: (usize, usize, usize) = (10, 10, 13);

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

impl Matrix {
    /// The matrix as a table, with the reasons below.
    pub(super) fn table(&self, rows: &[Row]) -> String {
        let (client, variant, width) = WIDTHS;
        let names = rows.iter().map(|row| row.client.len() + 1);
        let client = names.max().unwrap_or(0).max(client);
        let variants = rows.iter().map(|row| row.variant.len() + 1);
        let variant = variants.max().unwrap_or(0).max(variant);
        let mut text = format!("{:<client$}{:<variant$}", "client", self.variant);
        // A String takes all that is written to it.
        for cell in self.cells {
            let _ = write!(text, "{cell:<width$}");
        }
        for row in rows {
            let _ = write!(text, "\n{:<client$}{:<variant$}", row.client, row.variant);
            for cell in self.cells {
                let shown = match (row.result(cell), self.unasked(row, cell)) {
                    (Some(Ok(())), _) => "pass".to_owned(),
                    (Some(Err(_)), _) => "fail".to_owned(),
                    (None, Some(number)) => format!("({number})"),
                    (None, None) => "missing".to_owned(),
                };
                let _ = write!(text, "{shown:<width$}");
            }
        }
        text.push('\n');
        for (number, unasked) in (1..).zip(self.unasked) {
            let _ = writeln!(text, "({number}) {}", unasked.reason);
        }
        text.lines()
            .fold(String::new(), |text, line| text + line.trim_end() + "\n")
    }

    /// Says which cells should be otherwise.
    pub(super) fn judge(&self, rows: &[Row]) -> Outcome {
        let mut wrong = Vec::new();
        for row in rows {
            for cell in self.cells {
                let what = match (row.result(cell), self.unasked(row, cell)) {
                    (Some(Err(reason)), _) => reason.as_str(),
                    (Some(Ok(())), Some(_)) => "was asked for now, drop it from the reasons",
                    (None, None) => "is missing",
                    (Some(Ok(())), None) | (None, Some(_)) => continue,
                };
                wrong.push(format!("{}, {}, {cell}: {what}", row.client, row.variant));
            }
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("\n"))
        }
    }

    /// The number of the reason why a row's client is not asked for a cell.
    fn unasked(&self, row: &Row, cell: &str) -> Option<usize> {
        let place = self
            .unasked
            .iter()
            .position(|unasked| unasked.client == row.client && unasked.cells.contains(&cell));
        place.map(|place| place + 1)
    }
}

impl Row {
    /// Adds what was found another time: a cell that has failed once stays so.
    pub(super) fn add(&mut self, found: Vec<Found>) {
        for (cell, result) in found {
            match self.found.iter_mut().find(|(name, _)| *name == cell) {
                Some((_, before)) if before.is_ok() => *before = result,
                Some(_) => {}
                None => self.found.push((cell, result)),
            }
        }
    }

    fn result(&self, cell: &str) -> Option<&Result<(), String>> {
        let found = self.found.iter().find(|(name, _)| name == cell);
        found.map(|(_, result)| result)
    }
}

#[cfg(test)]
mod tests;
