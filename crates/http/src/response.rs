//! The answer while it is being made: status, header fields, body. It writes nothing itself.
//!
//! Everything is kept in buffers that a later exchange uses again, so that an answer made from
//! them allocates nothing once they have grown.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use turnpike_lane::files::FileHandle;
use turnpike_lane::waiting::RelayEnd;
use turnpike_wire::message::Fields;

use crate::client::Client;
use crate::exchange::Exchange;
use crate::received::Received;

/// A response that a handler made and filters may still change.
#[derive(Default)]
pub struct Response {
    /// Status code; 0 while no handler has answered.
    status: u16,
    /// The reason behind the status; empty takes the usual one.
    reason: Vec<u8>,
    fields: Fields,
    content_type: Vec<u8>,
    content_length: Option<u64>,
    /// Location; a path is made absolute when it is sent (`absolute_redirect`).
    location: Vec<u8>,
    validators: Validators,
    withheld: Withheld,
    origin: FromOrigin,
    body: Body,
    /// Text that a handler made for this one response, or that was received for it;
    /// [`Body::Text`] sends it.
    text: Received,
    trailers: Fields,
    ranges_allowed: bool,
    head_only: bool,
    varies_by_coding: bool,
}

/// Marks by which states of a resource differ (RFC 9110 section 8.8).
#[derive(Default)]
struct Validators {
    /// Value of ETag with its quotes; empty sends none.
    etag: Vec<u8>,
    /// Last-Modified as unix seconds.
    last_modified: Option<i64>,
    /// See [`Response::dated`].
    dated: Option<i64>,
}

/// The differences between a response of an origin or a cache and one of this server.
#[derive(Clone, Default)]
pub struct FromOrigin {
    charset_conversion: CharsetConversion,
    omitted_fields: OmittedFields,
    is_unconditional: bool,
    places: FieldPlaces,
    /// See [`Response::made_unix_s`].
    made_unix_s: Option<i64>,
}

/// Fields of the 200 that a 304 replaces: filters that would have changed the 200 make the 304
/// match it (RFC 9110 section 15.4.5).
#[derive(Debug, Default)]
pub struct Withheld {
    /// Whether a 200 was made into a 304 here.
    pub is_set: bool,
    pub content_type: Vec<u8>,
    pub content_length: Option<u64>,
    /// The value of Content-Encoding.
    pub coding: Vec<u8>,
    /// Whether variables show it: see [`Response::show_withheld`].
    is_shown: bool,
}

impl Validators {
    fn clear(&mut self) {
        self.etag.clear();
        self.last_modified = None;
        self.dated = None;
    }
}

impl Withheld {
    fn clear(&mut self) {
        self.is_set = false;
        self.is_shown = false;
        self.content_type.clear();
        self.content_length = None;
        self.coding.clear();
    }
}

/// The positions of the origin's fields that are not among [`Response::fields`], so that they are
/// sent in its order. `None`: the position in responses of this server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldPlaces {
    pub etag: Option<FieldPlace>,
    pub last_modified: Option<FieldPlace>,
    /// Location, unless it is made absolute.
    pub location: Option<FieldPlace>,
}

/// A place between fields: behind so many of them, and behind so many others at that place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPlace {
    pub(crate) fields: usize,
    others: u8,
}

/// The character set that a text is converted to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CharsetConversion {
    /// None is wanted.
    #[default]
    No,
    /// Content-Type names it already, and did not say before what the text is in.
    Named,
    /// This one, in place of the one that Content-Type names.
    Instead(Vec<u8>),
}

/// Fields that the server adds to every response, unless an origin's are passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OmittedFields {
    /// `Server` is not added.
    pub server: bool,
    /// `Date` is not added.
    pub date: bool,
}

