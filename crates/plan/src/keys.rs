//! Maps whose keys the configuration gives, and requests only look up: a fast hash does, since no
//! client can add a key that collides with others.

use std::collections::HashMap;

/// A map by texts of the configuration. Nothing that a client sends may become a key.
pub type KeyMap<T> = HashMap<Box<[u8]>, T, foldhash::fast::RandomState>;
