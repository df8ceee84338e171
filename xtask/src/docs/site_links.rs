//! Links of the built site: each leads to a file of the site, and to an element that the file has.
//! The pages' own check (`links`) cannot see what mdBook makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::outcome::Outcome;

/// Attributes that name another file.
const ATTRIBUTES: &[&str] = &[" href=\"", " src=\""];

/// Pages that are left out: one holds all others with their links, and one is shown at any address,
/// so its links begin at the root of the site's host.
const LEFT_OUT: [&str; 2] = ["print.html", "404.html"];

/// Beginnings of addresses that lead out of the site. They are not asked, since a check must not
/// fail for others.
const OUTSIDE: &[&str] = &["http://", "https://", "mailto:", "data:", "javascript:"];

/// Checks every page below `book`.
pub(super) fn check(book: &Path) -> Outcome {
    let mut pages = BTreeMap::new();
    collect(book, book, &mut pages)?;
    let (mut count, mut faults) = (0, Vec::new());
    for (name, text) in &pages {
        if LEFT_OUT.iter().any(|page| name.ends_with(page)) {
            continue;
        }
        for target in targets(text) {
            count += 1;
            if let Some(why) = fault(book, &pages, name, target) {
                faults.push(format!("{}: ({target}) {why}", name.display()));
            }
        }
    }
    if faults.is_empty() && count > 0 {
        println!(
            "docs: {count} links of {} pages of the site lead somewhere",
            pages.len()
        );
        Ok(())
    } else {
        Err(format!("{count} links of the site\n{}", faults.join("\n")))
    }
}

/// Reads the pages of a folder and those inside, by their paths below `book`.
fn collect(book: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Outcome {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(book, &path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            let text = fs::read_to_string(&path).map_err(failed)?;
            pages.insert(path.strip_prefix(book).unwrap_or(&path).to_owned(), text);
        }
    }
    Ok(())
}

/// The addresses of a page's links, scripts, styles and pictures.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    // A text that looks like an attribute is none: in texts, the signs around a tag are escaped.
    let tags = text.split('<').skip(1);
    for tag in tags.filter_map(|rest| rest.split('>').next()) {
        for attribute in ATTRIBUTES {
            let values = tag.split(attribute).skip(1);
            targets.extend(values.filter_map(|rest| rest.split('"').next()));
        }
    }
    targets.retain(|target| !OUTSIDE.iter().any(|begin| target.starts_with(begin)));
    targets
}

/// Why a link of the page `name` leads nowhere.
fn fault(
    book: &Path,
    pages: &BTreeMap<PathBuf, String>,
    name: &Path,
    target: &str,
) -> Option<&'static str> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = file.split('?').next().unwrap_or_default();
    let path = match file {
        "" => name.to_owned(),
        file => match resolved(&name.parent()?.join(file)) {
            Some(path) => path,
            None => return Some("it leads out of the site"),
        },
    };
    let Some(text) = pages.get(&path) else {
        return (!book.join(path).exists()).then_some("there is no such file");
    };
    let found = anchor.is_empty() || text.contains(&format!("id=\"{anchor}\""));
    (!found).then_some("there is no such element")
}

/// A path without `.` and `..`; none where it leads out of the site.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => whole.push(part),
            Component::CurDir => {}
            Component::ParentDir if whole.pop() => {}
            _ => return None,
        }
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_page_lead_to_files_and_elements() {
        let page = "<a href=\"b/c.html#there\"> <a href=\"#here\"> <h1 id=\"here\">
                    <a href=\"https://x/\"> <img src=\"none.png\"> <a href=\"b/c.html#not\">";
        let other = "<h2 id=\"there\"> <a href=\"../a.html\"> <a href=\"../../a.html\">
                     <code>&lt;img src=\"/a\"/&gt;</code>";
        let pages = BTreeMap::from([
            (PathBuf::from("a.html"), page.to_owned()),
            (PathBuf::from("b/c.html"), other.to_owned()),
        ]);
        let book = Path::new("/nonexistent");
        let faults = |name: &str| {
            let targets = targets(&pages[Path::new(name)]).into_iter();
            let faults = targets.map(|target| {
                let why = fault(book, &pages, Path::new(name), target);
                (target.to_owned(), why.unwrap_or_default())
            });
            faults.collect::<Vec<(String, &str)>>()
        };
        let expected = [
            ("b/c.html#there", ""),
            ("#here", ""),
            ("none.png", "there is no such file"),
            ("b/c.html#not", "there is no such element"),
        ];
        assert_eq!(
            faults("a.html"),
            expected.map(|(target, why)| (target.to_owned(), why))
        );
        let whys: Vec<&str> = faults("b/c.html").iter().map(|(_, why)| *why).collect();
        assert_eq!(whys, ["", "it leads out of the site"]);
    }
}
