//! What configurations mean: which location, which server, which address.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::{Family, Found, ServerIndex};
use crate::exchange::Exchange;
use crate::testing;
use turnpike_plan::control::{Arguments, Command, CommandError, CommandRow, Value, json};
use turnpike_plan::metrics::{self, Kind, Reader, Samples};
use turnpike_plan::protocol::ProtocolPlan as _;

/// The location that a path leads to, by its name; `-` for the server's own.
fn located(exchange: &Exchange, path: &str) -> String {
    let plan = exchange.plan.clone();
    let tree = &plan.server(ServerIndex(0)).tree;
    match plan.find_location(tree, exchange, path.as_bytes()).unwrap() {
        Found::Prefix(index) | Found::Decided(index) => {
            String::from_utf8(plan.location(index).name.clone()).unwrap()
        }
        Found::Redirect(index) => {
            let name = String::from_utf8_lossy(&plan.location(index).name);
            format!("redirect to {name}")
        }
        Found::Nothing => "-".to_owned(),
    }
}

#[test]
fn locations_are_found_by_nginxs_precedence() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        (
            "location /a { } location /a/b { }",
            &[
                ("/", "-"),
                ("/a", "/a"),
                ("/ab", "/a"),
                ("/a/b", "/a/b"),
                ("/a/bc", "/a/b"),
                ("/a/c", "/a"),
                ("/b", "-"),
            ],
        ),
        (
            "location = /a { } location / { } location /a { }",
            &[("/a", "/a"), ("/a/", "/a"), ("/x", "/")],
        ),
        (
            r"location / { } location ~ \.gif$ { } location ^~ /img { }",
            &[
                ("/x.gif", r"\.gif$"),
                ("/img/x.gif", "/img"),
                ("/x.GIF", "/"),
            ],
        ),
        (
            r"location ~* \.GIF$ { } location ~ x { }",
            &[("/x.gif", r"\.GIF$"), ("/x", "x")],
        ),
        (
            r"location /a { location /a/b { } location ~ c$ { } } location ~ b { }",
            &[("/a/b", "b"), ("/a/c", "c$"), ("/a/d", "/a")],
        ),
        (
            "location /a { location ^~ /a/b { } }",
            &[("/a/bc", "/a/b"), ("/a", "/a")],
        ),
        (
            "location = $a { } location ^~ $b { } location ~ $c { } location ~ ^.b$ { }",
            &[("$a", "$a"), ("$bc", "$b"), ("/b", "^.b$"), ("$c", "-")],
        ),
        (
            "location =$a { } location ^~$b { } location /$c { }",
            &[("$a", "$a"), ("$bc", "$b"), ("/$c", "/$c")],
        ),
        (
            "location /ab { } location /abc { } location /b { }",
            &[("/abd", "/ab"), ("/abcd", "/abc"), ("/ac", "-")],
        ),
    ];
    for (locations, paths) in cases {
        let plan = testing::plan(&format!("server {{ listen 1; {locations} }}")).unwrap();
        let exchange = testing::exchange(plan, b"");
        for (path, expected) in *paths {
            assert_eq!(located(&exchange, path), *expected, "{path} in {locations}");
        }
    }
}

/// Locations of one level, each with its name.
const LEVEL: &[(&str, &str)] = &[
    ("= /x/e", "/x/e"),
    ("/x", "/x"),
    ("^~ /x/f", "/x/f"),
    ("~ g$", "g$"),
    ("$arg_a", "$arg_a"),
    ("$arg_b", "$arg_b"),
];

/// What the documentation of nginx 1.31.5 says of a level with some of these locations.
fn found_in_level(has: impl Fn(&str) -> bool, path: &str, query: &[(&str, &str)]) -> &'static str {
    let is_true = |name| {
        let value = query.iter().find(|(own, _)| *own == name);
        value.is_some_and(|(_, value)| !value.is_empty() && *value != "0")
    };
    if has("/x/e") && path == "/x/e" {
        return "/x/e";
    }
    if has("/x/f") && path.starts_with("/x/f") {
        return "/x/f";
    }
    if has("g$") && path.ends_with('g') {
        return "g$";
    }
    for (name, location) in [("a", "$arg_a"), ("b", "$arg_b")] {
        if has(location) && is_true(name) {
            return location;
        }
    }
    if has("/x") && path.starts_with("/x") {
        "/x"
    } else {
        "-"
    }
}

