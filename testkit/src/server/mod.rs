//! A server under test: it has its own folder and ports, is ready when `start` returns, and ends
//! when it is dropped. Any server with nginx's command line can be started.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use crate::{Folder, Peer, Response, Signal, exchange, ports, process, wait_for};

/// The number of starts with new ports, if another process takes a port first.
const STARTS_MAX: u32 = 8;

/// A server's message if another process has its port.
const PORT_TAKEN: &str = "Address already in use";

/// The environment variable that puts every server under test into a sandbox, so that a test suite
/// finds the system calls that the sandbox lacks.
pub const SANDBOX: &str = "TURNPIKE_TEST_SANDBOX";

/// A server's message about a system call that its sandbox lacks.
pub const REFUSED_CALL: &str = "the sandbox refused system call";

/// Why a server did not start.
#[derive(Debug)]
pub enum StartError {
    /// The folder, a file or the process could not be created.
    System(io::Error),
    /// The server ended by itself; with its output.
    Ended(ExitStatus, String),
    /// The server did not listen before the deadline; with its output.
    Deaf(String),
    /// The kernel gave no ports.
    NoPorts,
}

impl fmt::Display for StartError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::System(error) => write!(formatter, "the server does not start: {error}"),
            StartError::Ended(status, output) => {
                write!(
                    formatter,
                    "the server ended with {status}. Its output:\n{output}"
                )
            }
            StartError::Deaf(output) => {
                write!(
                    formatter,
                    "the server does not listen. Its output:\n{output}"
                )
            }
            StartError::NoPorts => write!(formatter, "the kernel gave no free ports"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::System(error)
    }
}

/// The settings of a server before its start.
pub struct Builder {
    program: PathBuf,
    configuration: String,
    globals: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    files: Vec<(PathBuf, Vec<u8>)>,
    has_own_name: bool,
    layout: Layout,
    change: Option<Change>,
}

/// A change of the command that starts a server.
type Change = Box<dyn Fn(&mut Command)>;

/// The names of a server's files.
#[derive(Clone, Copy, Debug)]
struct Layout {
    configuration: &'static str,
    pid: &'static str,
}

/// The files of a server that is told all by its command line.
const TOLD: Layout = Layout {
    configuration: "turnpike.conf",
    pid: "pid",
};

/// The files of a server that is told nothing, as one that is installed.
const INSTALLED: Layout = Layout {
    configuration: "nginx.conf",
    pid: "nginx.pid",
};

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pid: u32,
    ports: BTreeMap<String, u16>,
    configuration: String,
    layout: Layout,
    /// The last field, so that the processes end before it is dropped.
    folder: Arc<Folder>,
}

impl Builder {
    /// The configuration. `%FOLDER%` is the test's folder; `%PORT%` and every `%PORT_x%` are ports
    /// of their own, on which the server is expected to listen.
    #[must_use]
    pub fn configuration(mut self, text: &str) -> Builder {
        text.clone_into(&mut self.configuration);
        self
    }

