//! One question to the name servers: over UDP, each time from a port of its own; over TCP if the
//! answer does not fit. Questions allow more than 512 bytes over UDP (EDNS0, RFC 6891), unless the
//! server refuses such questions.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use turnpike_lane::sys::socket::{self, Family, Kind, More};
use turnpike_lane::transport::Transport;
use turnpike_lane::waiting::Waited;
use turnpike_wire::dns::{self, Answer, AnswerError, Extension, Question};

use super::servers::Servers;
use super::{FORMAT, ResolveError, Resolver};

/// The wait for one server before the next is queried; a later answer of the first is ignored. A
/// lost packet costs this much; a recursive server may take two seconds.
const RESEND_MS: u64 = 3000;

/// The pause after an unreachable server, in milliseconds: it may be starting.
const PAUSE_MS: u64 = 200;

/// Largest accepted message over UDP: some servers send more than they were allowed.
const MESSAGE_BYTES_MAX: usize = 4096;

/// Codes after which another server is tried: failure, refusal.
const CODES_TO_TURN_FROM: [u8; 2] = [2, 5];

/// Codes of servers that do not know extensions (RFC 6891 section 7: a format error; some old
/// servers send "not implemented").
const CODES_WITHOUT_EXTENSIONS: [u8; 2] = [FORMAT, 4];

/// The time for which a server is queried without extensions after it has refused them, in
/// milliseconds: it may be replaced by one that knows them.
const PLAIN_MS: u64 = 15 * 60 * 1000;

/// Queries until there is an answer; the caller limits the time.
pub(super) async fn ask(
    resolver: &Resolver,
    name: &str,
    question: Question,
) -> Result<Answer, ResolveError> {
    let first = resolver.next_server.fetch_add(1, Ordering::Relaxed);
    for attempt in 0.. {
        let servers = resolver.servers.current();
        let count = servers.addresses.len();
        let server = (&*servers, first.wrapping_add(attempt) % count);
        let answer = match ask_server(resolver, server, name, question).await {
            Ok(answer) => answer,
            Err(Failure::Name) => return Err(ResolveError::Name),
            Err(Failure::Malformed) => return Err(ResolveError::Code(FORMAT)),
            Err(Failure::Socket) => {
                tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
                continue;
            }
            Err(Failure::TimedOut) => continue,
        };
        let has_other = attempt + 1 < count;
        if has_other && CODES_TO_TURN_FROM.contains(&answer.code) {
            continue;
        }
        return Ok(answer);
    }
    Err(ResolveError::TimedOut)
}

/// Queries one server, and again without extensions if it refuses them.
async fn ask_server(
    resolver: &Resolver,
    (servers, server): (&Servers, usize),
    name: &str,
    question: Question,
) -> Result<Answer, Failure> {
    let (address, plain_until_ms) = (servers.addresses[server], &servers.plain_until_ms[server]);
    let now_ms = (resolver.now_ms)();
    if now_ms >= plain_until_ms.load(Ordering::Relaxed) {
        let answer = ask_once(resolver, address, name, question, Extension::Edns0).await?;
        if !CODES_WITHOUT_EXTENSIONS.contains(&answer.code) {
            return Ok(answer);
        }
    }
    let answer = ask_once(resolver, address, name, question, Extension::None).await?;
    if !CODES_WITHOUT_EXTENSIONS.contains(&answer.code) {
        // The time starts at the refusal; later answers do not extend it.
        let until_ms = now_ms.saturating_add(PLAIN_MS);
        let _ = plain_until_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known_ms| {
            (known_ms <= now_ms).then_some(until_ms)
        });
    }
    Ok(answer)
}

async fn ask_once(
    resolver: &Resolver,
    server: SocketAddr,
    name: &str,
    question: Question,
    extension: Extension,
) -> Result<Answer, Failure> {
    // The keys of a new hasher cannot be guessed, so its output cannot be either.
    let id = RandomState::new().hash_one(server) as u16;
    let mut message = Vec::new();
    let written = dns::write_question(id, name, question, extension, &mut message);
    written.map_err(|_| Failure::Name)?;
    resolver.counts.add_sent(question);
    let asked = SentQuery {
        server,
        message: &message,
        id,
        name,
        question,
    };
    let wait = Duration::from_millis(RESEND_MS);
    let answer = tokio::time::timeout(wait, asked.answer()).await;
    let answer = answer.unwrap_or(Err(Failure::TimedOut))?;
    resolver.counts.add_response(answer.code);
    Ok(answer)
}

/// Why a server gave no answer.
enum Failure {
    /// The name server is unreachable.
    Socket,
    /// The answer is malformed.
    Malformed,
    /// The text is not a valid name.
    Name,
    /// The server did not answer within [`RESEND_MS`].
    TimedOut,
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Failure {
        Failure::Socket
    }
}

/// A question to one server.
struct SentQuery<'a> {
    server: SocketAddr,
    message: &'a [u8],
    id: u16,
    name: &'a str,
    question: Question,
}

impl SentQuery<'_> {
    async fn answer(&self) -> Result<Answer, Failure> {
        let answer = self.by_datagram().await?;
        if answer.truncated {
            self.by_stream().await
        } else {
            Ok(answer)
        }
    }

    async fn by_datagram(&self) -> Result<Answer, Failure> {
        let socket = self.connect(Kind::Datagram)?;
        socket
            .transport()
            .try_write(&[IoSlice::new(self.message)], More::No)?;
        let mut answer = Vec::with_capacity(MESSAGE_BYTES_MAX);
        loop {
            answer.clear();
            receive(&socket, &mut answer, MESSAGE_BYTES_MAX).await?;
            match self.parse(&answer) {
                Ok(answer) => return Ok(answer),
                // It is forged or late; the right one may still come.
                Err(AnswerError::Unrelated) => {}
                Err(AnswerError::Malformed) => return Err(Failure::Malformed),
            }
        }
    }

    async fn by_stream(&self) -> Result<Answer, Failure> {
        let socket = self.connect(Kind::Stream)?;
        let length = u16::try_from(self.message.len()).map_err(|_| Failure::Malformed)?;
        let framed = [&length.to_be_bytes(), self.message].concat();
        let mut rest = framed.as_slice();
        while !rest.is_empty() {
            let slices = [IoSlice::new(rest)];
            let send = || socket.transport().try_write(&slices, More::No);
            let sent = socket.when_writable(0, send).await?;
            rest = &rest[sent..];
        }
        let mut answer = Vec::new();
        loop {
            if let Some((length, message)) = answer.split_first_chunk::<2>() {
                let length = usize::from(u16::from_be_bytes(*length));
                if message.len() >= length {
                    let parsed = self.parse(&message[..length]);
                    return parsed.map_err(|_| Failure::Malformed);
                }
            }
            if receive(&socket, &mut answer, MESSAGE_BYTES_MAX).await? == 0 {
                return Err(Failure::Malformed);
            }
        }
    }

    fn connect(&self, kind: Kind) -> io::Result<Waited> {
        let family = match self.server {
            SocketAddr::V4(_) => Family::V4,
            SocketAddr::V6(_) => Family::V6,
        };
        let socket = socket::open(family, kind)?;
        match socket::connect(socket.as_fd(), self.server) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        Ok(Waited::new(Transport::plain(socket)))
    }

    fn parse(&self, message: &[u8]) -> Result<Answer, AnswerError> {
        dns::parse_answer(message, self.id, self.name, self.question)
    }
}

async fn receive(socket: &Waited, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
    let read = || socket.transport().try_read(buffer, bytes_max);
    socket.when_readable(read).await
}
