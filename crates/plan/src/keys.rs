//! Maps whose keys come from the configuration or from this server, and whose entries no client
//! chooses. A fast hash is safe for them, since no client can add a key that collides with others.

use std::collections::HashMap;

/// The hash of such keys.
pub type KeyHash = foldhash::fast::RandomState;

/// A map by what stands in the configuration, such as networks. Client input must never become a
/// key.
pub type PlanMap<K, T> = HashMap<K, T, KeyHash>;

/// A map by texts of the configuration. Client input must never become a key.
pub type KeyMap<T> = PlanMap<Box<[u8]>, T>;
