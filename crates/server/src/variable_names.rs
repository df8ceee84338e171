//! `turnpike variable-names`: the reference of all variables, from their rows.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use turnpike_http::variables::{BUILTIN, DATES, SOCKET};

/// A variable's name and meaning.
type Entry = (&'static str, &'static str);

/// Prints the page.
pub(crate) fn run(_arguments: &[OsString]) -> ExitCode {
    match std::io::stdout().write_all(page().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The names of all variables that `http` or `stream` has without a definition.
pub(crate) fn names(is_in_stream: bool) -> impl Iterator<Item = &'static str> {
    let http = BUILTIN
        .iter()
        .chain(DATES)
        .chain(SOCKET)
        .map(|row| row.name);
    let families = turnpike_modules::FAMILIES.iter();
    let families = families.flat_map(|family| (family.variables)().iter().map(|row| row.name));
    let stream = turnpike_stream::variables::BUILTIN
        .iter()
        .map(|row| row.name);
    let of_stream = turnpike_modules::STREAM_FAMILIES.iter();
    let of_stream = of_stream.flat_map(|family| (family.variables)().iter().map(|row| row.name));
    let http = http.chain(families).filter(move |_| !is_in_stream);
    http.chain(stream.chain(of_stream).filter(move |_| is_in_stream))
}

/// The beginnings of variables that stand for any field, argument or cookie.
const PREFIXES: &[&str] = &[
    "arg_",
    "cookie_",
    "http_",
    "proxy_protocol_tlv_",
    "sent_http_",
    "sent_trailer_",
    "upstream_cookie_",
    "upstream_http_",
    "upstream_trailer_",
];

/// Whether a name in small letters is that of a variable that is there without being defined.
pub(crate) fn is_variable(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || names(false).chain(names(true)).any(|own| own == name)
}

/// The reference in Markdown.
fn page() -> String {
    let mut page = HEAD.to_owned();
    let own = BUILTIN.iter().chain(DATES).chain(SOCKET);
    let own = own.map(|row| (row.name, row.summary)).collect();
    section(&mut page, "Requests, responses and connections", own);
    for family in turnpike_modules::FAMILIES {
        let rows = (family.variables)().iter();
        let rows = rows.map(|row| (row.name, row.summary)).collect();
        section(&mut page, family.name, rows);
    }
    let stream = turnpike_stream::variables::BUILTIN.iter();
    let stream = stream.map(|row| (row.name, row.summary)).collect();
    section(&mut page, "stream", stream);
    for family in turnpike_modules::STREAM_FAMILIES {
        let rows = (family.variables)().iter();
        let rows = rows.map(|row| (row.name, row.summary)).collect();
        section(&mut page, &format!("stream: {}", family.name), rows);
    }
    page
}

/// A family's table, where it has variables.
fn section(page: &mut String, title: &str, mut rows: Vec<Entry>) {
    if rows.is_empty() {
        return;
    }
    rows.sort_unstable();
    rows.dedup();
    // Writing to a string cannot fail.
    let _ = write!(page, "\n## {title}\n\n| variable | meaning |\n|---|---|\n");
    for (name, summary) in rows {
        let summary = summary.replace('|', "\\|");
        let _ = writeln!(page, "| `${name}` | {summary} |");
    }
}

/// What stands before the tables.
const HEAD: &str = "\
# Variables

Written by `cargo xtask docs`; do not edit.

Write `$name` or `${name}` in a value to insert a variable. Names and values are those of nginx.
`map`, `geo`, `split_clients`, `set` and named groups in regular expressions define more variables.

## Names with a variable part

| variable | meaning |
|---|---|
| `$arg_NAME` | The argument NAME of the query. |
| `$cookie_NAME` | The cookie NAME of the request. |
| `$http_NAME` | The request field NAME, in lower case, with `_` for `-`. |
| `$sent_http_NAME` | The response field NAME, as it is sent. |
| `$sent_trailer_NAME` | The response's trailer field NAME. |
| `$upstream_http_NAME` | The field NAME of the upstream server's response. |
| `$upstream_trailer_NAME` | The trailer field NAME of the upstream server's response. |
| `$upstream_cookie_NAME` | The cookie NAME that the upstream server sets. |
| `$proxy_protocol_tlv_NAME` | The value NAME of the PROXY protocol's header, by name or number. |
| `$metric_ZONE`, `$metric_ZONE_key`, `$metric_ZONE_value`, `$metric_ZONE_value_METRIC` | Key and \
values of a [metric zone](directives/metric_zone.md#metric_zone); `set` updates them. |
| `$1` to `$9` | The groups of the last pattern that matched. |
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_a_sentence() {
        let page = page();
        for name in [
            "$request_uri",
            "$upstream_status",
            "$ssl_protocol",
            "$gzip_ratio",
        ] {
            assert!(page.contains(&format!("| `{name}` | ")), "{name}");
        }
        for line in page.lines().filter(|line| line.starts_with("| `$")) {
            assert!(line.ends_with(". |"), "{line}");
        }
    }
}
