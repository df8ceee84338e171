//! Compressed forms of bodies that are served again and again, beside the bytes they were made of.
//!
//! A form is known by its source: bytes of a file that a lane's cache lends, or the bytes that a
//! memory zone shares. It holds on to its source, so that no other can be taken for it, and goes
//! with it: a source that nobody else holds any more will not be served again. Nothing here
//! compresses.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use turnpike_http::lane::LaneState;
use turnpike_http::response::{Body, FileBody, Parts};
use turnpike_lane::files::{FileHandle, OpenFile};
use turnpike_plan::keys::KeyHash;

/// Most bytes of one compressed form: larger ones cost more to send than a lane should hold for.
const FORM_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes that a lane keeps of one coding, level and window.
const TOTAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a form costs beside its bytes.
const ENTRY_BYTES: u64 = 128;

/// Forms that room is made for at first.
const FORMS_EXPECTED: usize = 64;

/// What a body was compressed from, where the same may be asked for again.
#[derive(Clone)]
pub(super) enum Source {
    /// Bytes of a file, lent by a cache.
    File {
        file: Rc<OpenFile>,
        offset: u64,
        length: u64,
    },
    /// Bytes that a cache or the plan shares.
    Bytes(Arc<[u8]>),
}

impl Source {
    pub(super) fn of(body: &Body) -> Option<Self> {
        match body {
            Body::Shared(bytes) => Some(Self::Bytes(Arc::clone(bytes))),
            Body::File(FileBody {
                file: FileHandle::Shared(file),
                parts: Parts::One { offset, length },
            }) => Some(Self::File {
                file: Rc::clone(file),
                offset: *offset,
                length: *length,
            }),
            _ => None,
        }
    }

    pub(super) fn length(&self) -> u64 {
        match self {
            Self::File { length, .. } => *length,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Nothing else has this name as long as the source is held.
    fn name(&self) -> Name {
        match self {
            Self::File {
                file,
                offset,
                length,
            } => (Rc::as_ptr(file).addr(), *offset, *length),
            Self::Bytes(bytes) => (Arc::as_ptr(bytes).addr(), 0, bytes.len() as u64),
        }
    }

    fn is_held_by_others(&self) -> bool {
        match self {
            Self::File { file, .. } => Rc::strong_count(file) > 1,
            Self::Bytes(bytes) => Arc::strong_count(bytes) > 1,
        }
    }
}

/// An address, and which bytes there.
type Name = (usize, u64, u64);

/// A compressed form.
#[derive(Clone)]
struct Form {
    source: Source,
    bytes: Arc<[u8]>,
}

#[derive(Clone)]
struct Weigh;

impl Weighter<Name, Form> for Weigh {
    fn weight(&self, _: &Name, form: &Form) -> u64 {
        ENTRY_BYTES + form.bytes.len() as u64
    }
}

/// A lane's compressed forms of one coding, level and window, by the name of their source.
pub(super) struct Kept(RefCell<Cache<Name, Form, Weigh, KeyHash>>);

impl Kept {
    pub(super) fn new() -> Self {
        let forms = Cache::with(
            FORMS_EXPECTED,
            TOTAL_BYTES_MAX,
            Weigh,
            KeyHash::default(),
            Default::default(),
        );
        Self(RefCell::new(forms))
    }

    pub(super) fn form_of(&self, source: &Source) -> Option<Arc<[u8]>> {
        let forms = self.0.borrow();
        forms
            .get(&source.name())
            .map(|form| Arc::clone(&form.bytes))
    }

    fn keep(&self, source: Source, bytes: Vec<u8>) {
        let form = Form {
            bytes: bytes.into(),
            source,
        };
        self.0.borrow_mut().insert(form.source.name(), form);
    }
}

impl LaneState for Kept {
    fn tick(&self, _now_ms: u64) {
        let mut forms = self.0.borrow_mut();
        forms.retain(|_, form| form.source.is_held_by_others());
    }
}

/// A form while it is made, piece by piece.
pub(super) struct Recording {
    source: Source,
    bytes: Vec<u8>,
}

impl Recording {
    pub(super) fn new(source: Source) -> Self {
        let bytes = Vec::new();
        Self { source, bytes }
    }

    /// Adds what was made. `None`: the form is larger than is kept.
    pub(super) fn add(mut self, bytes: &[u8]) -> Option<Self> {
        let fits = self.bytes.len() + bytes.len() <= FORM_BYTES_MAX;
        fits.then(|| {
            self.bytes.extend_from_slice(bytes);
            self
        })
    }

    /// The form is whole.
    pub(super) fn end(self, kept: &Kept) {
        kept.keep(self.source, self.bytes);
    }
}

#[cfg(test)]
mod tests;
