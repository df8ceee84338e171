//! What the care of a zone's folder asks of it: adopting files, and forgetting keys.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::Zone;
use crate::disk::{self, FileNumber};
use crate::purge::Found;
use crate::stored::{Resource, StoredBody, StoredFile, Variant};

impl Zone {
    /// Leaves the folder to another zone, that of a later process or of a later plan. This one
    /// sees no more requests that use its files, so that each would soon count as unused here: it
    /// adopts and removes none any more, unless the file's content is purged or broken. It can
    /// still find and store responses. [`crate::manager::Manager::announce`] ends this.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    pub(crate) fn take_up(&self) {
        self.is_left.store(false, Ordering::Release);
    }

    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    /// Adopts a file in the folder. A broken file of ours is removed.
    pub(crate) fn adopt(&self, path: &Path) {
        let Some(disk) = self.as_disk().filter(|_| !self.is_left()) else {
            return;
        };
        let Ok(file) = disk::open(path) else {
            return;
        };
        let found = disk::read(&file);
        let found = found.filter(|(found, _)| found.path(disk) == path);
        let Some((found, sums)) = found else {
            if disk::is_ours(&file) {
                let _ = fs::remove_file(path);
            }
            return;
        };
        let (key, host): (Arc<[u8]>, Box<[u8]>) = (found.key.into(), found.host.into());
        let mut commit = self.commit(&key);
        // Purges after this are noticed when it is inserted.
        let purge_sequence = self.purges.next();
        let Ok(number) = FileNumber::of_file(&file) else {
            return;
        };
        let file = StoredFile {
            path: path.to_path_buf(),
            number,
            length: sums.body_bytes,
            crc: sums.body_crc,
            sound: Mutex::new(None),
        };
        let body = StoredBody::File(Arc::new(file));
        let (selection, for_head) = (found.selection, found.for_head);
        let variant = Variant::new(found.head, selection, for_head, body, found.timing)
            .status_only(found.status_only);
        let resource = self.index.peek(&*key);
        let known = resource.as_ref().is_some_and(|resource| {
            let same = |own: &Arc<Variant>| {
                own.selection == variant.selection
                    && own.for_head == variant.for_head
                    && own.part == variant.part
            };
            resource.variants.iter().any(same)
        });
        if known {
            return;
        }
        match self
            .purges
            .judge_found(&self.purges.recent(), &variant.labels(&key, &host))
        {
            Found::Valid => {}
            Found::Stale => variant.make_stale(0),
            Found::Purged => return self.remove_file(&variant),
        }
        let mut variants = match &resource {
            Some(resource) => resource.variants.clone(),
            None => Vec::new(),
        };
        variants.push(Arc::new(variant));
        let purge_sequence = resource.map_or(purge_sequence, |resource| resource.purge_sequence);
        self.insert(&mut commit, key.clone(), host, variants, purge_sequence);
        self.withdraw_copies(Some(&key));
    }

    /// Ends the time in which files may be found that are not in the index.
    pub(crate) fn end_loading(&self) {
        if let Some(disk) = self.as_disk() {
            disk.loaded.store(true, Ordering::Release);
            self.purges.end_loading();
        }
    }

    /// The keys, each with the time of its last use in Unix seconds and its bytes on disk.
    pub(crate) fn ages(&self) -> Vec<(Arc<[u8]>, u64, u64)> {
        let age = |(key, resource): (Arc<[u8]>, Arc<Resource>)| {
            let used_s = resource.used_s.load(Ordering::Relaxed);
            (key, used_s, resource.disk_bytes())
        };
        self.index.iter().map(age).collect()
    }

    /// Removes a key that was not used since `used_s`. Returns whether it did; a zone that was left
    /// does not.
    pub(crate) fn forget(&self, key: &[u8], used_s: u64) -> bool {
        if self.is_left() {
            return false;
        }
        let _commit = self.commit(key);
        let is_unused =
            |resource: &Arc<Resource>| resource.used_s.load(Ordering::Relaxed) <= used_s;
        let Some((_, resource)) = self.index.remove_if(key, is_unused) else {
            return false;
        };
        resource
            .variants
            .iter()
            .for_each(|variant| self.remove_file(variant));
        true
    }
}
