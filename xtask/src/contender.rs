//! The servers that are compared. Each runs from the same configuration; only paths, port and the
//! harness's own settings are filled in.

use std::path::{Path, PathBuf};
use std::process::Command;

use turnpike_testkit::process::find_program;
use turnpike_testkit::{Builder, Folder, Server};

use crate::options::Options;
use crate::workspace::{self, must};

/// The object of the measured studies.
pub(crate) const OBJECT: &str = "/600.html";

/// The object's size in bytes.
pub(crate) const OBJECT_BYTES: usize = 600;

/// A server with nginx's command line.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    /// As tables show it.
    pub(crate) name: String,
    pub(crate) program: PathBuf,
}

impl Contender {
    /// Ours: the program given with `--server`, the debug build with `--debug`, else as released.
    ///
    /// # Errors
    /// It cannot be built.
    pub(crate) fn ours(options: &Options) -> Result<Contender, String> {
        let program = match options.text("--server") {
            Some(path) => PathBuf::from(path),
            None if options.has("--debug") => built_for_debugging()?,
            None => built()?,
        };
        Ok(Contender {
            name: "turnpike".to_owned(),
            program,
        })
    }

    /// Debian's nginx.
    ///
    /// # Errors
    /// It is not installed.
    pub(crate) fn nginx() -> Result<Contender, String> {
        let program =
            find_program("nginx").ok_or("no nginx; please run: cargo xtask setup test")?;
        Ok(Contender {
            name: "nginx".to_owned(),
            program,
        })
    }

    /// A server of this program with the files that every study asks for.
    pub(crate) fn builder(&self, configuration: &str) -> Builder {
        Server::builder(&self.program)
            .configuration(configuration)
            .file("logs/.keep", "")
            .file("html/index.html", object(OBJECT_BYTES))
            .file("html/600.html", object(OBJECT_BYTES))
            .file("html/1K.bin", object(1024))
    }

    /// Starts it.
    ///
    /// # Errors
    /// The server's output.
    pub(crate) fn start(&self, configuration: &str) -> Result<Server, String> {
        let started = self.builder(configuration).try_start();
        started.map_err(|error| format!("{}: {error}", self.name))
    }

    /// Whether `-t` passes, and its output.
    ///
    /// # Errors
    /// The program does not run, or there is no folder for it.
    pub(crate) fn test(&self, configuration: &str) -> Result<(bool, String), String> {
        let folder = Folder::create().map_err(|error| error.to_string())?;
        let port = turnpike_testkit::ports::reserve()
            .ok_or("no free port")?
            .to_string();
        let path = folder.path().display().to_string();
        let text = configuration
            .replace("%PORT%", &port)
            .replace("%FOLDER%", &path);
        for (name, content) in [
            ("t.conf", text.as_str()),
            ("logs/.keep", ""),
            ("html/.keep", ""),
        ] {
            folder
                .write(name, content)
                .map_err(|error| error.to_string())?;
        }
        let output = Command::new(&self.program)
            .arg("-t")
            .arg("-p")
            .arg(folder.path().join(""))
            .arg("-c")
            .arg(folder.path().join("t.conf"))
            .args(["-g", &format!("pid {path}/pid;")])
            .output()
            .map_err(|error| format!("{}: {error}", self.name))?;
        Ok((
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ))
    }
}

/// The binary of the optimised build.
fn built() -> Result<PathBuf, String> {
    must(workspace::cargo().args([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--package",
        "turnpike-server",
    ]))?;
    Ok(workspace::target().join("release/turnpike"))
}

/// The binary that the tests run, where correctness is asked for and speed is not.
fn built_for_debugging() -> Result<PathBuf, String> {
    workspace::build_for_debugging()?;
    Ok(workspace::target().join("debug/turnpike"))
}

/// A configuration of `studies/conf`, unchanged.
///
/// # Errors
/// It cannot be read.
pub(crate) fn study(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Puts the harness's port and folder in place of a study's own; nothing else is touched.
pub(crate) fn localise(study: &str) -> String {
    let mut text = String::new();
    for line in study.lines() {
        let is_listen = line.trim_start().starts_with("listen ");
        let line = if is_listen {
            with_port(line)
        } else {
            line.to_owned()
        };
        text.push_str(&line.replace("/var/www/html", "%FOLDER%/html"));
        text.push('\n');
    }
    text
}

/// The study's S2 configuration with one worker, pinned, and an address of this machine only.
///
/// # Errors
/// The study cannot be read.
pub(crate) fn pinned(cpu: usize) -> Result<String, String> {
    let path = workspace::root().join("studies/conf/s2-nginx.conf");
    let mask = format!("1{}", "0".repeat(cpu));
    Ok(localise(&study(&path)?)
        .replace("worker_processes auto", "worker_processes 1")
        .replace(
            "worker_cpu_affinity auto",
            &format!("worker_cpu_affinity {mask}"),
        ))
}

fn with_port(line: &str) -> String {
    let start = line
        .find(|byte: char| byte.is_ascii_digit())
        .unwrap_or(line.len());
    let rest = &line[start..];
    let length = rest
        .find(|byte: char| !byte.is_ascii_digit())
        .unwrap_or(rest.len());
    format!("{}%PORT%{}", &line[..start], &rest[length..])
}

/// This many bytes of text.
fn object(bytes: usize) -> String {
    "turnpike ".repeat(bytes / 9 + 1)[..bytes].to_owned()
}

/// The process that serves: the master's only child, as the configuration asks for.
pub(crate) fn serving_pid(server: &Server) -> Result<u32, String> {
    match server.serving_pids()[..] {
        [pid] => Ok(pid),
        ref pids => Err(format!(
            "one serving process is expected, there are {}",
            pids.len()
        )),
    }
}

#[cfg(test)]
mod tests;
