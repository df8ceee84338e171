//! The pages as a site with search, by mdBook: a pinned tool, installed beside what is built.
//!
//! The site is built from a copy of `docs`, in which two pages are replaced by files of the
//! repository's root. In the repository those pages only say where the files are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::site_links;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// mdBook's version: its pages and options change between minor versions.
const VERSION: &str = "0.5.4";

/// Pages of the site, and the files that they show.
const SHOWN: &[(&str, &str)] = &[
    ("docs/changelog.md", "CHANGELOG.md"),
    ("docs/security.md", "SECURITY.md"),
];

/// Builds the site into `target/book`, and checks its links.
pub(crate) fn build() -> Outcome {
    let program = program();
    if !program.is_file() {
        println!("docs: installing mdBook {VERSION}, which takes some minutes");
        must(
            workspace::cargo()
                .args([
                    "install",
                    "mdbook",
                    "--version",
                    VERSION,
                    "--locked",
                    "--root",
                ])
                .arg(folder())
                .args(["--no-default-features", "--features", "search"]),
        )?;
    }
    let source = workspace::target().join("book-source");
    copy(&source)?;
    let book = workspace::target().join("book");
    must(
        Command::new(program)
            .arg("build")
            .arg(&source)
            .arg("--dest-dir")
            .arg(&book),
    )?;
    site_links::check(&book)?;
    println!("docs: {}", book.join("index.html").display());
    Ok(())
}

/// Copies the pages, with the files that some of them show.
fn copy(source: &Path) -> Outcome {
    let failed = |error: std::io::Error| format!("{}: {error}", source.display());
    if source.exists() {
        fs::remove_dir_all(source).map_err(failed)?;
    }
    fs::create_dir_all(source).map_err(failed)?;
    let root = workspace::root();
    must(
        Command::new("cp")
            .arg("-r")
            .args([&root.join("docs"), &root.join("book.toml")])
            .arg(source),
    )?;
    for (page, file) in SHOWN {
        fs::copy(root.join(file), source.join(page)).map_err(failed)?;
    }
    Ok(())
}

/// A folder for each version, so that a new version is installed again.
fn folder() -> PathBuf {
    workspace::root().join(format!("target/tools/mdbook-{VERSION}"))
}

fn program() -> PathBuf {
    folder().join("bin/mdbook")
}
