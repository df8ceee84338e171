//! The one list of directive families. A new family is one line here.

mod core;

use std::sync::LazyLock;

use turnpike_conf::{Registry, Row};

use crate::plan::{self, ServingPlan};

/// Every family with its rows, in the reference's order.
pub const FAMILIES: &[(&str, &[Row])] = &[("core", core::ROWS)];

/// Names of nginx's directives that are known but not done: the list of all of them, less those
/// that a family's row implements.
static NOT_YET: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let rows = || FAMILIES.iter().flat_map(|(_, rows)| rows.iter());
    let names = include_str!("not_yet.txt").lines();
    names
        .filter(|name| rows().all(|row| row.name != *name))
        .collect()
});

/// The registry of all families.
pub fn registry() -> Registry {
    Registry::new(FAMILIES, NOT_YET.as_slice())
}

/// What turns the rest of the configuration into a running service.
pub fn serving_plan() -> &'static dyn ServingPlan {
    &plan::Nothing
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
