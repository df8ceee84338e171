//! Links between the pages: each leads to a file that is there, and to a heading that is in it.
//! Addresses of other sites are not asked, since a check must not fail for them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::outcome::Outcome;
use crate::workspace;

/// Folders whose pages are checked, and those beside the manifest.
const FOLDERS: &[&str] = &["", "docs", "docs/directives", "bench/results"];

/// Checks every page, and that the table of contents has each page of `docs`.
pub(super) fn check() -> Outcome {
    let root = workspace::root();
    let mut faults = Vec::new();
    let mut links = 0;
    let contents = read(&root.join("docs/SUMMARY.md"))?;
    for page in pages(&root)? {
        let text = read(&page)?;
        let name = page
            .strip_prefix(&root)
            .unwrap_or(&page)
            .display()
            .to_string();
        for target in targets(&text) {
            links += 1;
            if let Some(fault) = fault(&page, &text, target) {
                faults.push(format!("{name}: ({target}) {fault}"));
            }
        }
        if let Some(own) = name.strip_prefix("docs/")
            && own != "SUMMARY.md"
            && !contents.contains(&format!("({own})"))
        {
            faults.push(format!("docs/SUMMARY.md: {own} is missing"));
        }
    }
    if faults.is_empty() {
        println!("docs: {links} links lead somewhere");
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn pages(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut pages = Vec::new();
    for folder in FOLDERS {
        let folder = root.join(folder);
        let failed = |error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// What the links of a page lead to, code left out.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for line in prose(text) {
        // Parts between backticks are code.
        for part in line.split('`').step_by(2) {
            for after in part.split("](").skip(1) {
                if let Some((target, _)) = after.split_once(')') {
                    targets.push(target);
                }
            }
        }
    }
    targets
}

/// The lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Why a link leads nowhere.
fn fault(page: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    // The site consists of the pages of `docs` only.
    if target.starts_with("../") && page.parent().is_some_and(|folder| folder.ends_with("docs")) {
        return Some("the site has no such file".to_owned());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let other;
    let text = if file.is_empty() {
        text
    } else {
        let path = page.parent()?.join(file);
        if !path.exists() {
            return Some("there is no such file".to_owned());
        }
        if anchor.is_empty() {
            return None;
        }
        other = fs::read_to_string(path).unwrap_or_default();
        &other
    };
    let mut headings = prose(text).filter(|line| line.starts_with('#'));
    let found = headings.any(|line| slug(line) == anchor);
    (!found).then(|| "there is no such heading".to_owned())
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim();
    let letters = text.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let text = "a [b](c.md) `[d](e)` [f](#g)\n```\n[h](i)\n```\n[j](https://k/)\n";
        assert_eq!(targets(text), ["c.md", "#g", "https://k/"]);
    }

    #[test]
    fn headings_have_anchors() {
        let cases = [
            ("## A lane that stalls", "a-lane-that-stalls"),
            ("# From haproxy.cfg", "from-haproxycfg"),
            ("### `worker_processes`", "worker_processes"),
        ];
        for (heading, anchor) in cases {
            assert_eq!(slug(heading), anchor);
        }
        let page = Path::new("page.md");
        let of = |target| fault(page, "# One\n```\n# Two\n```\n", target);
        assert_eq!(of("#one"), None);
        assert!(of("#two").is_some());
        assert!(of("nowhere.md").is_some());
        let outside = fault(Path::new("docs/page.md"), "", "../CHANGELOG.md");
        assert_eq!(outside.as_deref(), Some("the site has no such file"));
        assert_eq!(of("https://example.org/#x"), None);
    }
}
