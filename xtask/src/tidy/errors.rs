//! A limit on functions that fail with a text. An error is a closed enum, or a complaint about the
//! configuration (`turnpike_conf::Complaint`); a text can neither be told from another nor counted.

use std::path::Path;

use super::finding::Finding;
use super::scanner::Source;

/// The most functions that fail with a text. The number only goes down.
const TEXTS_MAX: usize = 181;

/// The number of results whose error is a text.
pub(super) fn count(source: &Source) -> usize {
    let places = 0..source.tokens.len();
    places.filter(|at| fails_with_text(source, *at)).count()
}

/// Finds out whether more functions fail with a text than the number that was reached.
pub(super) fn check(count: usize) -> Option<Finding> {
    let text = format!(
        "{count} functions fail with a text, at most {TEXTS_MAX}: make a closed enum of the \
         errors, or a Complaint of what the configuration says"
    );
    (count > TEXTS_MAX).then(|| Finding::new(Path::new("xtask/src/tidy/errors.rs"), 1, text))
}

/// Whether `Result<..., String>` is at `at`.
fn fails_with_text(source: &Source, at: usize) -> bool {
    if source.word(at) != Some("Result") || !source.is_mark(at + 1, '<') {
        return false;
    }
    let mut depth = 0usize;
    for end in at + 1..source.tokens.len() {
        let is = |mark| source.is_mark(end, mark);
        if is('<') || is('(') || is('[') {
            depth += 1;
        } else if is('>') && source.is_mark(end - 1, '-') {
            // An arrow closes nothing.
        } else if is('>') || is(')') || is(']') {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return source.word(end - 1) == Some("String") && source.is_mark(end - 2, ',');
        }
    }
    false
}

#[cfg(test)]
mod tests {
    //! Results with a text as their error, and others.

    use super::{Source, count};

    #[test]
    fn results_that_fail_with_a_text_are_counted() {
        for (text, expected) in [
            ("fn a() -> Result<(), String> {}", 1),
            ("fn a() -> Result<Vec<(u8, [u8; 4])>, String>;", 1),
            (
                "fn a(b: impl Fn() -> Result<u8, String>) -> Result<u8, E> {}",
                1,
            ),
            ("fn a() -> Result<Result<u8, String>, String> {}", 2),
            ("fn a() -> Result<String, E> {}", 0),
            ("fn a() -> Result<HashMap<String, String>, E> {}", 0),
            (
                "fn a() -> io::Result<String> { Result::<u8, String>::Ok(1) }",
                0,
            ),
        ] {
            assert_eq!(count(&Source::scan(text)), expected, "{text}");
        }
    }
}
