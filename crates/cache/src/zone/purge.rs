//! Purges of a zone.

use std::sync::Arc;

use super::{Purged, Zone};
use crate::disk::{self, Identity};
use crate::purge::{PurgeKind, Target};
use crate::stored::{Resource, StoredBody, Variant};

impl Zone {
    /// Removes the target, or makes it stale. After this returns, no response requested before the
    /// call is used as fresh. Waits for the disk.
    pub fn purge(&self, target: &Target, manner: PurgeKind, now_ms: u64) -> Purged {
        self.purges.push(target);
        let mut purged = Purged::default();
        if let Target::Key(key) = target {
            if self.may_find_more() {
                self.purges.push_unloaded(key);
            }
            self.purge_key(key, target, manner, now_ms, &mut purged);
            self.withdraw_copies(Some(key));
            return purged;
        }
        let concerned = |resource: &Arc<Resource>| target.concerns(&**resource);
        let keys: Vec<Arc<[u8]>> = self
            .index
            .iter()
            .filter(|(_, resource)| concerned(resource))
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            self.purge_key(&key, target, manner, now_ms, &mut purged);
        }
        // Also of keys that were evicted since.
        self.withdraw_copies(None);
        purged
    }

    fn purge_key(
        &self,
        key: &[u8],
        target: &Target,
        manner: PurgeKind,
        now_ms: u64,
        purged: &mut Purged,
    ) {
        if !self.index.contains_key(key) {
            self.find_unloaded(key);
        }
        let _commit = self.commit(key);
        let Some(resource) = self.index.peek(key) else {
            return;
        };
        if !target.concerns(&*resource) {
            return;
        }
        purged.keys += 1;
        purged.responses += resource.variants.len() as u64;
        match manner {
            PurgeKind::Hard => {
                self.index.remove(key);
                resource
                    .variants
                    .iter()
                    .for_each(|variant| self.remove_file(variant));
            }
            PurgeKind::Soft => {
                for variant in &resource.variants {
                    self.make_stale(variant, now_ms);
                }
            }
        }
    }
}

impl Zone {
    /// Ends a response's freshness, also in its file, so that it stays stale after a restart.
    fn make_stale(&self, variant: &Variant, now_ms: u64) {
        variant.make_stale(now_ms);
        let StoredBody::File(file) = &variant.body else {
            return;
        };
        let written = file.open_to_change();
        let written = written.and_then(|opened| {
            let was_sound = file.is_sound(Identity::of_file(&opened)?);
            disk::rewrite_timing(&opened, &variant.timing())?;
            let identity = Identity::of_file(&opened)?;
            file.set_sound(was_sound.then_some(identity));
            Ok(())
        });
        if written.is_err() {
            // A file that cannot be marked must not count as fresh later.
            self.remove_file(variant);
        }
    }
}
