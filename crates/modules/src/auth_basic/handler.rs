//! Looks the user up and compares the password.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::pin::Pin;
use std::time::Instant;

use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::lane::LaneSlot;
use turnpike_http::phase::{Handler, Verdict, Work};
use turnpike_http::variables::Template;
use turnpike_lane::files::OpenFile;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::pool::{PoolLimits, PoolRefusal, WorkerPool};
use turnpike_plan::variables::Subject;
use turnpike_wire::message::Method;

use super::password::{self, Outcome};
use super::remembered::{REMEMBERED, Tag};
use crate::common::files::Contents;

/// Where passwords are compared that are stored under a slow scheme. Two threads, so that one heavy
/// check does not hold up all others, and guessing takes no more of the machine than that. Their
/// queue is a quarter of a minute of bcrypt at cost 12: nobody waits for longer.
static PASSWORDS: WorkerPool = WorkerPool::new(PoolLimits {
    name: "passwords",
    threads_max: 2,
    queued_max: 128,
});

/// Most bytes of a user file: one that is not kept is read by every request, so that a larger one
/// would be a slip that holds the lane. It is an error, since the password of the last line that
/// fits could be cut.
const USER_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Largest user file that is kept in memory, in bytes: ten thousand users.
const KEPT_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The check of a location.
pub(super) struct AuthHandler {
    /// The text that browsers show to the user.
    pub(super) realm: Template,
    /// Where the users are.
    pub(super) file: Template,
    /// Where a relative path starts; with a slash at its end.
    pub(super) folder: Vec<u8>,
    /// The lane's hot files.
    pub(super) contents: LaneSlot<Contents>,
}

/// What a request says of its user.
#[derive(Clone, Copy)]
struct Credentials<'a> {
    user: &'a [u8],
    password: &'a [u8],
}

/// Texts of a check, in buffers that are used again.
struct Texts {
    realm: Vec<u8>,
    /// User, colon and password.
    credentials: Vec<u8>,
    path: Vec<u8>,
}

impl Handler for AuthHandler {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let mut texts = Texts::take(exchange);
        let verdict = self.check(exchange, &mut texts);
        texts.keep(exchange);
        verdict
    }
}

impl Texts {
    fn take(exchange: &Exchange) -> Self {
        let mut values = exchange.values().borrow_mut();
        Self {
            realm: values.take_text(),
            credentials: values.take_text(),
            path: values.take_text(),
        }
    }

    fn keep(self, exchange: &Exchange) {
        let mut values = exchange.values().borrow_mut();
        for text in [self.realm, self.credentials, self.path] {
            values.keep_text(text);
        }
    }
}

impl AuthHandler {
    fn check(&self, exchange: &mut Exchange, texts: &mut Texts) -> Verdict {
        let Texts {
            realm,
            credentials,
            path,
        } = texts;
        self.realm.evaluate(exchange, realm);
        if realm.as_slice() == b"off" {
            return Verdict::Declined;
        }
        let Some(user_bytes) = exchange.basic_credentials(credentials) else {
            exchange.log(
                Level::Info,
                format_args!("no user/password was provided for basic authentication"),
            );
            return ask(exchange, realm);
        };
        let given = Credentials {
            user: &credentials[..user_bytes],
            password: &credentials[user_bytes + 1..],
        };
        self.put_path(exchange, path);
        let contents = exchange.plan.state(&self.contents);
        let file = contents.open_regular(exchange, path, KEPT_FILE_BYTES_MAX);
        match file.and_then(|file| self.judge(exchange, &file, given, path)) {
            Ok(Judged::Right) => Verdict::Finished,
            Ok(Judged::Quick(outcome)) => decide(exchange, given.user, realm, outcome),
            Ok(Judged::Unknown) => ask(exchange, realm),
            Ok(Judged::TooLarge) => too_large(exchange, path),
            Ok(Judged::Slow(stored)) => check_off_lane(exchange, given, realm, stored),
            Err(error) => unreadable(exchange, path, &error),
        }
    }

    fn put_path(&self, exchange: &Exchange, path: &mut Vec<u8>) {
        path.extend_from_slice(&self.folder);
        self.file.evaluate(exchange, path);
        // An absolute path takes the folder's place.
        if path.get(self.folder.len()) == Some(&b'/') {
            path.drain(..self.folder.len());
        }
    }

    /// Looks the user up, and compares what is quick to be compared.
    fn judge(
        &self,
        exchange: &Exchange,
        file: &OpenFile,
        given: Credentials<'_>,
        path: &[u8],
    ) -> io::Result<Judged> {
        let read;
        let text = match file.content() {
            Some(content) => content,
            None if file.metadata().size_bytes > USER_FILE_BYTES_MAX => {
                return Ok(Judged::TooLarge);
            }
            None => {
                read = read_all(file)?;
                &read
            }
        };
        let Some(stored) = find(text, given.user) else {
            let (quoted, path) = (Quoted(given.user), path_of(path).display());
            exchange.log(
                Level::Error,
                format_args!("user \"{quoted}\" was not found in \"{path}\""),
            );
            return Ok(Judged::Unknown);
        };
        if password::is_quick(stored) {
            return Ok(Judged::Quick(password::verify(given.password, stored)));
        }
        let tag = Tag::of(given.user, given.password, stored);
        Ok(if REMEMBERED.has(tag, Instant::now()) {
            Judged::Right
        } else {
            Judged::Slow(stored.to_vec())
        })
    }
}

