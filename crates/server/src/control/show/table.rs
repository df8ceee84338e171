//! Any answer as text: names and values, and tables where things repeat.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Columns between a name and its value, or between two columns.
const GAP: &str = "  ";

/// Columns that an answer may take: what every terminal has.
const WIDTH_MAX: usize = 80;

/// Fewest columns that a value is broken into: with fewer, too few words stand in a line.
const VALUE_WIDTH_MIN: usize = 24;

/// Members that tell items apart, which a reader looks for first.
const KEYS: &[&str] = &["verb", "lane", "zone", "upstream", "name", "address"];

/// An answer as text.
pub(super) fn of(answer: &Value) -> String {
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
    let mut plain: Vec<(&String, &Value)> = members
        .iter()
        .filter(|(_, value)| is_plain(value))
        .collect();
    plain.sort_by_key(|(name, _)| rank(name));
    let width = plain.iter().map(|(name, _)| columns(name)).max();
    let width = width.unwrap_or_default();
    for (name, value) in plain {
        let mut start = format!("{indent}{name:width$}{GAP}");
        let room = WIDTH_MAX
            .saturating_sub(columns(&start))
            .max(VALUE_WIDTH_MIN);
        for line in broken(&scalar(value), room) {
            let _ = writeln!(out, "{}", format!("{start}{line}").trim_end());
            start = " ".repeat(columns(&start));
        }
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

/// A table where the items are objects of plain values, and it is not too wide; else one item
/// after another.
fn rows(items: &[Value], depth: usize, out: &mut String) {
    let indent = GAP.repeat(depth);
    let objects: Vec<&Map<String, Value>> = items.iter().filter_map(Value::as_object).collect();
    if objects.len() < items.len() {
        for item in items {
            let _ = writeln!(out, "{indent}{}", scalar(item));
        }
        return;
    }
    let room = WIDTH_MAX.saturating_sub(indent.len());
    if objects.iter().all(|members| members.values().all(is_plain)) {
        let lines = lines(&objects);
        if let Some(lines) = fitting(lines, room) {
            for line in lines {
                let _ = writeln!(out, "{indent}{line}");
            }
            return;
        }
    }
    for (number, members) in objects.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        object(members, depth, out);
    }
}

/// The cells of a table, its head first.
fn lines(objects: &[&Map<String, Value>]) -> Vec<Vec<String>> {
    let mut names: Vec<&String> = Vec::new();
    for name in objects.iter().flat_map(|members| members.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| rank(name));
    let cell = |value: Option<&Value>| value.map_or_else(String::new, scalar);
    let head = names.iter().map(|name| (*name).clone()).collect();
    let line = |members: &&Map<String, Value>| {
        let cells = names.iter().map(|name| cell(members.get(*name)));
        cells.collect()
    };
    std::iter::once(head)
        .chain(objects.iter().map(line))
        .collect()
}

/// The table with an item a line or, where that is too wide, with an item a column.
fn fitting(lines: Vec<Vec<String>>, room: usize) -> Option<Vec<String>> {
    let upright = aligned(&lines);
    if upright.iter().all(|line| columns(line) <= room) {
        return Some(upright);
    }
    let count = lines.first().map_or(0, Vec::len);
    let turned: Vec<Vec<String>> = (0..count)
        .map(|column| lines.iter().map(|line| line[column].clone()).collect())
        .collect();
    let turned = aligned(&turned);
    let fits = turned.iter().all(|line| columns(line) <= room);
    fits.then_some(turned)
}

pub(super) fn aligned(lines: &[Vec<String>]) -> Vec<String> {
    let count = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| columns(&line[column])).max();
    let widths: Vec<usize> = (0..count).map(|n| width(n).unwrap_or_default()).collect();
    let line = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join(GAP).trim_end().to_owned()
    };
    lines.iter().map(line).collect()
}

/// A text in lines of so many columns, broken between words.
fn broken(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.len() - 1;
        let fits = columns(&lines[line]) + 1 + columns(word) <= room;
        if lines[line].is_empty() {
            lines[line].push_str(word);
        } else if fits {
            lines[line].push(' ');
            lines[line].push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Where a member stands among the others: those that tell items apart come first.
fn rank(name: &str) -> usize {
    let key = KEYS.iter().position(|key| *key == name);
    key.unwrap_or(KEYS.len())
}

fn columns(text: &str) -> usize {
    text.chars().count()
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
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(scalar).collect();
            items.join(" ")
        }
        other => other.to_string(),
    }
}
