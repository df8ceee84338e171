//! Answers as people read them: names and values, and tables where things repeat.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Columns between a name and its value, or between two columns.
const GAP: &str = "  ";

/// An answer as text.
pub(super) fn table(answer: &Value) -> String {
    let mut out = String::new();
    match answer {
        Value::Object(members) => object(members, 0, &mut out),
        Value::Array(items) => rows(items, 0, &mut out),
        other => {
            let _ = writeln!(out, "{}", scalar(other));
        }
    }
    out
}

fn object(members: &Map<String, Value>, depth: usize, out: &mut String) {
    let indent = GAP.repeat(depth);
    let plain = || members.iter().filter(|(_, value)| is_plain(value));
    let width = plain().map(|(name, _)| name.chars().count()).max();
    for (name, value) in plain() {
        let width = width.unwrap_or_default();
        let _ = writeln!(out, "{indent}{name:width$}{GAP}{}", scalar(value));
    }
    for (name, value) in members.iter().filter(|(_, value)| !is_plain(value)) {
        let alone = members.len() == 1;
        let inner = if alone { depth } else { depth + 1 };
        if !alone {
            let _ = writeln!(out, "{indent}{name}:");
        }
        match value {
            Value::Object(members) => object(members, inner, out),
            Value::Array(items) => rows(items, inner, out),
            _ => {}
        }
    }
}

/// A table where the items are objects of plain values; else one item after another.
fn rows(items: &[Value], depth: usize, out: &mut String) {
    let indent = GAP.repeat(depth);
    let objects: Vec<&Map<String, Value>> = items.iter().filter_map(Value::as_object).collect();
    let is_table = objects.len() == items.len()
        && objects.iter().all(|members| members.values().all(is_plain));
    if !is_table {
        for item in items {
            match item {
                Value::Object(members) => object(members, depth, out),
                other => {
                    let _ = writeln!(out, "{indent}{}", scalar(other));
                }
            }
        }
        return;
    }
    let mut names: Vec<&String> = Vec::new();
    for name in objects.iter().flat_map(|members| members.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut lines: Vec<Vec<String>> = vec![names.iter().map(|name| (*name).clone()).collect()];
    let cell = |value: Option<&Value>| value.map_or_else(String::new, scalar);
    for members in objects {
        let line = names.iter().map(|name| cell(members.get(*name)));
        lines.push(line.collect());
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..names.len())
        .map(|n| width(n).unwrap_or_default())
        .collect();
    for line in &lines {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        let _ = writeln!(out, "{indent}{}", cells.join(GAP).trim_end());
    }
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(items) => items
            .iter()
            .all(|item| !item.is_object() && !item.is_array()),
        _ => true,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            items.join(" ")
        }
        other => other.to_string(),
    }
}
