//! Kernel settings as files of the distribution write them: who sets what, and who has the last
//! word (sysctl.d(5)).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A line `name = value` of such a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SettingLine {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The name with dots.
    pub(crate) name: String,
    pub(crate) value: String,
}

/// The folders, those whose files hide files of the same name in later ones first.
const FOLDERS: &[&str] = &[
    "etc/sysctl.d",
    "run/sysctl.d",
    "usr/local/lib/sysctl.d",
    "usr/lib/sysctl.d",
    "lib/sysctl.d",
];

/// Lines that are read at most: far above any real machine.
const LINES_MAX: usize = 10_000;

/// All lines, in the order in which they are applied: the last one for a name counts.
pub(super) fn lines(root: &Path) -> Vec<SettingLine> {
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".conf") {
                files
                    .entry(name)
                    .or_insert_with(|| Path::new(folder).join(entry.file_name()));
            }
        }
    }
    let mut paths: Vec<PathBuf> = files.into_values().collect();
    // `sysctl --system` reads it last, wherever it is not one of the folder's links.
    paths.push("etc/sysctl.conf".into());
    let mut lines = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
        let found = text.lines().enumerate().filter_map(|(index, line)| {
            let (name, value) = line.split_once('=')?;
            let name = name.trim().trim_start_matches('-').replace('/', ".");
            let words: Vec<&str> = value.split_whitespace().collect();
            (!name.starts_with(['#', ';'])).then(|| SettingLine {
                file: format!("/{}", path.display()),
                line: index + 1,
                name,
                value: words.join(" "),
            })
        });
        lines.extend(found);
        lines.truncate(LINES_MAX);
    }
    lines
}
