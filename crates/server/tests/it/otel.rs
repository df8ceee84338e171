//! Tests of spans and of the trace context that is passed on.

use turnpike_testkit::collector::{Collector, Span};
use turnpike_testkit::{Origin, Server, Signal, Step, wait_for};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn server(exporter: &str, http: &str, locations: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration(exporter, http, locations))
        .start()
}

fn configuration(exporter: &str, http: &str, locations: &str) -> String {
    format!(
        "load_module modules/ngx_otel_module.so;
        error_log %FOLDER%/error.log notice;
        events {{ }}
        http {{
            access_log off;
            log_format ids '$otel_trace_id $otel_span_id $otel_parent_id $otel_parent_sampled';
            otel_exporter {{ {exporter} }}
            {http}
            server {{ listen 127.0.0.1:%PORT%; server_name here; {locations} }}
        }}"
    )
}

/// Asks for a target with more fields, and returns what came.
fn ask(server: &Server, target: &str, fields: &str) -> String {
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: here\r\n{fields}Connection: close\r\n\r\n");
    String::from_utf8(server.exchange(request)).unwrap()
}

/// The fields of a client that has a trace.
fn traced(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{PARENT}-{flags}\r\ntracestate: a=1\r\nTraceState: b=2\r\n")
}

fn check_span(span: &Span, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let found = match *name {
            "trace" => Some(&span.trace),
            "parent" => Some(&span.parent),
            "name" => Some(&span.name),
            "state" => Some(&span.state),
            name => span.attributes.get(name),
        };
        assert_eq!(found.map(String::as_str), Some(*value), "{name}: {span:?}");
    }
    assert_eq!((span.trace.len(), span.span.len(), span.kind), (32, 16, 2));
    assert!(span.start_ns <= span.end_ns, "{span:?}");
}

#[test]
fn spans_reach_the_collector_by_grpc_and_by_http() {
    for path in ["", "/v1/traces"] {
        let collector = Collector::start();
        let endpoint = format!(
            "endpoint http://127.0.0.1:{}{path}; interval 100ms; header X-Key secret;",
            collector.port()
        );
        let server = server(
            &endpoint,
            "otel_service_name shop; otel_resource_attr place here; otel_trace on;",
            "location /a { otel_trace_context propagate; otel_span_attr kind test;
                otel_span_attr http.request.header.accept $http_accept; return 200; }
            location ~ ^/b { otel_span_name $uri; return 503; }
            location /c { otel_trace off; return 200; }",
        );
        let fields = traced("01") + "Accept: x/y\r\nUser-Agent: t\r\n";
        assert!(ask(&server, "/a?q", &fields).contains(" 200 "));
        assert!(ask(&server, "/c", "").contains(" 200 "));
        assert!(ask(&server, "/b%41", "").contains(" 503 "));
        let spans = collector.wait_for_spans(2);
        let [first, second] = &*spans else {
            panic!("{spans:?}");
        };
        check_span(
            first,
            &[
                ("trace", TRACE),
                ("parent", PARENT),
                ("state", "a=1,b=2"),
                ("name", "/a"),
                ("kind", "test"),
                ("http.request.header.accept", "[x/y]"),
                ("http.method", "GET"),
                ("http.target", "/a?q"),
                ("http.route", "/a"),
                ("http.scheme", "http"),
                ("http.flavor", "1.1"),
                ("http.user_agent", "t"),
                ("http.status_code", "200"),
                ("http.request_content_length", "0"),
                ("net.host.name", "here"),
                ("net.sock.peer.addr", "127.0.0.1"),
            ],
        );
        assert_eq!(first.status, 0);
        let port = server.port().to_string();
        assert_eq!(first.attributes["net.host.port"], port);
        assert_eq!(first.resource["service.name"], "shop");
        assert_eq!(first.resource["place"], "here");
        check_span(
            second,
            &[("name", "/bA"), ("parent", ""), ("http.status_code", "503")],
        );
        assert_eq!(second.status, 2);
        assert_ne!(second.trace, TRACE);
        for head in collector.heads() {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("\r\nx-key: secret\r\n"), "{head}");
        }
        assert_eq!(collector.heads().is_empty(), path.is_empty());
    }
}

/// A location, and the client's flags; then the trace, the flags and the state that the upstream
/// server gets: the client's own, or new ones.
type Case = (
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static str,
    bool,
);

const CASES: &[Case] = &[
    ("/ignore", "01", Some(TRACE), "01", true),
    ("/extract", "01", Some(TRACE), "01", true),
    ("/inject", "01", None, "00", false),
    ("/propagate", "01", Some(TRACE), "00", true),
    ("/sampled", "01", Some(TRACE), "01", true),
    ("/sampled", "00", Some(TRACE), "00", true),
];

