//! Tests of `proxy_cache` and of the caches of the other protocols.

mod basic;
mod content;
mod disk;
mod extensions;
mod herd;
mod rfc9111;
mod warm;
