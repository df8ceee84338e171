//! aioquic as a client of HTTP/3: another implementation of QUIC, its own to the last byte.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use turnpike_testkit::Server;
use turnpike_testkit::python::AIOQUIC;

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
    AIOQUIC.python(test).is_some()
}

impl Client {
    /// A client of the server's main port.
    pub fn start(server: &Server, more: &[&str]) -> Client {
        Self::start_at(server.port(), more)
    }

    /// A client of this port.
    pub fn start_at(port: u16, more: &[&str]) -> Client {
        let mut child = Command::new(
            AIOQUIC
                .python("a client")
                .expect("a test asks for it first"),
        )
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
