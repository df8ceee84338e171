//! Changed answers of applications that speak FastCGI, SCGI and uwsgi behind our server. The client
//! must get its own well-formed response, or a closed connection.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use turnpike_testkit::Server;

use super::answers::{Asked, read};
use super::mutate::{bytes, mutate};
use super::seeds::{ANSWER_WORDS, CGI_ANSWERS};
use super::upstreams::{Script, foreign_token, marked, token};
use super::wire::exchange;
use crate::contender::Contender;
use turnpike_testkit::random::Random;

/// Locations, and the protocol of the application behind each. The rest of a target is the case's
/// number.
const LOCATIONS: &[(&str, Protocol)] = &[
    ("fastcgi", Protocol::FastCgi),
    ("fastcgi-unbuffered", Protocol::FastCgi),
    ("fastcgi-cached", Protocol::FastCgi),
    ("scgi", Protocol::Scgi),
    ("scgi-unbuffered", Protocol::Scgi),
    ("uwsgi", Protocol::Uwsgi),
    ("uwsgi-cached", Protocol::Uwsgi),
];

/// Longer than the server waits for an application, by far: it answers by itself.
const PATIENCE: Duration = Duration::from_secs(15);

/// A server that sends half a request and nothing more for so long is given up.
const REQUEST_PATIENCE: Duration = Duration::from_secs(30);

/// More than a request of these locations has.
const REQUEST_BYTES_MAX: usize = 4096;

/// The end of the body in FastCGI, which is the end of a request.
const STDIN_END: &[u8] = &[1, 5, 0, 1, 0, 0, 0, 0];

/// The kinds of FastCGI's records.
const END_REQUEST: u8 = 3;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// The most bytes behind the content of a record.
const PADDING_BYTES_MAX: usize = 8;

const CONFIGURATION: &str = "
worker_processes 2;
error_log %FOLDER%/error.log warn;
events { worker_connections 512; }
http {
    access_log off;
    fastcgi_cache_path %FOLDER%/fastcgi keys_zone=f:1m max_size=10m;
    uwsgi_cache_path %FOLDER%/uwsgi keys_zone=u:1m max_size=10m;
    upstream kept { server 127.0.0.1:%FASTCGI% max_fails=0; keepalive 4; }
    fastcgi_read_timeout 1s; fastcgi_keep_conn on; fastcgi_pass_request_headers off;
    fastcgi_param HTTP_HOST ''; fastcgi_param CASE '[$request_uri]';
    scgi_read_timeout 1s; scgi_pass_request_headers off;
    scgi_param HTTP_HOST ''; scgi_param CASE '[$request_uri]';
    uwsgi_read_timeout 1s; uwsgi_pass_request_headers off;
    uwsgi_param HTTP_HOST ''; uwsgi_param CASE '[$request_uri]';
    server {
        listen 127.0.0.1:%PORT%;
        location = /marker { return 200 marker; }
        location /fastcgi/ { fastcgi_pass kept; }
        location /fastcgi-unbuffered/ { fastcgi_pass kept; fastcgi_buffering off; }
        location /fastcgi-cached/ {
            fastcgi_pass kept;
            fastcgi_cache f;
            fastcgi_cache_valid any 1m;
        }
        location /scgi/ { scgi_pass 127.0.0.1:%SCGI%; }
        location /scgi-unbuffered/ { scgi_pass 127.0.0.1:%SCGI%; scgi_buffering off; }
        location /uwsgi/ { uwsgi_pass 127.0.0.1:%UWSGI%; }
        location /uwsgi-cached/ {
            uwsgi_pass 127.0.0.1:%UWSGI%;
            uwsgi_cache u;
            uwsgi_cache_valid any 1m;
        }
    }
}
";

/// The protocol of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    FastCgi,
    Scgi,
    Uwsgi,
}

/// Our server before scripted applications. They end with the process.
pub(super) struct Applications {
    server: Server,
}

