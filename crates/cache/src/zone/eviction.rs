//! What leaves the index of a zone: what a resource weighs there, and the files that go with it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::{Lifecycle, Weighter};

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

/// Counts evicted resources, and removes their files after the index is unlocked.
#[derive(Clone)]
pub(super) struct Evict {
    pub(super) evicted: Arc<AtomicU64>,
}

/// The resources that one change of the index has evicted.
#[derive(Default)]
pub(super) struct Evicted(Vec<Arc<Resource>>);

impl Lifecycle<Arc<[u8]>, Arc<Resource>> for Evict {
    type RequestState = Evicted;

    fn on_evict(&self, state: &mut Evicted, _: Arc<[u8]>, resource: Arc<Resource>) {
        // A newer one replaces it, and handles its files.
        if resource.is_replaced.load(Ordering::Acquire) {
            return;
        }
        self.evicted.fetch_add(1, Ordering::Relaxed);
        state.0.push(resource);
    }
}

impl Drop for Evicted {
    fn drop(&mut self) {
        for resource in &self.0 {
            resource
                .variants
                .iter()
                .for_each(|variant| remove_file(variant));
        }
    }
}

/// Removes files of variants that the newer resource does not have under the same name.
pub(super) fn remove_files_left(before: &Resource, after: &Resource) {
    let path = |variant: &Arc<Variant>| match &variant.body {
        StoredBody::File(file) => Some(file.path.clone()),
        StoredBody::Memory(_) => None,
    };
    let kept: Vec<_> = after.variants.iter().filter_map(path).collect();
    let left = before.variants.iter().filter_map(path);
    for path in left.filter(|path| !kept.contains(path)) {
        let _ = fs::remove_file(path);
    }
}

pub(super) fn remove_file(variant: &Variant) {
    if let StoredBody::File(file) = &variant.body {
        // The file may be gone already, which is fine.
        let _ = fs::remove_file(&file.path);
    }
}
