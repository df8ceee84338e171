//! The runtime of lanes. It must not know requests or directives.

pub mod log;
