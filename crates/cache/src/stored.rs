//! What is stored: a resource is a key with all its variants, so that they live and go together; a
//! variant is one response. Both are never changed, but replaced.

use std::any::Any;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use turnpike_wire::message::Head;

use crate::disk::Identity;
use crate::freshness::Timing;
use crate::partial::{Part, share_strong_validator};
use crate::purge::Labels;
use crate::vary::{RequestField, Selection};

/// Variants of one key. More than this many are seldom asked for again: the oldest goes.
pub const VARIANTS_MAX: usize = 64;

/// What a stored response costs in memory beside its texts: the structures around it.
const VARIANT_BYTES: u64 = 512;

/// A key with its variants, the newest first.
pub struct Resource {
    pub(crate) key: Arc<[u8]>,
    pub(crate) host: Box<[u8]>,
    pub(crate) variants: Vec<Arc<Variant>>,
    /// In the units of the zone that holds it.
    pub(crate) weight: u64,
    /// What the resource counts for among the bytes of the zone.
    pub(crate) held: HeldBytes,
    /// The number of the next purge when it was made: later ones may concern it.
    pub(crate) began: u64,
    /// Whether a newer one takes its place in the index.
    pub(crate) is_replaced: AtomicBool,
    /// When it was last asked for, in unix seconds.
    pub(crate) used_s: AtomicU64,
}

/// Bytes that count as held until this is dropped: a resource that the index has let go still takes
/// them while somebody reads it.
pub(crate) struct HeldBytes {
    sum: Arc<AtomicU64>,
    count: u64,
}

impl HeldBytes {
    pub(crate) fn new(sum: &Arc<AtomicU64>, count: u64) -> Self {
        sum.fetch_add(count, Ordering::Relaxed);
        Self {
            sum: Arc::clone(sum),
            count,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.sum.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// A stored response.
pub struct Variant {
    /// The head, without what must not be stored.
    pub head: Arc<Head>,
    /// What of a request selects it.
    pub selection: Selection,
    pub tags: Vec<Box<[u8]>>,
    /// Whether it answered HEAD, and can answer nothing else.
    pub for_head: bool,
    /// Whether only its status is used, and what is sent of it is made elsewhere.
    pub status_only: bool,
    /// Which bytes it holds, where these are not all.
    pub part: Option<Part>,
    /// The content.
    pub body: StoredBody,
    /// What users of the cache made of its head, to be used again: see [`Variant::prepared`].
    prepared: ArcSwapOption<Prepared>,
    timing: Timing,
    /// Since when it is stale whatever its time, in unix milliseconds; `u64::MAX`: it is not.
    stale_since_ms: AtomicU64,
}

/// Something made of a stored head once, such as the fields that are sent.
pub struct Prepared {
    /// The zone that made the entry: no other zone can use it.
    pub owner: u64,
    pub value: Arc<dyn Any + Send + Sync>,
}

/// A stored response's content.
#[derive(Clone)]
pub enum StoredBody {
    Memory(Arc<[u8]>),
    File(Arc<StoredFile>),
}

/// A file with a stored response.
pub struct StoredFile {
    pub(crate) path: PathBuf,
    /// Bytes of the response's content.
    pub(crate) length: u64,
    /// The checksum.
    pub(crate) crc: u32,
    /// The file as it was when its checksum was last found right; none: not looked at yet.
    pub(crate) sound: Mutex<Option<Identity>>,
}

impl Resource {
    /// The variant that a request selects; of several the most recent one (RFC 9111 section 4). A
    /// response to HEAD serves HEAD only, and a part is none.
    pub fn select(&self, head_request: bool, field: RequestField<'_>) -> Option<&Arc<Variant>> {
        let fits = |variant: &&Arc<Variant>| {
            (!variant.for_head || head_request)
                && variant.part.is_none()
                && (variant.selection.is_empty() || variant.selection.matches(field))
        };
        let mut fitting = self.variants.iter().filter(fits);
        let first = fitting.next()?;
        // Nearly always there is one.
        Some(fitting.fold(first, |best, variant| {
            let newer = variant.timing().made_ms() > best.timing().made_ms();
            if newer { variant } else { best }
        }))
    }

    /// The newest part that a request selects, and the bytes of the whole that it asks of it (RFC
    /// 9111 section 3.3).
    pub(crate) fn select_part(
        &self,
        range: &[u8],
        field: RequestField<'_>,
    ) -> Option<(&Arc<Variant>, Range<u64>)> {
        let wanted = |variant: &Variant| variant.part.as_ref()?.wanted(range);
        let parts = self.variants.iter().filter_map(|variant| {
            let bytes = wanted(variant)?;
            variant.selection.matches(field).then_some((variant, bytes))
        });
        parts.max_by_key(|(variant, _)| variant.timing().made_ms())
    }

    /// Notes that it was asked for.
    pub(crate) fn touch(&self, now_s: u64) {
        // Written once a second at most, so that lanes do not pull the line to and fro.
        if self.used_s.load(Ordering::Relaxed) != now_s {
            self.used_s.store(now_s, Ordering::Relaxed);
        }
    }

    /// Bytes on disk, in whole blocks.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.variants
            .iter()
            .map(|variant| variant.disk_bytes())
            .sum()
    }

    /// Bytes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let variants = self.variants.iter().map(|variant| variant.memory_bytes());
        self.key.len() as u64 + variants.sum::<u64>()
    }

    /// The resource with a variant in the place of those that a request for it would select. A part
    /// takes the place of parts only: of those of other bytes, which are of another time, and of
    /// those that it holds itself.
    pub(crate) fn with(&self, variant: Arc<Variant>) -> Vec<Arc<Variant>> {
        let same = |own: &Arc<Variant>| {
            let selected = own.selection == variant.selection && own.for_head == variant.for_head;
            let replaced = match (&own.part, &variant.part) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(own_part), Some(part)) => {
                    !share_strong_validator(&own.head, &variant.head)
                        || own_part.total != part.total
                        || (part.bytes.start <= own_part.bytes.start
                            && own_part.bytes.end <= part.bytes.end)
                }
            };
            selected && replaced
        };
        let others = self.variants.iter().filter(|own| !same(own)).cloned();
        std::iter::once(variant.clone())
            .chain(others)
            .take(VARIANTS_MAX)
            .collect()
    }
}

