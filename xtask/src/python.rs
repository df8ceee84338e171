//! Programs in Python that judge our server, with packages from PyPI in a folder of the build.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// An environment for such a program.
pub(crate) struct Environment {
    /// The folder below the workspace's target folder.
    pub(crate) folder: &'static str,
    /// What the program imports of the packages.
    pub(crate) imports: &'static str,
    pub(crate) packages: &'static [&'static str],
}

impl Environment {
    /// The environment's Python; the packages are installed where that was not done.
    ///
    /// # Errors
    /// Python or a package cannot be had.
    pub(crate) fn python(&self) -> Result<PathBuf, String> {
        let folder = workspace::target().join(self.folder);
        let python = folder.join("bin/python");
        let test = Command::new(&python)
            .args(["-c", &format!("import {}", self.imports)])
            .stderr(Stdio::null())
            .status();
        if !test.is_ok_and(|status| status.success()) {
            must(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
            let mut install = Command::new(&python);
            must(
                install
                    .args(["-m", "pip", "install", "--quiet"])
                    .args(self.packages),
            )?;
        }
        Ok(python)
    }

    /// Puts a program's text into the folder; returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn program(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let program = workspace::target().join(self.folder).join(name);
        let written: Outcome = std::fs::write(&program, text)
            .map_err(|error| format!("{}: {error}", program.display()));
        written.map(|()| program)
    }
}

/// A running program that has printed its ports, and ends when its input does.
pub(crate) struct Companion<const PORTS: usize> {
    /// In the order in which they were printed.
    pub(crate) ports: [u16; PORTS],
    child: Child,
}

impl<const PORTS: usize> Companion<PORTS> {
    /// Starts it, and waits for the line with its ports.
    ///
    /// # Errors
    /// The program does not start, or prints something else.
    pub(crate) fn start(command: &mut Command) -> Result<Companion<PORTS>, String> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut line = String::new();
        let output = child.stdout.take();
        let read = output.map(|output| BufReader::new(output).read_line(&mut line));
        let ports = [0; PORTS];
        let mut companion = Companion { ports, child };
        let printed: Result<Vec<u16>, _> = line.split_whitespace().map(str::parse).collect();
        let printed = printed.ok().and_then(|ports| ports.try_into().ok());
        match (read, printed) {
            (Some(Ok(_)), Some(ports)) => companion.ports = ports,
            _ => return Err(format!("{command:?} did not start")),
        }
        Ok(companion)
    }
}

impl<const PORTS: usize> Drop for Companion<PORTS> {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
