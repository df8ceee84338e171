//! Spans to OpenTelemetry's own Collector, by gRPC and by HTTP. The Collector prints what it has
//! understood; each span must have the client's `traceparent` as its parent.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use turnpike_testkit::{Folder, ports};

use super::{DEADLINE, PARENT, TRACE, configuration, curl};
use crate::contender::Contender;
use crate::go_program;
use crate::outcome::Outcome;

const REQUESTS: usize = 20;

/// The Collector's own configuration.
const SETTINGS: &str = "
receivers:
  otlp:
    protocols:
      grpc: {endpoint: '127.0.0.1:%GRPC%'}
      http: {endpoint: '127.0.0.1:%HTTP%'}
exporters:
  debug: {verbosity: detailed}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
";

/// What the Collector logs when it can be used.
const READY: &str = "Everything is ready";

/// Lines that the Collector prints once for each of our spans.
const LINES: [(&str, &str); 4] = [
    ("Trace ID", TRACE),
    ("Parent ID", PARENT),
    ("Kind", "Server"),
    ("-> http.status_code", "Int(200)"),
];

/// Sends spans by both protocols.
pub(super) fn run(ours: &Contender) -> Outcome {
    let folder = Folder::create().map_err(|error| error.to_string())?;
    let collector = Collector::start(folder.path())?;
    let [grpc, http] = collector.ports;
    for endpoint in [
        format!("127.0.0.1:{grpc}"),
        format!("http://127.0.0.1:{http}/v1/traces"),
    ] {
        let server = ours.start(&configuration(&endpoint, ""))?;
        curl(server.port(), REQUESTS, "")?;
        collector.take().map_err(|error| {
            let log = server.log("error.log");
            format!("{endpoint}: {error}\n{log}")
        })?;
        println!("otel: {REQUESTS} spans reached OpenTelemetry's Collector at {endpoint}");
    }
    Ok(())
}

/// A running Collector.
struct Collector {
    /// Of gRPC and of HTTP.
    ports: [u16; 2],
    /// The lines of its log.
    lines: Receiver<String>,
    child: Child,
}

impl Collector {
    fn start(folder: &Path) -> Result<Collector, String> {
        let program = go_program::build("collector", "turnpike/collector")?;
        let port = || ports::reserve().ok_or("no free port");
        let ports = [port()?, port()?];
        let settings = SETTINGS
            .replace("%GRPC%", &ports[0].to_string())
            .replace("%HTTP%", &ports[1].to_string());
        let file = folder.join("collector.yaml");
        fs::write(&file, settings).map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .arg(format!("--config=file:{}", file.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let output = child.stderr.take().ok_or("no log of the Collector")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let collector = Collector {
            ports,
            lines,
            child,
        };
        let mut seen = String::new();
        while !seen.contains(READY) {
            let line = collector.lines.recv_timeout(DEADLINE);
            let line = line.map_err(|_| format!("the Collector did not start:\n{seen}"))?;
            seen = format!("{seen}{line}\n");
        }
        Ok(collector)
    }

    /// Reads the log until it has every line of every span.
    fn take(&self) -> Outcome {
        let mut counts = [0; LINES.len()];
        while counts != [REQUESTS; LINES.len()] {
            let line = self.lines.recv_timeout(DEADLINE);
            let line = line.map_err(|_| format!("of {REQUESTS} spans came {counts:?}"))?;
            let Some((name, value)) = line.trim().split_once(':') else {
                continue;
            };
            let known = LINES
                .iter()
                .position(|(known, wanted)| name.trim() == *known && value.trim() == *wanted);
            if let Some(known) = known {
                counts[known] += 1;
            }
        }
        Ok(())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
