//! Tests of the metrics page: its grammar, its numbers, and its documentation.

mod live;
mod own;
mod prometheus;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use turnpike_testkit::{Server, Signal, wait_for};

const CONFIGURATION: &str = "
worker_processes 2;
error_log %FOLDER%/error.log notice;
events { }
http {
    limit_req_zone $uri zone=z:1m rate=1r/s;
    server {
        listen 127.0.0.1:%PORT% reuseport;
        location / { return 200 served; }
        location /missing { return 404; }
        location /cut { return 444; }
        location /metrics { metrics; }
        location /total { metrics by=total; }
        location /servers { metrics by=server; }
        location /live { status html; }
        location /limited { limit_req zone=z; try_files /none =404; }
    }
}";

fn server() -> Server {
    server_with(2)
}

fn server_with(lanes: u32) -> Server {
    let count = format!("worker_processes {lanes};");
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&CONFIGURATION.replace("worker_processes 2;", &count))
        .start()
}

/// A page by series: name and labels as written.
type Page = BTreeMap<String, f64>;

/// Parses a page as strictly as the format allows: a `# HELP` and a `# TYPE` line before the series
/// of a name, which are together, each once, with quoted labels and a number.
fn parse(text: &str) -> (Page, HashMap<String, String>) {
    let (mut page, mut kinds) = (Page::new(), HashMap::new());
    let mut helped = HashSet::new();
    let mut present = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name.to_owned()), "{name} is explained twice");
            assert!(!help.is_empty());
            present = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, present);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            kinds.insert(name.to_owned(), kind.to_owned());
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = check_series(series);
            let base = match kinds[&present].as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|suffix| name.strip_suffix(suffix))
                    .unwrap_or_else(|| panic!("{line}")),
                _ => name,
            };
            assert_eq!(base, present, "{line} does not stand with its like");
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(
                page.insert(series.to_owned(), value).is_none(),
                "{series} twice"
            );
        }
    }
    assert!(text.ends_with('\n'));
    (page, kinds)
}

/// The name of a series, whose labels must be well formed.
fn check_series(series: &str) -> &str {
    let is_name = |text: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        text.chars().all(is_letter) && text.starts_with(|letter: char| letter.is_alphabetic())
    };
    let Some((name, labels)) = series.split_once('{') else {
        assert!(is_name(series), "{series}");
        return series;
    };
    assert!(is_name(name), "{series}");
    let labels = labels
        .strip_suffix("\"}")
        .unwrap_or_else(|| panic!("{series}"));
    for label in labels.split("\",") {
        let (label, value) = label
            .split_once("=\"")
            .unwrap_or_else(|| panic!("{series}"));
        assert!(is_name(label) && !value.contains('"'), "{series}");
    }
    name
}

fn sum(page: &Page, part: &str) -> f64 {
    let parts = page.iter().filter(|(series, _)| series.contains(part));
    parts.map(|(_, value)| value).sum()
}