impl Labels for Resource {
    fn key(&self) -> &[u8] {
        &self.key
    }

    fn host(&self) -> &[u8] {
        &self.host
    }

    fn has_tag(&self, tag: &[u8]) -> bool {
        let has = |variant: &Arc<Variant>| variant.tags.iter().any(|own| **own == *tag);
        self.variants.iter().any(has)
    }
}

impl Variant {
    /// A response with its time.
    pub fn new(
        head: Head,
        selection: Selection,
        for_head: bool,
        body: StoredBody,
        timing: Timing,
    ) -> Self {
        Self {
            tags: crate::purge::tags(&head),
            part: Part::of(&head),
            head: Arc::new(head),
            selection,
            for_head,
            status_only: false,
            body,
            prepared: ArcSwapOption::empty(),
            timing,
            stale_since_ms: AtomicU64::new(u64::MAX),
        }
    }

    /// The same, of which only the status is used.
    #[must_use]
    pub(crate) fn status_only(self, status_only: bool) -> Self {
        Self {
            status_only,
            ..self
        }
    }

    /// How old it is and how long of use. A soft purge ends its freshness.
    pub fn timing(&self) -> Timing {
        let since_ms = self.stale_since_ms.load(Ordering::Acquire);
        Timing {
            fresh_until_ms: self.timing.fresh_until_ms.min(since_ms),
            ..self.timing
        }
    }

    /// Ends its freshness.
    pub(crate) fn make_stale(&self, now_ms: u64) {
        self.stale_since_ms.fetch_min(now_ms, Ordering::AcqRel);
    }

    /// Bytes of its content.
    pub fn length(&self) -> u64 {
        match &self.body {
            StoredBody::Memory(bytes) => bytes.len() as u64,
            StoredBody::File(file) => file.length,
        }
    }

    /// What `owner` made of the head before.
    pub fn prepared(&self, owner: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let prepared = self.prepared.load();
        let prepared = prepared.as_ref().filter(|one| one.owner == owner)?;
        Some(prepared.value.clone())
    }

    /// Keeps what `owner` made of the head, in place of anything kept before.
    pub fn prepare(&self, owner: u64, value: Arc<dyn Any + Send + Sync>) {
        self.prepared
            .store(Some(Arc::new(Prepared { owner, value })));
    }

    fn memory_bytes(&self) -> u64 {
        let body = match &self.body {
            StoredBody::Memory(bytes) => bytes.len() as u64,
            StoredBody::File(_) => 0,
        };
        // The head stands there twice: as it was stored, and for users as it is sent.
        VARIANT_BYTES + 2 * self.head.size_bytes() + body
    }

    fn disk_bytes(&self) -> u64 {
        match &self.body {
            StoredBody::Memory(_) => 0,
            StoredBody::File(file) => crate::disk::blocks(file.length + self.head.size_bytes()),
        }
    }
}

impl StoredFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of content.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Where the content begins in it, in bytes.
    pub fn body_offset(&self) -> u64 {
        crate::disk::HEADER_BYTES
    }

    /// Whether the open file is the one whose checksum was found right, unchanged since.
    pub fn is_sound(&self, identity: Identity) -> bool {
        *self.sound.lock().unwrap_or_else(PoisonError::into_inner) == Some(identity)
    }

    /// Computes the checksum of a file that was opened at the path, and remembers when it is right.
    /// Reads all of it. `false`: it was cut short or altered, or is another response's.
    pub fn check(&self, file: &File) -> bool {
        let identity = crate::disk::verify(file, self.length, self.crc);
        self.set_sound(identity);
        identity.is_some()
    }

    pub(crate) fn set_sound(&self, identity: Option<Identity>) {
        *self.sound.lock().unwrap_or_else(PoisonError::into_inner) = identity;
    }
}
