//! The one list of directive families. A new family is one line here.

pub(crate) mod advice;
mod core;
mod origin;

use std::sync::LazyLock;

use turnpike_conf::{FamilyReference, Reference, ReferenceText, Registry, Row};

/// Every family with its rows and texts, in the reference's order.
static FAMILIES: LazyLock<Vec<FamilyReference>> = LazyLock::new(|| {
    let families = turnpike_modules::FAMILIES.iter();
    let families = families.map(|family| entry(family.name, family.rows, family.reference));
    let stream = turnpike_modules::STREAM_FAMILIES.iter();
    let stream = stream.map(|family| entry(family.name, family.rows, family.reference));
    let core = [
        entry("core", core::ROWS, CORE_TEXTS),
        entry(
            "http",
            turnpike_http::settings::ROWS,
            turnpike_http::settings::REFERENCE,
        ),
    ];
    let core_of_stream = entry(
        "stream",
        turnpike_stream::rows::ROWS,
        turnpike_stream::rows::REFERENCE,
    );
    core.into_iter()
        .chain(families)
        .chain([core_of_stream])
        .chain(stream)
        .collect()
});

const CORE_TEXTS: &[ReferenceText] = &[ReferenceText::new(include_str!("reference.md"))];

fn entry(
    name: &'static str,
    rows: &'static [Row],
    texts: &'static [ReferenceText],
) -> FamilyReference {
    FamilyReference { name, rows, texts }
}

/// Names of nginx's directives that are known but not done: the list of all of them, less those
/// that a family's row implements.
static NOT_YET: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let rows = || FAMILIES.iter().flat_map(|family| family.rows.iter());
    let names = include_str!("not_yet.txt").lines();
    names
        .filter(|name| rows().all(|row| row.name != *name))
        .collect()
});

/// Made once: a reload needs the same one.
static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let families = FAMILIES.iter().map(|family| (family.name, family.rows));
    Registry::new(&families.collect::<Vec<_>>(), NOT_YET.as_slice())
});

/// The registry of all families.
pub fn registry() -> Registry {
    REGISTRY.clone()
}

/// The reference of all directives.
pub(crate) fn reference() -> Reference {
    Reference::new(&FAMILIES, origin::origin)
}

/// Names of nginx's directives that are refused.
pub(crate) fn not_yet() -> &'static [&'static str] {
    &NOT_YET
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::has_effect;

    #[test]
    fn the_table_of_rows_is_sound() {
        assert_eq!(registry().problems(), Vec::<String>::new());
    }

    #[test]
    fn each_directive_that_does_something_has_a_text_that_fits() {
        let reference = reference();
        assert_eq!(reference.problems(), &[] as &[String]);
        let bare = reference.unexplained().filter(|(_, row)| has_effect(row));
        let bare: Vec<_> = bare.map(|(page, row)| (page, row.name)).collect();
        assert_eq!(bare, &[]);
    }

    #[test]
    fn known_names_stand_once_and_in_order() {
        let names: Vec<&str> = include_str!("not_yet.txt").lines().collect();
        assert!(names.is_sorted_by(|a, b| a < b));
    }
}
