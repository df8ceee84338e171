//! Changed answers of an origin behind our server. The client must get its own well-formed
//! response, or a closed connection.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use turnpike_testkit::Server;

use super::answers::{Answer, Asked, read, shown};
use super::mutate::{bytes, mutate};
use super::origin::{Origin, Request};
use super::seeds::{ANSWER_WORDS, ANSWERS};
use super::wire::exchange;
use crate::contender::Contender;
use turnpike_testkit::random::Random;

/// Locations with other ways to pass an answer on. The rest of a target is the case's number.
const LOCATIONS: &[&str] = &["plain", "kept", "unbuffered", "cached", "compressed"];

/// Longer than the server waits for an origin, by far: it answers by itself.
const PATIENCE: Duration = Duration::from_secs(15);

/// The bytes of a mark, with the full stop, as in the lengths of the table of answers.
const TOKEN_BYTES: usize = 19;
const TOKEN_START: &str = "tkn";

const CONFIGURATION: &str = "
worker_processes 2;
error_log %FOLDER%/error.log warn;
events { worker_connections 512; }
http {
    access_log off;
    proxy_cache_path %FOLDER%/cache keys_zone=z:1m max_size=10m;
    proxy_connect_timeout 5s;
    proxy_read_timeout 1s;
    gzip_types *;
    gzip_min_length 1;
    upstream origin { server 127.0.0.1:%ORIGIN% max_fails=0; keepalive 4; }
    server {
        listen 127.0.0.1:%PORT%;
        location = /marker { return 200 marker; }
        location /plain/ { proxy_pass http://origin; }
        proxy_http_version 1.1;
        proxy_set_header Connection '';
        location /kept/ { proxy_pass http://origin; }
        location /unbuffered/ { proxy_pass http://origin; proxy_buffering off; }
        location /cached/ {
            proxy_pass http://origin;
            proxy_cache z;
            proxy_cache_valid any 1m;
        }
        location /compressed/ { proxy_pass http://origin; gzip on; }
    }
}
";

/// Our server before a scripted origin.
pub(super) struct Upstreams {
    server: Server,
    origin: Origin,
}

/// The origin's action after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Keep,
    Close,
    HalfClose,
}

/// The origin's actions in a case.
pub(super) struct Script {
    pub(super) pieces: Vec<Vec<u8>>,
    after: After,
}

impl Script {
    /// The script of a case.
    pub(super) fn of_case(seed: u64, case: u64) -> Script {
        let mut random = Random::of_case(seed, case);
        let mut message = bytes(random.pick(ANSWERS));
        if !random.once_in(20) {
            message = mutate(&message, ANSWER_WORDS, ANSWERS, &mut random);
        }
        Script::cut(marked(&message, &token(seed, case)), &mut random)
    }

    /// Sends a message in pieces, and what follows.
    pub(super) fn cut(mut message: Vec<u8>, random: &mut Random) -> Script {
        let mut pieces = Vec::new();
        while message.len() > 1 && random.once_in(3) {
            let rest = message.split_off(random.index(message.len() - 1) + 1);
            pieces.push(std::mem::replace(&mut message, rest));
        }
        pieces.push(message);
        let after = match random.index(4) {
            0 => After::Close,
            1 => After::HalfClose,
            _ => After::Keep,
        };
        Script { pieces, after }
    }

    /// Sends the pieces; whether the connection stays open.
    pub(super) fn play(&self, stream: &mut TcpStream) -> bool {
        for piece in &self.pieces {
            if stream.write_all(piece).is_err() {
                return false;
            }
        }
        match self.after {
            After::Keep => true,
            After::Close => false,
            After::HalfClose => stream.shutdown(Shutdown::Write).is_ok(),
        }
    }
}

impl Upstreams {
    /// Starts the server and its origin, which plays the script of the case in the request's
    /// target.
    ///
    /// # Errors
    /// The server's output.
    pub(super) fn start(ours: &Contender, seed: u64) -> Result<Upstreams, String> {
        let serve = move |request: &Request, stream: &mut TcpStream| {
            let case = request
                .target
                .rsplit('/')
                .next()
                .and_then(|case| case.parse().ok());
            case.is_some_and(|case| Script::of_case(seed, case).play(stream))
        };
        let origin = Origin::start(Arc::new(serve))?;
        let text = CONFIGURATION.replace("%ORIGIN%", &origin.port().to_string());
        let server = ours.start(&text)?;
        Ok(Upstreams { server, origin })
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// The request of a case.
    pub(super) fn request(seed: u64, case: u64) -> Vec<u8> {
        let mut random = Random::of_case(!seed, case);
        let location = random.pick(LOCATIONS);
        let method = if random.once_in(8) { "HEAD" } else { "GET" };
        format!(
            "{method} /{location}/{case} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\
             Accept-Encoding: gzip\r\n\r\n"
        )
        .into_bytes()
    }

    /// Runs a case.
    ///
    /// # Errors
    /// The fault of our server.
    pub(super) fn run(&self, seed: u64, case: u64) -> Result<(), String> {
        let request = Upstreams::request(seed, case);
        let received = exchange(self.server.port(), &[&request], PATIENCE)?;
        let problem =
            |what: String| format!("{what}\n  here: \"{}\"", received.bytes.escape_ascii());
        if received.is_hung {
            return Err(problem(
                "the connection is neither answered nor closed".to_owned(),
            ));
        }
        let is_head = request.starts_with(b"HEAD");
        let asked = Asked {
            head: is_head,
            headless: false,
        };
        let answers = read(&received.bytes, asked).map_err(problem)?;
        if answers.len() > 1 {
            return Err(problem(format!("one request, {} responses", answers.len())));
        }
        let own = token(seed, case);
        if let Some(other) = foreign_token(&received.bytes, own.as_bytes()) {
            return Err(problem(format!("bytes of another response: {other}")));
        }
        let is_compressed = request.windows(12).any(|at| at == b"/compressed/");
        if let (Some(answer), false, false) = (answers.first(), is_head, is_compressed) {
            let sent = Script::of_case(seed, case).pieces.concat();
            faithful(answer, &sent).map_err(problem)?;
        }
        match self.origin.violations().as_slice() {
            [] => Ok(()),
            some => Err(format!(
                "the origin got a malformed request: {}",
                some.join("\n")
            )),
        }
    }
}

/// Whether a complete response equals the origin's, if that is unambiguous.
fn faithful(answer: &Answer, sent: &[u8]) -> Result<(), String> {
    // Fields for the proxy itself may change the response.
    let lower = sent.to_ascii_lowercase();
    if lower.windows(7).any(|at| at == b"x-accel") {
        return Ok(());
    }
    let Ok(theirs) = read(sent, Asked::default()) else {
        return Ok(());
    };
    let [original] = theirs.as_slice() else {
        return Ok(());
    };
    if original.status != answer.status || !answer.is_whole || answer.status >= 500 {
        return Ok(());
    }
    match original.is_whole {
        true if original.body == answer.body => Ok(()),
        true => Err("the body is not what the origin sent".to_owned()),
        false => Err(format!("{}, passed on as a whole", shown(&theirs))),
    }
}

/// The mark of a case: no other case has it, and no change makes one mark into another.
pub(super) fn token(seed: u64, case: u64) -> String {
    let mixed = Random::of_case(seed.rotate_left(32), case).number();
    format!("{TOKEN_START}{mixed:016x}")
}

/// Puts the mark in.
pub(super) fn marked(message: &[u8], token: &str) -> Vec<u8> {
    let mut marked = Vec::new();
    let mut rest = message;
    while let Some(at) = rest.windows(5).position(|at| at == b"TOKEN") {
        marked.extend_from_slice(&rest[..at]);
        marked.extend_from_slice(token.as_bytes());
        rest = &rest[at + 5..];
    }
    marked.extend_from_slice(rest);
    marked
}

/// A mark that is not the case's own. Marks are put in after all changes, so that each is whole.
pub(super) fn foreign_token(bytes: &[u8], own: &[u8]) -> Option<String> {
    let mut foreign = marks(bytes).filter(|mark| *mark != own);
    foreign.next().map(|mark| mark.escape_ascii().to_string())
}

/// A mark that is one of the others', where a case's own may have been changed.
pub(super) fn foreign_mark(bytes: &[u8], others: &[String]) -> Option<String> {
    let is_other = |mark: &&[u8]| others.iter().any(|other| other.as_bytes() == *mark);
    let mut foreign = marks(bytes).filter(is_other);
    foreign.next().map(|mark| mark.escape_ascii().to_string())
}

fn marks(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.windows(TOKEN_BYTES).filter(|at| {
        let (start, number) = at.split_at(TOKEN_START.len());
        start == TOKEN_START.as_bytes() && number.iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests;
