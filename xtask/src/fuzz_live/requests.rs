//! Changed requests to our server and to nginx with the same configuration, each with its own
//! origin.

use std::sync::Arc;
use std::time::Duration;

use turnpike_testkit::Server;

use super::answers::{Answer, Asked, foreign_name, read, shown};
use super::differences::unexplained;
use super::mutate::{bytes, mutate};
use super::origin::{Origin, echo};
use super::seeds::{REQUEST_WORDS, REQUESTS};
use super::wire::exchange;
use crate::contender::Contender;
use turnpike_testkit::random::Random;

/// How long nothing may come before our side is ended, in milliseconds: first short, since many
/// changed requests wait for more; a difference is looked at again with patience, since a loaded
/// machine may have been slow.
const PATIENCE_MS: [u64; 2] = [60, 1500];

/// A request with a known answer after the changed one, which shows where that ended.
const MARKER: &[u8] = b"GET /marker HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

/// Every field that the configuration or a server itself can give.
const KNOWN_NAMES: &[&str] = &[
    "server",
    "date",
    "content-type",
    "content-length",
    "connection",
    "last-modified",
    "etag",
    "accept-ranges",
    "content-range",
    "location",
    "transfer-encoding",
    "keep-alive",
    "allow",
    "vary",
    "content-encoding",
    "x-origin",
    "x-echo",
    "x-marker",
    "retry-after",
    "upgrade",
];

const CONFIGURATION: &str = "
worker_processes 2;
error_log %FOLDER%/error.log warn;
events { worker_connections 512; }
http {
    access_log off;
    default_type text/plain;
    client_max_body_size 32k;
    client_header_buffer_size 1k;
    large_client_header_buffers 4 2k;
    lingering_timeout 1s;
    gzip on;
    gzip_min_length 100;
    gzip_types text/plain;
    upstream origin { server 127.0.0.1:%ORIGIN%; keepalive 4; }
    server {
        listen 127.0.0.1:%PORT%;
        root %FOLDER%/html;
        location = /marker { add_header X-Marker yes; return 200 marker; }
        location /return { return 200 returned; }
        location /moved { return 301 /static.txt; }
        location /echo { return 302 $uri; }
        location /named { add_header X-Echo $arg_x; return 204; }
        location /old/ { rewrite ^/old/(.*)$ /$1 last; }
        location /temporary/ { rewrite ^/temporary/(.*)$ /$1 redirect; }
        location /list/ { autoindex on; }
        location /deny { deny all; }
        location /proxy/ {
            proxy_pass http://origin/;
            proxy_http_version 1.1;
            proxy_set_header Connection '';
        }
        location /unbuffered/ {
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_set_header Connection '';
        }
    }
}
";

/// A server with its origin; in this order, so that the server ends first.
struct Side {
    server: Server,
    origin: Origin,
}

/// Both servers.
pub(super) struct Requests {
    ours: Side,
    theirs: Side,
}

impl Requests {
    /// Starts both.
    ///
    /// # Errors
    /// The output of a server that does not start.
    pub(super) fn start(ours: &Contender) -> Result<Requests, String> {
        Ok(Requests {
            ours: Side::start(ours)?,
            theirs: Side::start(&Contender::nginx()?)?,
        })
    }

    pub(super) fn server(&self) -> &Server {
        &self.ours.server
    }

    /// The bytes of a case, and the pieces that they are sent in.
    pub(super) fn message(seed: u64, case: u64) -> Vec<Vec<u8>> {
        let mut random = Random::of_case(seed, case);
        let index = case as usize;
        let (mut message, is_seed) = match REQUESTS.get(index) {
            Some(text) => (bytes(text), true),
            None => (bytes(random.pick(REQUESTS)), false),
        };
        if !is_seed {
            message = mutate(&message, REQUEST_WORDS, REQUESTS, &mut random);
        }
        message.extend_from_slice(MARKER);
        let mut pieces = Vec::new();
        while !is_seed && message.len() > 1 && random.once_in(3) {
            let rest = message.split_off(random.index(message.len() - 1) + 1);
            pieces.push(std::mem::replace(&mut message, rest));
        }
        pieces.push(message);
        pieces
    }

    /// Runs a case.
    ///
    /// # Errors
    /// The fault of our server.
    pub(super) fn run(&self, seed: u64, case: u64) -> Result<(), String> {
        let pieces = Requests::message(seed, case);
        let mut outcome = Ok(());
        for patience_ms in PATIENCE_MS {
            let patience = Duration::from_millis(patience_ms);
            outcome = self.compare(&pieces, patience, (case as usize) < REQUESTS.len());
            if outcome.is_ok() {
                break;
            }
        }
        outcome?;
        match self.ours.origin.violations().as_slice() {
            [] => Ok(()),
            some => Err(format!(
                "the origin got a malformed request: {}",
                some.join("\n")
            )),
        }
    }

    fn compare(&self, pieces: &[Vec<u8>], patience: Duration, is_seed: bool) -> Result<(), String> {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let sent = pieces.concat();
        let asked = Asked::by(&sent);
        let mine = exchange(self.ours.server.port(), &pieces, patience)?;
        let other = exchange(self.theirs.server.port(), &pieces, patience)?;
        let problem = |what: String| {
            format!(
                "{what}\n  here: \"{}\"\n  nginx: \"{}\"",
                mine.bytes.escape_ascii(),
                other.bytes.escape_ascii()
            )
        };
        if mine.is_hung {
            return Err(problem(
                "the connection is neither answered nor closed".to_owned(),
            ));
        }
        let ours = read(&mine.bytes, asked).map_err(problem)?;
        if let Some(name) = foreign_name(&ours, KNOWN_NAMES) {
            return Err(problem(format!(
                "a field of the request came back: \"{name}\""
            )));
        }
        // nginx itself can be made to split a message: then there is nothing to compare with.
        let Ok(theirs) = read(&other.bytes, asked) else {
            return Ok(());
        };
        if is_seed && statuses(&ours) != statuses(&theirs) {
            return Err(problem(format!(
                "{} here, {} from nginx",
                shown(&ours),
                shown(&theirs)
            )));
        }
        let difference = unexplained(&ours, &theirs, &sent);
        difference.map_or(Ok(()), |difference| Err(problem(difference)))
    }
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

impl Side {
    fn start(contender: &Contender) -> Result<Side, String> {
        let origin = Origin::start(Arc::new(echo))?;
        let text = CONFIGURATION.replace("%ORIGIN%", &origin.port().to_string());
        let server = contender
            .builder(&text)
            .file("html/static.txt", "static ".repeat(100))
            .file("html/folder/index.html", "index")
            .file("html/list/one.txt", "1")
            .try_start()
            .map_err(|error| format!("{}: {error}", contender.name))?;
        Ok(Side { server, origin })
    }
}
