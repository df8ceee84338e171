//! Maps whose keys come from the configuration, and which requests only read. A fast hash is safe
//! for them, since no client can add a key that collides with others.

use std::collections::HashMap;

/// A map by texts of the configuration. Client input must never become a key.
pub type KeyMap<T> = HashMap<Box<[u8]>, T, foldhash::fast::RandomState>;
