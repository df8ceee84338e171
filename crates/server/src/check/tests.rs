//! Names and advice, as tables.

use super::{has_effect, only_off};
use crate::families;

#[test]
fn the_matrix_holds_every_name() {
    let matrix = super::support::matrix();
    let registry = families::registry();
    let rows = registry.rows().filter(|(_, row)| !only_off(row));
    let rows = rows.map(|(_, row)| row.name);
    let refused = families::not_yet().iter().copied();
    let refused = refused.filter(|name| *name != "include");
    for name in rows.chain(refused) {
        let found = matrix.matches(&format!("`{name}`")).count();
        assert!(found >= 1, "{name}");
    }
    assert!(
        matrix.contains("\n| mail proxying | `auth_http`"),
        "{matrix}"
    );
    let (works, refused) = ("proxy_cache_path", "js_content");
    let part = |name: &str| matrix.split("\n## ").position(|part| part.contains(name));
    assert_eq!(part(works), Some(1), "{matrix}");
    assert_eq!(part("`server_names_hash_max_size`"), Some(2), "{matrix}");
    assert_eq!(part("`image_filter off`"), Some(2), "{matrix}");
    assert_eq!(part("`image_filter`"), Some(3), "{matrix}");
    assert!(families::not_yet().contains(&refused));
    assert_eq!(part(&format!("`{refused}`")), Some(3), "{matrix}");
}

#[test]
fn rows_say_whether_they_have_an_effect() {
    let registry = families::registry();
    let has = |name: &str| {
        let mut rows = registry.rows().filter(|(_, row)| row.name == name);
        rows.next().map(|(_, row)| has_effect(row))
    };
    assert_eq!(has("proxy_pass"), Some(true));
    assert_eq!(has("lock_file"), Some(false));
    assert_eq!(has("aio"), Some(false));
}
