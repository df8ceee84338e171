//! Tests as tables, one module for each part.

#![allow(clippy::unwrap_used)]

mod glob;
mod language;

use std::path::Path;

use crate::source::MemoryLoader;
use crate::tree::{Directive, Word};

/// The path under which tests keep their main file.
const MAIN: &str = "/etc/main.conf";

/// A loader with a main file and others beside it.
fn files(main: &[u8], others: &[(&str, &str)]) -> MemoryLoader {
    let mut loader: MemoryLoader = others
        .iter()
        .map(|(path, text)| (format!("/etc/{path}"), text.as_bytes()))
        .collect();
    loader.0.insert(MAIN.into(), main.to_vec());
    loader
}

fn main_path() -> &'static Path {
    Path::new(MAIN)
}

/// Directives as text: words in `<>`, blocks in `{}`.
fn show(directives: &[Directive]) -> String {
    let one = |directive: &Directive| {
        let words = std::iter::once(&directive.name).chain(&directive.arguments);
        let words: Vec<String> = words
            .map(|word: &Word| format!("<{}>", word.text))
            .collect();
        match &directive.block {
            Some(block) => format!("{}{{{}}}", words.join(""), show(block)),
            None => words.join(""),
        }
    };
    directives.iter().map(one).collect::<Vec<_>>().join(" ")
}
