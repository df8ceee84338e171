//! What nginx checks of arguments beyond their type.

use turnpike_conf::value;

/// `off` only: what `on` asks for is not there yet.
pub(super) fn off(name: &str, words: &[&str]) -> Result<(), String> {
    match words {
        ["off"] => Ok(()),
        _ => Err(format!("\"{name}\" directive is not supported yet")),
    }
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
