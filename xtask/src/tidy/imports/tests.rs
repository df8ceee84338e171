//! Edges that the table allows and edges that it does not.

use serde_json::json;

use crate::workspace;

#[test]
fn edges() {
    let root = workspace::root();
    let path = |folder: &str| root.join(folder).display().to_string();
    let cases = [
        ("crates/http", "crates/lane", "normal", 0),
        ("crates/lane", "crates/http", "normal", 1),
        ("crates/lane", "testkit", "dev", 0),
        ("crates/lane", "testkit", "normal", 1),
        ("crates/lane", "crates/http", "dev", 1),
        ("crates/unheard", "crates/wire", "normal", 1),
    ];
    for (from, to, kind, expected) in cases {
        let dependency = json!({ "name": to, "path": path(to), "kind": kind });
        let package = json!({
            "manifest_path": path(&format!("{from}/Cargo.toml")),
            "dependencies": [dependency],
        });
        let findings = super::check(&json!({ "packages": [package] }));
        assert_eq!(findings.len(), expected, "{from} -> {to} ({kind})");
    }
}