#[test]
fn the_context_is_passed_on_as_configured() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(answer)]]);
    let pass = format!("proxy_pass http://127.0.0.1:{};", origin.port());
    let server = server(
        "endpoint 127.0.0.1:1; interval 1h;",
        "",
        &format!(
            "access_log %FOLDER%/ids.log ids;
            location /ignore {{ {pass} }}
            location /extract {{ otel_trace_context extract; {pass} }}
            location /inject {{ otel_trace_context inject; {pass} }}
            location /propagate {{ otel_trace_context propagate; {pass} }}
            location /sampled {{ otel_trace $otel_parent_sampled; otel_trace_context propagate;
                {pass} }}"
        ),
    );
    for (index, (target, flags, trace, sent_flags, has_state)) in CASES.iter().copied().enumerate()
    {
        assert!(
            ask(&server, target, &traced(flags)).contains(" 200 "),
            "{target}"
        );
        let lines =
            wait_for(|| Some(server.log("ids.log")).filter(|log| log.lines().count() > index));
        let lines = lines.unwrap();
        let ids: Vec<&str> = lines.lines().last().unwrap().split(' ').collect();
        let received = String::from_utf8(origin.received()[index].clone()).unwrap();
        let value = |name: &str| {
            let mut lines = received.lines();
            let line = lines.find(|line| line.to_ascii_lowercase().starts_with(name));
            line.and_then(|line| line.split_once(": "))
                .map(|(_, value)| value)
        };
        let parent = value("traceparent").unwrap();
        let parts: Vec<&str> = parent.split('-').collect();
        assert_eq!(parts[1] == TRACE, trace.is_some(), "{target}: {parent}");
        assert_eq!(parts[3], sent_flags, "{target}: {parent}");
        assert_eq!(
            value("tracestate").is_some(),
            has_state,
            "{target}: {received}"
        );
        let (is_extracted, is_injected) = match target {
            "/ignore" => (false, false),
            "/extract" => (true, false),
            "/inject" => (false, true),
            _ => (true, true),
        };
        assert_eq!(
            parts[2] == ids[1],
            is_injected,
            "{target}: {parent} {ids:?}"
        );
        let sampled = if is_extracted && flags == "01" {
            "1"
        } else {
            "0"
        };
        let parent_id = if is_extracted { PARENT } else { "-" };
        assert_eq!(ids[2..], [parent_id, sampled], "{target}");
        assert_eq!(ids[0] == TRACE, is_extracted, "{target}");
    }
}

#[test]
fn a_decision_holds_through_internal_redirects_and_waiting_spans_survive_reloads_and_the_end() {
    let collector = Collector::start();
    let mut server = server(
        &format!("endpoint 127.0.0.1:{}; interval 1h;", collector.port()),
        "split_clients $otel_trace_id $sampler { 100% on; }",
        "location /a { otel_trace $sampler; error_page 404 /b; return 404; }
        location /b { otel_trace off; return 200; }
        location /c { error_page 404 /d; return 404; }
        location /d { otel_trace on; return 200; }",
    );
    ask(&server, "/a", "");
    ask(&server, "/c", "");
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "serving with configuration 2");
    ask(&server, "/a", "");
    assert_eq!(collector.spans(), []);
    server.signal(Signal::SIGQUIT);
    server.wait();
    let spans = collector.wait_for_spans(2);
    assert_eq!(spans.len(), 2, "{spans:?}");
    for span in &spans {
        check_span(span, &[("name", "/b"), ("http.target", "/a")]);
    }
}

#[test]
fn a_plan_that_a_reload_replaces_still_sends_its_spans() {
    let collector = Collector::start();
    let endpoint = format!("endpoint 127.0.0.1:{};", collector.port());
    let location = "location / { otel_trace on; return 200; }";
    let mut server = server(&format!("{endpoint} interval 1h;"), "", location);
    ask(&server, "/a", "");
    server.write_configuration(&configuration(
        &format!("{endpoint} interval 2h;"),
        "",
        location,
    ));
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "serving with configuration 2");
    ask(&server, "/b", "");
    check_span(&collector.wait_for_spans(1)[0], &[("http.target", "/a")]);
    server.signal(Signal::SIGQUIT);
    server.wait();
    check_span(&collector.wait_for_spans(2)[1], &[("http.target", "/b")]);
}

#[test]
fn a_dead_collector_costs_spans_and_nothing_else() {
    let server = server(
        "endpoint 127.0.0.1:1; interval 50ms; batch_size 2; batch_count 1;",
        "otel_trace on;",
        "location / { return 200; }",
    );
    for _ in 0..20 {
        assert!(ask(&server, "/", "").contains(" 200 "));
    }
    let words = "OTel export failure: connect() to 127.0.0.1:1 failed: Connection refused";
    server.wait_for_log("error.log", words);
}

#[test]
fn mistakes_are_named() {
    let check = |http: &str| {
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&format!("events {{ }} http {{ access_log off; {http} }}"))
            .try_start();
        format!("{:?}", server.err())
    };
    for (http, words) in [
        (
            "otel_exporter { }",
            "\\\"otel_exporter\\\" requires \\\"endpoint\\\"",
        ),
        (
            "otel_exporter { endpoint h:0; }",
            "invalid endpoint \\\"h:0\\\"",
        ),
        (
            "otel_exporter { endpoint h; colour x; }",
            "unknown directive \\\"colour\\\" in \\\"otel_exporter\\\"",
        ),
        (
            "otel_exporter { endpoint h; interval 1s 2s; }",
            "invalid number of arguments in \\\"interval\\\" directive of \\\"otel_exporter\\\"",
        ),
        (
            "otel_exporter { endpoint h; batch_size 0; }",
            "\\\"batch_size\\\" directive of \\\"otel_exporter\\\" invalid value",
        ),
        (
            "otel_exporter { endpoint h; header 'a b' c; }",
            "has invalid header name",
        ),
        (
            "otel_exporter { endpoint h; endpoint h; }",
            "\\\"endpoint\\\" directive of \\\"otel_exporter\\\" is duplicate",
        ),
        (
            "server { listen 127.0.0.1:%PORT%; otel_trace on; }",
            "\\\"otel_exporter\\\" block is missing",
        ),
    ] {
        let text = check(http);
        assert!(text.contains(words), "{http}: {text}");
    }
}
