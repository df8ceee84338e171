//! The directive reference, generated from the rows.

use std::fmt::Write;

use crate::registry::{Registry, Row};

/// The reference as Markdown: families in the registry's order, rows in theirs.
pub fn reference(registry: &Registry) -> String {
    let mut out = String::from("# Directives\n\nWritten by `cargo xtask docs`; do not edit.\n");
    for (family, rows) in &registry.index.families {
        // Some only count or add variables.
        if rows.is_empty() {
            continue;
        }
        // A write to a string cannot fail.
        let _ = write!(out, "\n## {family}\n");
        for row in *rows {
            let _ = write_row(&mut out, registry, row);
        }
    }
    out
}

/// The part of the reference about one directive; `None` if there is no such directive.
pub fn reference_of(registry: &Registry, name: &str) -> Option<String> {
    let rows = registry.index.rows(name);
    let mut out = String::new();
    for row in rows {
        // A write to a string cannot fail.
        let _ = write_row(&mut out, registry, row);
    }
    (!out.is_empty()).then_some(out)
}

fn write_row(out: &mut String, registry: &Registry, row: &Row) -> std::fmt::Result {
    let contexts: Vec<&str> = row.contexts.iter().map(|context| context.text()).collect();
    let contexts = contexts.join(", ");
    let is_unique = registry.index.rows(row.name).len() == 1;
    let title = if is_unique {
        String::new()
    } else {
        format!(" ({contexts})")
    };
    let ending = if row.value.is_block() {
        " { ... }"
    } else {
        ";"
    };
    let gap = if row.syntax.is_empty() { "" } else { " " };
    write!(out, "\n### {}{title}\n\n", row.name)?;
    writeln!(out, "- Syntax: `{}{gap}{}{ending}`", row.name, row.syntax)?;
    match row.default {
        "" => writeln!(out, "- Default: none")?,
        default => writeln!(out, "- Default: `{} {default};`", row.name)?,
    }
    writeln!(out, "- Context: {contexts}\n\n{}", row.summary)
}
