//! Configurations of strangers under nginx and under our server: both get the same requests, and
//! what differs is printed as a table. The configurations are not part of the workspace.

use std::path::Path;
use std::process::Command;

use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

const PROGRAM: &str = include_str!("compare.py");

/// Compares the configurations of a folder, or only those that are named behind it.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let is_option = |text: &&String| text.starts_with("--");
    let (options, names): (Vec<_>, Vec<_>) = arguments.iter().partition(is_option);
    let options: Vec<String> = options.into_iter().cloned().collect();
    let options = Options::parse(&options, &[], &["--debug"])?;
    let Some((folder, names)) = names.split_first() else {
        return Err("name the folder of the configurations".to_owned());
    };
    let folder = Path::new(folder.as_str());
    if !folder.is_dir() {
        return Err(format!("{}: no folder", folder.display()));
    }
    if !nix::unistd::geteuid().is_root() {
        return Err("only root can give each configuration a root folder of its own".to_owned());
    }
    let (ours, nginx) = (Contender::ours(&options)?, Contender::nginx()?);
    let program = workspace::target().join("compare.py");
    std::fs::write(&program, PROGRAM).map_err(|error| format!("{}: {error}", program.display()))?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "python3"]).arg(&program);
    must(
        command
            .args([&ours.program, &nginx.program])
            .arg(folder)
            .args(names),
    )
}
