//! The methods of the module dav_ext: PROPFIND, OPTIONS, LOCK and UNLOCK.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Work};
use turnpike_http::response::Response;
use turnpike_lane::log::Level;
use turnpike_lane::sys::socket::PeerAddress;
use turnpike_plan::background::run_blocking;
use turnpike_wire::hex;
use turnpike_wire::message::{BodyLength, Method};

use super::conditions::Conditions;
use super::failure::{Failure, LOCKED, Refusal};
use super::handler::{Depth, depth_of, source};
use super::if_field;
use super::listing::Listing;
use super::locks::{Change, Lock, LockZone, NoLock};
use super::place::Place;
use super::properties;
use super::request_xml;
use super::turns;
use crate::common::files::Files as FileRules;

/// Longest body of a PROPFIND or LOCK in bytes: a list of names.
const BODY_BYTES_MAX: u64 = 16 * 1024;

/// Random bytes of a lock's name, so that nobody guesses it.
const TOKEN_BYTES: usize = 16;

/// Bytes of an IPv6 address that name the network of one customer (RFC 6177).
const IPV6_NETWORK_BYTES: usize = 8;

/// What the directives of a location say.
pub(super) struct ExtendedSettings {
    pub(super) methods: Vec<Method>,
    /// All methods of the location, for `Allow`.
    pub(super) allowed: Vec<Method>,
    /// The mode of files that LOCK makes.
    pub(super) mode: u32,
    pub(super) locks: Option<Arc<LockZone>>,
    /// The links that are refused.
    pub(super) files: FileRules,
}

/// Answers the methods of a location.
pub(super) struct Extended(pub(super) Arc<ExtendedSettings>);

impl Handler for Extended {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let method = exchange.method();
        if !self.0.methods.contains(&method) {
            return Verdict::Declined;
        }
        if let BodyLength::Bytes(bytes) = exchange.body_length()
            && bytes > BODY_BYTES_MAX
        {
            return Verdict::Status(413);
        }
        match method {
            Method::Options => self.0.options(exchange),
            Method::Unlock => self.0.unlock(exchange),
            _ => Verdict::Wait(Box::new(Asking {
                settings: Arc::clone(&self.0),
            })),
        }
    }
}

impl ExtendedSettings {
    fn options(&self, exchange: &mut Exchange) -> Verdict {
        exchange.answer_options();
        let locks = self.locks.is_some() && self.methods.contains(&Method::Lock);
        let classes: &[u8] = if locks { b"1, 2" } else { b"1" };
        let fields = exchange.response.fields_mut();
        fields.set(b"DAV", classes);
        let mut allowed = b"GET, HEAD".to_vec();
        for method in self.allowed.iter().chain(&self.methods) {
            allowed.extend_from_slice(b", ");
            allowed.extend_from_slice(method.name().as_bytes());
        }
        fields.set(b"Allow", &allowed);
        Verdict::Respond
    }

    fn unlock(&self, exchange: &mut Exchange) -> Verdict {
        let Some(locks) = &self.locks else {
            return refuse(
                exchange,
                (405, "no \"dav_ext_lock\" is in force".to_owned()),
            );
        };
        let field = exchange.fields().value(b"Lock-Token");
        let token = field.and_then(|field| {
            let token = field.trim_ascii().strip_prefix(b"<")?;
            token.strip_suffix(b">")
        });
        let Some(token) = token else {
            return refuse(exchange, (400, "client sent no \"Lock-Token\"".to_owned()));
        };
        let path = source(exchange, &self.files).place.path;
        let now_ms = exchange.lane.clock.now_ms();
        if !locks.unlock(&path, token, now_ms) {
            return condition(
                &mut exchange.response,
                409,
                "lock-token-matches-request-uri",
            );
        }
        exchange.response.set_status(204);
        exchange.response.set_head_only(true);
        Verdict::Respond
    }
}

