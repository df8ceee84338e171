//! Dead files: a `.rs` file that no `mod` line leads to is not compiled, not tested and believed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::scanner::{Source, Token};

/// Finds the files that no crate root reaches.
pub(super) fn check(root: &Path, files: &[PathBuf]) -> Vec<Finding> {
    let sources: BTreeSet<&PathBuf> = files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<PathBuf> = sources
        .iter()
        .filter(|file| is_root(file))
        .map(|file| (*file).clone())
        .collect();
    while let Some(file) = waiting.pop() {
        if !reached.insert(file.clone()) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else {
            continue;
        };
        waiting.extend(
            children(&file, &text)
                .into_iter()
                .filter(|path| sources.contains(path)),
        );
    }
    sources
        .into_iter()
        .filter(|file| !reached.contains(*file))
        .map(|file| Finding::new(file, 1, "no mod line leads to this file"))
        .collect()
}

/// Whether cargo itself starts from this file.
fn is_root(file: &Path) -> bool {
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let folder = file
        .parent()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str());
    match folder {
        Some("src") => matches!(name, "lib.rs" | "main.rs"),
        // A folder of unit tests below src is a module.
        Some("tests") => !file.iter().any(|part| part == "src"),
        Some("bin" | "benches" | "examples" | "fuzz_targets") => true,
        _ => matches!(name, "build.rs" | "main.rs"),
    }
}

/// Every path where the modules that a file declares may lie.
fn children(file: &Path, text: &str) -> Vec<PathBuf> {
    let source = Source::scan(text);
    let folder = file.parent().unwrap_or(Path::new(""));
    let stem = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let own = if is_root(file) || stem == "mod" {
        folder.to_path_buf()
    } else {
        folder.join(stem)
    };
    let mut paths: Vec<PathBuf> = source
        .strings
        .iter()
        .map(|(_, path)| folder.join(path))
        .collect();
    let mut inline: Vec<(String, usize)> = Vec::new(); // name and depth of open `mod x {`
    let mut depth = 0usize;
    for (index, placed) in source.tokens.iter().enumerate() {
        match placed.token {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') => {
                depth = depth.saturating_sub(1);
                inline.retain(|(_, opened)| *opened < depth + 1);
            }
            _ => {}
        }
        let Some(name) = source.word(index + 1) else {
            continue;
        };
        if source.word(index) != Some("mod") {
            continue;
        }
        if source.is_mark(index + 2, ';') {
            let at = inline
                .iter()
                .fold(own.clone(), |path, (name, _)| path.join(name));
            paths.push(at.join(format!("{name}.rs")));
            paths.push(at.join(name).join("mod.rs"));
        } else if source.is_mark(index + 2, '{') {
            inline.push((name.to_owned(), depth + 1));
        }
    }
    paths
}

#[cfg(test)]
mod tests;
