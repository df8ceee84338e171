//! What a lookup found, as groups remember it.

use crate::address::Address;

/// An address that was found, with what a service record says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(super) address: Address,
    pub(super) server: Option<String>,
    pub(super) weight: Option<u32>,
    pub(super) backup: bool,
}
