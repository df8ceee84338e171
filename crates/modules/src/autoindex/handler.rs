//! What this family does with a request.

use std::cmp::Reverse;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use turnpike_http::Quoted;
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::response::{Body, BodyStream};
use turnpike_lane::log::Level;
use turnpike_wire::message::Method;

use super::{data, page};
use crate::common::added_body::AddedBody;
use crate::common::files;
use crate::common::folder::{self, EntryKind};

/// Longest name of a JSONP function in bytes; nginx's.
const CALLBACK_BYTES_MAX: usize = 128;

/// The directives of a location.
pub(super) struct Listing {
    pub(super) format: Format,
    pub(super) local_time: bool,
    pub(super) exact_size: bool,
    /// What stands around an HTML listing in place of our own page.
    pub(super) frame: Frame,
    /// Whether names are counted in characters, since the page is sent as UTF-8.
    pub(super) utf8: bool,
    /// Whether the page is in our own style; under nginx's name it is nginx's to the byte.
    pub(super) own_style: bool,
    /// Whether the page says that it is UTF-8, since `charset` says nothing.
    pub(super) names_charset: bool,
}

/// What `fancyindex_header` and its like say.
#[derive(Default)]
pub(super) struct Frame {
    /// The path whose answer begins the page.
    pub(super) header: Option<Arc<[u8]>>,
    /// The path whose answer ends it.
    pub(super) footer: Option<Arc<[u8]>>,
    /// The style sheet of a page without a header.
    pub(super) style: Option<Vec<u8>>,
}

/// The form of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Html,
    Json,
    Jsonp,
    Xml,
}

/// An entry of a folder.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) name: Vec<u8>,
    pub(super) kind: EntryKind,
    pub(super) size_bytes: u64,
    pub(super) modified_s: i64,
}

impl Handler for Listing {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if exchange.walk.path().last() != Some(&b'/') || !exchange.is_get_or_head() {
            return Verdict::Declined;
        }
        let callback = match self.format {
            Format::Jsonp => match callback(exchange) {
                Ok(callback) => callback,
                Err(status) => return Verdict::Status(status),
            },
            _ => Vec::new(),
        };
        files::with_file_path(exchange, |exchange, path| {
            match read(exchange, folder::without_slash(path)) {
                Ok(items) => self.answer(exchange, &items, &callback),
                Err(status) => Verdict::Status(status),
            }
        })
    }
}

impl Listing {
    fn answer(&self, exchange: &mut Exchange, items: &[Item], callback: &[u8]) -> Verdict {
        let mut text = exchange.response.take_text();
        text.clear();
        let kind = match self.format {
            Format::Html => {
                page::write(self, exchange.walk.path(), items, &mut text);
                if self.names_charset {
                    &b"text/html; charset=utf-8"[..]
                } else {
                    b"text/html"
                }
            }
            Format::Jsonp if !callback.is_empty() => {
                data::write_jsonp(callback, items, &mut text);
                b"application/javascript"
            }
            Format::Json | Format::Jsonp => {
                data::write_json(items, &mut text);
                b"application/json"
            }
            Format::Xml => {
                data::write_xml(items, &mut text);
                b"text/xml; charset=utf-8"
            }
        };
        let is_head = exchange.method() == Method::Head;
        // A listing that is the header of one has none, so that there is an end.
        let is_part = exchange.purpose() == Purpose::Part;
        let response = &mut exchange.response;
        response.set_status(200);
        response.set_content_type(kind);
        response.set_text(text);
        response.send_text();
        // nginx makes a listing while it sends it, so it sends no length.
        response.set_content_length(None);
        let listing = response.take_stream();
        if !is_head {
            response.set_body(Body::Stream(self.framed(listing, is_part)));
        }
        Verdict::Respond
    }
}

impl Listing {
    /// The listing between what other locations answer.
    fn framed(&self, body: Box<dyn BodyStream>, is_part: bool) -> Box<dyn BodyStream> {
        let Frame { header, footer, .. } = &self.frame;
        match (header, footer) {
            (None, None) => body,
            _ if is_part => body,
            (header, footer) => Box::new(AddedBody::new(header.clone(), body, footer.clone())),
        }
    }
}

fn read(exchange: &Exchange, path: &[u8]) -> Result<Vec<Item>, u16> {
    let mut items = Vec::new();
    for entry in folder::open(exchange, path)? {
        let metadata = match folder::describe(exchange, &entry) {
            Ok(metadata) => metadata,
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => continue,
            Err(_) => return Err(500),
        };
        items.push(Item {
            name: entry.file_name().into_vec(),
            kind: folder::kind_of(&metadata),
            size_bytes: metadata.size_bytes,
            modified_s: metadata.modified_s,
        });
    }
    sort(&mut items);
    Ok(items)
}

/// Folders first, then by bytes.
pub(super) fn sort(items: &mut [Item]) {
    let is_folder = |item: &Item| Reverse(item.kind == EntryKind::Folder);
    items.sort_by(|left, right| {
        let kinds = is_folder(left).cmp(&is_folder(right));
        kinds.then_with(|| left.name.cmp(&right.name))
    });
}

/// The argument `callback`, empty where there is none.
fn callback(exchange: &Exchange) -> Result<Vec<u8>, u16> {
    const NAME: &[u8] = b"callback=";
    let value = exchange
        .walk
        .query()
        .split(|byte| *byte == b'&')
        .find_map(|pair| {
            let (name, value) = pair.split_at_checked(NAME.len())?;
            name.eq_ignore_ascii_case(NAME).then_some(value)
        });
    let value = value.unwrap_or_default();
    let complaint = if value.len() > CALLBACK_BYTES_MAX {
        "too long"
    } else if !value.iter().all(|byte| is_name_byte(*byte)) {
        "invalid"
    } else {
        return Ok(value.to_vec());
    };
    let value = Quoted(value);
    exchange.log(
        Level::Info,
        format_args!("client sent {complaint} callback name: \"{value}\""),
    );
    Err(400)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}
