//! Copies of stored responses that others hold and send without asking the zone.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::Zone;

/// A holder of copies of stored responses.
pub trait CopyHolder: Send + Sync {
    /// Withdraws the copies of a key of a zone, or all of the zone: what the zone answers with has
    /// changed. When it returns, none of them is sent any more.
    fn withdraw(&self, zone: &str, key: Option<&[u8]>);
}

/// The holders of copies of a zone: one for each plan with the zone that has any.
#[derive(Default)]
pub(super) struct Holders(RwLock<Vec<Weak<dyn CopyHolder>>>);

impl Zone {
    /// Has a holder withdraw its copies of what changes, as long as it lives.
    pub fn add_copy_holder(&self, holder: &Arc<dyn CopyHolder>) {
        let holder = Arc::downgrade(holder);
        let mut holders = self
            .holders
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        holders.retain(|known| known.strong_count() > 0);
        if !holders.iter().any(|known| known.ptr_eq(&holder)) {
            holders.push(holder);
        }
    }

    /// Whether a response is the only one of its key, and would answer every request for it.
    pub fn answers_all(&self, key: &[u8], variant: &Arc<crate::stored::Variant>) -> bool {
        let resource = self.index.peek(key);
        resource.is_some_and(|resource| match resource.variants.as_slice() {
            [only] => Arc::ptr_eq(only, variant) && only.selection.is_empty(),
            _ => false,
        })
    }

    /// The zone has changed: a key, or many.
    pub(super) fn withdraw_copies(&self, key: Option<&[u8]>) {
        let holders = self
            .holders
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for holder in holders.iter().filter_map(Weak::upgrade) {
            holder.withdraw(&self.name, key);
        }
    }
}
