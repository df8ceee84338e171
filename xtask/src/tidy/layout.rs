//! One layout of modules: a module with others inside is `NAME/mod.rs`. One that has no more than
//! its tests inside is `NAME.rs`, and they are `NAME/tests.rs`.

use std::path::PathBuf;

use super::finding::Finding;

/// Finds the modules that stand beside the folder of those inside them.
pub(super) fn check(files: &[PathBuf]) -> Vec<Finding> {
    let is_source = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "rs");
    let sources: Vec<&PathBuf> = files.iter().filter(is_source).collect();
    let beside = |file: &&&PathBuf| {
        let folder = file.with_extension("");
        let mut inside = sources.iter().filter(|other| other.starts_with(&folder));
        inside.any(|other| **other != folder.join("tests.rs"))
    };
    let finding = |file: &&PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let text = format!("there are modules inside: move it to {name}/mod.rs");
        Finding::new(file, 1, text)
    };
    sources.iter().filter(beside).map(finding).collect()
}

#[cfg(test)]
mod tests;
