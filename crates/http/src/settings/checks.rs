//! What nginx checks of the core's arguments beyond their type, in effect or not.

use turnpike_conf::value;

/// `timeout [header_timeout]`.
pub(super) fn keepalive_timeout(name: &str, words: &[&str]) -> Result<(), String> {
    let first = words
        .first()
        .is_none_or(|text| value::milliseconds(text).is_some());
    let second = words
        .get(1)
        .is_none_or(|text| value::seconds(text).is_some());
    match first && second {
        true => Ok(()),
        false => Err(format!("\"{name}\" directive invalid value")),
    }
}

/// A size, or text with variables.
pub(super) fn size_or_variable(name: &str, words: &[&str]) -> Result<(), String> {
    let right = |text: &&str| text.contains('$') || value::size(text).is_some();
    match words.iter().all(right) {
        true => Ok(()),
        false => Err(format!("\"{name}\" directive invalid value")),
    }
}

/// `off | max=N [inactive=time]`.
pub(super) fn open_file_cache(name: &str, words: &[&str]) -> Result<(), String> {
    let mut has_max = false;
    for word in words {
        let is_right = match word.split_once('=') {
            Some(("max", number)) => {
                has_max = true;
                value::number(number).is_some_and(|number| number > 0)
            }
            Some(("inactive", time)) => value::seconds(time).is_some(),
            _ if *word == "off" => {
                has_max = true;
                true
            }
            _ => false,
        };
        if !is_right {
            return Err(format!("invalid \"{name}\" parameter \"{word}\""));
        }
    }
    match has_max {
        true => Ok(()),
        false => Err(format!("\"{name}\" must have the \"max\" parameter")),
    }
}

/// `code ... [=[response]] uri`.
pub(super) fn error_page(_: &str, words: &[&str]) -> Result<(), String> {
    super::error_page::codes(words).map(|_| ())
}
