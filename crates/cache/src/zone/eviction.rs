//! What leaves the index of a zone: what a resource weighs there, and the files that go with it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use quick_cache::{Lifecycle, Weighter};

use super::Zone;
use crate::stored::{Resource, StoredBody, Variant};

/// The weight of a resource is computed at its creation, since it must not change while it is in
/// the index.
#[derive(Clone)]
pub(super) struct Weigh;

impl Weighter<Arc<[u8]>, Arc<Resource>> for Weigh {
    fn weight(&self, _: &Arc<[u8]>, resource: &Arc<Resource>) -> u64 {
        resource.weight
    }
}

/// Counts evicted resources, and hands them over.
#[derive(Clone)]
pub(super) struct Evict {
    pub(super) evicted: Arc<AtomicU64>,
}

/// The resources that one change of the index has evicted.
pub(super) type Evicted = Vec<Arc<Resource>>;

impl Lifecycle<Arc<[u8]>, Arc<Resource>> for Evict {
    type RequestState = Evicted;

    fn on_evict(&self, state: &mut Evicted, _: Arc<[u8]>, resource: Arc<Resource>) {
        // A newer one replaces it, and handles its files.
        if resource.is_replaced.load(Ordering::Acquire) {
            return;
        }
        self.evicted.fetch_add(1, Ordering::Relaxed);
        state.push(resource);
    }
}

/// The commit lock of a key. When it is given back, the files of what a change under it has evicted
/// are removed: each under the commit lock of its own key, since a newer response may take its path
/// at the same time.
pub(super) struct Commit<'a> {
    zone: &'a Zone,
    /// `None` once it is given back.
    lock: Option<MutexGuard<'a, ()>>,
    pub(super) evicted: Evicted,
}

impl<'a> Commit<'a> {
    pub(super) fn of(zone: &'a Zone, key: &[u8]) -> Self {
        Self {
            zone,
            lock: Some(zone.lock_commit(key)),
            evicted: Evicted::new(),
        }
    }
}

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        // No thread holds two of these locks.
        self.lock = None;
        for resource in &self.evicted {
            let _lock = self.zone.lock_commit(&resource.key);
            let current = self.zone.index.peek(&*resource.key);
            let kept = current.as_ref().map_or(&[][..], |one| &one.variants);
            self.zone.remove_files_left(&resource.variants, kept);
        }
    }
}

impl Zone {
    /// Removes the files of variants that the index no longer has. A zone that was left keeps them:
    /// the next one may have adopted them.
    pub(super) fn remove_files_left(&self, before: &[Arc<Variant>], after: &[Arc<Variant>]) {
        if self.is_left() {
            return;
        }
        let path = |variant: &Arc<Variant>| match &variant.body {
            StoredBody::File(file) => Some(file.path.clone()),
            StoredBody::Memory(_) => None,
        };
        let kept: Vec<_> = after.iter().filter_map(path).collect();
        let is_left =
            |variant: &&Arc<Variant>| path(variant).is_some_and(|one| !kept.contains(&one));
        before
            .iter()
            .filter(is_left)
            .for_each(|left| self.remove_file(left));
    }

    /// Removes the file of a variant, unless another one has taken its path.
    pub(super) fn remove_file(&self, variant: &Variant) {
        if let (StoredBody::File(file), Some(disk)) = (&variant.body, self.as_disk()) {
            disk.remove(&file.path, file.number);
        }
    }
}
