//! The bodies of the fuzz targets; the targets themselves only pass bytes in.

use std::path::Path;

use crate::lexer::TOKEN_BYTES_MAX;
use crate::parse::parse_all;
use crate::source::MemoryLoader;
use crate::text::{bytes_of, text_of};
use crate::tree::{Directive, Tree, Word};

#[cfg(test)]
mod tests;

/// Parses any bytes as a main file that may include itself, and checks the invariants.
pub fn parse(bytes: &[u8]) {
    let main = Path::new("/conf/main");
    let loader: MemoryLoader = [(main, bytes)].into_iter().collect();
    let (tree, errors) = parse_all(&loader, main, None);
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
    check_directives(&tree, &tree.directives, lines);
    if let Err(errors) = errors.finish() {
        assert!(!errors.0.is_empty());
        for error in &errors.0 {
            let (file, line) = error.place.as_ref().expect("every error has a place");
            assert_eq!(file, "/conf/main");
            assert!((1..=lines).contains(line), "{error}");
        }
    }
    assert_eq!(bytes_of(&text_of(bytes)), bytes);
}

fn check_directives(tree: &Tree, directives: &[Directive], lines: u32) {
    for directive in directives {
        assert!(tree.sources.file(directive.span.file).is_some());
        assert!(directive.name.span.line <= directive.span.line);
        assert!(directive.span.line <= directive.end.line && directive.end.line <= lines);
        check_word(&directive.name, directive.span.line);
        for word in directive.arguments.iter() {
            check_word(word, directive.span.line);
        }
        check_directives(tree, directive.block.as_deref().unwrap_or(&[]), lines);
    }
}

fn check_word(word: &Word, line_max: u32) {
    assert!((1..=line_max).contains(&word.span.line));
    assert!(word.bytes().len() <= TOKEN_BYTES_MAX);
}
