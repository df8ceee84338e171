//! Files as responses: what an open file becomes for the client, and what a path becomes where
//! there is no file.
//!
//! Which requests are answered with a file, the families decide.

use turnpike_http::Quoted;
use turnpike_http::engine::Walk;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_http::response::{Body, FileBody, Parts, Response};
use turnpike_lane::files::{FileError, FileHandle};
use turnpike_lane::log::Level;
use turnpike_lane::sys::file::Metadata;
use turnpike_wire::hex;
use turnpike_wire::message::Method;
use turnpike_wire::target::{self, Escape};

use crate::common::files::{self, Files};

/// Opens the file that the request's path stands for.
///
/// # Errors
/// The verdict that says why there is none.
pub(crate) fn open(exchange: &Exchange, files: &Files) -> Result<FileHandle, Verdict> {
    let mut path = exchange.lane.take_scratch();
    exchange.file_path(&mut path);
    let opened = files.open(exchange, &path);
    let opened = opened.map_err(|error| refuse(exchange, &path, error));
    exchange.lane.keep_scratch(path);
    opened
}

/// Answers with the open file that the request's path stands for.
pub(crate) fn answer_opened(exchange: &mut Exchange, files: &Files, file: FileHandle) -> Verdict {
    files::with_file_path(exchange, |exchange, path| {
        answer(exchange, files, path, file)
    })
}

/// Sends a text and a part of the file in place of the whole file, with which the request is
/// answered already.
pub(crate) fn put_part(response: &mut Response, text: Vec<u8>, offset: u64, length: u64) {
    let Body::File(FileBody { file, .. }) = response.take_body() else {
        return;
    };
    response.set_content_length(Some(text.len() as u64 + length));
    let parts = Parts::Many {
        parts: vec![(text, offset, length)],
        end: Vec::new(),
    };
    response.set_body(Body::File(FileBody { file, parts }));
}

/// Answers with an open file, and says what it is by the request's path.
pub(crate) fn answer(
    exchange: &mut Exchange,
    files: &Files,
    path: &[u8],
    file: FileHandle,
) -> Verdict {
    let metadata = *file.metadata();
    if metadata.is_directory() {
        return to_folder(&mut exchange.response, &exchange.walk);
    }
    if !metadata.is_file() {
        let path = Quoted(path);
        exchange.log(
            Level::Crit,
            format_args!("\"{path}\" is not a regular file"),
        );
        return Verdict::Status(404);
    }
    if exchange.method() == Method::Post {
        return Verdict::Status(405);
    }
    let now_s = exchange.lane.clock.unix_seconds() as i64;
    let response = &mut exchange.response;
    response.set_status(200);
    response.set_content_length(Some(metadata.size_bytes));
    // A time in the future is not sent (RFC 9110 section 8.8.2.1).
    response.set_last_modified(Some(metadata.modified_s.min(now_s)));
    response.set_ranges_allowed(true);
    if files.have_tags() {
        write_etag(&metadata, response.etag_mut());
    }
    exchange.choose_content_type();
    if metadata.size_bytes > 0 {
        let parts = Parts::One {
            offset: 0,
            length: metadata.size_bytes,
        };
        exchange
            .response
            .set_body(Body::File(FileBody { file, parts }));
    }
    Verdict::Respond
}

/// Redirects from a folder without its slash to the right path, so that relative links work.
fn to_folder(response: &mut Response, walk: &Walk) -> Verdict {
    let location = response.location_mut();
    location.clear();
    target::escape(walk.path(), Escape::Path, location);
    location.push(b'/');
    if !walk.query().is_empty() {
        location.push(b'?');
        location.extend_from_slice(walk.query());
    }
    Verdict::Status(301)
}

/// The verdict on a path that cannot be opened; the log says why.
pub(crate) fn refuse(exchange: &Exchange, path: &[u8], error: FileError) -> Verdict {
    let errno = error.errno;
    let (level, status) = if files::is_absence(errno) {
        (Level::Error, 404)
    } else if errno == libc::EACCES || files::is_refused_link(errno) {
        (Level::Error, 403)
    } else {
        (Level::Crit, 500)
    };
    if status != 404 || exchange.location().settings.log_not_found {
        files::log_failure(exchange, level, path, error);
    }
    Verdict::Status(status)
}

/// nginx's entity tag: modification time and size in hexadecimal.
fn write_etag(metadata: &Metadata, out: &mut Vec<u8>) {
    out.clear();
    out.push(b'"');
    hex::write_number(out, metadata.modified_s as u64);
    out.push(b'-');
    hex::write_number(out, metadata.size_bytes);
    out.push(b'"');
}