/// A request whose body is read first.
struct Asking {
    settings: Arc<ExtendedSettings>,
}

impl Work for Asking {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let body = match body(exchange, client).await {
            Ok(body) => body,
            Err(verdict) => return verdict,
        };
        match exchange.method() {
            Method::Propfind => self.propfind(exchange, &body).await,
            _ => self.lock(exchange, &body).await,
        }
    }
}

impl Asking {
    /// The conditions of the request. `If` names the lock that a request to refresh it is for, and
    /// whether there is one is looked up then.
    fn conditions(&self, exchange: &Exchange, path: &Path) -> Result<Conditions, Verdict> {
        let locks = self.settings.locks.as_ref();
        Conditions::of(exchange, locks, vec![path.to_path_buf()])
            .map_err(|refusal| refuse(exchange, refusal))
    }

    async fn propfind(&self, exchange: &mut Exchange, body: &[u8]) -> Verdict {
        let depth = match depth_of(exchange, Depth::Zero) {
            Ok(Depth::Infinity) => {
                return condition(&mut exchange.response, 403, "propfind-finite-depth");
            }
            Ok(depth) => depth,
            Err(refusal) => return refuse(exchange, refusal),
        };
        let Ok(asked) = request_xml::propfind(body) else {
            return refuse(exchange, malformed());
        };
        let place = source(exchange, &self.settings.files).place;
        let conditions = match self.conditions(exchange, &place.path) {
            Ok(conditions) => conditions,
            Err(verdict) => return verdict,
        };
        let listing = Listing {
            place,
            conditions,
            path: exchange.walk.path().to_vec(),
            with_entries: depth == Depth::One,
            asked,
            locks: self.settings.locks.clone(),
            now_ms: exchange.lane.clock.now_ms(),
        };
        match off_lane(exchange, move || listing.run()).await {
            Ok(text) => answer(&mut exchange.response, 207, text),
            Err(verdict) => verdict,
        }
    }

    async fn lock(&self, exchange: &mut Exchange, body: &[u8]) -> Verdict {
        let Some(locks) = &self.settings.locks else {
            return refuse(
                exchange,
                (405, "no \"dav_ext_lock\" is in force".to_owned()),
            );
        };
        let depth = match depth_of(exchange, Depth::Infinity) {
            Ok(Depth::One) => {
                let message = "\"Depth\" header must be 0 or infinity";
                return refuse(exchange, (400, message.to_owned()));
            }
            Ok(depth) => depth,
            Err(refusal) => return refuse(exchange, refusal),
        };
        let place = source(exchange, &self.settings.files).place;
        let path = place.path.clone();
        let conditions = match self.conditions(exchange, &path) {
            Ok(conditions) => conditions,
            Err(verdict) => return verdict,
        };
        let now_ms = exchange.lane.clock.now_ms();
        if body.is_empty() {
            return refresh(exchange, locks, path, conditions).await;
        }
        let info = match request_xml::lock_info(body) {
            Ok(info) if info.is_exclusive => info,
            Ok(_) => {
                let message = "client asks for a lock that is not an exclusive write lock";
                return refuse(exchange, (403, message.to_owned()));
            }
            Err(_) => return refuse(exchange, malformed()),
        };
        let Some(token) = new_token() else {
            return Verdict::Status(500);
        };
        let lock = Lock {
            token,
            root: exchange.walk.path().to_vec(),
            is_deep: depth == Depth::Infinity,
            owner: info.owner,
            client: client_of(exchange.requester.peer()),
            until_ms: now_ms.saturating_add(locks.timeout_ms()),
        };
        match locks.lock(&path, lock.clone(), now_ms) {
            Ok(()) => {}
            Err(NoLock::Taken) => {
                return condition(&mut exchange.response, 423, "no-conflicting-lock");
            }
            Err(NoLock::Full) => {
                return refuse(exchange, (507, "the zone of locks is full".to_owned()));
            }
            Err(NoLock::Share) => {
                let message = "the client holds its share of the zone of locks";
                return refuse(exchange, (507, message.to_owned()));
            }
        }
        self.make(exchange, locks, lock, place, conditions).await
    }

