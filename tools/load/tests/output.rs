//! What scripts read: wrk's text by its columns, JSON by its fields, logs that merge.

#![allow(clippy::unwrap_used)]

mod peers;

use peers::{answering, load, load_json, ok};

/// Digits become 9 and units u, so that only the form is left.
fn form(text: &str) -> String {
    let mut form = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        let number: f64 = bare
            .trim_end_matches(|c: char| c.is_alphabetic() || c == '%')
            .parse()
            .unwrap_or(-1.0);
        form.push_str(if number >= 0.0 { "#" } else { bare });
        form.push_str(if word.ends_with('\n') { "\n" } else { " " });
    }
    form.split('\n')
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_text_has_the_form_of_wrk() {
    let peer = answering(ok("hello"));
    let output = load(&format!("-t 2 -c 4 -d 1s --latency {}", peer.url()));
    let noise = String::from_utf8(output.stderr).unwrap();
    assert!(
        !noise.contains('\x1b'),
        "only terminals understand {noise:?}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        "Running # test @ {}
# threads and # connections
Thread Stats Avg Stdev Max +/- Stdev
Latency # # # #
Req/Sec # # # #
Latency Distribution
# #
# #
# #
# #
# requests in #, # read
Requests/sec: #
Transfer/sec: #
",
        peer.url()
    );
    let seen = form(&text).replace("#s,", "#,");
    let wrk_part: String = seen.split("Client-limited").next().unwrap().to_owned();
    assert_eq!(
        wrk_part.replace(&form_of_duration(&text), "#,"),
        expected,
        "{text}"
    );
}

/// The run time in "N requests in 1.00s, ..." keeps its comma, which no number has.
fn form_of_duration(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.contains("requests in"))
        .unwrap();
    line.split_whitespace().nth(3).unwrap().to_owned()
}

#[test]
fn the_json_report_has_its_documented_fields() {
    let peer = answering(ok("hello"));
    let (report, _) = load_json(&format!("-t 1 -c 2 -n 50 {}", peer.url()));
    assert_eq!(report["schema"], "turnpike-load/1");
    let documentation = include_str!("../../../docs/load.md");
    for (name, value) in report.as_object().unwrap() {
        assert!(
            documentation.contains(&format!("`{name}`")),
            "{name} is not documented"
        );
        let value = if name == "thread_reports" {
            &value[0]
        } else {
            value
        };
        if let Some(fields) = value.as_object().filter(|_| name != "statuses") {
            for field in fields.keys() {
                let documented = documentation.contains(&format!("`{field}`"));
                assert!(documented, "{name}.{field} is not documented");
            }
        }
    }
}

#[test]
fn logs_of_two_runs_merge_into_one() {
    let peer = answering(ok("hello"));
    let folder = std::env::temp_dir().join(format!("turnpike-load-merge-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let name = |file: &str| folder.join(file).display().to_string();
    for file in ["a", "b"] {
        let output = load(&format!(
            "-t 1 -c 2 -n 50 --hdr {} {}",
            name(file),
            peer.url()
        ));
        assert_eq!(output.status.code(), Some(0));
    }
    let output = load(&format!(
        "merge {} {} -o {}",
        name("a"),
        name("b"),
        name("sum")
    ));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("latency"))
        .unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("100"), "{text}");
    let again = load(&format!("merge {}", name("sum")));
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
    assert_eq!(
        load(&format!("merge {}", name("none"))).status.code(),
        Some(1)
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn percentiles_histogram_csv_and_conditions_are_what_was_asked_for() {
    let peer = answering(ok("hello"));
    let name = format!("turnpike-load-csv-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let line = format!(
        "-t 1 -c 2 -n 200 --percentiles 95,99.9 --histogram --csv {} --fail-if rate<1 {}",
        file.display(),
        peer.url()
    );
    let output = load(&line);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\n     95% ") && text.contains("\n   99.9% "),
        "{text}"
    );
    let rows = text
        .lines()
        .skip_while(|line| *line != "  Latency Histogram")
        .skip(1);
    let counts = rows.map_while(|row| row.split_whitespace().nth(2)?.parse::<u64>().ok());
    assert_eq!(counts.sum::<u64>(), 200, "{text}");
    let csv = std::fs::read_to_string(&file).unwrap();
    let _ = std::fs::remove_file(&file);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0].len(), lines[1].len(), "{csv}");
    assert_eq!((lines[0][1], lines[1][1]), ("requests", "200"));
    assert!(csv.contains(",latency_p95_us,latency_p99.9_us\n"), "{csv}");
    let output = load(&format!("-t 1 -c 2 -n 20 --fail-if p99>1us {}", peer.url()));
    assert_eq!(output.status.code(), Some(4));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("Failed: p99>1us (it is "), "{text}");
}

/// A folder for the files of a test, removed at its end.
struct Files(std::path::PathBuf);

impl Files {
    fn new(name: &str) -> Files {
        let name = format!("turnpike-load-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Files(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_run_has_a_series_a_page_and_can_be_compared() {
    let peer = answering(ok("hello"));
    let files = Files::new("page");
    let (json, page) = (files.path("a.json"), files.path("a.html"));
    let output = load(&format!(
        "-t 1 -c 2 -n 500 --json={json} --html {page} {}",
        peer.url()
    ));
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let answered = report["series"]["answered"].as_array().unwrap();
    let sum: u64 = answered.iter().filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(sum, 500, "{report:#}");
    let html = std::fs::read_to_string(&page).unwrap();
    for part in [
        "Answers over time",
        "Latency over time",
        "Latency by share",
        "status 200",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let elsewhere = html.replace(&peer.url(), "").matches("http").count();
    // The name space of SVG is no request.
    assert_eq!(
        elsewhere,
        html.matches("http://www.w3.org/2000/svg").count()
    );
    let output = load(&format!("compare {json} {json}"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("requests/s") && text.contains(" 1.000 "),
        "{text}"
    );
    let output = load(&format!("compare {json} {page}"));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a JSON report"));
}

#[test]
fn templates_make_variants_of_path_header_and_body() {
    let peer = answering(ok("hello"));
    let files = Files::new("template");
    let body = files.path("body");
    std::fs::write(&body, "{\"id\": {{int:1-9}}}").unwrap();
    let line = "-t 1 -c 2 -n 40 --variants 20 -H X-Id:{{uuid}} --body";
    let url = format!("{}item/{{{{seq}}}}", peer.url());
    let output = load(&format!("{line} {body} {url}"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = load(&format!("--variants 2 {}{{{{nonsense}}}}", peer.url()));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("unknown template {{nonsense}}"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_connection_for_each_request_takes_one_port_after_the_other() {
    let peer = answering(ok("hello"));
    let (report, status) = load_json(&format!("-t 1 -c 2 -n 3000 --connreqs 1 {}", peer.url()));
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(report["connection_counts"]["opened"], 3000);
}