/// The content that follows the head.
#[derive(Default)]
pub enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// The text in [`Response::text`]. Without a Content-Length it is sent as a body whose length
    /// nobody knew: an origin's chunks that are all here.
    Text,
    /// Bytes that live as long as the program.
    Static(&'static [u8]),
    /// Bytes that belong to the plan or to a cache.
    Shared(Arc<[u8]>),
    /// Slices of a file, one for a whole file, several for a multipart answer.
    File(FileBody),
    /// Pieces that are made while they are sent.
    Stream(Box<dyn BodyStream>),
    /// After the head, the connection belongs to another protocol.
    Tunnel(Box<dyn Tunnel>),
}

/// A file to be sent, whole or in parts.
pub struct FileBody {
    /// The open file, this answer's own or lent by a cache; small ones may hold their content.
    pub file: FileHandle,
    /// What to send of it, in order.
    pub parts: Parts,
}

/// The parts of a file that make a body.
pub enum Parts {
    /// One slice: offset and length in bytes.
    One {
        /// First byte.
        offset: u64,
        /// Bytes to send.
        length: u64,
    },
    /// A multipart/byteranges body: text before each slice, and text at the end.
    Many {
        /// Head text, offset and length of each part.
        parts: Vec<(Vec<u8>, u64, u64)>,
        /// The closing boundary.
        end: Vec<u8>,
    },
}

/// A future that lives on one lane.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The rest of a body cannot be had; the reason is in the log. The connection is closed, since the
/// client learns it in no other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyFailed;

/// A socket with bytes of a body that the kernel can move (splice).
pub struct Source<'a> {
    /// The socket.
    pub socket: RelayEnd<'a>,
    /// The bytes of the body that are still to come; those behind them are not part of it.
    pub bytes: u64,
}

/// A body made piece by piece; the sender asks for a piece when the last one is gone.
///
/// While a method runs, the exchange's response has no body: it is in the caller's hands.
pub trait BodyStream {
    /// Puts the next piece into `out` (cleared by the caller). `false`: the body has ended.
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>>;

    /// As [`BodyStream::next`], for a piece that is at hand: it leaves together with the head.
    /// `None`: there is none yet.
    fn ready(
        &mut self,
        _exchange: &mut Exchange,
        _out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        None
    }

    /// Whether nothing of the body has to be waited for but a disk: [`BodyStream::ready`] has a
    /// piece, unless that is a part of a file that is not in memory.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// The pieces from now on are to have at most so many bytes: no more could be sent. Only what
    /// is at hand need heed this.
    fn limit_pieces(&mut self, _bytes_max: usize) {}

    /// Whether all of the body may be at hand, as far as can be told before it is made: its pieces
    /// are asked for in the turn then, and only what is not at hand waits in a task.
    fn may_end_at_once(&self) -> bool {
        self.is_at_hand()
    }

    /// Whether parts are asked for while the body is sent, any of which may end it: the head is
    /// held back then as `postpone_output` says.
    fn is_of_parts(&self) -> bool {
        false
    }

    /// Only the bytes from `start` up to, not including, `end` are wanted. Asked before any piece.
    /// Returns the first byte that comes: one from there on is left out by whoever asked.
    fn narrow(&mut self, _start: u64, _end: u64) -> u64 {
        0
    }

