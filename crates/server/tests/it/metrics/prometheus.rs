//! Prometheus's own program reads what is meant for Prometheus: every form of the metrics page, the
//! alert rules, and the queries of the dashboard and of the documentation.

use std::process::{Command, Output};

use crate::support::output_of;
use turnpike_testkit::{Folder, Server};

/// Every family whose metrics need no second program.
const CONFIGURATION: &str = r#"
worker_processes 2;
error_log %FOLDER%/error.log notice;
events { }
http {
    limit_req_zone $uri zone=r:1m rate=1r/s;
    limit_conn_zone $uri zone=c:1m;
    upstream application {
        zone application 64k;
        server 127.0.0.1:%PORT%;
        queue 10;
        retry_budget 20%;
    }
    proxy_cache_path hot keys_zone=hot:1m memory;
    metric_zone own:64k average exp;
    metric_complex_zone many:64k {
        answers count;
        times histogram 0.00001 1 10 1000000;
        signed histogram -1 1;
    }
    server {
        listen 127.0.0.1:%PORT%;
        server_name odd"name;
        location / { return 200 served; }
        location /missing { return 404; }
        location /limited { limit_req zone=r; try_files /none =404; }
        location /counted { limit_conn c 1; try_files /none =404; }
        location /own { metric own $arg_k=5; metric many a"b=$arg_v; return 204; }
        location /proxied {
            proxy_pass http://application/;
            proxy_cache hot;
            proxy_cache_valid 1m;
        }
        location /lane { metrics; }
        location /server { metrics by=server; }
        location /total { metrics by=total; }
    }
}
stream {
    metric_zone own:64k count;
    metric own a;
    server { listen 127.0.0.1:%PORT_STREAM%; return hello; }
}
"#;

fn server() -> Server {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .start();
    let own = "/own?k=a\\b&v=-3";
    for path in ["/", "/missing", "/limited", "/limited", "/counted", own] {
        server.get(path);
    }
    for _ in 0..2 {
        assert_eq!(server.get("/proxied").text(), "served");
    }
    server
}

/// Runs promtool, of the Debian package prometheus.
fn promtool(words: &[&str], input: &str) -> Output {
    output_of(Command::new("promtool").args(words), input)
}

/// What promtool finds wrong: nothing if it ends successfully and in silence.
fn findings(output: &Output) -> Option<String> {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let is_fault = !output.status.success() || !output.stderr.is_empty();
    is_fault.then(|| String::from_utf8(text).unwrap())
}

#[test]
fn promtool_finds_nothing_wrong_with_any_form_of_the_metrics_page() {
    let server = server();
    for path in ["/lane", "/server", "/total"] {
        let text = server.get(path).text();
        for series in [
            "cache_answers_total{",
            "metric_distribution_bucket{",
            "metric_value{",
        ] {
            assert!(text.contains(&format!("turnpike_{series}")), "{text}");
        }
        assert_eq!(
            findings(&promtool(&["check", "metrics"], &text)),
            None,
            "{path}"
        );
    }
    // The judge judges: a counter without its suffix is found.
    let wrong = "# HELP a A.\n# TYPE a counter\na 1\n";
    assert!(findings(&promtool(&["check", "metrics"], wrong)).is_some());
}

/// Reads OpenMetrics from standard input with the parser of Prometheus's client library, and prints
/// the number of families.
const PARSER: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
print(len(list(text_string_to_metric_families(sys.stdin.read()))))
";

#[test]
fn the_client_librarys_parser_reads_every_form_as_openmetrics() {
    let server = server();
    for path in ["/lane", "/server", "/total"] {
        let request = format!(
            "GET {path} HTTP/1.0\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n"
        );
        let answer = String::from_utf8(server.exchange(request)).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nContent-Type: application/openmetrics-text;"));
        let families = parse(text).unwrap();
        assert_eq!(families, text.matches("# TYPE ").count(), "{path}");
    }
    assert!(parse("# TYPE a counter\na_total 1\n").is_err(), "no # EOF");
}

/// The number of families that the parser of the client library reads, or its complaint.
fn parse(text: &str) -> Result<usize, String> {
    // Debian's own Python, which has Debian's packages.
    let output = output_of(Command::new("/usr/bin/python3").args(["-c", PARSER]), text);
    let printed = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    printed.trim().parse().map_err(|_| complaint)
}

const ALERTS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../contrib/prometheus/alerts.yml"
));
const DASHBOARD: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../contrib/grafana/turnpike.json"
));
const PAGE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/monitoring.md"
));

/// The queries of the dashboard, with its own variables filled in.
fn dashboard_queries() -> Vec<String> {
    fn collect(value: &serde_json::Value, queries: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                if let Some(query) = fields.get("expr").and_then(|value| value.as_str()) {
                    queries.push(query.replace("$__rate_interval", "5m"));
                }
                fields.values().for_each(|value| collect(value, queries));
            }
            serde_json::Value::Array(values) => {
                values.iter().for_each(|value| collect(value, queries));
            }
            _ => {}
        }
    }
    let mut queries = Vec::new();
    collect(&serde_json::from_str(DASHBOARD).unwrap(), &mut queries);
    queries
}

/// The queries in the table of the page: the last cell of a row, between backticks.
fn page_queries() -> Vec<String> {
    let (_, table) = PAGE
        .split_once("| question | query |\n|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with("| "));
    rows.map(|line| {
        let (_, query) = line.split_once(" | `").unwrap();
        query.strip_suffix("` |").unwrap().to_owned()
    })
    .collect()
}

/// Rules that record each query, so that promtool reads it.
fn rules(queries: &[String]) -> String {
    let mut text = "groups:\n  - name: queries\n    rules:\n".to_owned();
    for (number, query) in queries.iter().enumerate() {
        let quoted = serde_json::to_string(query).unwrap();
        text += &format!("      - record: query_{number}\n        expr: {quoted}\n");
    }
    text
}

#[test]
fn promtool_reads_the_alert_rules_and_every_query_that_users_copy() {
    let folder = Folder::create().unwrap();
    let check = |text: &str| {
        folder.write("rules.yml", text).unwrap();
        let file = folder.path().join("rules.yml");
        promtool(&["check", "rules", file.to_str().unwrap()], "")
    };
    let count = ALERTS.matches("- alert: ").count();
    let output = check(ALERTS);
    assert_eq!(findings(&output), None);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains(&format!("{count} rules found")), "{shown}");
    for queries in [dashboard_queries(), page_queries()] {
        assert!(queries.len() >= 7, "{queries:?}");
        assert_eq!(findings(&check(&rules(&queries))), None);
    }
    let wrong = ["sum by (a (b)".to_owned()];
    assert!(findings(&check(&rules(&wrong))).is_some());
}
