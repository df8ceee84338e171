//! Foreign clients against our server over TLS, by HTTP/1.1 and HTTP/2: curl, Python's httpx, Go's
//! net/http, Chromium, and OpenSSL's `s_client`. Each asks for the same things; a matrix shows how
//! it went, and says why a client was not asked for one of them.

mod browser;
mod commands;
mod groups;
pub(crate) mod http3;
mod loads;
mod matrix;
mod serving;

use std::process::Command;

use turnpike_testkit::Server;

use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::go_program;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::python::Environment;
use crate::workspace;
pub(crate) use loads::run as run_loads;
use matrix::{Found, Matrix, Row, Unasked};
use serving::pattern;

const PROGRAM: &str = include_str!("client.py");
const PAGE: &str = include_str!("browser.html");

const HTTPX: Environment = Environment {
    folder: "httpx",
    imports: "httpx, h2",
    packages: &["httpx[http2]==0.28.1", "h2==4.4.1"],
};

/// A server for anybody, one that wants certificates, and one that closes each connection after an
/// answer, so that a browser begins the next request with a handshake.
const CONFIGURATION: &str = "
error_log %FOLDER%/error.log notice;
events { }
http {
    log_format groups '$ssl_curve $http_user_agent';
    access_log %FOLDER%/groups.log groups;
    http2 on;
    ssl_certificate %KEYS%/server.pem;
    ssl_certificate_key %KEYS%/server.key;
    ssl_session_cache shared:clients:1m;
    server {
        listen 127.0.0.1:%PORT% ssl;
        root %FOLDER%/html;
        location = /page { return 200 'a page over $server_protocol'; }
        location = /post {
            client_body_buffer_size 1m;
            echo_read_request_body;
            echo_request_body;
        }
        location = /facts { return 200 '[early=$ssl_early_data reused=$ssl_session_reused]'; }
        location = /browser.html { default_type text/html; }
    }
    server {
        listen 127.0.0.1:%PORT_KNOWN% ssl;
        ssl_client_certificate %KEYS%/root.pem;
        ssl_verify_client on;
        location = /facts { return 200 'verify=$ssl_client_verify $ssl_client_s_dn'; }
    }
    server {
        listen 127.0.0.1:%PORT_ONCE% ssl;
        ssl_early_data on;
        keepalive_requests 1;
        location = /facts {
            add_header Access-Control-Allow-Origin *;
            return 200 '[early=$ssl_early_data reused=$ssl_session_reused]';
        }
    }
}
";

/// The sizes of what is posted and downloaded; the clients' programs know them too.
const POST_BYTES: usize = 300_000;
const LARGE_BYTES: usize = 32 << 20;

/// What each client is asked to do.
const MATRIX: Matrix = Matrix {
    variant: "protocol",
    cells: &["page", "post", "large", "certificate", "resumed", "early"],
    unasked: &[
        Unasked {
            client: "curl",
            cells: &["early"],
            reason: "curl has an option for early data only from 8.11 on; Debian's is older",
        },
        Unasked {
            client: "Python",
            cells: &["early"],
            reason: "Python's ssl module sends no early data",
        },
        Unasked {
            client: "Go",
            cells: &["early"],
            reason: "Go's crypto/tls sends no early data",
        },
        Unasked {
            client: "Chromium",
            cells: &["certificate"],
            reason: "Chromium without a window chooses a certificate only by a policy for the \
                     whole machine, which a test must not write",
        },
        Unasked {
            client: "OpenSSL",
            cells: &["page", "post", "large", "certificate"],
            reason: "s_client speaks TLS but no HTTP; it is asked only for sessions",
        },
    ],
};

/// A version of HTTP that a client is told to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    One,
    Two,
}

impl Protocol {
    /// The name, as `$server_protocol` has it.
    fn name(self) -> &'static str {
        match self {
            Protocol::One => "HTTP/1.1",
            Protocol::Two => "HTTP/2.0",
        }
    }
}

/// The server, with what a client must know of it.
struct Asked {
    server: Server,
    keys: Certificates,
}

impl Asked {
    /// The URL of a path on the server for anybody.
    fn open(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.server.port())
    }

    /// The URL of the facts on the server that wants certificates.
    fn known(&self) -> String {
        format!(
            "https://localhost:{}/facts",
            self.server.port_named("KNOWN")
        )
    }
}

/// Has every client ask, and prints the matrix.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    let ours = Contender::ours(&options)?;
    let go = go_program::rebuild("clients", "turnpike/clients")?;
    let python = HTTPX.python()?;
    let program = HTTPX.program("client.py", PROGRAM)?;
    let keys = Certificates::create(&[("server", Kind::Ecdsa), ("client", Kind::Ecdsa)])?;
    let configuration = CONFIGURATION.replace("%KEYS%", &keys.path().display().to_string());
    let started = ours
        .builder(&configuration)
        .file("html/browser.html", PAGE)
        .file("html/large", pattern(LARGE_BYTES))
        .try_start();
    let server = started.map_err(|error| error.to_string())?;
    let asked = Asked { server, keys };
    let mut rows = Vec::new();
    for protocol in [Protocol::One, Protocol::Two] {
        let row = |client, found| Row {
            client,
            variant: protocol.name().to_owned(),
            found,
        };
        rows.push(row("curl", commands::curl(&asked, protocol)));
        let found = program_says(Command::new(&python).arg(&program), &asked, protocol)?;
        rows.push(row("Python", found));
        let found = program_says(&mut Command::new(&go), &asked, protocol)?;
        rows.push(row("Go", found));
        rows.push(row("Chromium", browser::says(&asked, protocol)?));
        if protocol == Protocol::One {
            rows.push(row("OpenSSL", commands::openssl(&asked)));
        }
    }
    print!("{}", MATRIX.table(&rows));
    let judged = MATRIX
        .judge(&rows)
        .and_then(|()| groups::judge(&asked.server.log("groups.log")));
    judged.map_err(|error| format!("{error}\n{}", asked.server.log("error.log")))
}

/// What a program of ours in a foreign language says of each cell.
fn program_says(
    command: &mut Command,
    asked: &Asked,
    protocol: Protocol,
) -> Result<Vec<Found>, String> {
    let server = &asked.server;
    let ports = [server.port(), server.port_named("KNOWN")];
    let number = match protocol {
        Protocol::One => "1",
        Protocol::Two => "2",
    };
    command
        .arg(number)
        .args(ports.map(|port| port.to_string()))
        .arg(asked.keys.path());
    Ok(matrix::read(&workspace::output(command)?))
}