    /// Makes the file that is locked, where there is none; gives the lock back where that fails.
    async fn make(
        &self,
        exchange: &mut Exchange,
        locks: &LockZone,
        lock: Lock,
        mut place: Place,
        conditions: Conditions,
    ) -> Verdict {
        let path = place.path.clone();
        let now_ms = exchange.lane.clock.now_ms();
        let mode = self.settings.mode;
        let is_folder = exchange.walk.path().ends_with(b"/");
        // The folder may be locked, so that nothing appears in it.
        let mut tokens = shown_tokens(exchange);
        tokens.push(lock.token.clone().into_bytes());
        let may_add = locks.allows(&path, Change::Added, &tokens, now_ms);
        let make = move || {
            let _turn = turns::take([place.path.as_path()]);
            let reached = place.reach(None, 409)?;
            let made = conditions
                .check(&place.path)
                .and_then(|()| make_if_absent(&place.path, is_folder, may_add.then_some(mode)));
            made.map_err(|mut failure| {
                reached.iter().for_each(|place| place.restore(&mut failure));
                failure
            })
        };
        match off_lane(exchange, make).await {
            Ok(status) => locked(&mut exchange.response, status, &lock, now_ms),
            Err(verdict) => {
                locks.unlock(&path, lock.token.as_bytes(), now_ms);
                match verdict {
                    Verdict::Status(LOCKED) => lock_is_missing(&mut exchange.response),
                    verdict => verdict,
                }
            }
        }
    }
}

/// Has a lock hold on.
async fn refresh(
    exchange: &mut Exchange,
    locks: &LockZone,
    path: PathBuf,
    conditions: Conditions,
) -> Verdict {
    let judged = path.clone();
    if let Err(verdict) = off_lane(exchange, move || conditions.check(&judged)).await {
        return verdict;
    }
    let now_ms = exchange.lane.clock.now_ms();
    match locks.refresh(&path, &shown_tokens(exchange), now_ms) {
        Some(lock) => locked(&mut exchange.response, 200, &lock, now_ms),
        None => condition(
            &mut exchange.response,
            412,
            "lock-token-matches-request-uri",
        ),
    }
}

/// A lock on what is not there makes an empty file (RFC 4918 section 7.3), unless its folder is
/// locked (section 7.4): then there is no mode.
fn make_if_absent(path: &Path, is_folder: bool, mode: Option<u32>) -> Result<u16, Failure> {
    if is_folder {
        let there = path.metadata();
        return match there {
            Ok(there) if there.is_dir() => Ok(200),
            Ok(_) => Err(Failure::new(
                409,
                "the URI ends with a slash, but the path is a file",
            )),
            Err(error) => Err(Failure::of("stat()", path, &error, 409)),
        };
    }
    let Some(mode) = mode else {
        return if path.exists() {
            Ok(200)
        } else {
            Err(Failure::locked(path))
        };
    };
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    match made {
        Ok(_) => Ok(201),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(200),
        Err(error) => Err(Failure::of("open()", path, &error, 409)),
    }
}

fn locked(response: &mut Response, status: u16, lock: &Lock, now_ms: u64) -> Verdict {
    let mut text = Vec::new();
    properties::write_lock(lock, now_ms, &mut text);
    let token = format!("<{}>", lock.token);
    response.fields_mut().set(b"Lock-Token", token.as_bytes());
    answer(response, status, text)
}

/// The holder of a lock: an address of IPv4, or a network of IPv6, which is given to one customer.
fn client_of(peer: PeerAddress) -> Vec<u8> {
    match peer.inet().map(|address| address.ip().to_canonical()) {
        Some(IpAddr::V4(address)) => address.octets().to_vec(),
        Some(IpAddr::V6(address)) => address.octets()[..IPV6_NETWORK_BYTES].to_vec(),
        None => Vec::new(),
    }
}

