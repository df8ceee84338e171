//! The fields of a request as the configuration has changed them. They stand over those that were
//! read, which stay as they are.

use turnpike_wire::message::Fields;

/// Fields in place of a request's, once one of them was changed.
#[derive(Default)]
pub(crate) struct ChangedFields {
    fields: Fields,
    is_changed: bool,
}

impl ChangedFields {
    /// Whether any was changed.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The fields in force, over those that were read.
    pub(crate) fn over<'a>(&'a self, read: &'a Fields) -> &'a Fields {
        if self.is_changed { &self.fields } else { read }
    }

    /// Changes the fields in force.
    pub(crate) fn change(&mut self, read: &Fields, change: impl FnOnce(&mut Fields)) {
        if !self.is_changed {
            self.fields.copy(read);
            self.is_changed = true;
        }
        change(&mut self.fields);
    }

    /// Makes these a copy of `other`; keeps the memory.
    pub(crate) fn copy(&mut self, other: &ChangedFields) {
        self.clear();
        if other.is_changed {
            self.fields.copy(&other.fields);
            self.is_changed = true;
        }
    }

    /// Forgets all changes; keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.fields.clear();
        self.is_changed = false;
    }

    /// The buffer of the texts, for a caller that limits its size.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.fields.buffer()
    }
}

#[cfg(test)]
mod tests;
