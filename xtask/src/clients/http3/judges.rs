//! The clients, with pinned versions where a registry has them. One that cannot be had is skipped
//! by name.

use std::path::PathBuf;
use std::process::Command;

use turnpike_testkit::process::find_program;

use super::{Asked, Found};
use crate::clients::{browser, matrix};
use crate::go_program;
use crate::python::Environment;
use crate::workspace::{self, must};

const CURL_PROGRAM: &str = include_str!("curl.py");
const INTEROP_PROGRAM: &str = include_str!("interop.py");

/// The folder of the program in Go below `xtask`, and of what is made of it.
const GO: &str = "http3-go";

/// curl with BoringSSL, ngtcp2 and nghttp3, in a library for Python.
const CURL_CFFI: Environment = Environment {
    folder: "curl-cffi",
    imports: "curl_cffi",
    packages: &["curl_cffi==0.17.0"],
};

/// aioquic's version, and what its interop client imports.
const AIOQUIC_VERSION: &str = "1.7.2";
const AIOQUIC_INTEROP: Environment = Environment {
    folder: "aioquic-interop",
    imports: "aioquic.h3.connection, httpx, wsproto",
    packages: &["aioquic==1.7.2", "httpx==0.28.1", "wsproto==1.2.0"],
};

/// Seconds that a client may take on a busy machine, as `timeout` takes them.
const DEADLINE_SECONDS: &str = "900";

/// Chromium tries no second address where QUIC is forced.
const ONLY_IPV4: &str = "--host-resolver-rules=MAP localhost 127.0.0.1";

/// The names of the clients.
pub(super) const CURL: &str = "curl";
pub(super) const QUIC_GO: &str = "quic-go";
pub(super) const CHROMIUM: &str = "chromium";
pub(super) const AIOQUIC: &str = "aioquic";

/// The client's version, and how each cell went.
type Said = (String, Vec<Found>);

/// A client.
pub(super) struct Judge {
    pub(super) name: &'static str,
    /// What it needs, made ready; the reason why it cannot be had.
    prepare: fn() -> Result<Vec<PathBuf>, String>,
    ask: fn(&[PathBuf], &Asked) -> Result<Said, String>,
}

/// Every client.
pub(super) const JUDGES: &[Judge] = &[
    Judge {
        name: CURL,
        prepare: curl,
        ask: ask_program,
    },
    Judge {
        name: QUIC_GO,
        prepare: quic_go,
        ask: ask_program,
    },
    Judge {
        name: CHROMIUM,
        prepare: chromium,
        ask: ask_chromium,
    },
    Judge {
        name: AIOQUIC,
        prepare: aioquic,
        ask: ask_interop,
    },
];

impl Judge {
    /// Has it ask; `None`: it cannot be had here, as a line says.
    ///
    /// # Errors
    /// It does not run to its end.
    pub(super) fn ask(&self, asked: &Asked) -> Result<Option<Said>, String> {
        match (self.prepare)() {
            Ok(line) => (self.ask)(&line, asked).map(Some),
            Err(why) => {
                println!("skipped: {}: {why}", self.name);
                Ok(None)
            }
        }
    }
}

fn curl() -> Result<Vec<PathBuf>, String> {
    let python = CURL_CFFI.python()?;
    Ok(vec![python, CURL_CFFI.program("curl.py", CURL_PROGRAM)?])
}

fn quic_go() -> Result<Vec<PathBuf>, String> {
    go_program::download(GO)?;
    Ok(vec![go_program::rebuild(GO, "turnpike/http3")?])
}

fn chromium() -> Result<Vec<PathBuf>, String> {
    let program = find_program("chromium");
    let program = program.ok_or("no chromium; please run: cargo xtask setup tls")?;
    Ok(vec![program])
}

/// The interop client is in the source package alone.
fn aioquic() -> Result<Vec<PathBuf>, String> {
    let python = AIOQUIC_INTEROP.python()?;
    let name = format!("aioquic-{AIOQUIC_VERSION}");
    let folder = workspace::target().join(AIOQUIC_INTEROP.folder);
    let examples = folder.join(&name).join("examples");
    if !examples.join("interop.py").exists() {
        let fetch = ["-m", "pip", "download", "--quiet", "--no-deps"];
        must(
            Command::new(&python)
                .current_dir(&folder)
                .args(fetch)
                .args(["--no-binary", ":all:"])
                .arg(format!("aioquic=={AIOQUIC_VERSION}")),
        )?;
        must(
            Command::new("tar")
                .current_dir(&folder)
                .arg("xzf")
                .arg(format!("{name}.tar.gz")),
        )?;
    }
    let program = AIOQUIC_INTEROP.program("interop.py", INTEROP_PROGRAM)?;
    Ok(vec![python, program, examples])
}

/// Runs `LINE PORT KNOWN KEYS`.
fn ask_program(line: &[PathBuf], asked: &Asked) -> Result<Said, String> {
    let server = &asked.server;
    let ports = [server.port(), server.port_named("KNOWN")];
    let said = says(line, &ports, &[asked.keys.path().to_path_buf()])?;
    let version = said.lines().find_map(|line| line.strip_prefix("version "));
    let version = version.unwrap_or("unknown").to_owned();
    Ok((version, matrix::read(&said)))
}

/// Runs `LINE PORT RETRY`.
fn ask_interop(line: &[PathBuf], asked: &Asked) -> Result<Said, String> {
    let server = &asked.server;
    let said = says(line, &[server.port(), server.port_named("RETRY")], &[])?;
    Ok((AIOQUIC_VERSION.to_owned(), matrix::read(&said)))
}

fn ask_chromium(line: &[PathBuf], asked: &Asked) -> Result<Said, String> {
    let place = format!("localhost:{}", asked.server.port());
    let forced = format!("--origin-to-force-quic-on={place}");
    let report = asked.server.folder().join("html/put/report");
    let url = format!("https://{place}/page.html");
    let trusted = asked.keys.key_hash("server")?;
    let trusted = format!("--ignore-certificate-errors-spki-list={trusted}");
    let options = ["--enable-quic", &forced, &trusted, ONLY_IPV4];
    let found = browser::reports(&url, &report, &options)?;
    let program = line
        .first()
        .map(PathBuf::as_path)
        .unwrap_or("chromium".as_ref());
    let said = workspace::output(Command::new(program).arg("--version"))?;
    let version = said.split_whitespace().nth(1).unwrap_or("unknown");
    Ok((version.to_owned(), found))
}

fn says(line: &[PathBuf], ports: &[u16], more: &[PathBuf]) -> Result<String, String> {
    workspace::output(
        Command::new("timeout")
            .arg(DEADLINE_SECONDS)
            .args(line)
            .args(ports.iter().map(u16::to_string))
            .args(more),
    )
}
