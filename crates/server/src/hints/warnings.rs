//! What loads and will hardly do what was meant.

use std::path::Path;

use turnpike_conf::{Directive, Word};

use crate::configuration::Configuration;

/// Quotes of word processors, which the language takes for letters.
const TYPOGRAPHIC: &[char] = &['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}'];

/// Directives that begin a request to a server whose socket may be missing.
const PASSES: &[&str] = &[
    "proxy_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "grpc_pass",
    "memcached_pass",
    "server",
];

/// Signs that are letters of a value, and were hardly meant so.
pub(crate) fn of_letters(configuration: &Configuration) -> Vec<String> {
    let odd = configuration.tree.walk().filter_map(|directive| {
        let (word, message) = letters(&directive.name.text, &directive.arguments)?;
        Some(configuration.tree.error(word.span, message).to_string())
    });
    odd.collect()
}

fn letters<'a>(directive: &str, arguments: &'a [Word]) -> Option<(&'a Word, String)> {
    let plain = || arguments.iter().filter(|word| !word.quoted);
    if let Some(word) = plain().find(|word| word.text.starts_with(TYPOGRAPHIC)) {
        let text = &word.text;
        let message = format!(
            "the typographic quotes of {text} are part of the value: write straight ones (\")"
        );
        return Some((word, message));
    }
    if directive == "server_name"
        && let Some(word) = plain().find(|word| word.text.ends_with(','))
    {
        let text = &word.text;
        let message =
            format!("the comma in \"{text}\" is part of the name: separate names by spaces");
        return Some((word, message));
    }
    if matches!(directive, "add_header" | "add_trailer" | "proxy_set_header")
        && let Some(word) = plain().next().filter(|word| word.text.ends_with(':'))
    {
        let text = &word.text;
        let message = format!("the colon in \"{text}\" is part of the name: leave it out");
        return Some((word, message));
    }
    None
}

/// Files and sockets that are missing when a request needs them.
pub(crate) fn of_files(configuration: &Configuration) -> Vec<String> {
    let missing = configuration.tree.walk().filter_map(|directive| {
        let message = match directive.name.text.as_str() {
            "auth_basic_user_file" => user_file(configuration, directive),
            name if PASSES.contains(&name) && directive.block.is_none() => socket(directive),
            _ => None,
        }?;
        let error = configuration.tree.error(directive.span, message);
        Some(error.to_string())
    });
    missing.collect()
}

fn user_file(configuration: &Configuration, directive: &Directive) -> Option<String> {
    let name = directive.arguments.first()?.text.as_str();
    if name.contains('$') {
        return None;
    }
    let folder = configuration.paths.configuration.parent();
    let path = folder.unwrap_or(Path::new("/")).join(name);
    (!path.exists()).then(|| {
        let path = path.display();
        format!("\"{path}\" does not exist: every request that needs a password gets 403")
    })
}

fn socket(directive: &Directive) -> Option<String> {
    let address = directive.arguments.first()?.text.as_str();
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let path = address.strip_prefix("unix:")?.split(':').next()?;
    let is_missing = !path.contains('$') && !Path::new(path).exists();
    is_missing.then(|| {
        format!("no program listens on \"unix:{path}\" yet: requests get 502 until a program does")
    })
}
