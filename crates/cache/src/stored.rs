//! Stored resources and variants: a resource is a key with all its variants, which are evicted
//! together; a variant is one response. Both are replaced and never changed.

use std::any::Any;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use turnpike_wire::message::Head;

use crate::disk::{FileNumber, Identity};
use crate::freshness::Timing;
use crate::partial::{Part, share_strong_validator};
use crate::purge::Labels;
use crate::vary::{RequestField, Selection};

/// Most variants of one key. More are rarely used: the oldest is removed.
pub const VARIANTS_MAX: usize = 64;

/// The memory of a stored response without its texts: the structures around it.
const VARIANT_BYTES: u64 = 512;

/// A key with its variants, the newest first.
pub struct Resource {
    pub(crate) key: Arc<[u8]>,
    pub(crate) host: Box<[u8]>,
    pub(crate) variants: Vec<Arc<Variant>>,
    /// The weight, in the units of its zone.
    pub(crate) weight: u64,
    /// The bytes that the resource counts in the zone.
    pub(crate) held: HeldBytes,
    /// The number of the next purge at its creation: later ones may include it.
    pub(crate) purge_sequence: u64,
    /// Whether a newer one replaces it in the index.
    pub(crate) is_replaced: AtomicBool,
    /// The time of its last use, in Unix seconds.
    pub(crate) used_s: AtomicU64,
}

/// Bytes that count as held until this is dropped: a resource that was evicted still takes memory
/// while a request reads it.
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
    /// The head, without the fields that must not be stored.
    pub head: Arc<Head>,
    /// The selecting fields of the request.
    pub selection: Selection,
    pub tags: Vec<Box<[u8]>>,
    /// Whether it answered HEAD, and can answer only HEAD.
    pub for_head: bool,
    /// Whether only its status is used, and another response is sent.
    pub status_only: bool,
    /// The bytes that it holds, if it is a part.
    pub part: Option<Part>,
    /// The content.
    pub body: StoredBody,
    /// Data that users of the cache derived from its head, for reuse: see [`Variant::prepared`].
    prepared: ArcSwapOption<Prepared>,
    timing: Timing,
    /// The time since which it is stale whatever its lifetime, in Unix milliseconds; `u64::MAX` if
    /// it is not.
    stale_since_ms: AtomicU64,
}

/// Data derived from a stored head once, such as the fields that are sent.
pub struct Prepared {
    /// The zone that made the entry: only that zone can use it.
    pub owner: u64,
    pub value: Arc<dyn Any + Send + Sync>,
}

/// The content of a stored response.
#[derive(Clone)]
pub enum StoredBody {
    Memory(Arc<[u8]>),
    File(Arc<StoredFile>),
}

/// A file with a stored response.
pub struct StoredFile {
    pub(crate) path: PathBuf,
    /// The file that was placed there or found there.
    pub(crate) number: FileNumber,
    /// Bytes of the response's content.
    pub(crate) length: u64,
    /// The checksum.
    pub(crate) crc: u32,
    /// The file's identity when its checksum was last found right; `None` before the first check.
    pub(crate) sound: Mutex<Option<Identity>>,
}

impl Resource {
    /// The variants, the newest first.
    pub fn variants(&self) -> &[Arc<Variant>] {
        &self.variants
    }

    /// The variant that a request selects; the most recent one of several (RFC 9111 section 4). A
    /// response to HEAD serves only HEAD, and a part is never selected.
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

    /// The newest part that a request selects, and the requested bytes of the whole (RFC 9111
    /// section 3.3).
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

    /// Records a use.
    pub(crate) fn touch(&self, now_s: u64) {
        // It is written once a second at most, so that lanes do not contend for the cache line.
        if self.used_s.load(Ordering::Relaxed) != now_s {
            self.used_s.store(now_s, Ordering::Relaxed);
        }
    }

    /// The bytes on disk, in whole blocks.
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

    /// The variants with this one in place of those that its request would select. A part replaces
    /// only parts: those of other bytes, which are outdated, and those that it contains.
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

/// What purges check of one variant.
pub(crate) struct VariantLabels<'a> {
    key: &'a [u8],
    host: &'a [u8],
    tags: &'a [Box<[u8]>],
}

impl Labels for VariantLabels<'_> {
    fn key(&self) -> &[u8] {
        self.key
    }

    fn host(&self) -> &[u8] {
        self.host
    }

    fn has_tag(&self, tag: &[u8]) -> bool {
        self.tags.iter().any(|own| **own == *tag)
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
    /// A response with its timing.
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

    /// The same, if only its status is used.
    #[must_use]
    pub(crate) fn status_only(self, status_only: bool) -> Self {
        Self {
            status_only,
            ..self
        }
    }

    pub(crate) fn labels<'a>(&'a self, key: &'a [u8], host: &'a [u8]) -> VariantLabels<'a> {
        VariantLabels {
            key,
            host,
            tags: &self.tags,
        }
    }

    /// The age and the lifetime. A soft purge ends its freshness.
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

    /// The bytes of its content.
    pub fn length(&self) -> u64 {
        match &self.body {
            StoredBody::Memory(bytes) => bytes.len() as u64,
            StoredBody::File(file) => file.length,
        }
    }

    /// The data that `owner` derived from the head, if any.
    pub fn prepared(&self, owner: u64) -> Option<Arc<dyn Any + Send + Sync>> {
        let prepared = self.prepared.load();
        let prepared = prepared.as_ref().filter(|one| one.owner == owner)?;
        Some(prepared.value.clone())
    }

    /// Keeps the data that `owner` derived from the head, in place of any earlier data.
    pub fn prepare(&self, owner: u64, value: Arc<dyn Any + Send + Sync>) {
        self.prepared
            .store(Some(Arc::new(Prepared { owner, value })));
    }

    fn memory_bytes(&self) -> u64 {
        let body = match &self.body {
            StoredBody::Memory(bytes) => bytes.len() as u64,
            StoredBody::File(_) => 0,
        };
        // The head counts twice: as it was stored, and as it is sent.
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
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of content.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The offset of the content in the file, in bytes.
    pub fn body_offset(&self) -> u64 {
        crate::disk::HEADER_BYTES
    }

    /// Whether the open file is the one whose checksum was found right, and is unchanged since.
    pub fn is_sound(&self, identity: Identity) -> bool {
        *self.sound.lock().unwrap_or_else(PoisonError::into_inner) == Some(identity)
    }

    /// Verifies the checksum of a file that was opened at the path, and remembers a good result.
    /// Reads the whole file. `false`: it was cut or altered, or belongs to another response.
    pub fn check(&self, file: &File) -> bool {
        let identity = crate::disk::verify(file, self.length, self.crc);
        self.set_sound(identity);
        identity.is_some()
    }

    /// Whether both are the same file.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.number == other.number && self.path == other.path
    }

    /// Opens the file to change its metadata, unless another one has taken its path.
    pub(crate) fn open_to_change(&self) -> io::Result<File> {
        let file = crate::disk::open_to_change(&self.path)?;
        if FileNumber::of_file(&file)? == self.number {
            Ok(file)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    pub(crate) fn set_sound(&self, identity: Option<Identity>) {
        *self.sound.lock().unwrap_or_else(PoisonError::into_inner) = identity;
    }
}
