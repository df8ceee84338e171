//! The response of what is stored. Of a head that was sent before, a copy is sent: this is the path
//! of every hit, and allocates nothing once the exchange's buffers have grown.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_cache::disk::Identity;
use turnpike_cache::partial::Part;
use turnpike_cache::stored::{StoredBody, StoredFile, Variant};
use turnpike_http::exchange::Exchange;
use turnpike_http::lane::LaneSlot;
use turnpike_http::response::{Body, FileBody, FromOrigin, Parts, Response};
use turnpike_http::variables::append_number;
use turnpike_lane::files::{self, FileHandle, OpenFile};
use turnpike_lane::sys::file::{self, Links, Metadata};
use turnpike_wire::date;
use turnpike_wire::message::Fields;

use super::hot::{Content, Heat, HotFiles, Kept};
use super::note::note;
use crate::pass::response::ResponseRules;

/// A head as it is sent.
#[derive(Default)]
struct Sent {
    status: u16,
    reason: Vec<u8>,
    given: Fields,
    content_type: Vec<u8>,
    last_modified: Option<i64>,
    dated: Option<i64>,
    etag: Vec<u8>,
    origin: FromOrigin,
}

/// What a location gives stored responses with.
#[derive(Clone, Copy)]
pub(super) struct AnswerSettings {
    /// The owner of the prepared heads.
    pub(super) owner: u64,
    /// Hot files of disk zones.
    pub(super) hot: LaneSlot<HotFiles>,
}

/// A stored response with which a request may be answered.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) variant: Arc<Variant>,
    /// The bytes of the whole that are wanted, where it is a part.
    pub(super) bytes: Option<Range<u64>>,
}

impl Stored {
    pub(super) fn whole(variant: &Arc<Variant>) -> Self {
        Self {
            variant: Arc::clone(variant),
            bytes: None,
        }
    }
}

/// Why what is stored could not be given.
pub(super) enum Unanswered {
    /// The file must be checked first: it was not since the start, or has changed.
    Unchecked(OpenFile),
    /// The file is not there.
    Gone,
}

/// Makes the exchange's response of a stored one.
pub(super) fn give(
    exchange: &mut Exchange,
    giving: AnswerSettings,
    rules: &ResponseRules,
    stored: &Stored,
) -> Result<(), Unanswered> {
    let body = content(exchange, giving, &stored.variant)?;
    give_content(exchange, giving, rules, stored, body);
    Ok(())
}

/// The content of a stored response; the exchange's response is left as it is.
pub(super) fn content(
    exchange: &Exchange,
    giving: AnswerSettings,
    variant: &Variant,
) -> Result<Body, Unanswered> {
    match &variant.body {
        StoredBody::Memory(bytes) => Ok(Body::Shared(bytes.clone())),
        StoredBody::File(file) => {
            let now_ms = exchange.lane.clock.now_ms();
            let sendfile = exchange.location().settings.sendfile;
            let kept = Kept::of(file, sendfile && exchange.requester.tls().is_none());
            body_of(exchange.plan.state(&giving.hot), file, kept, now_ms)
        }
    }
}

/// Makes the exchange's response of a stored one with its content.
pub(super) fn give_content(
    exchange: &mut Exchange,
    giving: AnswerSettings,
    rules: &ResponseRules,
    stored: &Stored,
    body: Body,
) {
    let variant = &*stored.variant;
    put_head(exchange, giving.owner, rules, variant);
    let now_ms = exchange.lane.clock.unix_ms();
    let timing = variant.timing();
    let age_s = timing.age_s(now_ms);
    note(&mut exchange.rooms).age_s = Some(age_s);
    note(&mut exchange.rooms).fresh_for_s = Some(timing.fresh_for_s(now_ms));
    let mut number = std::mem::take(exchange.upstream.output_mut());
    number.clear();
    append_number(&mut number, age_s);
    let response = &mut exchange.response;
    response.fields_mut().add(b"Age", &number);
    *exchange.upstream.output_mut() = number;
    let response = &mut exchange.response;
    response.set_content_length(Some(variant.length()));
    if variant.for_head {
        // The length is that of the answer to GET, if it is known.
        response.set_content_length(variant.head.content_length());
    }
    response.set_unconditional(false);
    response.set_ranges_allowed(true);
    response.set_body(if variant.length() == 0 {
        Body::Empty
    } else {
        body
    });
    if let (Some(part), Some(bytes)) = (&variant.part, &stored.bytes) {
        cut(response, part, bytes);
    }
}

/// Makes a 206 of the response: these bytes of the whole of which a part is stored (RFC 9111
/// section 3.3).
fn cut(response: &mut Response, part: &Part, bytes: &Range<u64>) {
    let length = bytes.end - bytes.start;
    let start = bytes.start - part.bytes.start;
    response
        .fields_mut()
        .set(b"Content-Range", part.content_range(bytes).as_bytes());
    response.set_content_length(Some(length));
    response.set_unconditional(true);
    response.set_ranges_allowed(false);
    let body = match response.take_body() {
        Body::Shared(stored) if length < stored.len() as u64 => {
            let wanted = stored.get(start as usize..(start + length) as usize);
            response.text_mut().clear();
            response
                .text_mut()
                .extend_from_slice(wanted.unwrap_or_default());
            Body::Text
        }
        Body::File(FileBody {
            file,
            parts: Parts::One { offset, .. },
        }) => {
            let offset = offset + start;
            Body::File(FileBody {
                file,
                parts: Parts::One { offset, length },
            })
        }
        body => body,
    };
    response.set_body(body);
}

