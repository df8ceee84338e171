//! A gRPC service behind `grpc_pass`, called by gRPC's own client: plain and over TLS on either
//! side, and through reloads.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use turnpike_testkit::{Server, Signal};

use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::python::{Companion, Environment};

const PROGRAM: &str = include_str!("judge.py");

/// gRPC's own library.
pub(crate) const ENVIRONMENT: Environment = Environment {
    folder: "grpc",
    imports: "grpc, grpc_health.v1.health_pb2_grpc",
    packages: &["grpcio==1.85.1", "grpcio-health-checking==1.85.1"],
};

/// The names of the ports, and how a client and the service are reached by them.
const WAYS: [(&str, &str); 4] = [
    ("PLAIN", "plain to plain"),
    ("INWARD", "plain to tls"),
    ("OUTWARD", "tls to plain"),
    ("SECURE", "tls to tls"),
];

const CONFIGURATION: &str = "
error_log %FOLDER%/error.log notice;
worker_processes 2;
events { }
http {
    access_log %FOLDER%/access.log;
    http2 on;
    client_max_body_size 0;
    ssl_certificate %KEYS%/server.pem;
    ssl_certificate_key %KEYS%/server.key;
    grpc_set_header X-Round %ROUND%;
    grpc_ssl_verify on;
    grpc_ssl_name localhost;
    grpc_ssl_trusted_certificate %KEYS%/root.pem;
    server {
        listen 127.0.0.1:%PORT_PLAIN%;
        location / { grpc_pass 127.0.0.1:%SERVICE_PLAIN%; }
        location /nobody/ { grpc_pass 127.0.0.1:1; }
    }
    server {
        listen 127.0.0.1:%PORT_INWARD%;
        location / { grpc_pass grpcs://127.0.0.1:%SERVICE_SECURE%; }
        location /nobody/ { grpc_pass 127.0.0.1:1; }
    }
    server {
        listen 127.0.0.1:%PORT_OUTWARD% ssl;
        location / { grpc_pass 127.0.0.1:%SERVICE_PLAIN%; }
        location /nobody/ { grpc_pass 127.0.0.1:1; }
    }
    server {
        listen 127.0.0.1:%PORT_SECURE% ssl;
        location / { grpc_pass grpcs://127.0.0.1:%SERVICE_SECURE%; }
        location /nobody/ { grpc_pass 127.0.0.1:1; }
    }
}
";

/// Calls the service in all ways.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    let ours = Contender::ours(&options)?;
    let keys = Certificates::create(&[("server", Kind::Ecdsa)])?;
    let service = start_service(&keys)?;
    let [plain, secure] = service.ports;
    let python = ENVIRONMENT.python()?;
    let program = ENVIRONMENT.program("judge.py", PROGRAM)?;
    let configuration = CONFIGURATION
        .replace("%KEYS%", &keys.path().display().to_string())
        .replace("%SERVICE_PLAIN%", &plain.to_string())
        .replace("%SERVICE_SECURE%", &secure.to_string());
    let mut server = ours.start(&configuration.replace("%ROUND%", "first"))?;
    let mut command = Command::new(&python);
    command.arg(&program).arg("judge");
    command.arg(keys.path().join("root.pem"));
    for (name, way) in WAYS {
        command.arg(format!("{way}={}", server.port_named(name)));
    }
    let judged = judge(&mut command, &mut server, &configuration);
    judged.map_err(|error| format!("{error}\n{}", server.log("error.log")))
}

/// Starts the service, with its plain port and its secure one.
///
/// # Errors
/// Python or gRPC's library cannot be had, or the service does not start.
pub(crate) fn start_service(keys: &Certificates) -> Result<Companion<2>, String> {
    let python = ENVIRONMENT.python()?;
    let program = ENVIRONMENT.program("judge.py", PROGRAM)?;
    Companion::start(
        Command::new(python)
            .arg(program)
            .arg("serve")
            .args(["server.key", "server.pem"].map(|name| keys.path().join(name))),
    )
}

/// Runs the judge to its end, and reloads where it asks for that.
fn judge(command: &mut Command, server: &mut Server, configuration: &str) -> Outcome {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let output = child.stdout.take().ok_or("no output of the judge")?;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        match line.strip_prefix("reload ") {
            Some(round) => {
                server.write_configuration(&configuration.replace("%ROUND%", round));
                server.signal(Signal::SIGHUP);
            }
            None => println!("grpc: {line}"),
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the judge ended with {status}"))
    }
}