#[test]
fn the_page_is_what_prometheus_reads_and_its_numbers_are_right() {
    // With one lane, everything is counted before it takes the connection for the page.
    let server = server_with(1);
    for _ in 0..5 {
        server.exchange("GET / HTTP/1.0\r\n\r\n");
    }
    server.exchange("GET /missing HTTP/1.0\r\n\r\n");
    server.exchange("GET /cut HTTP/1.0\r\n\r\n");
    let response = server.get("/metrics");
    assert_eq!(
        response.header("Content-Type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = response.text();
    let (page, kinds) = parse(&text);
    assert_eq!(sum(&page, "status=\"200\""), 5.0, "{text}");
    assert_eq!(sum(&page, "status=\"404\""), 1.0);
    assert_eq!(sum(&page, "reason=\"answered\""), 6.0);
    assert_eq!(sum(&page, "reason=\"refused\""), 1.0);
    // The connection for this page is included.
    assert_eq!(sum(&page, "connections_accepted_total"), 8.0);
    assert_eq!(sum(&page, "connections_active{"), 1.0);
    assert_eq!(sum(&page, "first_byte_seconds_count"), 6.0);
    assert_eq!(page["turnpike_generation"], 1.0);
    assert_eq!(sum(&page, "turnpike_accept_queue{"), 0.0);
    assert_eq!(sum(&page, "turnpike_accept_queue_max{"), 511.0);
    for (name, kind) in &kinds {
        let total = name.ends_with("_total");
        assert_eq!(total, kind == "counter", "{name}");
    }
    let bodies = text.len();
    assert!(bodies < 64 * 1024, "{bodies} bytes for one lane");
}

#[test]
fn buckets_are_cumulative() {
    let server = server();
    for _ in 0..20 {
        server.exchange("GET / HTTP/1.0\r\n\r\n");
    }
    let (page, _) = parse(&server.get("/metrics").text());
    for lane in ["0", "1"] {
        let name = "turnpike_accept_to_first_byte_seconds";
        let of = |bound: &str| page[&format!("{name}_bucket{{lane=\"{lane}\",le=\"{bound}\"}}")];
        let bounds = ["0.00001", "0.001", "1", "10", "+Inf"];
        assert!(bounds.map(of).is_sorted());
        assert_eq!(
            of("+Inf"),
            page[&format!("{name}_count{{lane=\"{lane}\"}}")]
        );
    }
}

#[test]
fn sessions_of_stream_are_counted_by_the_address_that_their_server_listens_at() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "worker_processes 1;
            events {{ }}
            http {{
                # No name of a zone is in the way of our own counts.
                limit_conn_zone $uri zone=stream:1m;
                server {{ listen 127.0.0.1:%PORT%; location / {{ metrics; }} }}
            }}
            stream {{
                server {{ listen 127.0.0.1:%PORT_HELLO%; return hello; }}
                server {{ listen 127.0.0.1:%PORT_DENY%; deny all; return no; }}
                server {{ listen 127.0.0.1:%PORT_PASS%; proxy_pass {}; }}
            }}",
            origin.local_addr().unwrap()
        ))
        .start();
    let port = |name: &str| server.port_named(name);
    let connect = |name: &str| TcpStream::connect(("127.0.0.1", port(name))).unwrap();
    let value = |what: &str, name: &str, class: &str| {
        let class = match class {
            "" => String::new(),
            class => format!(",class=\"{class}\""),
        };
        let listen = port(name);
        let series = format!("turnpike_stream_{what}{{listen=\"127.0.0.1:{listen}\"{class}}}");
        parse(&server.get("/").text()).0[&series]
    };
    for (name, text) in [("HELLO", "hello"), ("HELLO", "hello"), ("DENY", "")] {
        let mut said = String::new();
        connect(name).read_to_string(&mut said).unwrap();
        assert_eq!(said, text);
    }
    let mut client = connect("PASS");
    client.write_all(b"abc").unwrap();
    origin.accept().unwrap().0.read_exact(&mut [0; 3]).unwrap();
    let is_over = || (value("active", "PASS", "") == 0.0).then_some(());
    wait_for(is_over).expect("the origin has closed its connection");
    for (what, name, class, expected) in [
        ("sessions_total", "HELLO", "2xx", 2.0),
        ("sessions_total", "HELLO", "4xx", 0.0),
        ("sessions_total", "DENY", "4xx", 1.0),
        ("sent_bytes_total", "HELLO", "", 10.0),
        ("sessions_total", "PASS", "2xx", 1.0),
        ("received_bytes_total", "PASS", "", 3.0),
        ("session_seconds_count", "PASS", "", 1.0),
    ] {
        assert_eq!(
            value(what, name, class),
            expected,
            "{what} of {name} {class}"
        );
    }
    let _open = connect("PASS");
    let is_active = || (value("active", "PASS", "") == 1.0).then_some(());
    wait_for(is_active).expect("a session under way is counted");
}

#[test]
fn every_metric_is_documented() {
    let server = server();
    let (_, kinds) = parse(&server.get("/metrics").text());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let documented = std::fs::read_to_string(path).unwrap();
    for (name, kind) in kinds {
        let line = format!("| `{name}` | {kind} |");
        assert!(documented.contains(&line), "docs/metrics.md has no {line}");
    }
}

