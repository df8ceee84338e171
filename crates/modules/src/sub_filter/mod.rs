//! `sub_filter`: strings of a response's text that are replaced by others.
//!
//! All strings of a location are looked for at once. Where several begin at one place, the first in
//! the configuration counts.

mod body;
mod handler;
mod plan;
mod rows;
mod strings;
#[cfg(test)]
mod tests;

pub(crate) use plan::SubFilter;
