//! Metrics of one's own (`metric_zone`, `metric_complex_zone`, `metric`), of requests and sessions.

use std::io::Read;
use std::net::TcpStream;

use super::{Page, parse};
use crate::support::{stderr, turnpike};
use turnpike_testkit::{Folder, Server, Signal, wait_for};

const CONFIGURATION: &str = r#"
worker_processes 2;
error_log %FOLDER%/error.log notice;
events { }
stream {
    metric_zone sessions:64k count;
    metric_complex_zone bytes:64k { answers count; size histogram 1 100; }
    server {
        listen 127.0.0.1:%PORT_STREAM%;
        metric sessions begun on=connect;
        metric sessions read on=preread;
        metric bytes sent=$bytes_sent;
        set $metric_sessions set;
        return "$metric_sessions $metric_sessions_value";
    }
}
http {
    client_body_temp_path %FOLDER%/body;
    proxy_temp_path %FOLDER%/proxy;
    metric_zone counted:128k discard_key=reserved count;
    metric_zone stages:128k count;
    metric_zone last:128k last;
    metric_complex_zone many:128k {
        answers count;
        least min;
        average average mean count=40;
        buckets histogram 20 1 inf 2;
    }
    server {
        listen 127.0.0.1:%PORT%;
        location ~ ^/both/(.+)/(.+)$ {
            set $metric_counted $1=$2;
            return 200 "$metric_counted;$metric_counted_key;$metric_counted_value";
        }
        location ~ ^/apart/(.+)/(.*)$ {
            set $metric_counted_key $1;
            set $metric_counted_value $2;
            return 200 "$metric_counted;$metric_counted_key;$metric_counted_value";
        }
        location ~ ^/many/(.+)/(.+)$ {
            set $metric_many $1=$2;
            set $metric_counted k;
            return 200 "$metric_many|$metric_many_value_least|$metric_many_value_buckets";
        }
        location /nothing {
            return 200 "<$metric_last><$metric_last_key><$metric_last_value>";
        }
        location /returned {
            metric stages returned_request on=request;
            metric stages returned_response on=response;
            metric stages returned_end on=end;
            metric last status=$status;
            metric last type=$sent_http_content_type on=response;
            return 201 made;
        }
        location /file {
            root %FOLDER%;
            error_page 404 /error;
            metric stages file_request on=request;
            metric stages file_response on=response;
            metric stages file_end;
        }
        location /error {
            metric stages error_request on=request;
            metric stages error_response on=response;
            metric stages error_end;
            return 200 error;
        }
        location /cut {
            metric stages cut_response on=response;
            return 444;
        }
        location /outer {
            metric stages outer;
            location /outer/inherits { return 204; }
            location /outer/own { metric stages own; return 204; }
        }
        location /keys {
            metric last $arg_k=$arg_v;
            return 204;
        }
        location /metrics { metrics by=total; }
        location /status { status html; }
    }
}
"#;

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .start()
}

fn page(server: &Server) -> Page {
    parse(&server.get("/metrics").text()).0
}

/// The metrics of a zone: name (without its beginning), metric and key, and the value.
fn zone(page: &Page, name: &str) -> Vec<(String, f64)> {
    let label = format!("{{zone=\"{name}\",");
    let series = page.iter().filter_map(|(series, value)| {
        let (name, labels) = series.split_once(&label)?;
        let name = name.trim_start_matches("turnpike_");
        Some((format!("{name} {}", labels.trim_end_matches('}')), *value))
    });
    series.collect()
}

/// Waits until a zone has these metrics; a request is counted after its answer was sent.
fn expect(server: &Server, name: &str, expected: &[(&str, f64)]) {
    let is_so = || {
        let found = zone(&page(server), name);
        let found: Vec<(&str, f64)> = found.iter().map(|(key, value)| (&**key, *value)).collect();
        (found == expected).then_some(())
    };
    assert!(
        wait_for(is_so).is_some(),
        "{name}: {:#?}",
        zone(&page(server), name)
    );
}

