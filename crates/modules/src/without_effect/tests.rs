//! What is checked, row by row.

use turnpike_conf::{Row, Value};

use super::{grpc, http2, memcached, others, scgi, uwsgi};

fn rows() -> impl Iterator<Item = &'static Row> {
    let tables = [
        http2::ROWS,
        uwsgi::ROWS,
        scgi::ROWS,
        grpc::ROWS,
        memcached::ROWS,
        others::ROWS,
        others::MODULES,
    ];
    tables.into_iter().flatten()
}

#[test]
fn what_would_have_an_effect_is_not_here() {
    for name in [
        "uwsgi_pass",
        "scgi_pass",
        "grpc_pass",
        "memcached_pass",
        "sub_filter",
        "slice",
        "mp4",
        "flv",
    ] {
        assert!(rows().all(|row| row.name != name), "{name}");
    }
}

/// A directive, its arguments, and nginx's words for what is wrong with them.
const CASES: &[(&str, &[&str], &str)] = &[
    ("http2", &["off"], ""),
    ("http2", &["on"], "\"http2\" directive is not supported yet"),
    ("ssi", &["on"], "\"ssi\" directive is not supported yet"),
    ("scgi_param", &["A", "b"], ""),
    ("scgi_param", &["A", "b", "if_not_empty"], ""),
    ("scgi_param", &["A", "b", "c"], "invalid parameter \"c\""),
    ("scgi_cache_valid", &["200", "302", "10m"], ""),
    (
        "scgi_cache_valid",
        &["any", "x"],
        "invalid time value \"x\"",
    ),
    ("scgi_cache_valid", &["700", "1m"], "invalid status \"700\""),
    (
        "scgi_cache_path",
        &["/c", "keys_zone=a:1m", "levels=1:2", "inactive=60m"],
        "",
    ),
    (
        "scgi_cache_path",
        &["/c", "levels=1:2"],
        "\"scgi_cache_path\" must have \"keys_zone\" parameter",
    ),
    (
        "scgi_cache_path",
        &["/c", "keys_zone=a"],
        "invalid keys zone size \"keys_zone=a\"",
    ),
    ("scgi_bind", &["off"], ""),
    ("scgi_bind", &["nobody"], "invalid address \"nobody\""),
    ("scgi_store_access", &["user:rw", "group:r"], ""),
    ("scgi_store_access", &["user:x"], "invalid value \"user:x\""),
    ("aio", &["threads=pool"], ""),
    ("aio", &["sometimes"], "invalid value"),
    ("directio", &["4m"], ""),
    (
        "directio",
        &["soon"],
        "\"directio\" directive invalid value",
    ),
];

#[test]
fn arguments_are_checked_as_nginx_does() {
    for (name, words, expected) in CASES {
        let row = rows().find(|row| row.name == *name).expect(name);
        let Value::Checked(check) = row.value else {
            panic!("{name} is not checked by a function");
        };
        let complaint = check(name, words).err().unwrap_or_default();
        assert_eq!(complaint, *expected, "{name} {words:?}");
    }
}
