//! Programs in Python that tests have as peers: with packages from PyPI, in a folder of the build.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A package from PyPI, pinned, and the module by which it is known that it is there.
#[derive(Debug, Clone, Copy)]
pub struct Package {
    /// As pip takes it: `name==version`.
    pub requirement: &'static str,
    pub module: &'static str,
}

/// aioquic: QUIC and HTTP/3 by other authors, with `pylsqpack`, the QPACK of others again.
pub const AIOQUIC: Package = Package {
    requirement: "aioquic==1.7.2",
    module: "aioquic.h3.connection",
};

impl Package {
    /// A Python that has the package, for a test of this name. `None` where it cannot be had, which
    /// a line says.
    #[must_use]
    pub fn python(&self, test: &str) -> Option<PathBuf> {
        let python = self.installed();
        if python.is_none() {
            let line = format!("skipped: {test} needs {} (PyPI)\n", self.requirement);
            // Standard error that is closed is no reason to fail.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        python
    }

    /// The package is installed once, beside what the workspace's builds make.
    fn installed(&self) -> Option<PathBuf> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
        let folder = target.join(self.requirement.replace("==", "-"));
        let python = folder.join("bin/python");
        let has_it = || {
            let mut import = Command::new(&python);
            import.args(["-c", &format!("import {}", self.module)]);
            run(&mut import).is_some()
        };
        if has_it() {
            return Some(python);
        }
        // Tests of several processes come here at once; an ordinary user may not write here.
        fs::create_dir_all(&target).ok()?;
        let lock = File::create(folder.with_extension("lock")).ok()?;
        lock.lock().ok()?;
        if has_it() {
            return Some(python);
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let install = ["-m", "pip", "install", "--quiet", self.requirement];
        run(Command::new(&python).args(install))?;
        has_it().then_some(python)
    }
}

fn run(command: &mut Command) -> Option<()> {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().ok()?;
    status.success().then_some(())
}