/// Requests, one after the other, and their answers.
const BY_VARIABLES: &[(&str, &str)] = &[
    ("/both/a/text", "a=1;a;1"),
    ("/both/a/-1", "a=2;a;2"),
    ("/both/b=c/0.1", "b=c=1;b=c;1"),
    ("/apart/a/", "a=3;a;3"),
    ("/apart/a=b/7", "a=b=1;a=b;1"),
    // The key of what is discarded cannot be updated, and nothing was discarded.
    ("/both/reserved/1", ";;"),
    ("/apart/reserved/1", ";reserved;"),
    ("/nothing", "<><><>"),
    ("/many/k/3", "k=1, 3, 3, 1 0 1 0|3|1 0 1 0"),
    ("/many/k/1", "k=2, 1, 2, 2 1 2 1|1|2 1 2 1"),
    ("/many/k/50", "k=3, 1, 18, 2 1 3 1|1|2 1 3 1"),
];

#[test]
fn variables_update_zones_and_show_them() {
    let server = server();
    for (target, expected) in BY_VARIABLES {
        assert_eq!(server.get(target).text(), *expected, "{target}");
    }
    expect(
        &server,
        "many",
        &[
            ("metric_count_total metric=\"answers\",key=\"k\"", 3.0),
            (
                "metric_distribution_bucket metric=\"buckets\",key=\"k\",le=\"+Inf\"",
                3.0,
            ),
            (
                "metric_distribution_bucket metric=\"buckets\",key=\"k\",le=\"1.0\"",
                1.0,
            ),
            (
                "metric_distribution_bucket metric=\"buckets\",key=\"k\",le=\"2.0\"",
                1.0,
            ),
            (
                "metric_distribution_bucket metric=\"buckets\",key=\"k\",le=\"20.0\"",
                2.0,
            ),
            (
                "metric_distribution_count metric=\"buckets\",key=\"k\"",
                3.0,
            ),
            ("metric_distribution_sum metric=\"buckets\",key=\"k\"", 54.0),
            ("metric_value metric=\"average\",key=\"k\"", 18.0),
            ("metric_value metric=\"least\",key=\"k\"", 1.0),
        ],
    );
}

#[test]
fn requests_count_once_at_each_stage_by_the_location_of_then() {
    let server = server();
    for target in [
        "/returned",
        "/file/none",
        "/cut",
        "/outer/inherits",
        "/outer/own",
    ] {
        server.exchange(format!("GET {target} HTTP/1.0\r\n\r\n"));
    }
    let count = |key: &str| format!("metric_count_total metric=\"count\",key=\"{key}\"");
    let keys = [
        "cut_response",
        "error_end",
        "error_response",
        "file_request",
        "outer",
        "own",
        "returned_end",
        "returned_request",
        "returned_response",
    ];
    let expected = keys.map(count);
    let expected: Vec<(&str, f64)> = expected.iter().map(|key| (&**key, 1.0)).collect();
    expect(&server, "stages", &expected);
    let value = |key: &str| format!("metric_value metric=\"last\",key=\"{key}\"");
    // The text of a type begins with no number.
    expect(
        &server,
        "last",
        &[(&value("status"), 201.0), (&value("type"), 1.0)],
    );
}

#[test]
fn keys_are_shown_whatever_they_have_and_empty_ones_are_not_counted() {
    let server = server();
    let long = "k".repeat(300);
    let long_key = format!("{}...", "k".repeat(255));
    let value = |key: &str| format!("metric_value metric=\"last\",key=\"{key}\"");
    server.get("/keys?v=1");
    server.get(&format!("/keys?k={long}&v=2"));
    server.get("/keys?k=a\\b&v=3");
    expect(
        &server,
        "last",
        &[(&value(r"a\\b"), 3.0), (&value(&long_key), 2.0)],
    );
    let json = server.get("/status?json").text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = json["metrics"].as_array().unwrap().iter();
    let row = rows.clone().find(|row| row["name"] == "metric_value");
    let labels = &row.unwrap()["samples"][0]["labels"];
    assert_eq!(labels["zone"], "last");
    assert_eq!(labels["key"], r"a\b");
}

