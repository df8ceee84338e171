//! What nginx checks of arguments beyond their type.

use std::collections::HashSet;

use turnpike_conf::{View, value};
use turnpike_http::plan::Builder;

/// Least size of a zone of keys: two pages, nginx's.
const ZONE_BYTES_MIN: u64 = 2 * 4096;

/// Statuses of `..._cache_valid` when none is given.
const STATUSES: std::ops::Range<u16> = 100..600;

/// `off` only: what `on` asks for is not there yet.
pub(super) fn off(name: &str, words: &[&str]) -> Result<(), String> {
    match words {
        ["off"] => Ok(()),
        _ => Err(format!("\"{name}\" directive is not supported yet")),
    }
}

/// `name value [if_not_empty]`.
pub(super) fn parameter(_: &str, words: &[&str]) -> Result<(), String> {
    match words.get(2) {
        None | Some(&"if_not_empty") => Ok(()),
        Some(word) => Err(format!("invalid parameter \"{word}\"")),
    }
}

/// `[code ...] time`.
pub(super) fn cache_valid(_: &str, words: &[&str]) -> Result<(), String> {
    let Some((time, statuses)) = words.split_last() else {
        return Ok(());
    };
    if value::seconds(time).is_none() {
        return Err(format!("invalid time value \"{time}\""));
    }
    let known = |word: &&&str| {
        let code = word.parse().ok();
        **word == "any" || code.is_some_and(|code| STATUSES.contains(&code))
    };
    match statuses.iter().find(|word| !known(word)) {
        Some(word) => Err(format!("invalid status \"{word}\"")),
        None => Ok(()),
    }
}

/// `path keys_zone=name:size [levels=...] ...`, as `proxy_cache_path` without a zone in memory.
pub(super) fn cache_path(name: &str, words: &[&str]) -> Result<(), String> {
    let mut has_zone = false;
    for word in words.iter().skip(1) {
        let invalid = || format!("invalid parameter \"{word}\"");
        let (parameter, text) = word.split_once('=').ok_or_else(invalid)?;
        let is_right = match parameter {
            "keys_zone" => {
                has_zone = true;
                keys_zone(word, text)?
            }
            "levels" => is_levels(text),
            "use_temp_path" => value::flag(text).is_some(),
            "inactive" => value::seconds(text).is_some(),
            "max_size" | "min_free" => value::offset(text).is_some(),
            "manager_files" | "loader_files" => value::number(text).is_some(),
            "manager_sleep" | "loader_sleep" | "manager_threshold" | "loader_threshold" => {
                value::milliseconds(text).is_some()
            }
            _ => return Err(invalid()),
        };
        if !is_right {
            return Err(format!("invalid {parameter} value \"{word}\""));
        }
    }
    match has_zone {
        true => Ok(()),
        false => Err(format!("\"{name}\" must have \"keys_zone\" parameter")),
    }
}

/// Two caches cannot have one folder.
pub(super) fn cache_folders(view: View<'_>, module: &str, builder: &mut Builder<'_>) {
    let mut folders = HashSet::new();
    for entry in view.own_all(&format!("{module}_cache_path")) {
        let folder = entry.argument(0).trim_end_matches('/');
        if !folders.insert(folder) {
            let message = format!("the same path name \"{folder}\" is used by two caches");
            builder.report(view.error(entry.span, message));
        }
    }
}

fn keys_zone(word: &str, text: &str) -> Result<bool, String> {
    let invalid = || format!("invalid keys zone size \"{word}\"");
    let (name, size) = text.split_once(':').ok_or_else(invalid)?;
    match value::size(size).ok_or_else(invalid)? {
        size_bytes if size_bytes < ZONE_BYTES_MIN => {
            Err(format!("keys zone \"{word}\" is too small"))
        }
        _ => Ok(!name.is_empty()),
    }
}

/// `path [level1 [level2 [level3]]]`.
pub(super) fn temporary(name: &str, words: &[&str]) -> Result<(), String> {
    let mut levels = words.iter().skip(1);
    match levels.all(|level| matches!(*level, "1" | "2" | "3")) {
        true => Ok(()),
        false => Err(format!("\"{name}\" directive invalid value")),
    }
}

/// Up to three lengths of 1 or 2, between colons; or none.
fn is_levels(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let levels: Vec<&str> = text.split(':').collect();
    levels.len() <= 3 && levels.iter().all(|level| matches!(*level, "1" | "2"))
}

/// `users:permissions ...`.
pub(super) fn access(_: &str, words: &[&str]) -> Result<(), String> {
    for word in words {
        let known = word.split_once(':').is_some_and(|(who, what)| {
            matches!(who, "user" | "group" | "all") && matches!(what, "r" | "rw")
        });
        if !known {
            return Err(format!("invalid value \"{word}\""));
        }
    }
    Ok(())
}

/// `address [transparent] | off`.
pub(super) fn bind(_: &str, words: &[&str]) -> Result<(), String> {
    match words {
        ["off"] => Ok(()),
        [_, word] if *word != "transparent" => Err(format!("invalid parameter \"{word}\"")),
        [address, ..] if !address.contains('$') && !is_address(address) => {
            Err(format!("invalid address \"{address}\""))
        }
        _ => Ok(()),
    }
}

fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok() || text.parse::<std::net::SocketAddr>().is_ok()
}

/// `off | on | threads[=pool]`.
pub(super) fn aio(_: &str, words: &[&str]) -> Result<(), String> {
    let word = words.first().copied().unwrap_or_default();
    match word {
        "off" | "on" | "threads" => Ok(()),
        _ if word.starts_with("threads=") && word.len() > "threads=".len() => Ok(()),
        _ => Err("invalid value".to_owned()),
    }
}

/// `off | size`.
pub(super) fn off_or_size(name: &str, words: &[&str]) -> Result<(), String> {
    match words {
        ["off"] => Ok(()),
        [text] if value::offset(text).is_some() => Ok(()),
        _ => Err(format!("\"{name}\" directive invalid value")),
    }
}
