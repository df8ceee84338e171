//! The clients of the loads, with pinned versions where a registry has them, and how each is made
//! ready. A client that cannot be had is skipped by name.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use turnpike_testkit::process::find_program;

use super::{Found, Loaded, commands};
use crate::clients::{browser, matrix};
use crate::go_program;
use crate::grpc;
use crate::workspace::{self, must};

const PYTHON: &str = include_str!("loads.py");
const NODE: &str = include_str!("loads.mjs");
const JAVA: &str = include_str!("Loads.java");
const LIBRARIES: &str = include_str!("pom.xml");
const CRATES: &str = include_str!("../../../loads-rust/Cargo.toml");

/// The folders of the programs in Go and in Rust below `xtask`, and of what is made of them and of
/// the others below the workspace's target folder.
const GO: &str = "loads-go";
const RUST: &str = "loads-rust";
const OTHERS: &str = "loads";

/// Seconds that a client may take for all of its loads on a busy machine, as `timeout` takes them.
const DEADLINE_SECONDS: &str = "900";

/// Why a client cannot be asked.
pub(super) enum Unready {
    /// A program or a library that cannot be had here.
    Missing(String),
    /// What is ours of it does not build.
    Broken(String),
}

type Ready = Result<Vec<PathBuf>, Unready>;

/// A client, by its usual name.
pub(super) struct Client {
    pub(super) name: &'static str,
    calls_service: bool,
    way: Way,
}