impl Applications {
    /// Starts the server and its applications, which play the script of the case in the request's
    /// target.
    ///
    /// # Errors
    /// The kernel gives no port, or the server's output.
    pub(super) fn start(ours: &Contender, seed: u64) -> Result<Applications, String> {
        let mut text = CONFIGURATION.to_owned();
        for (name, protocol) in [
            ("%FASTCGI%", Protocol::FastCgi),
            ("%SCGI%", Protocol::Scgi),
            ("%UWSGI%", Protocol::Uwsgi),
        ] {
            text = text.replace(name, &listen(seed, protocol)?.to_string());
        }
        Ok(Applications {
            server: ours.start(&text)?,
        })
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// The request of a case.
    pub(super) fn request(seed: u64, case: u64) -> Vec<u8> {
        let (location, _) = location(seed, case);
        let method = if Random::of_case(!seed, case).once_in(8) {
            "HEAD"
        } else {
            "GET"
        };
        format!("{method} /{location}/{case} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            .into_bytes()
    }

    /// What the application of a case sends.
    pub(super) fn script(seed: u64, case: u64) -> Script {
        let (_, protocol) = location(seed, case);
        let mut random = Random::of_case(seed, case);
        let mut message = bytes(random.pick(CGI_ANSWERS));
        if !random.once_in(20) {
            message = mutate(&message, ANSWER_WORDS, CGI_ANSWERS, &mut random);
        }
        let message = marked(&message, &token(seed, case));
        let sent = match protocol {
            Protocol::FastCgi => records(&message, &mut random),
            Protocol::Scgi | Protocol::Uwsgi => message,
        };
        Script::cut(sent, &mut random)
    }

    /// Runs a case.
    ///
    /// # Errors
    /// The fault of our server.
    pub(super) fn run(&self, seed: u64, case: u64) -> Result<(), String> {
        let request = Applications::request(seed, case);
        let received = exchange(self.server.port(), &[&request], PATIENCE)?;
        let problem =
            |what: String| format!("{what}\n  here: \"{}\"", received.bytes.escape_ascii());
        if received.is_hung {
            return Err(problem(
                "the connection is neither answered nor closed".to_owned(),
            ));
        }
        let asked = Asked {
            head: request.starts_with(b"HEAD"),
            headless: false,
        };
        let answers = read(&received.bytes, asked).map_err(problem)?;
        if answers.len() > 1 {
            return Err(problem(format!("one request, {} responses", answers.len())));
        }
        let own = token(seed, case);
        match foreign_token(&received.bytes, own.as_bytes()) {
            Some(other) => Err(problem(format!("bytes of another response: {other}"))),
            None => Ok(()),
        }
    }
}

/// The location of a case, and its protocol.
fn location(seed: u64, case: u64) -> (&'static str, Protocol) {
    let mut random = Random::of_case(seed.rotate_left(7), case);
    random.pick(LOCATIONS)
}

/// The answer as FastCGI's records: pieces of output, messages between them, and the end. In some
/// cases a byte of a header is another one.
fn records(message: &[u8], random: &mut Random) -> Vec<u8> {
    let is_wrong = random.once_in(3);
    let mut out = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let length = 1 + random.index(rest.len());
        let (piece, behind) = rest.split_at(length);
        record(STDOUT, piece, is_wrong, random, &mut out);
        if random.once_in(8) {
            record(STDERR, b"a message", is_wrong, random, &mut out);
        }
        rest = behind;
    }
    if !random.once_in(8) {
        record(STDOUT, b"", is_wrong, random, &mut out);
    }
    record(END_REQUEST, &[0; 8], is_wrong, random, &mut out);
    out
}

fn record(kind: u8, content: &[u8], is_wrong: bool, random: &mut Random, out: &mut Vec<u8>) {
    let padding = random.index(PADDING_BYTES_MAX);
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX);
    let [high, low] = length.to_be_bytes();
    let mut header = [1, kind, 0, 1, high, low, padding as u8, 0];
    if is_wrong && random.once_in(4) {
        let at = random.index(header.len());
        header[at] = (random.number() & 0xff) as u8;
    }
    out.extend_from_slice(&header);
    out.extend_from_slice(&content[..usize::from(length)]);
    out.resize(out.len() + padding, 0);
}

/// Starts an application; its port of 127.0.0.1.
fn listen(seed: u64, protocol: Protocol) -> Result<u16, String> {
    let problem = |error: std::io::Error| format!("no port for an application: {error}");
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(problem)?;
    let port = listener.local_addr().map_err(problem)?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, seed, protocol));
        }
    });
    Ok(port)
}

/// Answers the requests of a connection.
fn serve(mut stream: TcpStream, seed: u64, protocol: Protocol) {
    let _ = stream.set_nodelay(true); // only speed depends on it
    if stream.set_read_timeout(Some(REQUEST_PATIENCE)).is_err() {
        return;
    }
    let mut received = Vec::new();
    while received.len() < REQUEST_BYTES_MAX {
        if is_whole(&received, protocol) {
            let case = case_of(&received);
            received.clear();
            if case.is_some_and(|case| Applications::script(seed, case).play(&mut stream)) {
                continue;
            }
            return;
        }
        let mut piece = [0; REQUEST_BYTES_MAX];
        match stream.read(&mut piece) {
            Ok(length) if length > 0 => received.extend_from_slice(&piece[..length]),
            _ => return,
        }
    }
}

/// Whether a request without a body has come to its end.
fn is_whole(received: &[u8], protocol: Protocol) -> bool {
    match protocol {
        Protocol::FastCgi => received.ends_with(STDIN_END),
        Protocol::Scgi => received.ends_with(b",") && received.contains(&b']'),
        Protocol::Uwsgi => match received {
            [_, low, high, _, content @ ..] => {
                content.len() >= usize::from(u16::from_le_bytes([*low, *high]))
            }
            _ => false,
        },
    }
}

/// The number at the end of the target, which stands in brackets.
fn case_of(received: &[u8]) -> Option<u64> {
    let end = received.iter().position(|byte| *byte == b']')?;
    let number = received[..end].rsplit(|byte| *byte == b'/').next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_their_case() {
        let fastcgi = [b"CASE[/fastcgi/17]\0\0".as_slice(), STDIN_END].concat();
        let uwsgi = b"\0\x0d\0\0CASE[/uwsgi/5]";
        for (received, protocol, case) in [
            (fastcgi.as_slice(), Protocol::FastCgi, 17),
            (b"20:CASE\0[/scgi/3]\0,".as_slice(), Protocol::Scgi, 3),
            (uwsgi.as_slice(), Protocol::Uwsgi, 5),
        ] {
            assert!(is_whole(received, protocol));
            assert_eq!(case_of(received), Some(case));
            assert!(!is_whole(&received[..3], protocol));
        }
    }

    #[test]
    fn a_script_is_always_the_same() {
        for case in 0..100 {
            let pieces = |_| Applications::script(3, case).pieces;
            assert_eq!(pieces(0), pieces(1));
        }
    }
}