    /// Reads ahead while the client takes nothing, and goes on with what it still sends. Dropped
    /// when it takes something, so that nothing may be lost at an await; never ends.
    fn read_ahead<'a>(
        &'a mut self,
        _exchange: &'a mut Exchange,
        _client: Client<'a>,
    ) -> LocalFuture<'a, ()> {
        Box::pin(pending())
    }

    /// The socket in which the next bytes of the body stand as the client gets them, where nobody
    /// else has to see them: they may go from socket to socket inside the kernel. `None`: they come
    /// as pieces.
    fn source(&self, _exchange: &Exchange) -> Option<Source<'_>> {
        None
    }

    /// Waits until there may be bytes in the source. Nothing is lost where it is dropped.
    fn source_ready<'a>(
        &'a mut self,
        _exchange: &'a mut Exchange,
        _client: Client<'a>,
    ) -> LocalFuture<'a, Result<(), BodyFailed>> {
        Box::pin(pending())
    }

    /// Takes note of what moving bytes out of the source has brought: their number, the end of the
    /// connection or an error. `false`: the body has ended.
    fn moved(
        &mut self,
        _exchange: &mut Exchange,
        _moved: io::Result<usize>,
    ) -> Result<bool, BodyFailed> {
        Err(BodyFailed)
    }

    /// Asked when the client takes no more, having all it wanted or having gone: whether the body
    /// is to be read to its end all the same, since others wait for it. Its pieces are thrown away
    /// then, and it may be that another exchange is given.
    fn outlives_client(&mut self) -> bool {
        false
    }

    /// Called once, before the exchange is logged, whether or not the whole body was sent.
    fn ended(&mut self, _exchange: &mut Exchange) {}

    /// Called after that, where the body's exchange has no more use for it: its memory may be kept
    /// for a later body of the exchange ([`Rooms::keep_spare`](crate::rooms::Rooms::keep_spare)).
    fn recycle(self: Box<Self>, _exchange: &mut Exchange) {}
}

/// The use of a connection after the head of a `101` was sent.
pub trait Tunnel {
    /// Runs until one side has had enough; the connection is closed afterwards.
    fn run<'a>(
        self: Box<Self>,
        exchange: &'a mut Exchange,
        client: Client<'a>,
    ) -> LocalFuture<'a, ()>;
}

impl Response {
    /// Makes the response as new; buffers keep their room.
    pub fn clear(&mut self) {
        self.clear_body();
        self.status = 0;
        self.fields.clear();
        self.location.clear();
        self.head_only = false;
        self.varies_by_coding = false;
    }

    /// Drops what describes a body: for answers that replace the one made before (errors, 304).
    pub fn clear_body(&mut self) {
        self.reason.clear();
        self.trailers.clear();
        self.content_type.clear();
        self.content_length = None;
        self.validators.clear();
        self.withheld.clear();
        self.origin = FromOrigin::default();
        self.body = Body::Empty;
        self.ranges_allowed = false;
        self.text.clear();
    }

    /// Sets another status than the response came with: the reason behind it is the usual one then,
    /// not that of the old one.
    pub fn replace_status(&mut self, status: u16) {
        self.status = status;
        self.reason.clear();
    }

    /// The place behind the fields that there are.
    pub fn next_place(&self) -> Option<FieldPlace> {
        let places = [
            self.origin.places.etag,
            self.origin.places.last_modified,
            self.origin.places.location,
        ];
        Some(FieldPlace {
            fields: self.fields.len(),
            others: places.iter().flatten().count() as u8,
        })
    }

    /// Sends [`Response::text`] as the body, with its length.
    pub fn send_text(&mut self) {
        self.content_length = Some(self.text.len() as u64);
        self.body = Body::Text;
    }
}

/// Status and fields.
impl Response {
    /// The status; 0 while no handler has answered.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Sets the status, and leaves the reason as it is: see [`Response::replace_status`].
    pub fn set_status(&mut self, status: u16) {
        self.status = status;
    }

    /// The reason behind the status; empty takes the usual one.
    pub fn reason(&self) -> &[u8] {
        &self.reason
    }

    /// The reason, to be changed.
    pub fn reason_mut(&mut self) -> &mut Vec<u8> {
        &mut self.reason
    }

    /// Fields beyond those that have a place of their own, in the order they are sent.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The fields, to be changed.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// Fields behind a chunked body.
    pub fn trailers(&self) -> &Fields {
        &self.trailers
    }

    /// The trailers, to be changed.
    pub fn trailers_mut(&mut self) -> &mut Fields {
        &mut self.trailers
    }

    /// Value of Location; a path is made absolute when it is sent (`absolute_redirect`).
    pub fn location(&self) -> &[u8] {
        &self.location
    }

    /// Location, to be changed.
    pub fn location_mut(&mut self) -> &mut Vec<u8> {
        &mut self.location
    }

