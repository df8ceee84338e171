//! Numbers of what stands in a plan's flat tables.

/// Index of a server block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerIndex(pub u32);

/// Index of a location; every server block has one of its own for what no location covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocationIndex(pub u32);

/// Index of a listening address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenIndex(pub u32);