const QUERIES: &[&[(&str, &str)]] = &[
    &[],
    &[("a", "1")],
    &[("a", "0"), ("b", "00")],
    &[("a", ""), ("b", "b"), ("p", "1")],
    &[("a", "a"), ("b", "b"), ("p", "0")],
    &[("p", "yes")],
];

/// All subsets of the level's locations, in the server, in a prefix, in a regular expression and in
/// a predicate: 256 configurations.
#[test]
fn predicates_are_tried_behind_everything_else() {
    for (parent, number) in ["", "location /", "location ~ /", "location $arg_p"]
        .into_iter()
        .flat_map(|parent| (0..1 << LEVEL.len()).map(move |number| (parent, number)))
    {
        let own = LEVEL.iter().enumerate();
        let own = own.filter(|(place, _)| number >> place & 1 == 1);
        let level: Vec<&(&str, &str)> = own.map(|(_, location)| location).collect();
        let blocks = level
            .iter()
            .map(|(words, _)| format!("location {words} {{ }} "));
        let blocks: String = blocks.collect();
        let text = match parent {
            "" => format!("server {{ listen 1; {blocks} }}"),
            parent => format!("server {{ listen 1; {parent} {{ {blocks} }} }}"),
        };
        for query in QUERIES {
            let words = query.iter().map(|(name, value)| format!("{name}={value}&"));
            let head = format!("GET /?{} HTTP/1.0\r\n\r\n", words.collect::<String>());
            let exchange = testing::exchange(testing::plan(&text).unwrap(), head.as_bytes());
            for path in ["/x/e", "/x/f/1", "/x/g", "/y"] {
                let has = |name: &str| level.iter().any(|(_, own)| *own == name);
                let is_chosen = query.iter().any(|own| matches!(own, ("p", "1" | "yes")));
                let expected = match (parent, found_in_level(has, path, query)) {
                    ("location $arg_p", _) if !is_chosen => "-",
                    ("location $arg_p", "-") => "$arg_p",
                    ("location /" | "location ~ /", "-") => "/",
                    (_, found) => found,
                };
                assert_eq!(located(&exchange, path), expected, "{path} {head} {text}");
            }
        }
    }
}

#[test]
fn predicates_nest_both_ways() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        // A predicate of an inner level ends the search, as a regular expression there does.
        (
            "location /a { location $arg_a { } } location ~ b { } location $arg_b { }",
            &[
                ("/ab?a=1", "$arg_a"),
                ("/ab?b=1", "b"),
                ("/a?b=1", "$arg_b"),
                ("/a", "/a"),
            ],
        ),
        (
            "location ~ a { location $arg_a { } } location $arg_a { location /x { } }",
            &[
                ("/a?a=1", "$arg_a"),
                ("/a", "a"),
                ("/xy?a=1", "/x"),
                ("/xy", "-"),
            ],
        ),
        (
            "location ^~ /a { location $arg_a { } } location $arg_b { }",
            &[("/a?a=1", "$arg_a"), ("/a?b=1", "/a"), ("/b?b=1", "$arg_b")],
        ),
        (
            "location $arg_a { location $arg_b { location $arg_c { } } location ~ x { } }",
            &[
                ("/?a=1", "$arg_a"),
                ("/?a=1&b=1", "$arg_b"),
                ("/?a=1&b=1&c=1", "$arg_c"),
                ("/?b=1&c=1", "-"),
                ("/x?a=1&b=1", "x"),
            ],
        ),
        (
            "location $http_none { } location $request_method { } location $arg_a { }",
            &[("/?a=1", "$request_method")],
        ),
    ];
    for (locations, targets) in cases {
        for (target, expected) in *targets {
            let plan = testing::plan(&format!("server {{ listen 1; {locations} }}")).unwrap();
            let head = format!("GET {target} HTTP/1.0\r\n\r\n");
            let exchange = testing::exchange(plan, head.as_bytes());
            let path = target.split('?').next().unwrap();
            assert_eq!(
                located(&exchange, path),
                *expected,
                "{target} in {locations}"
            );
        }
    }
}

