//! A zone: stored responses, in memory or in files, under one index that all lanes share.
//!
//! quick_cache (S3-FIFO with a clock) decides which resources stay: resources that are used only
//! once, as by a crawler, do not evict frequently used ones.
//!
//! Locks: `commits` is taken first, then those of `purges`, then the index's own. No lock is held
//! while a file is written; files are removed after the index has dropped them, and only if they
//! are still the ones that it knew.

mod contents;
mod copies;
mod eviction;
mod growing;
mod keeping;
mod purge;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use quick_cache::OptionsBuilder;
use quick_cache::sync::Cache;

use turnpike_wire::message::Head;

use crate::disk::{self, Description, Disk, DiskSettings, Identity, WriteFailure, Writer};
use crate::fetch::Fetches;
use crate::freshness::Timing;
use crate::not_stored::NotStored;
use crate::partial::{self, Part};
use crate::purge::Purges;
use crate::stored::{HeldBytes, Resource, StoredBody, StoredFile, Variant};
use crate::tally::Tallies;
use crate::validation::{self, HeadVerdict};
use crate::vary::{RequestField, Selection};
use crate::why::WhyNotStored;
use eviction::{Commit, Evict, Weigh};

/// The weight of a full zone, whether bytes or keys fill it.
const WEIGHT_MAX: u64 = 1 << 40;

/// The bytes of `keys_zone` for one key; nginx's number.
const KEY_BYTES: u64 = 128;

pub use contents::Contents;
pub use copies::CopyHolder;
pub use growing::GrowingBody;

/// The bytes of a memory zone that justify another part with its own lock.
const PART_BYTES: u64 = 32 * 1024 * 1024;

/// The same for a disk zone: bytes, and keys.
const DISK_PART_BYTES: u64 = 1024 * 1024 * 1024;
const DISK_PART_KEYS: u64 = 16 * 1024;

/// Most parts.
const PARTS_MAX: u64 = 64;

/// The initial capacity of the index; it grows.
const EXPECTED_MAX: u64 = 64 * 1024;

/// The number of commit locks: two keys that share one only wait for each other.
const COMMIT_LOCKS: usize = 64;

/// The expected size of a stored response, for the capacity of the index.
const EXPECTED_BYTES: u64 = 4096;

/// The number of keys whose uses are counted before they are stored (`proxy_cache_min_uses`).
const COUNTED_MAX: usize = 64 * 1024;

// Each part of a zone has room for many responses, and an index of that size can be made.
const _: () = assert!(EXPECTED_BYTES * 64 < PART_BYTES && PART_BYTES < DISK_PART_BYTES);
const _: () = assert!(DISK_PART_KEYS <= EXPECTED_MAX && EXPECTED_MAX < WEIGHT_MAX);

/// The storage of a zone's content.
pub enum Storage {
    /// In memory, with this limit in bytes for everything.
    Memory(u64),
    /// In files.
    Disk(Disk),
}

/// A cache zone.
pub struct Zone {
    name: String,
    storage: Storage,
    keys_max: u64,
    index: Index,
    commits: [Mutex<()>; COMMIT_LOCKS],
    hasher: RandomState,
    purges: Purges,
    fetches: Arc<Fetches>,
    uses: Cache<u64, Arc<AtomicU32>>,
    evicted: Arc<AtomicU64>,
    stored_bytes: Arc<AtomicU64>,
    /// The memory of bodies on their way into the zone.
    growing_bytes: Arc<AtomicU64>,
    tallies: Tallies,
    /// Whether another zone takes care of the folder: see [`Zone::leave`].
    is_left: AtomicBool,
    holders: copies::Holders,
}

type Index = Cache<Arc<[u8]>, Arc<Resource>, Weigh, quick_cache::DefaultHashBuilder, Evict>;

/// A response to store.
pub struct NewResponse {
    pub key: Arc<[u8]>,
    pub host: Box<[u8]>,
    pub head: Head,
    /// The selecting fields.
    pub selection: Selection,
    /// Whether it answers HEAD only.
    pub for_head: bool,
    pub status_only: bool,
    pub timing: Timing,
    /// The result of [`Zone::purge_sequence`] before the request.
    pub purge_sequence: u64,
}

