//! Configurations that the documentation shows are ones that the server takes.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use support::{Folder, configuration, stderr, turnpike};

/// The blocks of a page that are marked as nginx's language.
fn blocks(page: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("\n```nginx\n") {
        let (block, after) = after.split_once("\n```").unwrap();
        blocks.push(block);
        rest = after;
    }
    blocks
}

#[test]
fn configurations_in_the_documentation_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        pages.push(entry.unwrap().path());
    }
    let mut count = 0;
    for page in pages.iter().filter(|page| page.extension().is_some()) {
        let text = fs::read_to_string(page).unwrap();
        for block in blocks(&text) {
            count += 1;
            let folder = Folder::new();
            let cache = format!("{}/cache", folder.name());
            let block = block.replace("/var/cache/turnpike", &cache);
            folder.write("nginx.conf", &configuration(&block));
            let output = turnpike(&folder.arguments(&["-t"]));
            let shown = stderr(&output);
            assert!(
                output.status.success(),
                "{}: {block}\n{shown}",
                page.display()
            );
        }
    }
    assert!(count > 0, "no page shows a configuration");
}
