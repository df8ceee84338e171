//! Dependencies that the server links, directly, further down, and for tests only.

use serde_json::{Value, json};

fn edge(to: &str, kind: Value) -> Value {
    json!({ "pkg": to, "dep_kinds": [{ "kind": kind }] })
}

#[test]
fn forbidden_crates_are_found_however_far_down() {
    let cases = [
        ("directly", edge("ratatui", Value::Null), Value::Null, 1),
        ("further down", edge("tool", Value::Null), Value::Null, 1),
        (
            "for tests only",
            edge("ratatui", json!("dev")),
            Value::Null,
            0,
        ),
        (
            "for a tool's tests",
            edge("tool", Value::Null),
            json!("dev"),
            0,
        ),
    ];
    for (name, first, second, expected) in cases {
        let package = |name: &str| json!({ "id": name, "name": name });
        let metadata = json!({
            "packages": [package("turnpike-server"), package("tool"), package("ratatui")],
            "resolve": { "nodes": [
                { "id": "turnpike-server", "deps": [first] },
                { "id": "tool", "deps": [edge("ratatui", second)] },
                { "id": "ratatui", "deps": [] },
            ] },
        });
        assert_eq!(super::check(&metadata).len(), expected, "{name}");
    }
}
