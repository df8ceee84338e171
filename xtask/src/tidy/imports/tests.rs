//! Edges that the table allows and edges that it does not.

use std::path::{Path, PathBuf};

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

#[test]
fn edges_that_no_source_uses() {
    let every: Vec<(String, &[&str])> = super::TABLE
        .iter()
        .map(|(folder, allowed)| (format!("{folder}/src/lib.rs"), *allowed))
        .collect();
    let files: Vec<PathBuf> = every.iter().map(|(file, _)| PathBuf::from(file)).collect();
    let text_of = |file: &Path, without: &str| {
        let (_, allowed) = every.iter().find(|(own, _)| Path::new(own) == file)?;
        let names = allowed.iter().filter_map(|other| other.rsplit('/').next());
        let lines = names.map(|name| format!("use turnpike_{name}::a;\n"));
        Some(lines.filter(|line| line != without).collect::<String>())
    };
    let found = |without: &str| {
        let findings = super::unused(&files, &|file| text_of(file, without));
        findings.len()
    };
    assert_eq!(found(""), 0);
    assert_eq!(found("use turnpike_cache::a;\n"), 1);
    let comment = |file: &Path| text_of(file, "").map(|text| text.replace("use", "// use"));
    let edges: usize = every.iter().map(|(_, allowed)| allowed.len()).sum();
    assert_eq!(super::unused(&files, &comment).len(), edges);
}

#[test]
fn the_page_for_readers_says_the_same() {
    let names = |allowed: &[&str]| match allowed {
        [] => "–".to_owned(),
        _ => {
            let names = allowed.iter().filter_map(|other| other.rsplit('/').next());
            names.collect::<Vec<_>>().join(", ")
        }
    };
    let rows = super::TABLE.iter();
    let page: String = rows
        .map(|(folder, allowed)| format!("| `{folder}` | what it is | {} |\n", names(allowed)))
        .collect();
    let cases = [
        (page.clone(), 0),
        (
            page.replace("| wire, host, usage |", "| host, usage, wire |"),
            0,
        ),
        (page.replace("| wire, host, usage |", "| wire |"), 1),
        (page.replace("| `tools/trace` |", "| `tools/other` |"), 1),
        (String::new(), super::TABLE.len()),
    ];
    for (page, expected) in cases {
        let found = super::page(&page);
        assert_eq!(found.len(), expected, "{page}: {found:?}");
    }
}
