//! HTTP/2 clients of ten authors at full speed on loopback: large downloads beside small requests
//! and PINGs, many streams at once, uploads, and cancellations. None may be cut as a flood; a
//! matrix shows how each went, and `--beside nginx` the same with nginx. `--minutes` has them take
//! turns for so long.

mod commands;
mod programs;

use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use turnpike_testkit::Server;

use super::matrix::{Found, Matrix, Row, Unasked};
use super::serving;
use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::grpc;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::python::Companion;
use crate::workspace::must;
use programs::{CLIENTS, Client, Program, Unready};

/// Files, the same files of a server behind, one that never answers, and a gRPC service. A
/// connection is used for all requests of a client, as limits count for each connection.
const CONFIGURATION: &str = "
error_log %FOLDER%/error.log info;
worker_processes 2;
events { }
http {
    access_log off;
    client_max_body_size 0;
    client_body_temp_path %FOLDER%/bodies;
    keepalive_requests 1000000;
    ssl_certificate %KEYS%/server.pem;
    ssl_certificate_key %KEYS%/server.key;
    server {
        listen 127.0.0.1:%PORT% ssl http2;
        listen 127.0.0.1:%PORT_PLAIN% http2;
        root %FOLDER%/html;
        location = /loads.html { default_type text/html; }
        location /put/ { dav_methods PUT; }
        location /passed/ {
            proxy_pass http://127.0.0.1:%PORT_BEHIND%/;
            proxy_http_version 1.1;
            proxy_request_buffering off;
        }
        location /silent { proxy_pass http://127.0.0.1:%SILENT%; }
        location /turnpike.Judge/ { grpc_pass 127.0.0.1:%SERVICE%; }
    }
    server {
        listen 127.0.0.1:%PORT_BEHIND%;
        root %FOLDER%/html;
        location /put/ { dav_methods PUT; }
    }
}
";

const PAGE: &str = include_str!("loads.html");

/// The size of what is downloaded and uploaded; the clients' programs know it too.
const LARGE_BYTES: usize = 128 << 20;

/// The loads, and what the log says of them.
const MATRIX: Matrix = Matrix {
    variant: "version",
    cells: &["download", "streams", "upload", "cancel", "burst", "log"],
    unasked: &[
        Unasked {
            client: "curl",
            cells: &["burst"],
            reason: "curl ends a transfer only when something of it has come",
        },
        Unasked {
            client: "h2load",
            cells: &["cancel", "burst"],
            reason: "h2load cancels no request",
        },
    ],
};

/// What clients are told of a server.
struct Loaded {
    server: Server,
    keys: Certificates,
    // Both end with the server.
    service: Result<Companion<2>, String>,
    _silent: TcpListener,
}

impl Loaded {
    fn start(contender: &Contender) -> Result<Loaded, String> {
        let keys = Certificates::create(&[("server", Kind::Ecdsa)])?;
        // It accepts nothing.
        let silent = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let silent_port = silent.local_addr().map_err(|error| error.to_string())?;
        let service = grpc::start_service(&keys);
        let service_port = service.as_ref().map_or(1, |service| service.ports[0]);
        let configuration = CONFIGURATION
            .replace("%KEYS%", &keys.path().display().to_string())
            .replace("%SILENT%", &silent_port.port().to_string())
            .replace("%SERVICE%", &service_port.to_string());
        let builder = contender.builder(&configuration);
        let server = serving::start(builder, ("loads.html", PAGE), LARGE_BYTES)?;
        Ok(Loaded {
            server,
            keys,
            service,
            _silent: silent,
        })
    }

    /// The URL of a path over TLS.
    fn secure(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.server.port())
    }

    /// The URL of a path without TLS.
    fn plain(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.server.port_named("PLAIN"))
    }

    /// Takes the large file out of the page cache, so that parts of it have to be read first.
    fn cool(&self) -> Outcome {
        let file = self.server.folder().join("html/large");
        let sync = fs::File::open(&file).and_then(|file| file.sync_all());
        sync.map_err(|error| format!("{}: {error}", file.display()))?;
        must(
            Command::new("dd")
                .arg(format!("if={}", file.display()))
                .args(["iflag=nocache", "count=0", "status=none"]),
        )
    }

    /// What a client's program makes of each cell, and what the log says of it.
    fn load(&self, program: &Program) -> Result<(String, Vec<Found>), String> {
        self.cool()?;
        let before = self.server.log("error.log").len();
        let (version, mut found) = program.run(self)?;
        found.push(serving::judge_log(&self.server, before));
        Ok((version, found))
    }
}

/// Has every client put its loads on our server, and on nginx where that is asked for.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let valued = ["--only", "--beside", "--server", "--minutes"];
    let options = Options::parse(arguments, &valued, &["--debug"])?;
    let seconds = 60.0 * options.number("--minutes", 0.0)?;
    let at_least = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    let only = options.text("--only");
    let clients: Vec<&Client> = CLIENTS
        .iter()
        .filter(|client| only.is_none_or(|only| only == client.name))
        .collect();
    if clients.is_empty() {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        return Err(format!("--only takes one of {}", names.join(", ")));
    }
    let ours = Contender::ours(&options)?;
    let mut programs = Vec::new();
    for client in clients {
        match client.prepare() {
            Ok(program) => programs.push(program),
            Err(Unready::Missing(why)) => println!("skipped: {}: {why}", client.name),
            Err(Unready::Broken(why)) => return Err(format!("{}: {why}", client.name)),
        }
    }
    let rows = load(&ours, &programs, at_least)?;
    if options.text("--beside") == Some("nginx") {
        load(&Contender::nginx()?, &programs, at_least)?;
    }
    MATRIX.judge(&rows)
}

/// The rows of a server, which are printed too. Each client has its turn once, and further ones
/// until `at_least` has passed; a cell that has failed once stays so.
fn load(
    contender: &Contender,
    programs: &[Program],
    at_least: Duration,
) -> Result<Vec<Row>, String> {
    let loaded = Loaded::start(contender)?;
    let is_callable = |program: &&Program| match &loaded.service {
        Err(why) if program.calls_service => {
            println!("skipped: {}: no gRPC service: {why}", program.client);
            false
        }
        _ => true,
    };
    let programs: Vec<&Program> = programs.iter().filter(is_callable).collect();
    let begun = Instant::now();
    let (mut rows, mut turns, mut failed) = (Vec::<Row>::new(), 0, 0);
    for program in programs.iter().cycle() {
        if turns >= programs.len() && begun.elapsed() >= at_least {
            break;
        }
        turns += 1;
        let (variant, found) = loaded.load(program)?;
        for (cell, result) in &found {
            if let Err(why) = result {
                failed += 1;
                println!("{}: {}, {cell}: {why}", contender.name, program.client);
            }
        }
        match rows.iter_mut().find(|row| row.client == program.client) {
            Some(row) => row.add(found),
            None => rows.push(Row {
                client: program.client,
                variant,
                found,
            }),
        }
    }
    println!("{}:\n{}", contender.name, MATRIX.table(&rows));
    let seconds = begun.elapsed().as_secs();
    println!("{turns} turns of clients in {seconds} s, {failed} cells failed\n");
    Ok(rows)
}