impl NewResponse {
    fn path(&self, disk: &Disk) -> PathBuf {
        let part = Part::of(&self.head);
        disk.path(&self.key, &self.selection, self.for_head, part.as_ref())
    }

    /// Whether content of this length matches the head: a part with other bytes must not be stored
    /// as these.
    fn fits(&self, length: u64) -> bool {
        Part::of(&self.head).is_none_or(|part| part.bytes.end - part.bytes.start == length)
    }
}

/// The result of a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    pub keys: u64,
    /// The number of responses, including all variants.
    pub responses: u64,
}

impl Zone {
    /// A zone in memory, with a limit of `bytes_max`.
    pub fn memory(name: &str, bytes_max: u64) -> Self {
        let parts = bytes_max / PART_BYTES;
        let expected = bytes_max / EXPECTED_BYTES;
        Self::new(name, Storage::Memory(bytes_max), u64::MAX, parts, expected)
    }

    /// A zone in files, with `keys_bytes` of `keys_zone`. It reads and writes nothing before
    /// [`crate::manager::Manager::step`].
    pub fn disk(name: &str, keys_bytes: u64, settings: DiskSettings) -> Self {
        let keys_max = (keys_bytes / KEY_BYTES).max(1);
        let parts = (settings.bytes_max / DISK_PART_BYTES).min(keys_max / DISK_PART_KEYS);
        let storage = Storage::Disk(Disk::new(settings));
        Self::new(name, storage, keys_max, parts, keys_max)
    }

