//! `memcached_pass`: responses are values of memcached, which something else has stored there.
//!
//! The family reads its directives, asks for keys and reads the lines around values; `pass` does
//! the rest.

mod origin;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use plan::Memcached;