    /// Takes Location out; none is left.
    pub fn take_location(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.location)
    }

    /// Sets Location; empty sends none.
    pub fn set_location(&mut self, value: Vec<u8>) {
        self.location = value;
    }

    /// Value of ETag with its quotes; empty sends none.
    pub fn etag(&self) -> &[u8] {
        &self.validators.etag
    }

    /// ETag, to be changed.
    pub fn etag_mut(&mut self) -> &mut Vec<u8> {
        &mut self.validators.etag
    }

    /// Last-Modified as unix seconds.
    pub fn last_modified(&self) -> Option<i64> {
        self.validators.last_modified
    }

    /// Sets Last-Modified, in unix seconds; `None` sends none.
    pub fn set_last_modified(&mut self, seconds: Option<i64>) {
        self.validators.last_modified = seconds;
    }

    /// When a response without Last-Modified was made, as unix seconds: conditions may be judged by
    /// it (RFC 9111 section 4.3.2). It is not sent.
    pub fn dated(&self) -> Option<i64> {
        self.validators.dated
    }

    /// Sets the time by which conditions are judged; it is not sent.
    pub fn set_dated(&mut self, seconds: Option<i64>) {
        self.validators.dated = seconds;
    }

    /// Whether `Vary: Accept-Encoding` is sent: it has a place of its own.
    pub fn varies_by_coding(&self) -> bool {
        self.varies_by_coding
    }

    /// `Vary: Accept-Encoding` is sent.
    pub fn vary_by_coding(&mut self) {
        self.varies_by_coding = true;
    }

    /// What a 304 does not say of the response that it stands for.
    pub fn withheld(&self) -> &Withheld {
        &self.withheld
    }

    /// Lets variables show what a 304 does not say, or no longer: while fields are chosen that
    /// depend on it, since they have to be those of the 200 (RFC 9110 section 15.4.5).
    pub fn show_withheld(&mut self, is_shown: bool) {
        self.withheld.is_shown = is_shown && self.withheld.is_set;
    }

    /// The content type that variables show.
    pub fn shown_content_type(&self) -> &[u8] {
        if self.withheld.is_shown {
            &self.withheld.content_type
        } else {
            &self.content_type
        }
    }

    /// The content length that variables show.
    pub(crate) fn shown_content_length(&self) -> Option<u64> {
        if self.withheld.is_shown {
            self.withheld.content_length
        } else {
            self.content_length
        }
    }

    /// The content coding of a 304's 200, where variables show it.
    pub(crate) fn shown_coding(&self) -> &[u8] {
        if self.withheld.is_shown {
            &self.withheld.coding
        } else {
            b""
        }
    }

    /// Takes away what a 304 does not say. It is kept aside for those who look at the response
    /// later, in buffers that are used again.
    pub fn withhold(&mut self) {
        let withheld = &mut self.withheld;
        withheld.is_set = true;
        std::mem::swap(&mut withheld.content_type, &mut self.content_type);
        self.content_type.clear();
        withheld.content_length = self.content_length.take();
        withheld.coding.clear();
        let coding = self.fields.values(b"Content-Encoding").next();
        withheld
            .coding
            .extend_from_slice(coding.unwrap_or_default());
    }
}

