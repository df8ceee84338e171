//! Spans to collectors that share no code with ours: gRPC's own server with OpenTelemetry's own
//! messages, from PyPI, in plain text and over TLS, and OpenTelemetry's own Collector. curl is the
//! client; its `traceparent` must be the parent of the span.

mod real;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use turnpike_testkit::Folder;

use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::python::Environment;
use crate::workspace::must;

/// The collector.
const PROGRAM: &str = include_str!("collector.py");

/// What the collector is made of.
const ENVIRONMENT: Environment = Environment {
    folder: "otel-collector",
    imports: "grpc, opentelemetry.proto.trace.v1.trace_pb2",
    packages: &["grpcio==1.85.1", "opentelemetry-proto==1.45.2"],
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// The longest wait for a span.
const DEADLINE: Duration = Duration::from_secs(60);

/// More than the collector's first windows (64 KB): the exporter has to wait for wider ones.
const LONG_BYTES: usize = 3000;
const REQUESTS: usize = 100;

const CONFIGURATION: &str = "
error_log %FOLDER%/error.log notice;
events { }
http {
    otel_exporter {
        endpoint %ENDPOINT%;
        %TRUSTED%
        header X-Key secret;
        interval 200ms;
    }
    otel_service_name shop;
    otel_trace on;
    server {
        listen 127.0.0.1:%PORT%;
        otel_trace_context propagate;
        otel_span_attr long $arg_long;
        location / { return 200; }
    }
}
";

/// Sends spans to the foreign collector.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    let ours = Contender::ours(&options)?;
    let python = ENVIRONMENT.python()?;
    let folder = Folder::create().map_err(|error| error.to_string())?;
    let keys = keys(folder.path())?;
    for keys in [None, Some(&keys)] {
        let collector = Collector::start(&python, keys)?;
        let (endpoint, trusted) = match keys {
            None => (format!("127.0.0.1:{}", collector.port), String::new()),
            Some((_, certificate)) => (
                format!("https://localhost:{}", collector.port),
                format!("trusted_certificate {};", certificate.display()),
            ),
        };
        let server = ours.start(&configuration(&endpoint, &trusted))?;
        check(&collector, server.port()).map_err(|error| {
            let log = server.log("error.log");
            format!("{endpoint}: {error}\n{log}")
        })?;
        println!("otel: {REQUESTS} spans reached {endpoint}");
    }
    real::run(&ours)
}

/// The server's configuration, with the address of a collector and more lines for its exporter.
fn configuration(endpoint: &str, more: &str) -> String {
    CONFIGURATION
        .replace("%ENDPOINT%", endpoint)
        .replace("%TRUSTED%", more)
}

/// Asks for pages as a client that has a trace.
fn curl(port: u16, requests: usize, arguments: &str) -> Outcome {
    let url = format!("http://localhost:{port}/page?n=[1-{requests}]{arguments}");
    must(
        Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--fail",
                "--output",
                "/dev/null",
            ])
            .args(["--header", &format!("traceparent: 00-{TRACE}-{PARENT}-01")])
            .args(["--header", "tracestate: a=1", "--user-agent", "ü", &url]),
    )
}

/// Asks for pages, and looks at the spans.
fn check(collector: &Collector, port: u16) -> Outcome {
    let long = "y".repeat(LONG_BYTES);
    curl(port, REQUESTS, &format!("&long={long}"))?;
    for count in 0..REQUESTS {
        let line = collector.lines.recv_timeout(DEADLINE);
        let line = line.map_err(|_| format!("{count} of {REQUESTS} spans came"))?;
        let span: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        for (name, expected) in [
            ("trace", TRACE),
            ("parent", PARENT),
            ("state", "a=1"),
            ("name", "/"),
            ("scope", "turnpike"),
            ("key", "secret"),
        ] {
            if span[name] != expected {
                return Err(format!("{name} is not {expected}: {span}"));
            }
        }
        let attributes = &span["attributes"];
        let is_long = attributes["long"]
            .as_str()
            .is_some_and(|text| text.contains(&long));
        let is_whole = is_long
            && span["resource"]["service.name"] == "shop"
            && attributes["http.status_code"] == "int_value: 200"
            && span["kind"] == 2
            && span["start"].as_u64() <= span["end"].as_u64();
        if !is_whole {
            return Err(format!("a member is wrong: {span}"));
        }
    }
    Ok(())
}

/// A key and a certificate for `localhost`.
fn keys(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let (key, certificate) = (folder.join("key.pem"), folder.join("certificate.pem"));
    must(
        Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])
            .args([
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
            ])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .stderr(Stdio::null()),
    )?;
    Ok((key, certificate))
}

/// A running collector, which ends when its input does.
struct Collector {
    port: u16,
    /// A span a line, as JSON.
    lines: Receiver<String>,
    input: Option<ChildStdin>,
    child: Child,
}

impl Collector {
    fn start(python: &Path, keys: Option<&(PathBuf, PathBuf)>) -> Result<Collector, String> {
        let program = ENVIRONMENT.program("collector.py", PROGRAM)?;
        let mut command = Command::new(python);
        command.arg(&program);
        if let Some((key, certificate)) = keys {
            command.arg(key).arg(certificate);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("no output of the collector")?;
        let input = child.stdin.take();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let first = lines.recv_timeout(DEADLINE);
        let port = first.ok().and_then(|line| line.trim().parse().ok());
        Ok(Collector {
            port: port.ok_or("the collector did not start")?,
            lines,
            input,
            child,
        })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
