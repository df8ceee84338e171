//! aioquic as a client of HTTP/3: another implementation of QUIC, its own to the last byte.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use turnpike_testkit::Server;

/// The package from PyPI, which brings another of the same authors for QPACK.
const PACKAGE: &str = "aioquic==1.7.2";

/// The program of the client.
const CLIENT: &str = include_str!("http3_client.py");

/// A running client with a connection.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Whether there is such a client for the test; a line says so where there is none.
pub fn has_client(test: &str) -> bool {
    let has_client = python().is_some();
    if !has_client {
        let line = format!("skipped: {test} needs {PACKAGE} (PyPI)\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    has_client
}

/// A Python that has it, in a folder of the build, where it is installed once.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("http3-client");
    let python = folder.join("bin/python");
    let has_it = || {
        let mut test = Command::new(&python);
        let test = test.args(["-c", "import aioquic.h3.connection"]);
        let tested = test.stderr(Stdio::null()).status();
        tested.is_ok_and(|status| status.success())
    };
    if has_it() {
        return Some(python);
    }
    // Tests of several processes come here at once; an ordinary user may not write here.
    fs::create_dir_all(folder.parent()?).ok()?;
    let lock = File::create(folder.with_extension("lock")).ok()?;
    lock.lock().ok()?;
    if has_it() {
        return Some(python);
    }
    let run = |command: &mut Command| {
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().ok().filter(|status| status.success())
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]))?;
    has_it().then_some(python)
}

impl Client {
    /// A client of the server's main port.
    pub fn start(server: &Server, more: &[&str]) -> Client {
        Self::start_at(server.port(), more)
    }

    /// A client of this port.
    pub fn start_at(port: u16, more: &[&str]) -> Client {
        let mut child = Command::new(python().expect("a test asks for it first"))
            .args(["-u", "-c", CLIENT])
            .arg(port.to_string())
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Client {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// Gives it a command; returns the line that it prints.
    pub fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.line()
    }

    /// Gives it a command.
    pub fn tell(&mut self, command: &str) {
        let mut input = self.input.as_ref().unwrap();
        writeln!(input, "{command}").unwrap();
    }

    /// The next line that it prints; empty at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Ends it; returns what it has still printed.
    pub fn end(mut self) -> String {
        drop(self.input.take());
        let mut rest = String::new();
        while self.output.read_line(&mut rest).unwrap() > 0 {}
        rest
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client prints for a command on a connection of its own.
pub fn ask(server: &Server, more: &[&str], command: &str) -> String {
    Client::start(server, more).ask(command)
}
