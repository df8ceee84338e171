//! The pages as a site with search, by mdBook: a pinned tool, installed beside what is built.

use std::path::PathBuf;
use std::process::Command;

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// mdBook's version: its pages and options change between minor versions.
const VERSION: &str = "0.5.4";

/// Builds the site into `target/book`.
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
    must(Command::new(program).arg("build").arg(workspace::root()))?;
    let page = workspace::root().join("target/book/index.html");
    println!("docs: {}", page.display());
    Ok(())
}

/// A folder for each version, so that a new version is installed again.
fn folder() -> PathBuf {
    workspace::root().join(format!("target/tools/mdbook-{VERSION}"))
}

fn program() -> PathBuf {
    folder().join("bin/mdbook")
}