/// The body of a stored file: without a call where the file is hot, else from the file.
fn body_of(
    files: &HotFiles,
    file: &Arc<StoredFile>,
    kept: Kept,
    now_ms: u64,
) -> Result<Body, Unanswered> {
    let heat = files.ask(file, kept, now_ms);
    if let Heat::Hot {
        content,
        is_trusted,
    } = &heat
    {
        if *is_trusted || is_at_its_path(file) {
            if !is_trusted {
                files.is_unchanged(file, kept, now_ms);
            }
            return Ok(match content {
                Content::Body(body) => Body::Shared(Arc::clone(body)),
                Content::File(opened) => whole_of(file, FileHandle::Shared(Rc::clone(opened))),
            });
        }
        files.forget(file, kept);
    }
    let opened = open_path(file.path()).ok_or(Unanswered::Gone)?;
    if !file.is_sound(identity(opened.metadata())) {
        return Err(Unanswered::Unchecked(opened));
    }
    if !matches!(heat, Heat::Warm) {
        return Ok(whole_of(file, FileHandle::Owned(opened)));
    }
    if kept == Kept::Descriptor {
        let opened = Rc::new(opened);
        files.keep(file, Content::File(Rc::clone(&opened)), now_ms);
        return Ok(whole_of(file, FileHandle::Shared(opened)));
    }
    Ok(match read_body(&opened, file) {
        Some(body) => {
            files.keep(file, Content::Body(Arc::clone(&body)), now_ms);
            Body::Shared(body)
        }
        None => whole_of(file, FileHandle::Owned(opened)),
    })
}

/// Whether the file whose checksum was found right is still at its path, and unchanged.
fn is_at_its_path(file: &StoredFile) -> bool {
    let metadata = file::metadata_of(path_bytes(file.path()), Links::Refuse);
    metadata.is_ok_and(|metadata| file.is_sound(identity(&metadata)))
}

fn whole_of(stored: &StoredFile, file: FileHandle) -> Body {
    let parts = Parts::One {
        offset: stored.body_offset(),
        length: stored.length(),
    };
    Body::File(FileBody { file, parts })
}

/// The whole body. `None`: it cannot be read, and whoever sends the file will find out why.
fn read_body(opened: &OpenFile, file: &StoredFile) -> Option<Arc<[u8]>> {
    let mut body = vec![0; usize::try_from(file.length()).ok()?];
    let filled = file::fill_at(opened.descriptor()?, &mut body, file.body_offset()).ok()?;
    (filled == body.len()).then(|| body.into())
}

fn open_path(path: &Path) -> Option<OpenFile> {
    files::open_own(path_bytes(path)).ok()
}

fn path_bytes(path: &Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}

fn identity(metadata: &Metadata) -> Identity {
    Identity {
        inode: metadata.inode,
        size_bytes: metadata.size_bytes,
        modified: (metadata.modified_s, i64::from(metadata.modified_ns)),
        changed: (metadata.changed_s, i64::from(metadata.changed_ns)),
    }
}

fn put_head(exchange: &mut Exchange, owner: u64, rules: &ResponseRules, variant: &Variant) {
    exchange
        .upstream
        .answered_from(Some(Arc::clone(&variant.head)));
    let prepared = variant.prepared(owner);
    if let Some(sent) = prepared.and_then(|sent| sent.downcast::<Sent>().ok()) {
        put_sent(&mut exchange.response, &sent);
        return;
    }
    present(exchange, rules, variant);
    let made = made_s(variant);
    exchange.response.set_made_unix_s(Some(made));
    if variant.head.value(b"last-modified").is_none() {
        exchange.response.set_dated(Some(made));
    }
    if !depends_on_request(variant) {
        let sent = Sent::of(&exchange.response);
        variant.prepare(owner, Arc::new(sent));
    }
}

/// When it was made by its own word, else when it came, in unix seconds.
fn made_s(variant: &Variant) -> i64 {
    let date = variant.head.value(b"date").and_then(date::parse);
    date.unwrap_or((variant.timing().received_ms / 1000) as i64)
}

fn put_sent(response: &mut Response, sent: &Sent) {
    response.set_status(sent.status);
    copy(response.reason_mut(), &sent.reason);
    response.fields_mut().copy(&sent.given);
    copy(response.content_type_mut(), &sent.content_type);
    response.set_last_modified(sent.last_modified);
    response.set_dated(sent.dated);
    copy(response.etag_mut(), &sent.etag);
    response.set_origin(sent.origin.clone());
}

fn copy(to: &mut Vec<u8>, from: &[u8]) {
    to.clear();
    to.extend_from_slice(from);
}

impl Sent {
    fn of(response: &Response) -> Self {
        let mut given = response.fields().clone();
        given.remove(b"Age");
        // Ranges are cut out here.
        given.remove(b"Accept-Ranges");
        Self {
            status: response.status(),
            reason: response.reason().to_vec(),
            given,
            content_type: response.content_type().to_vec(),
            last_modified: response.last_modified(),
            dated: response.dated(),
            etag: response.etag().to_vec(),
            origin: response.origin().clone(),
        }
    }
}

/// Whether the head that is sent is another for each request: redirects and cookies are rewritten
/// with variables, and a rate belongs to the exchange.
fn depends_on_request(variant: &Variant) -> bool {
    const NAMES: &[&[u8]] = &[
        b"location",
        b"refresh",
        b"set-cookie",
        b"x-accel-limit-rate",
    ];
    NAMES.iter().any(|name| variant.head.value(name).is_some())
}

/// Makes the response as the proxy does of what a server sends.
fn present(exchange: &mut Exchange, rules: &ResponseRules, variant: &Variant) {
    exchange.response.clear();
    rules.put_head(exchange, &variant.head);
    exchange.response.fields_mut().remove(b"Age");
    exchange.response.fields_mut().remove(b"Accept-Ranges");
}
