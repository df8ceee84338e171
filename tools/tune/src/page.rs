//! The explanation of a finding, and the reference of all of them: both are the rows.

use std::fmt::Write as _;

use crate::findings;
use crate::row::Row;

/// The text of docs/tune.md: what stands at its head, then a part for each row.
pub fn reference() -> String {
    let mut text = HEAD.to_owned();
    for row in findings::rows() {
        let _ = write!(text, "\n### {}\n\n{}\n", row.id, markdown(row));
    }
    text
}

fn markdown(row: &Row) -> String {
    format!(
        "{}.\n\n{}\n\n- Fix: {}\n- Expected effect: {}\n- Source: {}",
        row.title, row.why, row.fix, row.effect, row.source
    )
}

/// What `--explain` prints.
pub(crate) fn explanation(row: &Row, width: usize) -> String {
    let mut text = format!("{}: {}\n\n", row.id, row.title);
    let parts = [
        ("Why it matters", row.why),
        ("Fix", row.fix),
        ("Expected effect", row.effect),
        ("Source", row.source),
    ];
    for (title, words) in parts {
        let _ = writeln!(
            text,
            "{title}:\n{}",
            crate::report::wrapped(words, 2, width)
        );
    }
    text
}

const HEAD: &str = include_str!("tune.md");
