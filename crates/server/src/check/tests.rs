//! Names and advice, as tables.

use super::advice::{self, NGINX, OTHERS};
use super::has_effect;
use crate::families;

#[test]
fn advice_is_found_by_name() {
    let cases: &[(&str, Option<&str>)] = &[
        ("ssl_protocols", Some("TLS to clients")),
        ("listen ssl", None),
        ("track_uploads", Some("upload progress")),
        ("upload_pass", Some("push and live streaming")),
        ("more_set_headers", Some("headers-more")),
        ("content_by_lua_block", Some("OpenResty (Lua)")),
        ("zstd_dict_file", Some("brotli and zstd")),
        ("frobnicate", None),
    ];
    for (name, module) in cases {
        let found = advice::find(name).map(|advice| advice.module);
        assert_eq!(found, *module, "{name}");
    }
}

#[test]
fn advice_is_a_sentence() {
    for row in NGINX.iter().chain(OTHERS) {
        assert!(row.instead.ends_with('.'), "{}", row.module);
    }
}

#[test]
fn the_matrix_holds_every_name() {
    let matrix = super::support::matrix();
    let registry = families::registry();
    let rows = registry.rows().map(|(_, row)| row.name);
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
    assert!(part("`server_names_hash_max_size`") == Some(2), "{matrix}");
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
