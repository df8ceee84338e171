//! Foreign clients of HTTP/3 on our server: the curl of `curl_cffi` (ngtcp2, nghttp3), quic-go,
//! Chromium, and the interop client of aioquic's source package. Matrices show how each went.
//!
//! Chromium is told to use QUIC for our origin (`--origin-to-force-quic-on`), and to take the key
//! of our certificate (`--ignore-certificate-errors-spki-list`): its other options for that do not
//! hold for QUIC.

mod judges;

use turnpike_testkit::Server;

use super::matrix::{Found, Matrix, Row, Unasked};
use super::serving;
use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use judges::{JUDGES, Judge};

/// A server for anybody, one that has clients prove their address, one that wants certificates, and
/// one behind the first.
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
        listen 127.0.0.1:%PORT% quic reuseport;
        ssl_early_data on;
        root %FOLDER%/html;
        location = /page { return 200 'a page over $server_protocol'; }
        location = /page.html { default_type text/html; }
        location = /facts { return 200 '[early=$ssl_early_data reused=$ssl_session_reused]'; }
        location /put/ { dav_methods PUT; }
        location /passed/ {
            proxy_pass http://127.0.0.1:%PORT_BEHIND%/;
            proxy_http_version 1.1;
            proxy_request_buffering off;
        }
    }
    server {
        listen 127.0.0.1:%PORT_RETRY% quic;
        quic_retry on;
    }
    server {
        listen 127.0.0.1:%PORT_KNOWN% quic;
        ssl_client_certificate %KEYS%/root.pem;
        ssl_verify_client on;
        location = /facts { return 200 'verify=$ssl_client_verify $ssl_client_s_dn'; }
    }
    server {
        listen 127.0.0.1:%PORT_BEHIND%;
        root %FOLDER%/html;
        location /put/ { dav_methods PUT; }
    }
}
";

const PAGE: &str = include_str!("page.html");

/// The size of what is downloaded and uploaded; the clients' programs know it too.
const LARGE_BYTES: usize = 32 << 20;

/// What clients ask for, and what the log says of them.
const REQUESTS: Matrix = Matrix {
    variant: "version",
    cells: &[
        "page",
        "download",
        "upload",
        "ranges",
        "parallel",
        "cancel",
        "certificate",
        "resumed",
        "early",
        "protocol",
        "log",
    ],
    unasked: &[
        Unasked {
            client: judges::CURL,
            cells: &["cancel", "early", "protocol"],
            reason: "curl's library for Python cancels by closing the connection, sends no early \
                     data, and says the protocol of each answer, which all cells look at",
        },
        Unasked {
            client: judges::QUIC_GO,
            cells: &["protocol"],
            reason: "quic-go speaks nothing else",
        },
        Unasked {
            client: judges::CHROMIUM,
            cells: &["certificate", "resumed", "early"],
            reason: "Chromium without a window chooses a certificate only by a policy for the \
                     whole machine, and keeps its connection",
        },
    ],
};

/// What the interop client looks at.
const INTEROP: Matrix = Matrix {
    variant: "version",
    cells: &[
        "versions",
        "handshake",
        "retry",
        "quantum",
        "requests",
        "resumed",
        "early",
        "keys",
        "ids",
        "rebinding",
        "migration",
        "log",
    ],
    unasked: &[],
};

/// What clients are told of a server.
struct Asked {
    server: Server,
    keys: Certificates,
}

impl Asked {
    fn start(contender: &Contender) -> Result<Asked, String> {
        let keys = Certificates::create(&[("server", Kind::Ecdsa), ("client", Kind::Ecdsa)])?;
        let configuration = CONFIGURATION.replace("%KEYS%", &keys.path().display().to_string());
        let builder = contender.builder(&configuration);
        let server = serving::start(builder, ("page.html", PAGE), LARGE_BYTES)?;
        Ok(Asked { server, keys })
    }

    /// How a client went, and what the log says of it.
    fn ask(&self, judge: &Judge) -> Result<Option<Row>, String> {
        let before = self.server.log("error.log").len();
        let Some((variant, mut found)) = judge.ask(self)? else {
            return Ok(None);
        };
        found.push(serving::judge_log(&self.server, before));
        Ok(Some(Row {
            client: judge.name,
            variant,
            found,
        }))
    }
}

/// Has every client ask, and prints the matrices.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--only", "--server"], &["--debug"])?;
    let only = options.text("--only");
    let judges = JUDGES
        .iter()
        .filter(|judge| only.is_none_or(|only| only == judge.name));
    let judges: Vec<&Judge> = judges.collect();
    if judges.is_empty() {
        let names: Vec<&str> = JUDGES.iter().map(|judge| judge.name).collect();
        return Err(format!("--only takes one of {}", names.join(", ")));
    }
    let asked = Asked::start(&Contender::ours(&options)?)?;
    let (mut requests, mut interop) = (Vec::new(), Vec::new());
    for judge in judges {
        let Some(row) = asked.ask(judge)? else {
            continue;
        };
        if judge.name == judges::AIOQUIC {
            interop.push(row);
        } else {
            requests.push(row);
        }
    }
    let mut judged = Vec::new();
    for (matrix, rows) in [(&REQUESTS, &requests), (&INTEROP, &interop)] {
        if rows.is_empty() {
            continue;
        }
        println!("{}", matrix.table(rows));
        judged.extend(matrix.judge(rows).err());
    }
    if judged.is_empty() {
        return Ok(());
    }
    judged.push(asked.server.log("error.log"));
    Err(judged.join("\n"))
}
