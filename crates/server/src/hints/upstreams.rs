//! Addresses of upstream servers: schemes that are missing, wrong or too many, and misspelt groups.

use super::mistake::{Found, Mistake};

/// Schemes that a directive takes before an address; the first is the one that is proposed.
const SCHEMES: &[(&str, &[&str])] = &[
    ("proxy_pass", &["http://", "https://"]),
    ("grpc_pass", &["grpc://", "grpcs://"]),
    ("otel_exporter", &["http://", "https://"]),
    ("ssl_ocsp_responder", &["http://"]),
];

pub(super) fn hint(mistake: &Mistake<'_>) -> Option<String> {
    let message = mistake.message;
    if message.starts_with("invalid URL prefix") {
        return mistake
            .directives
            .iter()
            .rev()
            .find_map(|found| prefix(found));
    }
    let quoted = mistake.quoted()?;
    if message.starts_with("invalid return code \"") {
        let (scheme, rest) = quoted.split_once("://")?;
        let meant = turnpike_conf::nearest(scheme, ["http", "https"].into_iter())?;
        return Some(format!(", did you mean \"{meant}://{rest}\"?"));
    }
    if message.starts_with("unexpected \"==\" in condition") {
        return Some("; write \"=\"".to_owned());
    }
    if message.starts_with("host not found in upstream \"")
        || message.starts_with("no port in upstream \"")
    {
        return group(mistake, quoted);
    }
    if message.starts_with("invalid host in upstream \"") {
        return scheme(mistake.with_argument(quoted)?, quoted);
    }
    None
}

/// An address without a scheme, or with a misspelt one.
fn prefix(found: &Found<'_>) -> Option<String> {
    let (_, schemes) = SCHEMES.iter().find(|(name, _)| *name == found.name())?;
    let text = found.argument(0);
    let Some((scheme, rest)) = text.split_once("://") else {
        let scheme = schemes.first()?;
        return Some(format!("; write \"{scheme}{text}\""));
    };
    let known = schemes.iter().map(|scheme| scheme.trim_end_matches("://"));
    let meant = turnpike_conf::nearest(scheme, known)?;
    Some(format!(", did you mean \"{meant}://{rest}\"?"))
}

/// An address with a scheme where only a host and a port stand.
fn scheme(found: &Found<'_>, text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let address = rest.split('/').next()?;
    Some(match found.name() {
        "grpc_pass" => format!("; write \"grpc://{address}\""),
        _ => format!("; an address has no scheme here: write \"{address}\""),
    })
}

/// A name that is nearly that of a group of servers.
fn group(mistake: &Mistake<'_>, name: &str) -> Option<String> {
    let is_in_stream = mistake
        .directives
        .last()
        .is_some_and(|found| found.is_in_stream());
    let groups = mistake
        .all
        .iter()
        .filter(|found| found.name() == "upstream" && found.is_in_stream() == is_in_stream);
    let meant = turnpike_conf::nearest(name, groups.map(|found| found.argument(0)))?;
    Some(format!(", did you mean the upstream \"{meant}\"?"))
}