#[test]
fn reloads_and_restarts_are_counted() {
    let mut server = server();
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "worker generation 1 exited");
    let page = |server: &Server| parse(&server.get("/metrics").text()).0;
    let wait = |server: &Server, series: &str, value: f64| {
        let end = std::time::Instant::now() + turnpike_testkit::DEADLINE;
        while page(server)[series] != value {
            assert!(std::time::Instant::now() < end, "{series}");
        }
    };
    wait(&server, "turnpike_reloads_total{outcome=\"done\"}", 1.0);
    assert_eq!(page(&server)["turnpike_generation"], 2.0);
    server.write_configuration("nonsense;");
    server.signal(Signal::SIGHUP);
    wait(&server, "turnpike_reloads_total{outcome=\"failed\"}", 1.0);
}

#[test]
fn pages_by_server_and_in_total_have_no_lanes_and_openmetrics_is_sent_where_accepted() {
    let server = server();
    for _ in 0..3 {
        server.exchange("GET /limited HTTP/1.0\r\n\r\n");
    }
    let total = server.get("/total").text();
    let (page, kinds) = parse(&total);
    assert!(!total.contains("lane=\""), "{total}");
    assert_eq!(page["turnpike_lanes"], 2.0);
    assert_eq!(kinds["turnpike_request_seconds"], "histogram");
    assert_eq!(
        page["turnpike_limit_req_rejected_total{zone=\"z\"}"], 2.0,
        "{total}"
    );
    assert_eq!(page["turnpike_last_reload_success"], 1.0);
    assert!(page["turnpike_last_reload_timestamp_seconds"] > 1e9);
    assert!(page["process_cpu_seconds_total"] > 0.0);
    let class = |page: &Page, class: &str| {
        page[&format!("turnpike_server_requests_total{{server=\"_\",class=\"{class}\"}}")]
    };
    // Another lane may count its last request after the client has the answer. The pages asked for
    // meanwhile count as 2xx.
    let page = wait_for(|| {
        let (page, _) = parse(&server.get("/servers").text());
        let refused = ["4xx", "5xx"].map(|name| class(&page, name));
        (class(&page, "2xx") >= 1.0 && refused == [1.0, 2.0]).then_some(page)
    })
    .expect("every request is counted under its class");
    assert!(page["turnpike_server_request_seconds_count{server=\"_\"}"] >= 4.0);
    let accept =
        "GET /total HTTP/1.0\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
    let answer = String::from_utf8(server.exchange(accept)).unwrap();
    assert!(answer.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0;"));
    assert!(answer.contains("\n# TYPE turnpike_requests counter\nturnpike_requests_total "));
    assert!(answer.ends_with("\n# EOF\n"), "{answer}");
}

#[test]
fn the_rejections_of_limit_conn_and_the_open_descriptors_are_counted() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "worker_processes 1;
            events { }
            http {
                limit_conn_zone $uri zone=c:1m;
                server {
                    listen 127.0.0.1:%PORT%;
                    location / { limit_conn c 1; echo_sleep 60; echo late; }
                    location /metrics { metrics; }
                }
            }",
        )
        .start();
    let value = |series: &str| parse(&server.get("/metrics").text()).0[series];
    let rejected = "turnpike_limit_conn_rejected_total{zone=\"c\"}";
    let files = "process_open_fds";
    assert_eq!(value(rejected), 0.0);
    let before = value(files);
    assert!(before > 3.0 && before < value("process_max_fds"));
    let mut waiting = server.connect();
    waiting.send("GET /one HTTP/1.1\r\nHost: x\r\n\r\n");
    let has_begun = || (value("turnpike_connections_writing{lane=\"0\"}") == 2.0).then_some(());
    wait_for(has_begun).expect("the first request is in progress");
    // The connection, and the runtime of the lane, which begins with the first request that waits.
    assert!(value(files) > before);
    for _ in 0..3 {
        let answer = server.exchange("GET /one HTTP/1.0\r\n\r\n");
        assert!(answer.starts_with(b"HTTP/1.1 503 "));
    }
    assert_eq!(value(rejected), 3.0);
}

const PROXIED: &str = "
error_log %FOLDER%/error.log notice;
events { }
http {
    upstream application { server 127.0.0.1:%PORT%; }
    proxy_cache_path hot keys_zone=hot:1m memory;
    server {
        listen 127.0.0.1:%PORT%;
        location / { return 200 served; }
        location /proxied {
            proxy_pass http://application/;
            proxy_cache hot;
            proxy_cache_valid 1m;
        }
        location /metrics { metrics by=total; }
    }
}";

