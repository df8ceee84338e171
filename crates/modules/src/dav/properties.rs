//! Answers in XML: the properties of files and folders, and locks (RFC 4918 sections 9.1 and 15).

use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

use turnpike_wire::date;
use turnpike_wire::hex;
use turnpike_wire::target::{self, Escape};

use super::locks::Lock;
use super::request_xml::{Name, PropertySelection};
use crate::common::html;

/// What an answer begins with.
pub(super) const BEGIN: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

/// The media type of an answer.
pub(super) const CONTENT_TYPE: &[u8] = b"text/xml; charset=utf-8";

/// The properties that are known, as they stand in WebDAV's namespace.
const KNOWN: [&str; 8] = [
    "displayname",
    "resourcetype",
    "getcontentlength",
    "getlastmodified",
    "getetag",
    "creationdate",
    "lockdiscovery",
    "supportedlock",
];

/// A file or folder.
pub(super) struct Resource<'a> {
    /// The path in URIs, unescaped.
    pub(super) path: &'a [u8],
    pub(super) metadata: &'a Metadata,
    /// The locks that hold for it; `None`: there are no locks here.
    pub(super) locks: Option<&'a [Lock]>,
    pub(super) now_ms: u64,
}

/// Writes what a PROPFIND asks of a file or folder.
pub(super) fn write_response(
    resource: &Resource<'_>,
    asked: &PropertySelection,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"<D:response>\n<D:href>");
    write_href(resource.path, out);
    out.extend_from_slice(b"</D:href>\n");
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    match asked {
        PropertySelection::All => {
            for name in KNOWN {
                write_property(resource, name, &mut found);
            }
        }
        PropertySelection::Names => {
            for name in KNOWN.iter().filter(|name| resource.has(name)) {
                write_empty(name.as_bytes(), &mut found);
            }
        }
        PropertySelection::These(names) => {
            for name in names {
                let known = KNOWN.iter().find(|known| known.as_bytes() == name.dav());
                if !known.is_some_and(|known| write_property(resource, known, &mut found)) {
                    write_foreign(name, &mut missing);
                }
            }
        }
    }
    if !found.is_empty() || missing.is_empty() {
        write_status(&found, "200 OK", out);
    }
    if !missing.is_empty() {
        write_status(&missing, "404 Not Found", out);
    }
    out.extend_from_slice(b"</D:response>\n");
}

/// Writes the answer to a LOCK.
pub(super) fn write_lock(lock: &Lock, now_ms: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(BEGIN);
    out.extend_from_slice(b"<D:prop xmlns:D=\"DAV:\">\n<D:lockdiscovery>\n");
    write_active(lock, now_ms, out);
    out.extend_from_slice(b"</D:lockdiscovery>\n</D:prop>\n");
}

/// Writes an error with the condition that does not hold (RFC 4918 section 16).
pub(super) fn write_error(condition: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(BEGIN);
    let text = format!("<D:error xmlns:D=\"DAV:\"><D:{condition}/></D:error>\n");
    out.extend_from_slice(text.as_bytes());
}

/// The entity tag of a file, as GET has it. Folders have none.
pub(super) fn entity_tag(metadata: &Metadata) -> Option<Vec<u8>> {
    metadata.is_file().then(|| {
        let mut tag = vec![b'"'];
        hex::write_number(&mut tag, modified_s(metadata).unwrap_or(0).unsigned_abs());
        tag.push(b'-');
        hex::write_number(&mut tag, metadata.len());
        tag.push(b'"');
        tag
    })
}

/// The last change of a file or folder, in unix seconds.
pub(super) fn modified_s(metadata: &Metadata) -> Option<i64> {
    unix_seconds(metadata.modified())
}

impl Resource<'_> {
    fn has(&self, name: &str) -> bool {
        write_property(self, name, &mut Vec::new())
    }
}