/// How a client is asked.
#[derive(Clone, Copy)]
enum Way {
    /// By a program that is made ready so: a command line, to which `CLIENT PLAIN SECURE ROOT` is
    /// added. The version is printed, or known here.
    Program(fn() -> Ready, Option<fn() -> &'static str>),
    /// By commands of a program of this name.
    Commands(&'static str, fn(&Loaded) -> Vec<Found>),
    Browser,
}

/// Every client: gRPC's first, which send PINGs for the data that comes.
pub(super) const CLIENTS: &[Client] = &[
    client("grpc-go", true, Way::Program(go, None)),
    client("grpcio", true, Way::Program(python, None)),
    client("grpc-java", true, Way::Program(java, Some(version_of_java))),
    client("tonic", true, Way::Program(rust, Some(version_of_tonic))),
    client("hyper", false, Way::Program(rust, Some(version_of_hyper))),
    client("net/http", false, Way::Program(go, None)),
    client("node", false, Way::Program(node, None)),
    client("curl", false, Way::Commands("curl", commands::curl)),
    client("h2load", false, Way::Commands("h2load", commands::h2load)),
    client("chromium", false, Way::Browser),
];

const fn client(name: &'static str, calls_service: bool, way: Way) -> Client {
    Client {
        name,
        calls_service,
        way,
    }
}

/// A client that is ready.
pub(super) struct Program {
    pub(super) client: &'static str,
    pub(super) calls_service: bool,
    way: Way,
    line: Vec<PathBuf>,
}

impl Client {
    /// Builds or fetches what the client needs.
    ///
    /// # Errors
    /// It cannot be had, or does not build.
    pub(super) fn prepare(&self) -> Result<Program, Unready> {
        let line = match self.way {
            Way::Program(prepare, _) => prepare()?,
            Way::Commands(name, _) => vec![installed(name)?],
            Way::Browser => vec![installed("chromium")?],
        };
        Ok(Program {
            client: self.name,
            calls_service: self.calls_service,
            way: self.way,
            line,
        })
    }
}

impl Program {
    /// The client's version, and how each cell went.
    ///
    /// # Errors
    /// It does not run to its end.
    pub(super) fn run(&self, loaded: &Loaded) -> Result<(String, Vec<Found>), String> {
        match self.way {
            Way::Program(_, known) => {
                let said = self.says(loaded)?;
                let printed = said.lines().find_map(|line| line.strip_prefix("version "));
                let version = known.map_or(printed.unwrap_or("unknown"), |known| known());
                Ok((version.to_owned(), matrix::read(&said)))
            }
            Way::Commands(_, ask) => Ok((self.installed_version()?, ask(loaded))),
            Way::Browser => {
                let report = loaded.server.folder().join("html/put/report");
                let found =
                    browser::reports(&loaded.secure("/loads.html"), &report, &[browser::TRUSTING])?;
                Ok((self.installed_version()?, found))
            }
        }
    }

    fn says(&self, loaded: &Loaded) -> Result<String, String> {
        let server = &loaded.server;
        let ports = [server.port_named("PLAIN"), server.port()];
        workspace::output(
            Command::new("timeout")
                .arg(DEADLINE_SECONDS)
                .args(&self.line)
                .arg(self.client)
                .args(ports.map(|port| port.to_string()))
                .arg(loaded.keys.path().join("root.pem")),
        )
    }

    /// The version of an installed program: the first word with a digit of what it says.
    fn installed_version(&self) -> Result<String, String> {
        let said = workspace::output(Command::new(&self.line[0]).arg("--version"))?;
        let is_version = |word: &&str| word.contains(|letter: char| letter.is_ascii_digit());
        let words = said.split_whitespace();
        let version = words.skip(1).find(is_version).unwrap_or("unknown");
        Ok(version.trim_start_matches("nghttp2/").to_owned())
    }
}

fn installed(name: &str) -> Result<PathBuf, Unready> {
    find_program(name)
        .ok_or_else(|| Unready::Missing(format!("no {name}; please run: cargo xtask setup http2")))
}

fn go() -> Ready {
    installed("go")?;
    go_program::download(GO).map_err(Unready::Missing)?;
    let built = go_program::rebuild(GO, "turnpike/loads");
    Ok(vec![built.map_err(Unready::Broken)?])
}

fn python() -> Ready {
    let python = grpc::ENVIRONMENT.python().map_err(Unready::Missing)?;
    let program = grpc::ENVIRONMENT.program("loads.py", PYTHON);
    Ok(vec![python, program.map_err(Unready::Broken)?])
}

fn node() -> Ready {
    Ok(vec![installed("node")?, written("loads.mjs", NODE)?])
}

/// Maven fetches the libraries; Java compiles the program as it runs it.
fn java() -> Ready {
    let (java, maven) = (installed("java")?, installed("mvn")?);
    installed("javac")?;
    let (program, list) = (written("Loads.java", JAVA)?, written("pom.xml", LIBRARIES)?);
    let libraries = list.with_file_name("libraries");
    must(
        Command::new(maven)
            .args(["--quiet", "--batch-mode", "--file"])
            .arg(list)
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", libraries.display()))
            .stdout(Stdio::null()),
    )
    .map_err(Unready::Missing)?;
    Ok(vec![java, "-cp".into(), libraries.join("*"), program])
}

fn rust() -> Ready {
    let folder = workspace::root().join("xtask").join(RUST);
    let target = workspace::target().join(RUST);
    let cargo = |order: &str| {
        let mut cargo = workspace::cargo();
        cargo
            .args([order, "--quiet", "--locked", "--manifest-path"])
            .arg(folder.join("Cargo.toml"));
        cargo
    };
    must(&mut cargo("fetch")).map_err(Unready::Missing)?;
    must(
        cargo("build")
            .args(["--release", "--target-dir"])
            .arg(&target),
    )
    .map_err(Unready::Broken)?;
    Ok(vec![target.join("release/loads")])
}

/// Writes a program's text; returns its path.
fn written(name: &str, text: &str) -> Result<PathBuf, Unready> {
    let folder = workspace::target().join(OTHERS);
    let file = folder.join(name);
    let done = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text));
    done.map_err(|error| Unready::Broken(format!("{}: {error}", file.display())))?;
    Ok(file)
}

fn version_of_java() -> &'static str {
    between(LIBRARIES, "<version>", "</version>", "grpc-stub")
}

fn version_of_tonic() -> &'static str {
    between(CRATES, "\"=", "\"", "tonic = ")
}

fn version_of_hyper() -> &'static str {
    between(CRATES, "\"=", "\"", "hyper = ")
}

/// The text between `start` and `end`, behind a name.
fn between<'a>(text: &'a str, start: &str, end: &str, name: &str) -> &'a str {
    let behind = text.split_once(name).map_or("", |(_, behind)| behind);
    let value = behind.split_once(start).map_or("", |(_, value)| value);
    value.split_once(end).map_or("unknown", |(value, _)| value)
}
