//! Tests of the control socket and its subcommands.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Child;

use crate::support::{configuration, master_of, serving_of, start, stderr, turnpike, wait_for};
use nix::libc::{SIGABRT, SIGKILL};
use serde_json::{Value, json};
use turnpike_lane::sys::signal;
use turnpike_testkit::{Folder, Server, Signal};

/// A server whose socket exists: it is created after the pid file, which other tests wait for.
fn started(main: &str) -> Server {
    let server = start(main);
    // The file is there a moment before anybody listens.
    let path = server.files().path().join("nginx.control");
    wait_for("the socket", || UnixStream::connect(&path).is_ok());
    server
}

/// Runs a subcommand against a server and returns its answer.
fn ask(folder: &Folder, words: &[&str]) -> Result<Value, String> {
    let mut arguments = vec![words[0], "--json"];
    arguments.extend(folder.arguments(&words[1..]));
    let output = turnpike(&arguments);
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(stderr(&output))
    }
}

#[test]
fn the_socket_is_beside_the_pid_file_and_its_owners_alone() {
    let mut server = started("");
    let path = server.files().path().join("nginx.control");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let status = ask(server.files(), &["status"]).unwrap();
    assert_eq!(status["pid"], master_of(&server));
    assert_eq!(status["serving"]["pid"], serving_of(&server)[0]);
    assert_eq!(
        (&status["phase"], &status["generation"]),
        (&"running".into(), &1.into())
    );
    let output = turnpike(&server.files().arguments(&["status"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("turnpike 0.1.0, running, for "), "{text}");
    let serving = format!("serving        pid {}: 1 lane, ", serving_of(&server)[0]);
    assert!(text.contains(&serving), "{text}");
    let rates = &status["serving"]["rates"];
    assert!(
        rates["requests_per_s"].is_number() || rates.is_null(),
        "{status}"
    );
    // By now a note was taken, by the question before if not by the server.
    assert!(text.contains(" requests/s ("), "{text}");
    assert_eq!(server.end(Signal::SIGQUIT), Some(0));
    assert!(!server.files().has("nginx.control"));
    let error = ask(server.files(), &["status"]).unwrap_err();
    assert!(
        error.contains("nginx.control\": (2: No such file"),
        "{error}"
    );
}

#[test]
fn a_reload_answers_with_its_report_or_its_errors() {
    let server = started("");
    let report = ask(server.files(), &["reload"]).unwrap();
    assert_eq!(report["generation"], 2);
    server
        .files()
        .write("nginx.conf", configuration("nonsense on;"))
        .unwrap();
    // The configuration no longer names the socket.
    let socket = server.files().path().join("nginx.control");
    let output = turnpike(&["reload", "--socket", socket.to_str().unwrap()]);
    assert!(!output.status.success());
    let shown = stderr(&output);
    assert!(
        shown.starts_with("turnpike: unknown directive \"nonsense\" in "),
        "{shown}"
    );
    server
        .files()
        .write("nginx.conf", configuration("control other;"))
        .unwrap();
    let output = turnpike(&["reload", "--socket", socket.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(server.files().has("other") && !server.files().has("nginx.control"));
    let status = ask(server.files(), &["status"]).unwrap();
    assert_eq!(
        (&status["reloads"], &status["reloads_failed"]),
        (&2.into(), &1.into())
    );
    server
        .files()
        .write("nginx.conf", configuration("control off;"))
        .unwrap();
    let output = turnpike(&[
        "reload",
        "--socket",
        server.files().path().join("other").to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    wait_for("the socket to go", || !server.files().has("other"));
    let error = ask(server.files(), &["status"]).unwrap_err();
    assert!(error.contains("has no control socket"), "{error}");
}

#[test]
fn a_server_answers_while_the_file_on_disk_is_wrong() {
    let mut server = started("");
    server
        .files()
        .write(
            "nginx.conf",
            "pid nginx.pid;\nworker_processes lots;\nhttp { ",
        )
        .unwrap();
    let output = turnpike(&server.files().arguments(&["status"]));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("configuration file has errors"),
        "{}",
        stderr(&output)
    );
    let output = turnpike(&server.files().arguments(&["reload"]));
    let shown = stderr(&output);
    assert!(
        shown.contains("unexpected end of file") && !shown.contains("--socket"),
        "{shown}"
    );
    let output = turnpike(&server.files().arguments(&["drain", "--wait"]));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!server.files().has("nginx.pid"), "it has not waited");
    assert_eq!(server.wait().code(), Some(0));
    let shown = stderr(&turnpike(&server.files().arguments(&["status"])));
    for part in [
        "nginx.control\": (",
        "no server with this",
        "unexpected end of file",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_reload_after_a_change_of_the_pid_file_names_the_way_out() {
    let server = started("");
    let text = configuration("").replace("nginx.pid", "other.pid");
    server.files().write("nginx.conf", text).unwrap();
    let error = ask(server.files(), &["reload"]).unwrap_err();
    let hint = "if \"pid\" or \"control\" was changed since the server started, name the old \
                socket with --socket";
    assert!(error.contains(hint), "{error}");
    let socket = server.files().path().join("nginx.control");
    let output = turnpike(&["reload", "--socket", socket.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(ask(server.files(), &["status"]).unwrap()["reloads"], 1);
}

/// Verbs that change nothing, as they stand on the command line.
const QUESTIONS: &[&[&str]] = &[
    &["status"],
    &["generation"],
    &["lanes"],
    &["gates"],
    &["connections"],
    &["requests"],
    &["metrics"],
    &["metrics", "format=json"],
    &["verbs"],
    &["upstream", "list"],
    &["cache", "list"],
    &["cache", "show", "http://a/b"],
    &["certificates"],
];

#[test]
fn answers_are_objects_whose_members_are_documented() {
    let server = started("");
    let http = "http { upstream u { server 127.0.0.1:1; }
                proxy_cache_path hot keys_zone=z:1m memory;
                server { listen unix:%/s; location / { proxy_pass http://u; proxy_cache z; } } }";
    let http = http.replace('%', server.files().name());
    server
        .files()
        .write("nginx.conf", configuration("") + &http)
        .unwrap();
    ask(server.files(), &["reload"]).unwrap();
    let documentation = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/control.md"
    ));
    for words in QUESTIONS {
        let answer = ask(server.files(), words).unwrap();
        let members = answer.as_object();
        let members = members.unwrap_or_else(|| panic!("{words:?}: {answer}"));
        let lists = members.values().filter_map(|value| value.get(0));
        let inner = lists.filter_map(Value::as_object);
        // The counters of a lane are those of the metrics.
        let inner = inner.filter(|_| words[0] != "lanes");
        for name in members.keys().chain(inner.flat_map(|row| row.keys())) {
            let is_documented = documentation.contains(&format!("`{name}`"));
            assert!(is_documented, "{words:?}: {name}");
        }
    }
}

#[test]
fn verbs_are_listed_in_every_configuration_and_refused_without_their_block() {
    let server = started("");
    let verbs = ask(server.files(), &["verbs"]).unwrap();
    let verbs = verbs["verbs"].as_array().unwrap();
    for name in ["status", "upstream.list", "cache.purge"] {
        assert!(verbs.iter().any(|verb| verb["verb"] == name), "{name}");
    }
    let error = ask(server.files(), &["upstream", "list"]).unwrap_err();
    let expected = "turnpike: nothing in this configuration knows the verb \"upstream.list\"\n";
    assert_eq!(error, expected);
}

#[test]
fn a_reload_reports_upstream_servers_and_outer_levels() {
    let server = started("");
    let reload = |http: &str| {
        let text = configuration("") + "http { server { listen unix:%/s; } " + http + "}";
        let text = text.replace('%', server.files().name());
        server.files().write("nginx.conf", &text).unwrap();
        ask(server.files(), &["reload"]).unwrap()
    };
    reload("upstream u { server 127.0.0.1:1 max_fails=2; server 127.0.0.1:2; }");
    let report = reload(
        "keepalive_timeout 9s; upstream u { keepalive 2; server 127.0.0.1:1 max_fails=3; \
         server 127.0.0.1:3; }",
    );
    let counts = |name: &str| {
        let of = |count: &str| report[name][count].as_u64().unwrap();
        [of("now"), of("added"), of("removed"), of("changed")]
    };
    assert_eq!(counts("upstreams"), [1, 0, 0, 1], "{report}");
    assert_eq!(counts("upstream_servers"), [2, 1, 1, 1], "{report}");
    assert_eq!(counts("directives")[1..], [1, 0, 0], "{report}");
    let shown = turnpike(&server.files().arguments(&["upstream", "list"]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.lines().count(), 3, "{shown}");
    assert!(
        shown.starts_with("UPSTREAM  SERVER       FROM           STATE"),
        "{shown}"
    );
    let shown = turnpike(&server.files().arguments(&["cache", "list"]));
    assert_eq!(shown.stdout, b"no cache zones\n");
    let numbers = ask(server.files(), &["metrics", "json"]).unwrap();
    assert_eq!(
        numbers["metrics"][0]["name"], "upstream_requests",
        "{numbers}"
    );
    for words in [["metrics", "json"], ["metrics", "format=json"]] {
        let shown = turnpike(&server.files().arguments(&words));
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(shown["metrics"][0]["name"], "upstream_requests", "{shown}");
    }
    let wrong = ask(server.files(), &["metrics", "format=xml"]).unwrap_err();
    assert_eq!(wrong, "turnpike: \"xml\" is not a format of metrics\n");
    let shown = stderr(&turnpike(&server.files().arguments(&["top"])));
    assert!(shown.contains("top needs a terminal"), "{shown}");
}

#[test]
fn a_reload_reports_its_changes() {
    let server = started("worker_processes 2;");
    let (first, second) = (
        turnpike_testkit::ports::reserve().unwrap(),
        turnpike_testkit::ports::reserve().unwrap(),
    );
    let reload = |lanes: u32, http: &str| {
        let text = configuration(&format!("worker_processes {lanes};")) + "http {" + http + "}";
        server.files().write("nginx.conf", &text).unwrap();
        ask(server.files(), &["reload"]).unwrap()
    };
    let zone = "limit_req_zone $uri zone=z:1m rate=1r/s;";
    let one = format!("server {{ listen 127.0.0.1:{first}; location / {{ return 200 a; }} }}");
    let report = reload(2, &format!("{zone}{one}"));
    assert_eq!(report["servers"]["added"], 1, "{report}");
    assert_eq!(report["listens"]["added"], 1);
    assert_eq!(report["zones"]["limit_req"]["new"], 1);
    let mut client = std::net::TcpStream::connect(("127.0.0.1", first)).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    assert!(std::io::Read::read(&mut client, &mut [0; 500]).unwrap() > 0);
    let two = format!(
        "server {{ listen 127.0.0.1:{second}; location /x {{ return 200 a; }} }} {}",
        one.replace("return 200 a", "return 200 b")
    );
    let report = reload(3, &format!("{zone}{two}"));
    for (name, now, added, changed) in [
        ("servers", 2, 1, 1),
        ("locations", 2, 1, 1),
        ("listens", 2, 1, 0),
    ] {
        let part = &report[name];
        assert_eq!(
            (&part["now"], &part["added"]),
            (&now.into(), &added.into()),
            "{report}"
        );
        assert_eq!(
            (&part["changed"], &part["removed"]),
            (&changed.into(), &0.into()),
            "{report}"
        );
    }
    assert_eq!(report["zones"]["limit_req"]["kept"], 1);
    assert_eq!(
        (&report["lanes"]["before"], &report["lanes"]["now"]),
        (&2.into(), &3.into())
    );
    let connections = &report["connections"];
    assert_eq!(
        (&connections["kept"], &connections["reset"]),
        (&1.into(), &0.into())
    );
    assert_eq!(connections["closed"], 0);
    let report = reload(1, &one);
    assert_eq!(report["servers"]["removed"], 1, "{report}");
    assert_eq!(report["zones"]["limit_req"]["dropped"], 1);
    assert_eq!(report["connections"]["kept"], 1, "{report}");
    let line = "servers 1 (+0 -1 ~1), locations 1 (+0 -1 ~1), listens 1 (+0 -1 ~0), lanes 1 \
                (before 3)";
    assert!(
        server.log("error.log").contains(line),
        "{}",
        server.log("error.log")
    );
}

#[test]
fn a_changed_address_is_no_change_of_locations_and_a_changed_time_none_of_entries() {
    let server = started("");
    let ports = [(); 2].map(|()| turnpike_testkit::ports::reserve().unwrap());
    let reload = |port: u16, names: &str, inactive: &str| {
        let http = format!(
            "http {{ proxy_cache_path {folder}/cache keys_zone=z:1m inactive={inactive};
             server {{ listen 127.0.0.1:{port}; {names}
                 location / {{ return 200; }} location /a {{ return 200; }} }}
             server {{ listen unix:{folder}/s; location /b {{ return 200; }} }} }}",
            folder = server.files().name()
        );
        server
            .files()
            .write("nginx.conf", configuration("") + &http)
            .unwrap();
        ask(server.files(), &["reload"]).unwrap()
    };
    for names in ["server_name one.example;", ""] {
        reload(ports[0], names, "60m");
        let report = reload(ports[1], names, "61m");
        let counts = |name: &str| {
            let of = |count: &str| report[name][count].as_u64().unwrap();
            [of("now"), of("added"), of("removed"), of("changed")]
        };
        assert_eq!(counts("servers"), [2, 0, 0, 1], "{names}: {report}");
        assert_eq!(counts("locations"), [3, 0, 0, 0], "{names}: {report}");
        assert_eq!(counts("listens"), [2, 1, 1, 0], "{names}: {report}");
        let zones = &report["zones"]["proxy_cache"];
        let expected = json!({
            "kept": 0, "new": 0, "dropped": 0, "emptied": [], "reopened": ["z"],
        });
        assert_eq!(zones, &expected, "{report}");
    }
}

#[test]
fn a_zone_of_another_size_is_reported_as_emptied() {
    let server = started("");
    let reload = |size: &str| {
        let zone = format!("limit_req_zone $uri zone=z:{size} rate=1r/s;");
        let text = configuration("") + "http {" + &zone + "}";
        server.files().write("nginx.conf", &text).unwrap();
        ask(server.files(), &["reload"]).unwrap()["zones"]["limit_req"].clone()
    };
    assert_eq!(reload("1m")["new"], 1);
    let zones = reload("2m");
    assert_eq!(zones["emptied"][0], "z", "{zones}");
    for count in ["kept", "new", "dropped"] {
        assert_eq!(zones[count], 0, "{zones}");
    }
}

#[test]
fn the_socket_survives_the_serving_process() {
    let server = started("");
    let path = server.files().path().join("nginx.control");
    let mut stream = UnixStream::connect(path).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut send = |text: &str| {
        stream.write_all(text.as_bytes()).unwrap();
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let old = serving_of(&server)[0];
    assert_eq!(
        send("{\"id\":\"a\",\"verb\":\"lanes\"}\n")["result"]["lanes"][0]["lane"],
        0
    );
    let state = &send("{\"verb\":\"lanes\"}\n")["result"]["lanes"][0]["state"];
    assert!(
        ["works", "waits"].map(Value::from).contains(state),
        "{state}"
    );
    signal::send(old, SIGKILL).unwrap();
    wait_for("another serving process", || {
        !serving_of(&server).contains(&old) && serving_of(&server).len() == 1
    });
    let mut answer = Value::Null;
    for _ in 0..100 {
        answer = send("{\"id\":\"b\",\"verb\":\"status\"}\n");
        if answer["result"]["serving"].is_object() {
            break;
        }
    }
    assert_eq!(answer["id"], "b");
    assert_eq!(answer["result"]["serving_restarts"], 1, "{answer}");
    assert_eq!(answer["result"]["serving"]["pid"], serving_of(&server)[0]);
    assert_eq!(
        send("{\"verb\":\"dance\"}\n")["error"]["code"],
        "unknown_verb"
    );
    assert_eq!(send("x\n")["error"]["code"], "invalid");
}

#[test]
fn gates_and_connections_are_reported() {
    let main = "worker_processes 2;";
    let server = started(main);
    let http = "http { server { listen 127.0.0.1:%PORT% reuseport; listen unix:./s.sock; \
                location / { return 200 x; } } }";
    let port = turnpike_testkit::ports::reserve().unwrap().to_string();
    let http = http.replace("%PORT%", &port);
    let http = http.replace("./", &format!("{}/", server.files().name()));
    let text = configuration(main) + &http;
    server.files().write("nginx.conf", &text).unwrap();
    ask(server.files(), &["reload"]).unwrap();
    let gates = ask(server.files(), &["gates"]).unwrap();
    let gates = gates["gates"].as_array().unwrap();
    assert_eq!(gates.len(), 3, "{gates:?}");
    assert_eq!(
        (&gates[1]["lane"], &gates[1]["mode"]),
        (&1.into(), &"reuseport".into())
    );
    assert_eq!(
        (&gates[1]["queued"], &gates[1]["queue_max"]),
        (&0.into(), &511.into())
    );
    assert_eq!(gates[2]["queued"], Value::Null);
    assert!(gates.iter().all(|gate| gate["spare"] == false));
    // The socket of an ended lane is kept, and another lane watches it.
    let fewer = text.replace(main, "worker_processes 1;");
    server.files().write("nginx.conf", &fewer).unwrap();
    ask(server.files(), &["reload"]).unwrap();
    let gates = ask(server.files(), &["gates"]).unwrap();
    let gates = gates["gates"].as_array().unwrap();
    let spare: Vec<bool> = gates.iter().map(|gate| gate["spare"] == true).collect();
    assert_eq!(spare, [false, true, false]);
    assert_eq!(gates[1]["lane"], 0);
    let client = UnixStream::connect(server.files().path().join("s.sock")).unwrap();
    let count = |name: &str| ask(server.files(), &["connections"]).unwrap()["total"][name].clone();
    wait_for("the connection", || count("waiting") == 1);
    assert_eq!(count("active"), 1);
    drop(client);
    wait_for("its end", || count("active") == 0);
}

/// An origin that answers requests for `/now` and is silent about all others.
fn silent_origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            std::thread::spawn(move || {
                let mut head = vec![0; 4096];
                while let Ok(count @ 1..) = socket.read(&mut head) {
                    if head[..count].starts_with(b"GET /now ") {
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                        socket.write_all(answer).unwrap();
                    }
                }
            });
        }
    });
    port
}

/// A server that passes everything to a silent origin, and its clients.
struct Waiting {
    server: Server,
    origin: String,
    port: u16,
}

impl Waiting {
    fn start() -> Waiting {
        let server = started("");
        let origin = format!("127.0.0.1:{}", silent_origin());
        let port = turnpike_testkit::ports::reserve().unwrap();
        let http = format!(
            "http {{ access_log {folder}/access.log;
             upstream silent {{ server {origin}; keepalive 4; }}
             server {{ listen 127.0.0.1:{port}; http2 on; server_name one.example;
             location / {{ proxy_pass http://silent; proxy_http_version 1.1;
                           proxy_set_header Connection \"\"; }} }} }}",
            folder = server.files().name()
        );
        let text = configuration("") + &http;
        server.files().write("nginx.conf", &text).unwrap();
        ask(server.files(), &["reload"]).unwrap();
        Waiting {
            server,
            origin,
            port,
        }
    }

    fn client(&self, request: &str) -> TcpStream {
        let mut client = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        client
    }

    fn curl(&self, target: &str) -> Child {
        std::process::Command::new("curl")
            .args(["--silent", "--http2-prior-knowledge"])
            .arg(format!("http://127.0.0.1:{}{target}", self.port))
            .spawn()
            .unwrap()
    }

    /// The list, once it has requests for just these targets.
    fn list(&self, targets: &[&str]) -> Vec<Value> {
        let mut requests = Vec::new();
        wait_for(&format!("{targets:?}"), || {
            let answer = ask(self.server.files(), &["requests"]).unwrap();
            requests = answer["requests"].as_array().unwrap().clone();
            let found = requests.iter().map(|request| &request["target"]);
            found.eq(targets)
        });
        requests
    }

    /// The list as people see it.
    fn shown(&self) -> String {
        let output = turnpike(&self.server.files().arguments(&["requests"]));
        String::from_utf8(output.stdout).unwrap()
    }

    fn close(&self, request: &Value) {
        let id = request["id"].as_str().unwrap();
        let closed = ask(self.server.files(), &["requests", "--close", id]).unwrap();
        assert_eq!(closed["closed"], id);
    }
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: one.example\r\n\r\n")
}

const HALF: &str = "PUT /driven HTTP/1.1\r\nHost: one.example\r\nContent-Length: 9\r\n\r\nhalf";

#[test]
fn requests_are_listed_by_age_and_closed_one_by_one() {
    let waiting = Waiting::start();
    // The second request of a connection finds a kept one to the origin, and is awaited.
    let mut awaited = waiting.client(&get("/now"));
    awaited.read_exact(&mut [0; 15]).unwrap();
    awaited.write_all(get("/awaited?x=1").as_bytes()).unwrap();
    let first = waiting.list(&["/awaited?x=1"]).remove(0);
    let expected = json!({
        "id": first["id"], "age_ms": first["age_ms"], "client": "127.0.0.1", "method": "GET",
        "target": "/awaited?x=1", "server": "one.example", "upstream": waiting.origin,
        "state": "reading response header from upstream", "lane": 0,
    });
    assert_eq!(first, expected);
    assert!(first["id"].as_str().unwrap().ends_with(".2"), "{first}");
    assert!(first["age_ms"].is_u64());
    let mut driven = waiting.client(HALF);
    waiting.list(&["/awaited?x=1", "/driven"]);
    let mut curl = waiting.curl("/stream");
    let requests = waiting.list(&["/awaited?x=1", "/driven", "/stream"]);
    assert_eq!(requests[1]["state"], "reading client request body");
    let shown = waiting.shown();
    assert!(shown.starts_with("ID "), "{shown}");
    assert_eq!(shown.lines().count(), 4, "{shown}");

    waiting.close(&requests[0]);
    waiting.list(&["/driven", "/stream"]);
    let mut rest = Vec::new();
    awaited.read_to_end(&mut rest).unwrap();
    let rest = String::from_utf8_lossy(&rest);
    assert!(!rest.contains("HTTP/1.1"), "{rest}");
    waiting.close(&requests[1]);
    waiting.list(&["/stream"]);
    // Unread bytes may make it a reset.
    assert!(!matches!(driven.read(&mut [0; 9]), Ok(1..)));
    waiting.close(&requests[2]);
    assert!(!curl.wait().unwrap().success());
    waiting.list(&[]);
    assert_eq!(waiting.shown(), "no requests in progress\n");
    let folder = waiting.server.files();
    let log = || folder.read("access.log");
    wait_for("the log", || log().matches("\" 499 ").count() == 3);
    let metrics = ask(folder, &["metrics"]).unwrap();
    let text = metrics["text"].as_str().unwrap();
    assert!(text.contains("reason=\"commanded\"} 2\n"), "{text}");
}

#[test]
fn a_request_that_is_not_there_is_not_closed() {
    let server = started("");
    let http = "http { server { listen unix:%/s; } }".replace('%', server.files().name());
    let text = configuration("") + &http;
    server.files().write("nginx.conf", &text).unwrap();
    ask(server.files(), &["reload"]).unwrap();
    for (id, expected) in [
        (
            "99.1",
            "no request with the ID 99.1 is waiting here; it may have ended",
        ),
        (
            "7",
            "\"7\" is not the ID of a request, which has the form CONNECTION.REQUEST",
        ),
    ] {
        let error = ask(server.files(), &["requests", "--close", id]).unwrap_err();
        assert_eq!(error, format!("turnpike: {expected}\n"));
    }
}

/// Asks for the state of a server without a configuration file, before and after it is started. The
/// folder /run and port 8080 are the script's own.
const BUILT_IN: &str = "
    mount -t tmpfs none /run && ip link set lo up
    $TURNPIKE status && exit 9
    $TURNPIKE 2>log &
    for i in $(seq 600); do test -S /run/turnpike-built-in.control && break; sleep 0.1; done
    $TURNPIKE status && $TURNPIKE requests
    curl -sS http://127.0.0.1:8080/ && curl -sSI http://127.0.0.1:8080/favicon.ico && cat log
    $TURNPIKE drain --wait
    wait $! && test ! -e /run/turnpike-built-in.control
";

#[test]
fn the_built_in_server_has_a_control_socket() {
    if turnpike_testkit::needs_root("the_built_in_server_has_a_control_socket", "CAP_SYS_ADMIN") {
        return;
    }
    let folder = Folder::create().unwrap();
    let output = std::process::Command::new("unshare")
        .args(["--mount", "--net", "sh", "-c", BUILT_IN])
        .env("TURNPIKE", env!("CARGO_BIN_EXE_turnpike"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let errors = stderr(&output);
    let message = "turnpike: there is no configuration file, and no server with the built-in \
                   configuration runs here: name the server with -p and -c, or with --socket\n";
    assert!(errors.starts_with(message), "{errors}");
    assert_eq!(output.status.code(), Some(0), "{shown}{errors}");
    assert!(
        shown.starts_with("turnpike 0.1.0, running, for "),
        "{shown}"
    );
    for part in [
        "\nno requests in progress\n",
        "<meta name=\"viewport\"",
        "<meta name=\"color-scheme\" content=\"light dark\">",
        "HTTP/1.1 204 ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // A visit is no error, and neither is the icon that browsers ask for.
    assert!(!shown.contains("[error]"), "{shown}");
}

#[test]
fn an_unusable_socket_is_an_error_if_named_and_a_warning_by_default() {
    let folder = Folder::create().unwrap();
    folder
        .write("nginx.conf", configuration("control missing/socket;"))
        .unwrap();
    let output = turnpike(&folder.arguments(&[]));
    assert_eq!(output.status.code(), Some(1));
    let shown = stderr(&output);
    assert!(shown.contains("missing/socket\" failed (2: "), "{shown}");
    assert!(!folder.has("nginx.pid"));
    folder.write("nginx.control", "not a socket").unwrap();
    folder
        .write("nginx.conf", configuration("daemon on;"))
        .unwrap();
    let output = turnpike(&folder.arguments(&[]));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        folder
            .read("error.log")
            .contains("there is no control socket")
    );
    assert_eq!(folder.read("nginx.control"), "not a socket");
    assert!(
        turnpike(&folder.arguments(&["-s", "stop"]))
            .status
            .success()
    );
    wait_for("its end", || !folder.has("nginx.pid"));
}

#[test]
fn a_drain_by_the_socket_ends_the_server() {
    let mut server = started("worker_shutdown_timeout 7s;");
    let answer = ask(server.files(), &["drain"]).unwrap();
    assert_eq!(answer["worker_shutdown_timeout_ms"], 7000);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn core_files_are_counted() {
    let main = "worker_rlimit_core 200m; working_directory ./;";
    let server = started("");
    let main = main.replace("./", &format!("{}/", server.files().name()));
    let http = "http { server { listen unix:%/s.sock; location / { metrics; } } }";
    let http = http.replace('%', server.files().name());
    let text = configuration(&main) + &http;
    server.files().write("nginx.conf", &text).unwrap();
    // The limits of a process are those of its start.
    let first = serving_of(&server);
    ask(server.files(), &["reload"]).unwrap();
    wait_for("a process with that limit", || {
        serving_of(&server).len() == 1 && serving_of(&server) != first
    });
    let old = serving_of(&server)[0];
    signal::send(old, SIGABRT).unwrap();
    server.wait_for_log(
        "error.log",
        &format!("worker process {old} exited on signal 6"),
    );
    wait_for("another serving process", || {
        ask(server.files(), &["status"]).is_ok_and(|status| status["serving"].is_object())
    });
    // The system decides whether there is a core file: the log's entries are counted.
    let cores = server
        .log("error.log")
        .matches("exited on signal 6 (core dumped)")
        .count();
    let status = ask(server.files(), &["status"]).unwrap();
    assert_eq!(status["serving_cores"], cores, "{status}");
    let metrics = ask(server.files(), &["metrics"]).unwrap();
    let line = format!("\nturnpike_serving_cores_total {cores}\n");
    let text = metrics["text"].as_str().unwrap();
    assert!(text.contains(&line), "{text}");
}
