//! The result of a lookup, as groups keep it.

use crate::address::Address;

/// An address, with the data of its service record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(super) address: Address,
    pub(super) server: Option<String>,
    pub(super) weight: Option<u32>,
    pub(super) backup: bool,
}