#[test]
fn a_reload_keeps_a_zone_that_stays_as_it_is() {
    let mut server = server();
    server.get("/both/a/1");
    server.get("/many/k/3");
    let changed = CONFIGURATION
        .replace("discard_key=reserved count", "expire=on count")
        .replace("least min", "least max");
    server.write_configuration(&changed);
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "serving with configuration 2");
    let count = |key: &str| format!("metric_count_total metric=\"count\",key=\"{key}\"");
    expect(
        &server,
        "counted",
        &[(&count("a"), 1.0), (&count("k"), 1.0)],
    );
    expect(&server, "many", &[]);
}

/// Talks to the server of `stream` once.
fn session(server: &Server) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port_named("STREAM"))).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn sessions_count_when_they_begin_when_they_are_read_and_when_they_end() {
    let server = server();
    assert_eq!(session(&server), "set=1 1");
    assert_eq!(session(&server), "set=2 2");
    let count = |key: &str| format!("stream_metric_count_total metric=\"count\",key=\"{key}\"");
    expect(
        &server,
        "sessions",
        &[
            (&count("begun"), 2.0),
            (&count("read"), 2.0),
            (&count("set"), 2.0),
        ],
    );
    let of_size =
        |name: &str, more: &str| format!("stream_metric_{name} metric=\"size\",key=\"sent\"{more}");
    expect(
        &server,
        "bytes",
        &[
            (
                "stream_metric_count_total metric=\"answers\",key=\"sent\"",
                2.0,
            ),
            (&of_size("distribution_bucket", ",le=\"+Inf\""), 2.0),
            (&of_size("distribution_bucket", ",le=\"1.0\""), 0.0),
            (&of_size("distribution_bucket", ",le=\"100.0\""), 2.0),
            (&of_size("distribution_count", ""), 2.0),
            (&of_size("distribution_sum", ""), 14.0),
        ],
    );
}

#[test]
fn a_full_zone_says_so() {
    let text = "
        error_log %FOLDER%/error.log notice;
        events { }
        http {
            metric_complex_zone small:32k { m average mean count=3000; }
            server {
                listen 127.0.0.1:%PORT%;
                location /metrics { metrics; }
                location / { metric small $uri=$arg_v; return 204; }
            }
        }";
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(text)
        .start();
    server.get("/a?v=1");
    server.get("/b?v=2");
    server.wait_for_log(
        "error.log",
        "failed to update metric \"small\" with \"/b=2\" while logging request, client: 127.0.0.1",
    );
    let page = page(&server);
    assert_eq!(page["turnpike_metric_discarded_total{zone=\"small\"}"], 1.0);
}