/// The body.
impl Response {
    /// What follows the head.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The body, to be changed.
    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }

    /// Sets what follows the head, without its length.
    pub fn set_body(&mut self, body: Body) {
        self.body = body;
    }

    /// Takes the body out; none is left.
    pub fn take_body(&mut self) -> Body {
        std::mem::take(&mut self.body)
    }

    /// The body where it is a file, and the text as room for what is read of it.
    pub(crate) fn file_and_room(&mut self) -> Option<(&FileBody, &mut Vec<u8>)> {
        match &self.body {
            Body::File(body) => Some((body, self.text.whole())),
            _ => None,
        }
    }

    /// Text that a handler made for this one response, or that was received for it;
    /// [`Body::Text`] sends it.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The text, to be changed.
    pub fn text_mut(&mut self) -> &mut Vec<u8> {
        self.text.whole()
    }

    /// The text in the buffer in which it was received.
    pub fn received_mut(&mut self) -> &mut Received {
        &mut self.text
    }

    /// Takes the text out, to be put back when it was written.
    pub fn take_text(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text).into_vec()
    }

    /// Sets the text; [`Response::send_text`] makes it the body.
    pub fn set_text(&mut self, text: Vec<u8>) {
        self.text = text.into();
    }

    /// Value of Content-Type; empty sends none.
    pub fn content_type(&self) -> &[u8] {
        &self.content_type
    }

    /// Content-Type, to be changed.
    pub fn content_type_mut(&mut self) -> &mut Vec<u8> {
        &mut self.content_type
    }

    /// Sets Content-Type; empty sends none.
    pub fn set_content_type(&mut self, value: &[u8]) {
        self.content_type.clear();
        self.content_type.extend_from_slice(value);
    }

    /// Body length in bytes when it is known before the body is sent.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Sets the length of the body in bytes; `None`: it is not known before the body is sent.
    pub fn set_content_length(&mut self, bytes: Option<u64>) {
        self.content_length = bytes;
    }

    /// Whether ranges of the body may be asked for.
    pub fn allows_ranges(&self) -> bool {
        self.ranges_allowed
    }

    /// Sets whether ranges of the body may be asked for.
    pub fn set_ranges_allowed(&mut self, are_allowed: bool) {
        self.ranges_allowed = are_allowed;
    }

    /// Whether only the head is sent (HEAD, 204, 304).
    pub fn is_head_only(&self) -> bool {
        self.head_only
    }

    /// Sends the head only, or the body too.
    pub fn set_head_only(&mut self, head_only: bool) {
        self.head_only = head_only;
    }
}

/// Instructions of an origin or a cache.
impl Response {
    /// The character set that an origin asks for (`X-Accel-Charset`).
    pub fn charset_conversion(&self) -> &CharsetConversion {
        &self.origin.charset_conversion
    }

    /// Sets the character set that the text is converted to.
    pub fn set_charset_conversion(&mut self, conversion: CharsetConversion) {
        self.origin.charset_conversion = conversion;
    }

    /// Whether `Server` and `Date` are only sent where they are among the fields: an origin's are
    /// passed on, or their absence.
    pub fn omitted_fields(&self) -> OmittedFields {
        self.origin.omitted_fields
    }

    /// Sets which of `Server` and `Date` are not added.
    pub fn set_omitted_fields(&mut self, omitted_fields: OmittedFields) {
        self.origin.omitted_fields = omitted_fields;
    }

    /// Whether conditions of the request are not looked at, since whoever made the response has
    /// done so.
    pub fn is_unconditional(&self) -> bool {
        self.origin.is_unconditional
    }

    /// Leaves the conditions of the request to whoever made the response, or not.
    pub fn set_unconditional(&mut self, unconditional: bool) {
        self.origin.is_unconditional = unconditional;
    }

    /// Where fields that are kept apart stand among the others.
    pub fn places(&self) -> FieldPlaces {
        self.origin.places
    }

    /// The places, to be changed.
    pub fn places_mut(&mut self) -> &mut FieldPlaces {
        &mut self.origin.places
    }

    /// The differences to a response of this server, to be kept with it.
    pub fn origin(&self) -> &FromOrigin {
        &self.origin
    }

    /// Makes the differences to a response of this server those of a kept one.
    pub fn set_origin(&mut self, origin: FromOrigin) {
        self.origin = origin;
    }

    /// When a stored response was made, as unix seconds: its Date in place of the time at which it
    /// is sent (RFC 9110 section 6.6.1), since its age counts from there.
    pub fn made_unix_s(&self) -> Option<i64> {
        self.origin.made_unix_s
    }

    /// Sets when a stored response was made, in unix seconds.
    pub fn set_made_unix_s(&mut self, seconds: Option<i64>) {
        self.origin.made_unix_s = seconds;
    }
}