#[test]
fn upstream_servers_and_caches_have_times_classes_bytes_and_ratios() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(PROXIED)
        .start();
    for _ in 0..2 {
        assert_eq!(server.get("/proxied").text(), "served");
    }
    let text = server.get("/metrics").text();
    let (page, kinds) = parse(&text);
    assert_eq!(kinds["turnpike_upstream_response_seconds"], "histogram");
    for (part, value) in [
        ("turnpike_upstream_response_seconds_count{", 1.0),
        ("turnpike_upstream_requests_total{", 1.0),
        ("class=\"2xx\"}", 1.0),
        ("class=\"5xx\"}", 0.0),
        ("turnpike_cache_hit_ratio{", 0.5),
        ("turnpike_cache_keys{", 1.0),
        ("turnpike_cache_max_bytes{", 1_048_576.0),
    ] {
        assert_eq!(sum(&page, part), value, "{part}: {text}");
    }
    for part in [
        "turnpike_upstream_sent_bytes_total{",
        "turnpike_upstream_received_bytes_total{",
        "turnpike_cache_bytes{",
        "turnpike_request_seconds_count",
        "process_resident_memory_bytes",
    ] {
        assert!(sum(&page, part) > 0.0, "{part}: {text}");
    }
}

#[test]
fn clients_that_show_no_pages_get_the_status_as_text() {
    let server = server();
    for (accept, kind) in [
        (
            "Accept: text/html,application/xhtml+xml;q=0.9\r\n",
            "text/html; charset=utf-8",
        ),
        ("Accept: */*\r\n", "text/plain"),
        ("", "text/html; charset=utf-8"),
    ] {
        let request = format!("GET /live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{accept}\r\n");
        let answer = server.exchange(&request);
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.contains(&format!("Content-Type: {kind}\r\n")),
            "{accept}: {answer}"
        );
        assert_eq!(
            answer.contains("\nrequests "),
            kind == "text/plain",
            "{accept}"
        );
    }
}

#[test]
fn the_live_page_is_one_file_and_has_its_numbers_as_json() {
    let server = server();
    let page = server.get("/live");
    assert_eq!(
        page.header("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    let text = page.text();
    for part in ["http://", "https://", "src=", "@import", "url("] {
        assert!(
            !text.contains(part),
            "the page asks for something else: {part}"
        );
    }
    for part in [
        "prefers-color-scheme: dark",
        "name=\"viewport\"",
        "<html lang=\"en\">",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let answer = server.get("/live?json");
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    let numbers: serde_json::Value = serde_json::from_str(&answer.text()).unwrap();
    let rows = numbers["metrics"].as_array().unwrap();
    let named = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(named("generation")["samples"][0]["value"], 1);
    let buckets = named("request_seconds")["samples"][0]["buckets"]
        .as_array()
        .unwrap();
    assert_eq!(
        buckets.len(),
        numbers["bounds_s"].as_array().unwrap().len() + 1
    );
    // Every number on the page exists; the others need directives of their families.
    let shown = text
        .split("\"")
        .filter(|word| word.starts_with("connections_"));
    for name in shown {
        named(name);
    }
}

/// The files that users copy into their monitoring.
const COPIED: &[&str] = &[
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../contrib/grafana/turnpike.json"
    )),
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../contrib/prometheus/alerts.yml"
    )),
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/monitoring.md"
    )),
];

#[test]
fn the_dashboard_the_alerts_and_the_queries_name_metrics_that_exist() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .arg("metric-names")
        .output()
        .unwrap();
    let reference = String::from_utf8(output.stdout).unwrap();
    let mut seen = HashSet::new();
    for text in COPIED {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let words = text.split(|letter| !is_letter(letter));
        for word in words.filter(|word| word.starts_with("turnpike_") && !word.ends_with('_')) {
            let name = ["_bucket", "_count", "_sum"]
                .iter()
                .find_map(|suffix| word.strip_suffix(suffix))
                .unwrap_or(word);
            assert!(reference.contains(&format!("| `{name}` |")), "{word}");
            seen.insert(name.to_owned());
        }
    }
    assert!(seen.len() > 15, "{seen:?}");
    let dashboard: serde_json::Value = serde_json::from_str(COPIED[0]).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 10);
}