    fn new(name: &str, storage: Storage, keys_max: u64, parts: u64, expected: u64) -> Self {
        let evicted = Arc::new(AtomicU64::new(0));
        let options = OptionsBuilder::new()
            .shards(parts.clamp(1, PARTS_MAX) as usize)
            .estimated_items_capacity(expected.clamp(64, EXPECTED_MAX) as usize)
            .weight_capacity(WEIGHT_MAX)
            .build();
        let evict = Evict {
            evicted: evicted.clone(),
        };
        let hasher = quick_cache::DefaultHashBuilder::default();
        let index = match options {
            Ok(options) => Index::with_options(options, Weigh, hasher, evict),
            Err(_) => unreachable!("every option was set"),
        };
        Self {
            name: name.to_owned(),
            storage,
            keys_max,
            index,
            commits: [const { Mutex::new(()) }; COMMIT_LOCKS],
            hasher: RandomState::new(),
            purges: Purges::default(),
            fetches: Arc::default(),
            uses: Cache::new(COUNTED_MAX),
            evicted,
            stored_bytes: Arc::default(),
            growing_bytes: Arc::default(),
            tallies: Tallies::new(),
            is_left: AtomicBool::new(false),
            holders: copies::Holders::default(),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The storage of its content.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The files of its content; `None` for a zone in memory.
    pub fn as_disk(&self) -> Option<&Disk> {
        match &self.storage {
            Storage::Memory(_) => None,
            Storage::Disk(disk) => Some(disk),
        }
    }

    /// The fetches in progress.
    pub fn fetches(&self) -> &Arc<Fetches> {
        &self.fetches
    }

    /// The stored response that a request selects, fresh or not.
    pub fn find(
        &self,
        key: &[u8],
        head_request: bool,
        field: RequestField<'_>,
        now_ms: u64,
    ) -> Option<Arc<Variant>> {
        let resource = match self.index.get(key) {
            Some(resource) => resource,
            None => self.find_unloaded(key)?,
        };
        resource.touch(now_ms / 1000);
        resource.select(head_request, field).cloned()
    }

    /// The stored part that can answer a request for a range, and the requested bytes.
    pub fn find_part(
        &self,
        key: &[u8],
        range: &[u8],
        field: RequestField<'_>,
        now_ms: u64,
    ) -> Option<(Arc<Variant>, Range<u64>)> {
        let resource = self.index.get(key)?;
        let (variant, bytes) = resource.select_part(range, field)?;
        resource.touch(now_ms / 1000);
        Some((variant.clone(), bytes))
    }

    /// Whether any response is stored under the key.
    pub fn has_key(&self, key: &[u8]) -> bool {
        self.index.contains_key(key)
    }

    /// Whether the folder may have files that are not in the index, since it is not fully loaded.
    fn may_find_more(&self) -> bool {
        let loaded = self.as_disk().map(|disk| &disk.loaded);
        loaded.is_some_and(|loaded| !loaded.load(Ordering::Acquire))
    }

    /// Until the folder is fully loaded, a file may exist that is not in the index.
    fn find_unloaded(&self, key: &[u8]) -> Option<Arc<Resource>> {
        let disk = self.as_disk()?;
        if !self.may_find_more() || !disk.managed.load(Ordering::Acquire) {
            return None;
        }
        self.adopt(&disk.path(key, &Selection::default(), false, None));
        self.index.get(key)
    }

    /// Counts a use of a key that is not stored, and returns the number of uses.
    pub fn count_use(&self, key: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(key);
        let count = self
            .uses
            .get_or_insert_with(&hash, || Ok::<_, ()>(Arc::default()));
        match count {
            Ok(count) => count.fetch_add(1, Ordering::Relaxed).saturating_add(1),
            Err(()) => 1,
        }
    }

    /// The number to record before a response is requested: a purge after that prevents storing.
    pub fn purge_sequence(&self) -> u64 {
        self.purges.next()
    }

    /// Whether content of this length can be stored.
    pub fn holds(&self, bytes: u64) -> bool {
        bytes <= self.length_max()
    }

    /// The length of the largest content that can be stored, in bytes.
    fn length_max(&self) -> u64 {
        (self.bytes_max() / self.index.num_shards() as u64).saturating_sub(1)
    }

    /// Begins the file of a response.
    ///
    /// # Errors
    /// The system's error.
    pub fn writer(&self, entry: &NewResponse) -> Result<Writer, WriteFailure> {
        let disk = self
            .as_disk()
            .ok_or_else(|| WriteFailure::new("open()", "", ErrorKind::Unsupported.into()))?;
        let path = entry.path(disk);
        Writer::begin(disk, &path)
    }

    /// Stores a response with its content in memory.
    ///
    /// # Errors
    /// The reason why not.
    pub fn store_memory(
        &self,
        entry: NewResponse,
        body: Arc<[u8]>,
    ) -> Result<Arc<Variant>, WhyNotStored> {
        if !entry.fits(body.len() as u64) {
            return Err(WhyNotStored::Truncated);
        }
        let mut commit = self.commit(&entry.key);
        let (entry, body) = self.put_together(entry, body);
        self.put(&mut commit, entry, StoredBody::Memory(body))
    }

    /// Joins a part with all adjacent stored parts of the same bytes (RFC 9111 section 3.4).
    fn put_together(
        &self,
        mut entry: NewResponse,
        mut body: Arc<[u8]>,
    ) -> (NewResponse, Arc<[u8]>) {
        let Some(mut part) = Part::of(&entry.head) else {
            return (entry, body);
        };
        let Some(resource) = self.index.peek(&*entry.key) else {
            return (entry, body);
        };
        let mut others: Vec<_> = resource.variants.iter().collect();
        // Each join may make another part adjacent.
        while let Some(at) = others.iter().position(|other| {
            let touches = other
                .part
                .as_ref()
                .is_some_and(|own| own.joined(&part).is_some());
            touches
                && other.selection == entry.selection
                && partial::share_strong_validator(&other.head, &entry.head)
        }) {
            let other = others.swap_remove(at);
            let (Some(own), StoredBody::Memory(bytes)) = (&other.part, &other.body) else {
                continue;
            };
            if let Some((whole, bytes)) = partial::join((&part, &body), (own, bytes)) {
                entry.head = partial::joined_head(&entry.head, &whole);
                part = whole;
                body = bytes.into();
            }
        }
        (entry, body)
    }

    /// Stores a response whose content was written to a file. Waits for the disk.
    ///
    /// # Errors
    /// The reason why not; the file is removed then.
    pub fn store_file(
        &self,
        entry: NewResponse,
        mut writer: Writer,
    ) -> Result<Arc<Variant>, NotStored> {
        let Some(disk) = self.as_disk() else {
            return Err(WhyNotStored::WriteFailed.into());
        };
        if !entry.fits(writer.bytes()) {
            return Err(WhyNotStored::Truncated.into());
        }
        let path = entry.path(disk);
        writer.describe(&describe(&entry))?;
        let mut commit = self.commit(&entry.key);
        let mut placed = writer.place(&path);
        if let Err(failure) = &placed
            && failure.error.kind() == ErrorKind::CrossesDevices
        {
            // Others wait for the lock, so that it is free during the copy.
            drop(commit);
            let copied = writer.copy_beside(&path);
            commit = self.commit(&entry.key);
            placed = copied.and_then(|()| writer.place(&path));
        }
        let identity = placed?;
        let number = writer.number()?;
        let file = Arc::new(StoredFile {
            path,
            number,
            length: writer.bytes(),
            crc: writer.crc(),
            sound: Mutex::new(Some(identity)),
        });
        let stored = self.put(&mut commit, entry, StoredBody::File(file.clone()));
        if stored.is_err() {
            disk.remove(&file.path, file.number);
        }
        Ok(stored?)
    }

    /// Updates a stored response after a 304: new head and times, same content. Waits for the disk
    /// if it is in a file.
    ///
    /// # Errors
    /// The reason why not; what is stored is unchanged.
    pub fn freshen(&self, old: &Variant, entry: NewResponse) -> Result<Arc<Variant>, WhyNotStored> {
        let mut commit = self.commit(&entry.key);
        if !self.has_content_of(&entry.key, old) {
            return Err(WhyNotStored::Replaced);
        }
        let StoredBody::File(file) = &old.body else {
            return self.put(&mut commit, entry, old.body.clone());
        };
        let changed = file.open_to_change();
        let changed = changed.and_then(|opened| {
            let was_sound = file.is_sound(Identity::of_file(&opened)?);
            disk::rewrite_description(&opened, &describe(&entry))?;
            let identity = Identity::of_file(&opened)?;
            Ok(was_sound.then_some(identity))
        });
        let Ok(identity) = changed else {
            return Err(WhyNotStored::WriteFailed);
        };
        let file = Arc::new(StoredFile {
            path: file.path.clone(),
            number: file.number,
            length: file.length,
            crc: file.crc,
            sound: Mutex::new(identity),
        });
        self.put(&mut commit, entry, StoredBody::File(file))
    }

    /// Whether the content of a response is still stored, perhaps with a newer head.
    fn has_content_of(&self, key: &[u8], old: &Variant) -> bool {
        let is_same = |variant: &Arc<Variant>| match (&variant.body, &old.body) {
            (StoredBody::Memory(bytes), StoredBody::Memory(old)) => Arc::ptr_eq(bytes, old),
            (StoredBody::File(file), StoredBody::File(old)) => file.is_same(old),
            _ => false,
        };
        let resource = self.index.peek(key);
        resource.is_some_and(|resource| resource.variants.iter().any(is_same))
    }

    /// Applies the response to a HEAD request to a stored response to GET (RFC 9111 section 4.3.5):
    /// if that is outdated, it becomes stale.
    pub fn note_head(&self, key: &[u8], head: &Head, field: RequestField<'_>, now_ms: u64) {
        let Some(resource) = self.index.peek(key) else {
            return;
        };
        let stored = resource.select(false, field);
        if let Some(variant) = stored
            && validation::judge_head(&variant.head, head) == HeadVerdict::Invalidate
        {
            variant.make_stale(now_ms);
            self.withdraw_copies(Some(key));
        }
    }

    /// Removes a stored response whose file is missing or broken.
    pub fn discard(&self, key: &[u8], broken: &Arc<Variant>) {
        let mut commit = self.commit(key);
        let Some(resource) = self.index.peek(key) else {
            return;
        };
        let is_other = |variant: &&Arc<Variant>| !Arc::ptr_eq(variant, broken);
        let left: Vec<_> = resource.variants.iter().filter(is_other).cloned().collect();
        if left.len() == resource.variants.len() {
            return;
        }
        if left.is_empty() {
            self.index.remove(key);
        } else {
            let (key, host) = (resource.key.clone(), resource.host.clone());
            self.insert(&mut commit, key, host, left, resource.purge_sequence);
        }
        self.withdraw_copies(Some(key));
        self.remove_file(broken);
    }

    fn commit(&self, key: &[u8]) -> Commit<'_> {
        Commit::of(self, key)
    }

    fn lock_commit(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        let number = self.hasher.hash_one(key) as usize % COMMIT_LOCKS;
        self.commits[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a response to the index; the caller holds the key's commit lock.
    fn put(
        &self,
        commit: &mut Commit<'_>,
        entry: NewResponse,
        body: StoredBody,
    ) -> Result<Arc<Variant>, WhyNotStored> {
        let purge_sequence = entry.purge_sequence;
        let variant = Variant::new(
            entry.head,
            entry.selection,
            entry.for_head,
            body,
            entry.timing,
        );
        let variant = Arc::new(variant.status_only(entry.status_only));
        let before = self.index.peek(&*entry.key);
        // It is held until the index has the response: a purge comes either before or after.
        let recent = self.purges.recent();
        let variants = match &before {
            // A purge of the key alone has changed the resource, or waits for the commit lock.
            Some(resource) if !recent.concern(resource.purge_sequence, &**resource) => {
                resource.with(variant.clone())
            }
            _ => vec![variant.clone()],
        };
        let resource = self.resource(entry.key.clone(), entry.host, variants, self.purges.next());
        if resource.weight > WEIGHT_MAX / self.index.num_shards() as u64 {
            return Err(WhyNotStored::TooLarge);
        }
        let is_purged = self.purges.concern_key(purge_sequence, &entry.key)
            || recent.concern(purge_sequence, &*resource);
        if is_purged {
            return Err(WhyNotStored::Purged);
        }
        if let Some(before) = &before {
            before.is_replaced.store(true, Ordering::Release);
        }
        self.index
            .insert_with_lifecycle(entry.key, resource.clone(), &mut commit.evicted);
        drop(recent);
        self.withdraw_copies(Some(&resource.key));
        if let Some(before) = before {
            self.remove_files_left(&before.variants, &resource.variants);
        }
        Ok(variant)
    }

    /// Replaces the variants of a key; the caller holds its commit lock.
    fn insert(
        &self,
        commit: &mut Commit<'_>,
        key: Arc<[u8]>,
        host: Box<[u8]>,
        variants: Vec<Arc<Variant>>,
        purge_sequence: u64,
    ) {
        let recent = self.purges.recent();
        let resource = self.resource(key.clone(), host, variants, self.purges.next());
        if recent.concern(purge_sequence, &*resource) {
            self.index.remove(&key);
            resource
                .variants
                .iter()
                .for_each(|variant| self.remove_file(variant));
            return;
        }
        if let Some(before) = self.index.peek(&key) {
            before.is_replaced.store(true, Ordering::Release);
        }
        self.index
            .insert_with_lifecycle(key, resource, &mut commit.evicted);
    }

    fn resource(
        &self,
        key: Arc<[u8]>,
        host: Box<[u8]>,
        variants: Vec<Arc<Variant>>,
        purge_sequence: u64,
    ) -> Arc<Resource> {
        let mut resource = Resource {
            key,
            host,
            variants,
            weight: 1,
            held: HeldBytes::new(&self.stored_bytes, 0),
            is_replaced: AtomicBool::new(false),
            used_s: AtomicU64::new(unix_seconds()),
            purge_sequence,
        };
        resource.held = HeldBytes::new(&self.stored_bytes, self.bytes_of(&resource));
        resource.weight = self.weigh(&resource);
        Arc::new(resource)
    }

    /// The bytes that a resource takes in the zone.
    fn bytes_of(&self, resource: &Resource) -> u64 {
        match &self.storage {
            Storage::Memory(_) => resource.memory_bytes(),
            Storage::Disk(_) => resource.disk_bytes(),
        }
    }

    /// The larger of its shares: of the bytes, and of the keys.
    fn weigh(&self, resource: &Resource) -> u64 {
        let share = |part: u64, whole: u64| {
            let share = u128::from(part) * u128::from(WEIGHT_MAX) / u128::from(whole.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let by_bytes = share(resource.held.count(), self.bytes_max());
        let by_keys = share(resource.variants.len() as u64, self.keys_max);
        by_bytes.max(by_keys).max(1)
    }
}

fn describe(entry: &NewResponse) -> Description {
    Description {
        key: entry.key.to_vec(),
        host: entry.host.to_vec(),
        selection: entry.selection.clone(),
        head: entry.head.clone(),
        for_head: entry.for_head,
        status_only: entry.status_only,
        timing: entry.timing,
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