/// `false`: the file or folder has no such property, and nothing was written.
fn write_property(resource: &Resource<'_>, name: &str, out: &mut Vec<u8>) -> bool {
    let mut value = Vec::new();
    let is_there = match name {
        "displayname" => {
            let mut parts = resource.path.split(|byte| *byte == b'/');
            let last = parts.rfind(|part| !part.is_empty());
            let last = last.unwrap_or(b"/");
            html::escape(last, &mut value);
            // XML has no other text.
            str::from_utf8(last).is_ok_and(|text| !text.chars().any(char::is_control))
        }
        "resourcetype" => {
            if resource.metadata.is_dir() {
                value.extend_from_slice(b"<D:collection/>");
            }
            true
        }
        "getcontentlength" if resource.metadata.is_file() => {
            value.extend_from_slice(resource.metadata.len().to_string().as_bytes());
            true
        }
        "getlastmodified" => {
            let seconds = modified_s(resource.metadata);
            value.extend(seconds.map(date::format).into_iter().flatten());
            seconds.is_some()
        }
        "getetag" => {
            let tag = entity_tag(resource.metadata);
            value.extend(tag.iter().flatten());
            tag.is_some()
        }
        "creationdate" => {
            let seconds = unix_seconds(resource.metadata.created());
            value.extend(seconds.map(internet_date).unwrap_or_default().bytes());
            seconds.is_some()
        }
        "lockdiscovery" => {
            for lock in resource.locks.unwrap_or_default() {
                write_active(lock, resource.now_ms, &mut value);
            }
            resource.locks.is_some()
        }
        "supportedlock" => {
            value.extend_from_slice(
                b"<D:lockentry><D:lockscope><D:exclusive/></D:lockscope>\
                  <D:locktype><D:write/></D:locktype></D:lockentry>",
            );
            resource.locks.is_some()
        }
        _ => false,
    };
    if is_there {
        for part in [
            b"<D:",
            name.as_bytes(),
            b">",
            &value,
            b"</D:",
            name.as_bytes(),
            b">\n",
        ] {
            out.extend_from_slice(part);
        }
    }
    is_there
}

fn write_empty(name: &[u8], out: &mut Vec<u8>) {
    for part in [b"<D:", name, b"/>\n"] {
        out.extend_from_slice(part);
    }
}

/// A name of any namespace.
fn write_foreign(name: &Name, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<");
    out.extend_from_slice(&name.local);
    out.extend_from_slice(b" xmlns=\"");
    html::escape(&name.namespace, out);
    out.extend_from_slice(b"\"/>\n");
}

fn write_status(properties: &[u8], status: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<D:propstat>\n<D:prop>\n");
    out.extend_from_slice(properties);
    let end = format!("</D:prop>\n<D:status>HTTP/1.1 {status}</D:status>\n</D:propstat>\n");
    out.extend_from_slice(end.as_bytes());
}

fn write_active(lock: &Lock, now_ms: u64, out: &mut Vec<u8>) {
    let depth = if lock.is_deep { "infinity" } else { "0" };
    let left_s = lock.until_ms.saturating_sub(now_ms).div_ceil(1000);
    let begin = format!(
        "<D:activelock>\n<D:locktype><D:write/></D:locktype>\n\
         <D:lockscope><D:exclusive/></D:lockscope>\n<D:depth>{depth}</D:depth>\n<D:owner>"
    );
    out.extend_from_slice(begin.as_bytes());
    out.extend_from_slice(&lock.owner);
    let token = &lock.token;
    let middle = format!(
        "</D:owner>\n<D:timeout>Second-{left_s}</D:timeout>\n\
         <D:locktoken><D:href>{token}</D:href></D:locktoken>\n<D:lockroot><D:href>"
    );
    out.extend_from_slice(middle.as_bytes());
    write_href(&lock.root, out);
    out.extend_from_slice(b"</D:href></D:lockroot>\n</D:activelock>\n");
}

fn write_href(path: &[u8], out: &mut Vec<u8>) {
    let mut escaped = Vec::new();
    target::escape(path, Escape::Path, &mut escaped);
    html::escape(&escaped, out);
}

fn unix_seconds(time: std::io::Result<SystemTime>) -> Option<i64> {
    let since = time.ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// A time as RFC 3339 writes it.
fn internet_date(seconds: i64) -> String {
    let at = date::civil(seconds);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        at.year, at.month, at.day, at.hour, at.minute, at.second
    )
}