#[test]
fn servers_are_found_by_nginxs_precedence() {
    let plan = testing::plan(
        r"
        server { listen 1; server_name default; }
        server { listen 1; server_name example.com *.example.com; }
        server { listen 1; server_name www.example.com .suffix.org; }
        server { listen 1; server_name mail.* *.www.example.com; }
        server { listen 1; server_name ~^(?<who>\w+)\.pattern\.net$; }
        server { listen 1; server_name ''; }",
    )
    .unwrap();
    let exchange = testing::exchange(plan, b"");
    let names = &exchange.plan.listens[0].names;
    for (host, server) in [
        ("default", Some(0)),
        ("example.com", Some(1)),
        ("a.example.com", Some(1)),
        ("a.b.example.com", Some(1)),
        ("www.example.com", Some(2)),
        ("suffix.org", Some(2)),
        ("a.suffix.org", Some(2)),
        ("mail.anything", Some(3)),
        ("a.www.example.com", Some(3)),
        ("joe.pattern.net", Some(4)),
        ("", Some(5)),
        ("nobody", None),
        ("mail", None),
    ] {
        let found = names.find(host.as_bytes(), &exchange).unwrap();
        assert_eq!(found.map(|index| index.0), server, "{host}");
    }
}

/// What stands in `http { }`, and what the refusal says.
const REFUSED: &[(&str, &str)] = &[
    (
        "server { location /a { } location /a { } }",
        "duplicate location \"/a\" in /c:1",
    ),
    (
        "server { location = /a { location /a { } } }",
        "cannot be inside the exact location",
    ),
    (
        "server { location @a { location /a { } } }",
        "cannot be inside the named location",
    ),
    (
        "server { location /a { location @b { } } }",
        "can be on the server level only",
    ),
    (
        "server { location /a { location /b { } } }",
        "location \"/b\" is outside location \"/a\"",
    ),
    ("server { location ~ ( { } }", "pcre2_compile() failed"),
    (
        "server { location & /a { } }",
        "invalid location modifier \"&\"",
    ),
    (
        "server { location $ { location /a { } } }",
        "invalid variable name \"$\" in /c:1",
    ),
    (
        "server { location $arg_a$arg_b { } }",
        "invalid variable name \"$arg_a$arg_b\"",
    ),
    (
        "server { location ${arg_a} { } }",
        "invalid variable name \"${arg_a}\"",
    ),
    (
        "server { location $arg_a/b { } }",
        "invalid variable name \"$arg_a/b\"",
    ),
    (
        "server { location = /a { location $arg_a { } } }",
        "location \"$arg_a\" cannot be inside the exact location \"/a\"",
    ),
    (
        "server { location @a { location $arg_a { } } }",
        "location \"$arg_a\" cannot be inside the named location \"@a\"",
    ),
    (
        "server { location $arg_a { location @b { } } }",
        "named location \"@b\" can be on the server level only",
    ),
    (
        "server { location $nosuch { } }",
        "unknown \"nosuch\" variable",
    ),
    (
        "server { listen 1; server_name www.*.com; } server { listen 1; server_name b; }",
        "invalid server name or wildcard \"www.*.com\" on 0.0.0.0:1",
    ),
    (
        "server { listen 1; server_name a..b ~(c); }",
        "invalid server name or wildcard \"a..b\" on 0.0.0.0:1",
    ),
    (
        "server { server_name *a.com; }",
        "server name \"*a.com\" is invalid",
    ),
    (
        "server { listen 1 ipv6only=no; }",
        "invalid parameter \"ipv6only=no\"",
    ),
    ("server { server_name *; }", "server name \"*\" is invalid"),
    (
        "server { listen 80 bogus; }",
        "invalid parameter \"bogus\" in /c:1",
    ),
    (
        "server { listen 80 backlog=x; }",
        "invalid backlog \"backlog=x\"",
    ),
    (
        "server { listen 80 ssl quic; }",
        "\"listen\" directive \"ssl\" parameter is incompatible with \"quic\"",
    ),
    (
        "server { listen 1.2.3.4:0; }",
        "invalid port in \"1.2.3.4:0\"",
    ),
    (
        "server { listen 1; listen 1; }",
        "a duplicate listen 0.0.0.0:1",
    ),
    (
        "server { listen 1 default_server; } server { listen 1 default_server; }",
        "a duplicate default server for 0.0.0.0:1",
    ),
    (
        "server { listen 1 backlog=1; } server { listen 1 backlog=2; }",
        "duplicate listen options for 0.0.0.0:1",
    ),
    ("root $nothing; server { }", "unknown \"nothing\" variable"),
    (
        "root ${uri; server { }",
        "the closing bracket in \"uri\" variable is missing",
    ),
    (
        "server { location /a { root /x; alias /y; } }",
        "\"alias\" directive is duplicate",
    ),
    (
        "error_page 200 /x; server { }",
        "value \"200\" must be between 300 and 599",
    ),
    ("error_page x /x; server { }", "invalid value \"x\""),
];

