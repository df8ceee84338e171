//! The server that foreign clients of one version of HTTP use: its files, and what its log says of
//! them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use turnpike_testkit::{Builder, Server};

use super::matrix::Found;

/// The size of the middle one of the files; the clients' programs know it too.
pub(super) const MIDDLE_BYTES: usize = 100_000;

/// What a log says of a connection that was cut as one of an attacker, in our words and in nginx's.
const CUT: &[&str] = &[
    "flood detected",
    "client sent too many",
    "no byte has moved",
];

/// Starts a server with a page, with files to download, and with a folder to upload to.
///
/// # Errors
/// The server's output, or the folder's error.
pub(super) fn start(
    builder: Builder,
    (page, text): (&str, &str),
    large_bytes: usize,
) -> Result<Server, String> {
    let started = builder
        .file(format!("html/{page}"), text)
        .file("html/large", pattern(large_bytes))
        .file("html/middle", pattern(MIDDLE_BYTES))
        .file("html/put/.keep", "")
        .try_start();
    let server = started.map_err(|error| error.to_string())?;
    // Whoever serves may write there.
    let put = server.folder().join("html/put");
    fs::set_permissions(put, Permissions::from_mode(0o777)).map_err(|error| error.to_string())?;
    Ok(server)
}

/// The cell of the log: what it says of clients behind its first `before_bytes` bytes.
pub(super) fn judge_log(server: &Server, before_bytes: usize) -> Found {
    let log = server.log("error.log");
    let mut lines = log[before_bytes..].lines();
    let cut = lines.find(|line| CUT.iter().any(|words| line.contains(words)));
    let judged = cut.map_or(Ok(()), |line| Err(line.to_owned()));
    ("log".to_owned(), judged)
}

/// The bytes that are posted and downloaded: no block of a buffer's usual size is like the next.
pub(super) fn pattern(size: usize) -> Vec<u8> {
    (0..=250_u8).cycle().take(size).collect()
}
