//! The answer while it is being made: status, header fields, body. It writes nothing itself.
//!
//! Everything is kept in buffers that a later exchange uses again, so that an answer made from
//! them allocates nothing once they have grown.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;

use turnpike_lane::files::FileHandle;
use turnpike_wire::message::Fields;

use crate::client::Client;
use crate::exchange::Exchange;

/// A response that a handler made and filters may still change.
#[derive(Default)]
pub struct Response {
    /// Status code; 0 while no handler has answered.
    pub status: u16,
    /// The reason behind the status; empty takes the usual one.
    pub reason: Vec<u8>,
    /// Fields beyond those that have a place of their own below, in the order they are sent.
    pub fields: Fields,
    /// Value of Content-Type; empty sends none.
    pub content_type: Vec<u8>,
    /// What an origin wants the text to be converted to (`X-Accel-Charset`).
    pub charset_wish: CharsetWish,
    /// Body length in bytes when it is known before the body is sent.
    pub content_length: Option<u64>,
    /// Last-Modified as unix seconds.
    pub last_modified: Option<i64>,
    /// When a response without Last-Modified was made, as unix seconds: conditions may be judged by
    /// it (RFC 9111 section 4.3.2). It is not sent.
    pub dated: Option<i64>,
    /// When a stored response was made, as unix seconds: its Date in place of the time at which it
    /// is sent (RFC 9110 section 6.6.1), since its age counts from there.
    pub made: Option<i64>,
    /// What a 304 does not say of the response that it stands for.
    pub withheld: Withheld,
    /// Value of ETag with its quotes; empty sends none.
    pub etag: Vec<u8>,
    /// Value of Location; a path is made absolute when it is sent (`absolute_redirect`).
    pub location: Vec<u8>,
    /// What follows the head.
    pub body: Body,
    /// Whether ranges of the body may be asked for.
    pub ranges_allowed: bool,
    /// Only the head is sent (HEAD, 204, 304).
    pub head_only: bool,
    /// Whether `Server` and `Date` are only sent where they are among the fields: an origin's are
    /// passed on, or their absence.
    pub unsigned: Unsigned,
    /// Whether conditions of the request are not looked at, since whoever made the response has
    /// done so.
    pub unconditional: bool,
    /// Where fields that are kept apart stand among the others.
    pub places: Places,
    /// Whether `Vary: Accept-Encoding` is sent: it has a place of its own.
    pub varies_by_coding: bool,
    /// Fields behind a chunked body.
    pub trailers: Fields,
    /// Text that a handler made for this one response; [`Body::Text`] sends it.
    pub text: Vec<u8>,
}

/// What is known of the response in whose place a 304 is sent: whoever would have changed that one
/// makes the 304 match it (RFC 9110 section 15.4.5).
#[derive(Debug, Default)]
pub struct Withheld {
    /// Whether a 200 was made into a 304 here.
    pub stands: bool,
    pub content_type: Vec<u8>,
    pub content_length: Option<u64>,
    /// The Content-Encoding.
    pub coding: Vec<u8>,
}

impl Withheld {
    fn clear(&mut self) {
        self.stands = false;
        self.content_type.clear();
        self.content_length = None;
        self.coding.clear();
    }
}

/// Where an origin had the fields that are not among [`Response::fields`], so that they are sent
/// on in its order. `None`: where this server has them in responses of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub etag: Option<Place>,
    pub last_modified: Option<Place>,
    /// Location, unless it is made absolute.
    pub location: Option<Place>,
}

/// A place between fields: behind so many of them, and behind so many others at that place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub(crate) fields: usize,
    others: u8,
}

/// A character set that a text is to be converted to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CharsetWish {
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
pub struct Unsigned {
    /// `Server` is not added.
    pub server: bool,
    /// `Date` is not added.
    pub date: bool,
}

/// What is sent after the head.
#[derive(Default)]
pub enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// The text in [`Response::text`].
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

/// The rest of a body cannot be had; the stream has said why in the log. The connection is closed,
/// since nothing else tells the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyFailed;

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

    /// Whether nothing of the body has to be waited for: [`BodyStream::ready`] always has a piece.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// Reads ahead while the client takes nothing. Dropped when it does, so that nothing may be
    /// lost at an await; never ends.
    fn read_ahead<'a>(&'a mut self, _exchange: &'a mut Exchange) -> LocalFuture<'a, ()> {
        Box::pin(pending())
    }

    /// Asked when the client takes no more, having all it wanted or having gone: whether the body
    /// is to be read to its end all the same, since others wait for it. Its pieces are thrown away
    /// then, and it may be that another exchange is given.
    fn outlives_client(&mut self) -> bool {
        false
    }

    /// Called once, before the exchange is logged, whether or not the whole body was sent.
    fn ended(&mut self, _exchange: &mut Exchange) {}
}

/// What a connection is used for once its response head is sent (`101`).
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
        self.status = 0;
        self.reason.clear();
        self.fields.clear();
        self.content_type.clear();
        self.charset_wish = CharsetWish::No;
        self.content_length = None;
        self.last_modified = None;
        self.dated = None;
        self.made = None;
        self.withheld.clear();
        self.etag.clear();
        self.location.clear();
        self.body = Body::Empty;
        self.ranges_allowed = false;
        self.head_only = false;
        self.unconditional = false;
        self.unsigned = Unsigned::default();
        self.varies_by_coding = false;
        self.places = Places::default();
        self.trailers.clear();
        self.text.clear();
    }

    /// Sets another status than the response came with: the reason behind it is the usual one then,
    /// not that of the old one.
    pub fn replace_status(&mut self, status: u16) {
        self.status = status;
        self.reason.clear();
    }

    /// Drops what describes a body: for answers that replace the one made before (errors, 304).
    pub fn clear_body(&mut self) {
        self.reason.clear();
        self.unconditional = false;
        self.unsigned = Unsigned::default();
        self.places = Places::default();
        self.trailers.clear();
        self.content_type.clear();
        self.charset_wish = CharsetWish::No;
        self.content_length = None;
        self.last_modified = None;
        self.dated = None;
        self.made = None;
        self.withheld.clear();
        self.etag.clear();
        self.body = Body::Empty;
        self.ranges_allowed = false;
        self.text.clear();
    }

    /// Sets Content-Type.
    pub fn set_content_type(&mut self, value: &[u8]) {
        self.content_type.clear();
        self.content_type.extend_from_slice(value);
    }

    /// The place behind the fields that there are.
    pub fn next_place(&self) -> Option<Place> {
        let places = [
            self.places.etag,
            self.places.last_modified,
            self.places.location,
        ];
        Some(Place {
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
