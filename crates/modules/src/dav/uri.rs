//! The files that URIs of a location stand for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use turnpike_http::exchange::Exchange;
use turnpike_wire::{host, target};

use super::place::Place;
use crate::common::files::Files;
use crate::common::safe_path::safe_path;

/// Why a URI stands for no path of this location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPath {
    /// The URI cannot be read.
    Invalid,
    /// The URI is one of another server or location.
    Elsewhere,
}

/// The path that a URI or an absolute path stands for.
pub(super) fn path_of(exchange: &Exchange, text: &[u8]) -> Result<Vec<u8>, NoPath> {
    let path = match text.first() {
        Some(b'/') => text,
        _ => {
            let start = format!("{}://", exchange.scheme());
            let rest = text.strip_prefix(start.as_bytes()).ok_or(NoPath::Invalid)?;
            let end = memchr::memchr(b'/', rest).ok_or(NoPath::Invalid)?;
            let host = host::validate(&rest[..end]).map_err(|_| NoPath::Invalid)?;
            if !rest[..host.len].eq_ignore_ascii_case(exchange.request().host()) {
                return Err(NoPath::Elsewhere);
            }
            &rest[end..]
        }
    };
    let end = memchr::memchr2(b'?', b'#', path).unwrap_or(path.len());
    let path = &path[..end];
    // As nginx does, `..` is refused, even where it leads to what is here.
    let _ = safe_path(path).ok_or(NoPath::Invalid)?;
    let merges = exchange.server().settings.merge_slashes;
    let mut plain = Vec::new();
    let path = match target::normalise(path, merges, &mut plain) {
        Ok(target::Normal::Clean) => path.to_vec(),
        Ok(target::Normal::Rewritten) => plain,
        Err(_) => return Err(NoPath::Invalid),
    };
    let root = &exchange.location().settings.root;
    let prefix = root.alias_bytes();
    let is_here = if root.is_alias() {
        prefix > 0 && path.get(..prefix) == exchange.walk.path().get(..prefix)
    } else {
        true
    };
    is_here.then_some(path).ok_or(NoPath::Elsewhere)
}

/// The file that a path stands for, with the links on it that are refused.
pub(super) fn place(exchange: &Exchange, files: &Files, path: &[u8]) -> Place {
    let path = file(exchange, path);
    let bytes = path.as_os_str().as_encoded_bytes();
    let symlinks = files.symlinks(exchange, bytes);
    let inside = files.symlinks(exchange, &[bytes, b"/"].concat()).rule;
    Place {
        path,
        symlinks,
        inside,
    }
}

/// The file that a path stands for.
pub(super) fn file(exchange: &Exchange, path: &[u8]) -> PathBuf {
    let mut file = Vec::new();
    exchange.file_path_of(path, &mut file);
    OsString::from_vec(file).into()
}

/// A path without the slash that shows it to be a folder.
pub(super) fn without_slash(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}
