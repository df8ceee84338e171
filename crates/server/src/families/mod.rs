//! The one list of directive families. A new family is one line here.

pub(crate) mod advice;
mod core;

use std::sync::LazyLock;

use turnpike_conf::{Registry, Row};

/// Every family with its rows, in the reference's order.
static FAMILIES: LazyLock<Vec<(&'static str, &'static [Row])>> = LazyLock::new(|| {
    let cores = [
        ("core", core::ROWS),
        ("http", turnpike_http::settings::ROWS),
    ];
    let families = turnpike_modules::FAMILIES.iter();
    let stream = turnpike_modules::STREAM_FAMILIES.iter();
    cores
        .into_iter()
        .chain(families.map(|family| (family.name(), family.rows())))
        .chain([("stream", turnpike_stream::rows::ROWS)])
        .chain(stream.map(|family| (family.name(), family.rows())))
        .collect()
});

/// Names of nginx's directives that are known but not done: the list of all of them, less those
/// that a family's row implements.
static NOT_YET: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let rows = || FAMILIES.iter().flat_map(|(_, rows)| rows.iter());
    let names = include_str!("not_yet.txt").lines();
    names
        .filter(|name| rows().all(|row| row.name != *name))
        .collect()
});

/// Made once: a reload needs the same one.
static REGISTRY: LazyLock<Registry> =
    LazyLock::new(|| Registry::new(FAMILIES.as_slice(), NOT_YET.as_slice()));

/// The registry of all families.
pub fn registry() -> Registry {
    REGISTRY.clone()
}

/// Names of nginx's directives that are refused.
pub(crate) fn not_yet() -> &'static [&'static str] {
    &NOT_YET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_rows_is_sound() {
        assert_eq!(registry().problems(), Vec::<String>::new());
    }

    #[test]
    fn known_names_stand_once_and_in_order() {
        let names: Vec<&str> = include_str!("not_yet.txt").lines().collect();
        assert!(names.is_sorted_by(|a, b| a < b));
    }
}