    /// A file in the test's folder.
    #[must_use]
    pub fn file(mut self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Builder {
        self.files
            .push((name.as_ref().to_path_buf(), content.as_ref().to_vec()));
        self
    }

    /// Directives for `-g`, with placeholders, after our own `daemon off; pid %FOLDER%/pid;` (each
    /// is left out if this text or the configuration has one; a pid file must be `%FOLDER%/pid`).
    #[must_use]
    pub fn globals(mut self, text: &str) -> Builder {
        text.clone_into(&mut self.globals);
        self
    }

    /// One more argument on the command line.
    #[must_use]
    pub fn argument(mut self, text: &str) -> Builder {
        self.arguments.push(text.to_owned());
        self
    }

    /// Starts the program under its own name instead of `nginx`.
    #[must_use]
    pub fn own_name(mut self) -> Builder {
        self.has_own_name = true;
        self
    }

    /// Starts the program as an installed one: under its own name, with `nginx.conf` in its folder
    /// and nothing else on the command line (see [`Folder::arguments`]). The configuration says
    /// all, with the pid file at `nginx.pid`.
    #[must_use]
    pub fn installed(mut self) -> Builder {
        self.has_own_name = true;
        self.layout = INSTALLED;
        self
    }

    /// A change of the command before it is run.
    #[must_use]
    pub fn command(mut self, change: impl Fn(&mut Command) + 'static) -> Builder {
        self.change = Some(Box::new(change));
        self
    }

    /// One more environment variable.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Builder {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the server and waits until it listens on all of its ports.
    ///
    /// # Panics
    /// The server does not start; the message has its output.
    pub fn start(self) -> Server {
        match self.try_start() {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`Builder::start`], for tests that expect a failure.
    ///
    /// # Errors
    /// A [`StartError`].
    pub fn try_start(self) -> Result<Server, StartError> {
        let folder = Arc::new(Folder::create()?);
        for (name, content) in &self.files {
            folder.write(name, content)?;
        }
        let mut starts = 1;
        loop {
            match self.start_in(&folder) {
                Err(StartError::Ended(_, output))
                    if output.contains(PORT_TAKEN) && starts < STARTS_MAX => {}
                outcome => return outcome,
            }
            starts += 1;
        }
    }

    fn start_in(&self, folder: &Arc<Folder>) -> Result<Server, StartError> {
        let mut ports = BTreeMap::new();
        for text in [&self.configuration, &self.globals] {
            reserve_ports(text, &mut ports).ok_or(StartError::NoPorts)?;
        }
        let child = self.spawn(folder, &ports)?;
        let mut server = Server {
            pid: child.id(),
            child,
            ports,
            configuration: self.configuration.clone(),
            layout: self.layout,
            folder: Arc::clone(folder),
        };
        server.wait_until_ready(self.all_globals().contains("daemon on"))?;
        Ok(server)
    }

    fn spawn(&self, folder: &Folder, ports: &BTreeMap<String, u16>) -> io::Result<Child> {
        let fill = |text: &str| fill(text, folder.path(), ports);
        let configuration = folder.path().join(self.layout.configuration);
        std::fs::write(&configuration, fill(&self.configuration))?;
        let _ = std::fs::remove_file(folder.path().join(self.layout.pid)); // of a start that failed
        let output = File::create(folder.path().join("output.log"))?;
        // A name without a folder is an installed program's; a path is used as it is.
        let program = process::find_program(&self.program);
        let program = program.as_ref().unwrap_or(&self.program);
        let mut command = Command::new(self.called(program, folder)?);
        if self.is_told() {
            command
                .arg("-p")
                .arg(folder.path().join(""))
                .arg("-c")
                .arg(&configuration)
                .arg("-e")
                .arg(folder.path().join("error.log"))
                .arg("-g")
                .arg(fill(&self.all_globals()))
        } else {
            command.args(folder.arguments(&[]))
        };
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        if let Some(change) = &self.change {
            change(&mut command);
        }
        command.spawn()
    }

    /// Whether the command line says what the configuration leaves out.
    fn is_told(&self) -> bool {
        self.layout.pid == TOLD.pid
    }

    /// The path under which a program is started: ours is called `nginx`, so that its responses can
    /// be compared with nginx's, unless the test is about its own name.
    fn called(&self, program: &Path, folder: &Folder) -> io::Result<PathBuf> {
        if self.has_own_name || program.file_name() != Some(OsStr::new("turnpike")) {
            return Ok(program.to_path_buf());
        }
        let link = folder.path().join("nginx");
        match symlink(std::path::absolute(program)?, &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(link),
        }
    }

    fn all_globals(&self) -> String {
        let written = format!("{}\n{}", self.configuration, self.globals);
        let has = |name: &str| {
            let mut statements = written.split([';', '\n', '{', '}']);
            statements.any(|statement| statement.split_ascii_whitespace().next() == Some(name))
        };
        let daemon = if has("daemon") { "" } else { "daemon off; " };
        let pid = if has("pid") { "" } else { "pid %FOLDER%/pid; " };
        let sandbox = if self.is_sandboxed() && !has("sandbox") {
            "sandbox on; "
        } else {
            ""
        };
        format!("{daemon}{pid}{sandbox}{}", self.globals)
    }
}

impl Builder {
    /// Whether to put the server into a sandbox, as [`SANDBOX`] requests, if possible.
    fn is_sandboxed(&self) -> bool {
        let is_ours = self
            .program
            .file_name()
            .is_some_and(|name| name == "turnpike");
        std::env::var_os(SANDBOX).is_some() && is_ours
    }
}

impl Server {
    /// A server of this program; integration tests use `env!("CARGO_BIN_EXE_turnpike")`.
    pub fn builder(program: impl Into<PathBuf>) -> Builder {
        Builder {
            program: program.into(),
            configuration: String::new(),
            globals: String::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            files: Vec::new(),
            has_own_name: false,
            layout: TOLD,
            change: None,
        }
    }

    /// The port of `%PORT%`, or the only port.
    ///
    /// # Panics
    /// The configuration has no port.
    pub fn port(&self) -> u16 {
        let port = self
            .ports
            .get("%PORT%")
            .or_else(|| self.ports.values().next());
        *port.expect("a port in the configuration")
    }

    /// The port of `%PORT_name%`.
    ///
    /// # Panics
    /// The configuration has no such port.
    pub fn port_named(&self, name: &str) -> u16 {
        *self
            .ports
            .get(&format!("%PORT_{name}%"))
            .expect("a port of this name")
    }

    /// The test's folder: `turnpike.conf`, `error.log`, `output.log` (both standard streams),
    /// `pid`, and the files of the test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder itself.
    pub fn files(&self) -> &Folder {
        &self.folder
    }

    /// The master process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The master's children: the serving process here, the workers of nginx.
    pub fn serving_pids(&self) -> Vec<u32> {
        process::children(self.pid)
    }

    /// Sends a signal to the master.
    ///
    /// # Panics
    /// The master has ended.
    pub fn signal(&self, signal: Signal) {
        assert!(
            process::signal(self.pid, signal),
            "the master has ended\n{}",
            self.output()
        );
    }

    /// Writes a new configuration with the same ports (a new placeholder gets a new port). It takes
    /// effect after a signal: see [`Server::signal`].
    ///
    /// # Panics
    /// The file cannot be written, or the kernel gives no port.
    pub fn write_configuration(&mut self, text: &str) {
        reserve_ports(text, &mut self.ports).expect("free ports");
        text.clone_into(&mut self.configuration);
        // The file is replaced at once, since the server may be reading it after an earlier signal.
        let folder = self.folder.path();
        let name = self.layout.configuration;
        let new = format!("{name}.new");
        self.write(&new, fill(text, folder, &self.ports));
        std::fs::rename(folder.join(new), folder.join(name)).expect("a file in the test's folder");
    }

    /// Writes a file into the test's folder.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        self.folder
            .write(name, content)
            .expect("a file in the test's folder");
    }

    /// The current content of a log in the test's folder; empty if there is none.
    pub fn log(&self, name: &str) -> String {
        let bytes = std::fs::read(self.folder.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until a log contains the text.
    ///
    /// # Panics
    /// It does not before the deadline.
    pub fn wait_for_log(&self, name: &str, text: &str) {
        let found = wait_for(|| self.log(name).contains(text).then_some(()));
        assert!(
            found.is_some(),
            "{name} has no \"{text}\":\n{}",
            self.log(name)
        );
    }

    /// Waits for a listener on the port of `%PORT_name%`, after a reload that adds it.
    ///
    /// # Panics
    /// There is none before the deadline.
    pub fn wait_for_port(&self, name: &str) {
        let port = self.port_named(name);
        let found = wait_for(|| ports::is_listening(port).then_some(()));
        assert!(
            found.is_some(),
            "no process listens on {port}\n{}",
            self.output()
        );
    }

    /// A connection to [`Server::port`].
    ///
    /// # Panics
    /// It is refused.
    pub fn connect(&self) -> Peer {
        Peer::connect(self.port())
    }

    /// Sends bytes on a new connection and reads until the server closes it.
    ///
    /// # Panics
    /// As [`exchange`].
    pub fn exchange(&self, request: impl AsRef<[u8]>) -> Vec<u8> {
        exchange(self.port(), request)
    }

    /// Sends a GET request on a new connection.
    ///
    /// # Panics
    /// As [`Peer::round`].
    pub fn get(&self, target: &str) -> Response {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.connect().round(request)
    }

    /// Stops the server with QUIT and waits for its end.
    ///
    /// # Panics
    /// It does not end before the deadline.
    pub fn quit(mut self) -> ExitStatus {
        self.signal(Signal::SIGQUIT);
        self.wait()
    }

    /// Stops the server with a signal; returns its exit code, if it ended by itself.
    ///
    /// # Panics
    /// As [`Server::wait`].
    pub fn end(&mut self, signal: Signal) -> Option<i32> {
        self.signal(signal);
        self.wait().code()
    }

    /// Waits for the end of the started process.
    ///
    /// # Panics
    /// It does not end before the deadline.
    pub fn wait(&mut self) -> ExitStatus {
        let ended = wait_for(|| self.child.try_wait().ok().flatten());
        ended.unwrap_or_else(|| panic!("the server does not end\n{}", self.output()))
    }

    /// The output of the server on its standard streams, and `error.log`.
    pub fn output(&self) -> String {
        self.log("output.log") + &self.log("error.log")
    }

    fn wait_until_ready(&mut self, is_daemon: bool) -> Result<(), StartError> {
        let found = wait_for(|| {
            match self.child.try_wait() {
                Ok(Some(status)) if !(is_daemon && status.success()) => return Some(Err(status)),
                _ => {}
            }
            let pid = self.log(self.layout.pid).trim().parse().ok()?;
            self.pid = pid;
            let ready = self.ports.values().all(|port| ports::is_listening(*port));
            let is_served = self.is_alone() || !self.serving_pids().is_empty();
            (ready && is_served).then_some(Ok(()))
        });
        match found {
            Some(Ok(())) => Ok(()),
            Some(Err(status)) => Err(StartError::Ended(status, self.output())),
            None => Err(StartError::Deaf(self.output())),
        }
    }

    /// Whether the configuration needs one process only.
    fn is_alone(&self) -> bool {
        self.configuration.contains("master_process off")
    }

    /// Kills the master and its children, by process number.
    fn kill(&mut self) {
        let serving = self.serving_pids();
        if self.child.try_wait().ok().flatten().is_none() {
            let _ = self.child.kill(); // it may have ended just now
            let _ = self.child.wait();
        } else if self.pid != self.child.id() {
            process::signal(self.pid, Signal::SIGKILL);
        }
        for pid in serving {
            process::signal(pid, Signal::SIGKILL);
        }
        // A serving process may outlive a master that the test has killed.
        let adoption = self.folder().join(self.layout.pid).with_extension("adopt");
        if let Ok(mut orphan) = UnixStream::connect(adoption) {
            let _ = orphan.write_all(b"stop\n"); // it may be gone already
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the server's output:\n{}", self.output());
        }
        self.kill();
        if std::env::var_os(SANDBOX).is_some() && !std::thread::panicking() {
            let output = self.output();
            assert!(
                !output.contains(REFUSED_CALL),
                "the sandbox lacks one:\n{output}"
            );
        }
    }
}

/// Reserves a port for each placeholder of the text that has none yet; `None` if no port is free.
fn reserve_ports(text: &str, ports: &mut BTreeMap<String, u16>) -> Option<()> {
    for piece in text.split('%').filter(|piece| piece.starts_with("PORT")) {
        let name = format!("%{piece}%");
        let plain = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        if piece.bytes().all(plain) && !ports.contains_key(&name) && text.contains(&name) {
            ports.insert(name, ports::reserve()?);
        }
    }
    Some(())
}

fn fill(text: &str, folder: &Path, ports: &BTreeMap<String, u16>) -> String {
    let mut filled = text.replace("%FOLDER%", &folder.display().to_string());
    for (name, port) in ports {
        filled = filled.replace(name, &port.to_string());
    }
    filled
}

#[cfg(test)]
mod tests;