#[test]
fn what_cannot_be_planned_is_refused_in_nginxs_words() {
    for (http, message) in REFUSED {
        let error = testing::plan(http)
            .err()
            .unwrap_or_else(|| panic!("{http} was planned"));
        assert!(error.contains(message), "{http}: {error}");
    }
}

#[test]
fn addresses_are_read_as_nginx_reads_them() {
    for (listen, addresses) in [
        ("8000", "0.0.0.0:8000"),
        ("*:81", "0.0.0.0:81"),
        (
            "127.0.0.1:8000-8002",
            "127.0.0.1:8000 127.0.0.1:8001 127.0.0.1:8002",
        ),
        ("[::1]:80", "[::1]:80"),
        ("[::]:80", "[::]:80"),
        ("unix:/tmp/s", "unix:/tmp/s"),
        (
            "8000 so_keepalive=30m::10 fastopen=4096 deferred reuseport",
            "0.0.0.0:8000",
        ),
    ] {
        let plan = testing::plan(&format!("server {{ listen {listen}; }}")).unwrap();
        let found: Vec<String> = plan
            .listens
            .iter()
            .map(|one| one.address.to_string())
            .collect();
        assert_eq!(found.join(" "), addresses, "{listen}");
    }
}

/// A family that offers a verb and counts something.
struct Echo;

const ECHO: CommandRow = CommandRow {
    name: "echo.say",
    arguments: "text=TEXT",
    summary: "Says it again.",
};

static SAID: metrics::Row = metrics::Row {
    name: "echo_said",
    kind: Kind::Counter,
    unit: "words",
    labels: &["voice"],
    help: "Words said again.",
};

const FAMILY: Family = Family {
    name: "echo",
    http: |_, builder| {
        builder.command(&ECHO, Arc::new(Echo));
        builder.metrics(Arc::new(Echo));
        Ok(())
    },
    ..Family::NONE
};

impl Command for Echo {
    fn run(&self, arguments: &Arguments) -> Result<Value, CommandError> {
        let text = turnpike_plan::control::required_text(arguments, "text")?;
        Ok(json!({ "said": text }))
    }
}

impl Reader for Echo {
    fn read(&self, samples: &mut Samples) {
        samples.number(&SAID, &["low"], 7);
    }
}

#[test]
fn families_offer_verbs_and_metrics_with_the_plan() {
    let plan = testing::plan_with(&[FAMILY], "").unwrap();
    let command = plan.offers().command("echo.say").unwrap();
    let arguments = json!({ "text": "hello" });
    let answer = command.run(arguments.as_object().unwrap());
    assert_eq!(answer, Ok(json!({ "said": "hello" })));
    assert!(command.run(&Arguments::new()).is_err());
    assert!(plan.offers().command("echo.shout").is_none());
    let samples = Samples::of(&plan.offers().readers);
    let sample = &samples.list()[0];
    assert_eq!(
        (sample.row.name, sample.labels.as_slice()),
        ("echo_said", &[("voice", "low".to_owned())][..])
    );
    assert_eq!(sample.value, metrics::Value::Number(7));
}
