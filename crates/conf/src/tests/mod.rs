//! Tests as tables, one module for each part.

#![allow(clippy::unwrap_used)]

mod check;
mod environment;
mod glob;
mod language;
mod reference;
mod value;
mod view;

use std::path::Path;

use crate::registry::{Arguments, Context, Merge, Registry, Repeat, Row, Value};
use crate::source::MemoryLoader;
use crate::tree::{Directive, Word};

/// The path of the tests' main file.
const MAIN: &str = "/etc/main.conf";

/// A loader with a main file and others.
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
        let words = std::iter::once(&directive.name).chain(directive.arguments.iter());
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

const fn row(
    name: &'static str,
    contexts: &'static [Context],
    arguments: Arguments,
    value: Value,
    default: &'static str,
) -> Row {
    Row {
        name,
        contexts,
        arguments,
        value,
        repeat: Repeat::Once,
        merge: Merge::Nearest,
        variables: None,
        syntax: "it",
        default,
        summary: "Does it.",
    }
}

const HTTP_ALL: &[Context] = &[Context::Http, Context::Server, Context::Location];
const ONE: Arguments = Arguments::exactly(1);
const NONE: Arguments = Arguments::none();

const fn many(row: Row) -> Row {
    Row {
        repeat: Repeat::Many,
        ..row
    }
}

const fn own(row: Row) -> Row {
    Row {
        merge: Merge::Own,
        ..row
    }
}

const CORE: &[Row] = &[
    row(
        "worker_processes",
        &[Context::Main],
        ONE,
        Value::Custom,
        "1",
    ),
    row(
        "events",
        &[Context::Main],
        NONE,
        Value::Block(Context::Events),
        "",
    ),
    row(
        "worker_connections",
        &[Context::Events],
        ONE,
        Value::Number,
        "512",
    ),
];

const BLOCKS: &[Row] = &[
    row(
        "http",
        &[Context::Main],
        NONE,
        Value::Block(Context::Http),
        "",
    ),
    many(row(
        "server",
        &[Context::Http],
        NONE,
        Value::Block(Context::Server),
        "",
    )),
    many(row(
        "server",
        &[Context::Upstream],
        Arguments::at_least(1),
        Value::Custom,
        "",
    )),
    many(row(
        "upstream",
        &[Context::Http],
        ONE,
        Value::Block(Context::Upstream),
        "",
    )),
    many(row(
        "location",
        &[Context::Server, Context::Location],
        Arguments::between(1, 2),
        Value::Block(Context::Location),
        "",
    )),
    many(row(
        "map",
        &[Context::Http],
        Arguments::exactly(2),
        Value::Entries,
        "",
    )),
];

const VALUES: &[Row] = &[
    row("sendfile", HTTP_ALL, ONE, Value::Flag, "off"),
    row("client_body_buffer_size", HTTP_ALL, ONE, Value::Size, "16k"),
    row("client_max_body_size", HTTP_ALL, ONE, Value::Offset, "1m"),
    row("send_timeout", HTTP_ALL, ONE, Value::Milliseconds, "60s"),
    row("expires_age", HTTP_ALL, ONE, Value::Seconds, "1d"),
    row("keepalive_requests", HTTP_ALL, ONE, Value::Number, "1000"),
    row(
        "satisfy",
        HTTP_ALL,
        ONE,
        Value::OneOf(&["all", "any"]),
        "all",
    ),
    row(
        "next",
        HTTP_ALL,
        Arguments::at_least(1),
        Value::OneOf(&["error", "timeout"]),
        "",
    ),
    row(
        "gzip_buffers",
        HTTP_ALL,
        Arguments::exactly(2),
        Value::Buffers,
        "32 4k",
    ),
    row("root", HTTP_ALL, ONE, Value::Text, "html"),
    many(row(
        "add_header",
        HTTP_ALL,
        Arguments::between(2, 3),
        Value::Custom,
        "",
    )),
    own(row(
        "internal",
        &[Context::Location],
        NONE,
        Value::Custom,
        "",
    )),
    own(many(row(
        "server_name",
        &[Context::Server],
        Arguments::at_least(1),
        Value::Custom,
        "",
    ))),
    own(row(
        "return",
        &[Context::Server, Context::Location],
        ONE,
        Value::Text,
        "",
    )),
];

/// A small registry in nginx's style.
fn registry() -> Registry {
    Registry::new(
        &[("core", CORE), ("blocks", BLOCKS), ("values", VALUES)],
        &["mail", "perl"],
    )
}
