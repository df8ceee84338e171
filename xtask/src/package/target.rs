//! The machine that packages are for: this one, or another one, whose programs are cross-compiled
//! with Debian's compiler and libraries of that machine.

use std::process::Command;

use crate::outcome::Outcome;
use crate::workspace::{self, must, output};

/// A machine that is not this one.
pub(super) struct Target {
    /// Rust's name, for `--target`.
    pub(super) rust: &'static str,
    /// The kernel's name, which RPM and tarballs have too.
    machine: &'static str,
    debian: &'static str,
    /// What the names of the compiler and of its tools begin with.
    gnu: &'static str,
}

/// The machines that packages can be cross-compiled for.
const TARGETS: &[Target] = &[Target {
    rust: "aarch64-unknown-linux-gnu",
    machine: "aarch64",
    debian: "arm64",
    gnu: "aarch64-linux-gnu",
}];

impl Target {
    /// The target of that name.
    ///
    /// # Errors
    /// It is none that packages are built for.
    pub(super) fn named(name: &str) -> Result<&'static Target, String> {
        let known = TARGETS.iter().find(|target| target.rust == name);
        known.ok_or_else(|| {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.rust).collect();
            format!(
                "packages can be built for {}, not for {name}",
                names.join(", ")
            )
        })
    }

    /// Has cargo compile and link for the machine.
    ///
    /// # Errors
    /// Rust's standard library for it is not here and cannot be installed.
    pub(super) fn compile(&self, cargo: &mut Command) -> Outcome {
        self.add_standard_library()?;
        let variable = self.rust.replace('-', "_");
        let compiler = format!("{}-gcc", self.gnu);
        cargo
            .args(["--target", self.rust])
            .env(format!("CC_{variable}"), &compiler)
            .env(format!("CXX_{variable}"), format!("{}-g++", self.gnu))
            .env(format!("AR_{variable}"), format!("{}-ar", self.gnu))
            .env(
                format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()),
                compiler,
            );
        Ok(())
    }

    /// Whether Rust's standard library for the machine is here.
    fn has_standard_library(&self) -> bool {
        let libraries = output(Command::new("rustc").current_dir(workspace::root()).args([
            "--print",
            "target-libdir",
            "--target",
            self.rust,
        ]));
        libraries.is_ok_and(|folder| std::path::Path::new(&folder).is_dir())
    }

    fn add_standard_library(&self) -> Outcome {
        if self.has_standard_library() {
            return Ok(());
        }
        must(
            Command::new("rustup")
                .current_dir(workspace::root())
                .args(["target", "add", self.rust]),
        )
    }
}

/// The kernel's name of a machine; `None` is this one.
pub(super) fn machine(target: Option<&Target>) -> &'static str {
    target.map_or(std::env::consts::ARCH, |target| target.machine)
}

/// Debian's name of a machine; `None` is this one.
///
/// # Errors
/// dpkg does not run.
pub(super) fn debian(target: Option<&Target>) -> Result<String, String> {
    match target {
        Some(target) => Ok(target.debian.to_owned()),
        None => output(Command::new("dpkg").arg("--print-architecture")),
    }
}

/// A tool that reads or changes programs of a machine; `None` is this one.
pub(super) fn tool(target: Option<&Target>, name: &str) -> Command {
    match target {
        Some(target) => Command::new(format!("{}-{name}", target.gnu)),
        None => Command::new(name),
    }
}
