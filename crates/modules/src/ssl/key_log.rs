//! `ssl_key_log` and its kin: the secrets of sessions, for programs that read recorded ones, such
//! as Wireshark. Whoever has the file reads all that the sessions said.

use std::fmt;
use std::sync::Arc;

use rustls::KeyLog;
use turnpike_conf::{ConfError, Entry, View};
use turnpike_lane::log::{Errno, LogFile};
use turnpike_plan::builder::Builder;
use turnpike_wire::hex;

/// A file that secrets are written to.
struct KeyLogFile(Arc<LogFile>);

/// The file that a directive names.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn key_log<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    entry: &Entry,
) -> Result<Arc<dyn KeyLog>, ConfError> {
    let path = builder.environment.prefix().join(entry.argument(0));
    match builder.environment.secret_log_file(&path) {
        Ok(file) => Ok(Arc::new(KeyLogFile(file))),
        Err(error) => {
            let (path, errno) = (path.display(), Errno(&error));
            Err(view.error(entry.span, format!("open() \"{path}\" failed {errno}")))
        }
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let (random, secret) = (hex::text(client_random), hex::text(secret));
        let line = format!("{label} {random} {secret}\n");
        self.0.write_line(line.as_bytes());
    }
}

impl fmt::Debug for KeyLogFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KeyLogFile({})", self.0.path().display())
    }
}