fn new_token() -> Option<String> {
    let mut bytes = [0; TOKEN_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    let text = hex::text(&bytes);
    // As RFC 9562 writes random ones.
    let variant = char::from(b"89ab"[usize::from(bytes[8] & 3)]);
    let (time, middle, high) = (&text[..8], &text[8..12], &text[13..16]);
    let (low, node) = (&text[17..20], &text[20..]);
    Some(format!(
        "urn:uuid:{time}-{middle}-4{high}-{variant}{low}-{node}"
    ))
}

fn malformed() -> Refusal {
    (400, "client sent a malformed body".to_owned())
}

fn refuse(exchange: &Exchange, (status, message): Refusal) -> Verdict {
    exchange.log(Level::Error, format_args!("{message}"));
    Verdict::Status(status)
}

/// Answers with a condition that does not hold.
pub(super) fn condition(response: &mut Response, status: u16, name: &str) -> Verdict {
    let mut text = Vec::new();
    properties::write_error(name, &mut text);
    answer(response, status, text)
}

fn answer(response: &mut Response, status: u16, text: Vec<u8>) -> Verdict {
    response.set_status(status);
    // The conditions were judged before anything was done.
    response.set_unconditional(true);
    response.set_content_type(properties::CONTENT_TYPE);
    response.set_text(text);
    response.send_text();
    Verdict::Respond
}

/// The body of a request, wherever it was put.
async fn body(exchange: &mut Exchange, client: Client<'_>) -> Result<Vec<u8>, Verdict> {
    client.read_body(exchange).await?;
    if exchange.body.length() > BODY_BYTES_MAX {
        return Err(Verdict::Status(413));
    }
    let Some(file) = exchange.body.file() else {
        return Ok(exchange.body.bytes().to_vec());
    };
    let mut text = Vec::new();
    let bytes_max = usize::try_from(file.size_bytes()).unwrap_or(usize::MAX);
    match file.read(0, bytes_max, &mut text) {
        Ok(_) => Ok(text),
        Err(error) => {
            exchange.log(Level::Crit, format_args!("read() failed ({error})"));
            Err(Verdict::Status(500))
        }
    }
}

/// Does what may block on another thread.
async fn off_lane<T: Send + 'static>(
    exchange: &Exchange,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Verdict> {
    let done = match run_blocking(work) {
        Ok(done) => done.await,
        Err(refusal) => {
            exchange.log(
                Level::Error,
                format_args!("files cannot be read: {refusal}"),
            );
            return Err(Verdict::Status(503));
        }
    };
    match done {
        Some(Ok(done)) => Ok(done),
        Some(Err(failure)) => {
            exchange.log(failure.level, format_args!("{}", failure.text));
            Err(Verdict::Status(failure.status))
        }
        None => Err(Verdict::Status(500)),
    }
}

/// The locks that a request shows to have.
pub(super) fn shown_tokens(exchange: &Exchange) -> Vec<Vec<u8>> {
    let lines = exchange.fields().values(b"If");
    let tokens = lines.flat_map(if_field::shown_tokens);
    tokens.take(if_field::CONDITIONS_MAX).collect()
}

/// Whether the locks of a location let a request change these paths.
pub(super) fn allowed_by_locks(
    exchange: &Exchange,
    locks: &LockZone,
    changes: &[(PathBuf, Change)],
) -> bool {
    let tokens = shown_tokens(exchange);
    let now_ms = exchange.lane.clock.now_ms();
    let is_allowed =
        |(path, change): &(PathBuf, Change)| locks.allows(path, *change, &tokens, now_ms);
    changes.iter().all(is_allowed)
}

/// The answer to a request that does not show the lock that it needs.
pub(super) fn lock_is_missing(response: &mut Response) -> Verdict {
    condition(response, LOCKED, "lock-token-submitted")
}
