//! A benchmark that is a study of `turnpike lab`: built, run, and its table of goals written into
//! bench/README.md.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::paper;
use super::records::{self, Table};
use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// A study of this project's goals.
pub(super) struct Study {
    /// The study's name for the lab.
    pub(super) name: &'static str,
    /// The table in bench/README.md.
    pub(super) table: Table,
    /// Programs that it needs beside the server: what cargo builds, and the folder of the result
    /// below `target/release`.
    programs: &'static [(&'static [&'static str], &'static str)],
}

/// The parts of the tree that serve HTTP, and the libraries.
pub(super) const HTTP: &[&str] = &[
    "Cargo.lock",
    "crates/cache",
    "crates/http",
    "crates/lane",
    "crates/modules",
    "crates/plan",
    "crates/protocols",
    "crates/upstream",
    "crates/wire",
];

/// The parts that relay TCP and UDP, and the libraries.
const RELAYS: &[&str] = &[
    "Cargo.lock",
    "crates/lane",
    "crates/modules",
    "crates/plan",
    "crates/protocols",
    "crates/stream",
    "crates/upstream",
];

/// A small file: times, system calls, memory.
pub(super) const BESIDE_NGINX: Study = Study {
    name: "beside-nginx",
    table: Table {
        name: "beside-nginx",
        markers: ("<!-- bench:begin -->", "<!-- bench:end -->"),
        measured: HTTP,
    },
    programs: &[],
};

/// Pieces of configurations that many sites have.
pub(super) const REAL: Study = Study {
    name: "real-configurations",
    table: Table {
        name: "real",
        markers: ("<!-- bench:real:begin -->", "<!-- bench:real:end -->"),
        measured: HTTP,
    },
    programs: &[],
};

/// Applications behind FastCGI.
pub(super) const APPLICATIONS: Study = Study {
    name: "real-applications",
    table: Table {
        name: "applications",
        markers: (
            "<!-- bench:applications:begin -->",
            "<!-- bench:applications:end -->",
        ),
        measured: HTTP,
    },
    programs: &[],
};

/// TLS handshakes, HTTPS and HTTP/2.
pub(super) const SECURE: Study = Study {
    name: "beside-nginx-secure",
    table: Table {
        name: "secure",
        markers: ("<!-- bench:secure:begin -->", "<!-- bench:secure:end -->"),
        measured: HTTP,
    },
    programs: &[(
        &["--package", "turnpike-load", "--example", "rustls_floor"],
        "examples",
    )],
};

/// Relays of TCP and UDP.
pub(super) const STREAM: Study = Study {
    name: "beside-nginx-stream",
    table: Table {
        name: "stream",
        markers: ("<!-- bench:stream:begin -->", "<!-- bench:stream:end -->"),
        measured: RELAYS,
    },
    programs: &[(
        &["--package", "turnpike-lab", "--bin", "turnpike-traffic"],
        "",
    )],
};

/// Options that are passed on to the lab.
const PASSED_ON: [&str; 4] = ["--repetitions", "--seconds", "--seed", "--only"];

/// Runs a study. A quick run, and one that is not to be written, leaves its record under `target`.
pub(super) fn run(study: &Study, arguments: &[String]) -> Outcome {
    let valued = [&["--server"], &PASSED_ON[..]].concat();
    let options = Options::parse(arguments, &valued, &["--quick", "--debug", "--no-write"])?;
    let is_kept = !options.has("--quick") && !options.has("--no-write");
    let records = if is_kept {
        workspace::root().join("bench/results")
    } else {
        workspace::target().join("bench")
    };
    if is_kept {
        records::check_committed(&study.table)?;
    }
    let ours = Contender::ours(&options)?;
    for (words, _) in study.programs {
        let mut build = workspace::cargo();
        must(
            build
                .args(["build", "--quiet", "--release", "--locked"])
                .args(*words),
        )?;
    }
    let folder = measure(study, &options, &ours.program, &records)?;
    if is_kept {
        records::note(&folder, &study.table)?;
        paper::write(&folder, study.table.markers)?;
        records::run()
    } else {
        Ok(())
    }
}

/// Has the lab run a study; returns the folder of its record.
fn measure(
    study: &Study,
    options: &Options,
    program: &Path,
    records: &Path,
) -> Result<PathBuf, String> {
    let mut command = Command::new(program);
    command
        .args(["lab", "run", study.name, "--out"])
        .arg(records)
        .env("PATH", search_path(study)?);
    if options.has("--quick") {
        command.arg("--quick");
    }
    for name in PASSED_ON {
        if let Some(value) = options.text(name) {
            command.args([name, value]);
        }
    }
    // Progress and errors go to the terminal.
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{printed}");
    if !output.status.success() {
        return Err(format!("the lab ended with {}", output.status));
    }
    let last = printed.lines().last().unwrap_or_default();
    let folder = Path::new(last).parent();
    let folder = folder.filter(|folder| folder.join("README.md").exists());
    let folder = folder.ok_or("the lab printed no record")?;
    Ok(folder.to_owned())
}

/// The folders of a study's programs before those of this process.
fn search_path(study: &Study) -> Result<OsString, String> {
    let release = workspace::target().join("release");
    let folders = study
        .programs
        .iter()
        .map(|(_, folder)| release.join(folder));
    let own = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.chain(std::env::split_paths(&own));
    std::env::join_paths(all).map_err(|error| error.to_string())
}
