//! Looks the user up and compares the password.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::variables::Template;
use turnpike_lane::log::{Errno, Level};

use super::password::{self, Outcome};

/// Most bytes of a user file that are read: it is read by every request, so that a larger one
/// would be a slip that holds the lane.
const USER_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The check of a location.
pub(super) struct AuthHandler {
    /// What the user is told.
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
        let quoted = Quoted(&user);
        let Some(stored) = find(&text, &user) else {
            let path = path.display();
            exchange.log(
                Level::Error,
                format_args!("user \"{quoted}\" was not found in \"{path}\""),
            );
            return ask(exchange, &realm);
        };
        match password::verify(&password, stored) {
            Outcome::Right => Verdict::Finished,
            Outcome::Wrong => {
                exchange.log(
                    Level::Error,
                    format_args!("user \"{quoted}\": password mismatch"),
                );
                ask(exchange, &realm)
            }
            Outcome::UnknownScheme => {
                exchange.log(
                    Level::Crit,
                    format_args!("user \"{quoted}\": the scheme of the password is not supported"),
                );
                Verdict::Status(500)
            }
        }
    }
}

fn ask(exchange: &mut Exchange, realm: &[u8]) -> Verdict {
    let mut value = b"Basic realm=\"".to_vec();
    value.extend_from_slice(realm);
    value.push(b'"');
    exchange.response.fields.set(b"WWW-Authenticate", &value);
    Verdict::Status(401)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?
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