/// Lines at the http level, and what `-t` says of them.
const MISTAKES: &[(&str, &str)] = &[
    (
        "metric_zone",
        "invalid number of arguments in \"metric_zone\" directive",
    ),
    (
        "metric_zone z:1m",
        "invalid number of arguments in \"metric_zone\" directive",
    ),
    ("metric_zone z count", "zone size is not specified"),
    (
        "metric_zone :1m count",
        "invalid zone specification \":1m\"",
    ),
    ("metric_zone z: count", "invalid zone specification \"z:\""),
    (
        "metric_zone z:1m:x count",
        "invalid zone specification \"z:1m:x\"",
    ),
    (
        "metric_zone z:1m:file=x count",
        "this zone cannot be serialized using file",
    ),
    ("metric_zone z:1x count", "invalid zone size \"1x\""),
    (
        "metric_zone z:8k count",
        "zone \"z\" is too small, at least 32768 bytes expected",
    ),
    (
        "metric_zone z:32k average mean count=9999",
        "zone \"z\" is too small for a key of 255 bytes",
    ),
    (
        "metric_zone z:1m expire=on",
        "\"metric_zone\" missing value mode",
    ),
    (
        "metric_zone z:1m expire=yes count",
        "unknown expire mode \"yes\"",
    ),
    ("metric_zone z:1m average", "unknown mode \"average\""),
    ("metric_zone z:1m sum", "unknown mode \"sum\""),
    ("metric_zone z:1m count 5", "unknown parameter \"5\""),
    (
        "metric_zone z:1m average mean window=x",
        "bad window value \"x\"",
    ),
    (
        "metric_zone z:1m average mean window=0",
        "the average window cannot be zero",
    ),
    (
        "metric_zone z:1m average mean count=0",
        "average count must be greater than 0",
    ),
    (
        "metric_zone z:1m average mean count=x",
        "bad count value \"x\"",
    ),
    (
        "metric_zone z:1m average mean factor=1",
        "invalid parameter \"factor=1\"",
    ),
    (
        "metric_zone z:1m average exp factor=100",
        "bad factor value \"100\"",
    ),
    (
        "metric_zone z:1m average exp count=1",
        "invalid parameter \"count=1\"",
    ),
    ("metric_zone z:1m histogram", "empty histogram"),
    ("metric_zone z:1m histogram 1 x", "bad bucket value \"x\""),
    ("metric_zone z:1m histogram nan", "bad bucket value \"nan\""),
    (
        "metric_zone z:1m histogram 1e999",
        "bad bucket value \"1e999\"",
    ),
    (
        "metric_zone z:1m histogram 1 2 1.0",
        "duplicated bucket \"1.0\"",
    ),
    (
        "metric_zone z:1m count; metric_zone z:1m max",
        "metric_zone \"z\" already exists",
    ),
    (
        "metric_zone z:1m count; limit_conn_zone $uri zone=z:1m",
        "the shared memory zone \"z\" is already declared for a different use",
    ),
    (
        "metric_complex_zone z:1m { }",
        "no metrics in metric_complex_zone \"z\"",
    ),
    (
        "metric_complex_zone z:1m { a; }",
        "missing value mode after \"a\"",
    ),
    (
        "metric_complex_zone z:1m { a count; a max; }",
        "duplicated metric name \"a\"",
    ),
    ("metric_complex_zone z:1m { a b; }", "unknown mode \"b\""),
    (
        "metric_complex_zone z:1m count { a max; }",
        "invalid parameter \"count\"",
    ),
    ("metric z k", "zero size shared memory zone \"z\""),
    (
        "metric_zone z:1m count; metric z",
        "invalid number of arguments in \"metric\" directive",
    ),
    (
        "metric_zone z:1m count; metric z =1",
        "empty metric \"z\" key",
    ),
    (
        "metric_zone z:1m count; metric z k off",
        "invalid parameter \"off\"",
    ),
    (
        "metric_zone z:1m count; metric z k on=connect",
        "unknown stage \"connect\"",
    ),
    (
        "metric_zone z:1m count; metric z $nothing",
        "unknown \"nothing\" variable",
    ),
    (
        "metric_zone z:1m count; metric z $metric_y",
        "unknown \"metric_y\" variable",
    ),
];

#[test]
fn mistakes_are_reported_in_angies_words() {
    let folder = Folder::create().unwrap();
    for (lines, complaint) in MISTAKES {
        let end = if lines.ends_with('}') { "" } else { ";" };
        let text = format!("events {{ }} http {{ {lines}{end} server {{ }} }}");
        folder.write("nginx.conf", text).unwrap();
        let shown = stderr(&turnpike(&folder.arguments(&["-t"])));
        assert!(shown.contains(complaint), "{lines}: {shown}");
    }
    let text = "stream { metric_zone z:1m count; metric z k on=request;
        server { listen 127.0.0.1:8080; return a; } }";
    folder.write("nginx.conf", text).unwrap();
    let shown = stderr(&turnpike(&folder.arguments(&["-t"])));
    assert!(shown.contains("unknown stage \"request\""), "{shown}");
}
