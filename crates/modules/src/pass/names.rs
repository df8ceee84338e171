//! Sets of field names, asked once for every field that passes.

use turnpike_wire::message::Known;

/// Names of fields, without regard to case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// One bit for each name that the parser knows.
    known: u64,
    /// Few in any configuration: a walk over them costs less than a hash.
    others: Vec<Box<[u8]>>,
}

impl Names {
    /// Adds a name.
    pub(crate) fn add(&mut self, name: &[u8]) {
        match Known::of(name) {
            Known::Other if self.has(Known::Other, name) => {}
            Known::Other => self.others.push(name.into()),
            known => self.known |= 1 << known as u8,
        }
    }

    /// Takes a name out.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        match Known::of(name) {
            Known::Other => self.others.retain(|own| !own.eq_ignore_ascii_case(name)),
            known => self.known &= !(1 << known as u8),
        }
    }

    /// Whether a field's name is among them. `known` is what the parser took it for.
    pub(crate) fn has(&self, known: Known, name: &[u8]) -> bool {
        match known {
            Known::Other => self.others.iter().any(|own| own.eq_ignore_ascii_case(name)),
            known => self.known & (1 << known as u8) != 0,
        }
    }
}
