//! Looks the user up and compares the password.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Instant;

use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Work};
use turnpike_http::variables::Template;
use turnpike_lane::files;
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::pool::{PoolLimits, PoolRefusal, WorkerPool};
use turnpike_lane::sys::file::Links;

use super::password::{self, Outcome};
use super::remembered::{REMEMBERED, Tag};

/// Where passwords are compared that are stored under a slow scheme. Two threads, so that one heavy
/// check does not hold up all others, and guessing takes no more of the machine than that. Their
/// queue is a quarter of a minute of bcrypt at cost 12: nobody waits for longer.
static PASSWORDS: WorkerPool = WorkerPool::new(PoolLimits {
    name: "passwords",
    threads_max: 2,
    queued_max: 128,
});

/// Most bytes of a user file that are read: it is read by every request, so that a larger one
/// would be a slip that holds the lane.
const USER_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The check of a location.
pub(super) struct AuthHandler {
    /// The text that browsers show to the user.
    pub(super) realm: Template,
    /// Where the users are.
    pub(super) file: Template,
    /// Where a relative path starts.
    pub(super) folder: PathBuf,
}

impl Handler for AuthHandler {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let realm = self.realm.value(exchange);
        if realm == b"off" {
            return Verdict::Declined;
        }
        let Some((user, password)) = exchange.basic_credentials() else {
            exchange.log(
                Level::Info,
                format_args!("no user/password was provided for basic authentication"),
            );
            return ask(exchange, &realm);
        };
        let name = self.file.value(exchange);
        let path = self.folder.join(Path::new(OsStr::from_bytes(&name)));
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) => return unreadable(exchange, &path, &error),
        };
        let Some(stored) = find(&text, &user) else {
            let (quoted, path) = (Quoted(&user), path.display());
            exchange.log(
                Level::Error,
                format_args!("user \"{quoted}\" was not found in \"{path}\""),
            );
            return ask(exchange, &realm);
        };
        if password::is_quick(stored) {
            let outcome = password::verify(&password, stored);
            return decide(exchange, &user, &realm, outcome);
        }
        let tag = Tag::of(&user, &password, stored);
        if REMEMBERED.has(tag, Instant::now()) {
            return Verdict::Finished;
        }
        check_aside(exchange, user, realm, password, stored.to_vec())
    }
}

/// Has a thread that is no lane compare.
fn check_aside(
    exchange: &Exchange,
    user: Vec<u8>,
    realm: Vec<u8>,
    password: Vec<u8>,
    stored: Vec<u8>,
) -> Verdict {
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
            realm,
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
                    "user \"{user}\": the password was not checked: {waiting} others wait for \
                     their check already"
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
        let outcome = client.while_there(self.outcome).await;
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
    exchange
        .response
        .fields_mut()
        .set(b"WWW-Authenticate", &value);
    Verdict::Status(401)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    files::open_regular(path, Links::Follow)?
        .take(USER_FILE_BYTES_MAX)
        .read_to_end(&mut text)?;
    Ok(text)
}

fn unreadable(exchange: &Exchange, path: &Path, error: &io::Error) -> Verdict {
    let (level, status) = match error.kind() {
        io::ErrorKind::NotFound => (Level::Error, 403),
        _ => (Level::Crit, 500),
    };
    let (path, errno) = (path.display(), Errno(error));
    exchange.log(level, format_args!("open() \"{path}\" failed {errno}"));
    Verdict::Status(status)
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