/// What the lane finds out of a password.
enum Judged {
    /// The password was right a moment ago.
    Right,
    /// The password was compared.
    Quick(Outcome),
    /// There is no such user.
    Unknown,
    /// The user file is larger than is read.
    TooLarge,
    /// A thread that is no lane is to compare the password with this.
    Slow(Vec<u8>),
}

/// Has a thread that is no lane compare.
fn check_off_lane(
    exchange: &Exchange,
    given: Credentials<'_>,
    realm: &[u8],
    stored: Vec<u8>,
) -> Verdict {
    let (user, password) = (given.user.to_vec(), given.password.to_vec());
    let tag = Tag::of(&user, &password, &stored);
    let check = move || {
        // Of the requests of one page, the first may have been checked meanwhile.
        if REMEMBERED.has(tag, Instant::now()) {
            return Outcome::Right;
        }
        let outcome = password::verify(&password, &stored);
        if outcome == Outcome::Right {
            REMEMBERED.add(tag, Instant::now());
        }
        outcome
    };
    match PASSWORDS.submit(check) {
        Ok(outcome) => Verdict::Wait(Box::new(Checking {
            user,
            realm: realm.to_vec(),
            outcome: Box::pin(outcome),
        })),
        Err(refusal) => {
            refused(exchange, &user, &refusal);
            Verdict::Status(503)
        }
    }
}

fn refused(exchange: &Exchange, user: &[u8], refusal: &PoolRefusal) {
    let user = Quoted(user);
    match refusal {
        PoolRefusal::Full => {
            let waiting = PASSWORDS.limits().queued_max;
            exchange.log(
                Level::Error,
                format_args!(
                    "user \"{user}\": the password was not checked: {waiting} other checks are \
                     already waiting"
                ),
            );
        }
        PoolRefusal::NoThread(error) => {
            let errno = Errno(error);
            exchange.log(
                Level::Alert,
                format_args!(
                    "user \"{user}\": the password was not checked: starting a thread failed \
                     {errno}"
                ),
            );
        }
    }
}

/// A check that is under way.
struct Checking {
    user: Vec<u8>,
    realm: Vec<u8>,
    outcome: Pin<Box<dyn Future<Output = Option<Outcome>>>>,
}

impl Work for Checking {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let outcome = client.unless_gone(self.outcome).await;
        match outcome {
            Some(Some(outcome)) => decide(exchange, &self.user, &self.realm, outcome),
            Some(None) => {
                let user = Quoted(&self.user);
                exchange.log(
                    Level::Alert,
                    format_args!("user \"{user}\": the check of the password panicked"),
                );
                Verdict::Status(500)
            }
            None => exchange.client_went_away(),
        }
    }
}

fn decide(exchange: &mut Exchange, user: &[u8], realm: &[u8], outcome: Outcome) -> Verdict {
    let quoted = Quoted(user);
    match outcome {
        Outcome::Right => Verdict::Finished,
        Outcome::Wrong => {
            exchange.log(
                Level::Error,
                format_args!("user \"{quoted}\": password mismatch"),
            );
            ask(exchange, realm)
        }
        Outcome::UnknownScheme => {
            exchange.log(
                Level::Crit,
                format_args!(
                    "user \"{quoted}\": the scheme of the stored password is not supported, or the \
                     stored password is broken"
                ),
            );
            Verdict::Status(500)
        }
    }
}

fn ask(exchange: &mut Exchange, realm: &[u8]) -> Verdict {
    let mut value = b"Basic realm=\"".to_vec();
    value.extend_from_slice(realm);
    value.push(b'"');
    let (name, status): (&[u8], u16) = match exchange.method() {
        Method::Connect => (b"Proxy-Authenticate", 407),
        _ => (b"WWW-Authenticate", 401),
    };
    exchange.response.fields_mut().set(name, &value);
    Verdict::Status(status)
}

/// The bytes of a file that is not in memory.
fn read_all(file: &OpenFile) -> io::Result<Vec<u8>> {
    let size_bytes = file.metadata().size_bytes;
    let mut text = vec![0; usize::try_from(size_bytes).unwrap_or_default()];
    let mut filled = 0;
    while filled < text.len() {
        match file.read_at(&mut text[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    text.truncate(filled);
    Ok(text)
}

fn path_of(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

fn unreadable(exchange: &Exchange, path: &[u8], error: &io::Error) -> Verdict {
    let (level, status) = match error.kind() {
        io::ErrorKind::NotFound => (Level::Error, 403),
        _ => (Level::Crit, 500),
    };
    let (path, errno) = (path_of(path).display(), Errno(error));
    exchange.log(level, format_args!("open() \"{path}\" failed {errno}"));
    Verdict::Status(status)
}

fn too_large(exchange: &Exchange, path: &[u8]) -> Verdict {
    let path = path_of(path).display();
    exchange.log(
        Level::Crit,
        format_args!("user file \"{path}\" is larger than {USER_FILE_BYTES_MAX} bytes"),
    );
    Verdict::Status(500)
}

/// The stored password of a user: what stands between the first and the second colon of the line,
/// or its end.
pub(super) fn find<'t>(text: &'t [u8], user: &[u8]) -> Option<&'t [u8]> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        if line.first() == Some(&b'#') {
            return None;
        }
        let stored = line.strip_prefix(user)?.strip_prefix(b":")?;
        let end = stored.iter().position(|byte| matches!(byte, b':' | b'\r'));
        Some(&stored[..end.unwrap_or(stored.len())])
    })
}
