//! A contender: a server with its configuration and files in its own folder, ready when `start`
//! returns, and removed with all its processes and files when dropped.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::error::LabError;
use crate::files;
use crate::interrupt;
use crate::placement::Placed;
use crate::process::{self, Process};
use crate::study::Study;
use crate::study::model::{Contender, Program, Ready, Side, Stop};
use crate::template::{self, Values};
use crate::topology::Topology;

/// The time limit for a server to become ready.
const READY_PATIENCE: Duration = Duration::from_secs(15);
/// The pause between two checks.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// The time limit for one response meanwhile.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// A running contender, with its origin if it has one.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    server: Process,
    origin: Option<Process>,
    /// The contender whose CPU time the origin's is added to.
    side: Side,
    log: Option<PathBuf>,
}

/// The inputs of a contender's start.
pub(crate) struct Start<'a> {
    pub(crate) study: &'a Study,
    pub(crate) contender: &'a Contender,
    pub(crate) values: &'a Values,
    pub(crate) folder: &'a Path,
    /// The folder of the constant files.
    pub(crate) constant: &'a Path,
    pub(crate) placed: &'a Placed,
    pub(crate) topology: &'a Topology,
}

impl Running {
    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// The server's output.
    pub(crate) fn start(start: &Start<'_>) -> Result<Running, LabError> {
        let name = start.contender.name.get_ref();
        let wrong = |text: String| LabError::contender(name, text);
        let side = match &start.contender.origin {
            Some(part) => part.side,
            None => Side::Server,
        };
        let origin = match &start.contender.origin {
            Some(part) => {
                let cpus = match side {
                    Side::Server => &start.placed.server,
                    Side::Driver => &start.placed.driver,
                };
                let values = crate::session::values::of_origin(start.values, part)
                    .map_err(|error| wrong(error.to_string()))?;
                let program = program(start, part.program.get_ref())?;
                let configuration = Some(part.configuration.get_ref().as_str());
                let started = launch(start, program, configuration, &values, cpus);
                Some(started.map_err(|error| wrong(format!("the server behind it: {error}")))?)
            }
            None => None,
        };
        let program = program(start, start.contender.program.get_ref())?;
        let configuration = start.contender.configuration.as_ref();
        let configuration = configuration.map(|name| name.get_ref().as_str());
        let cpus = &start.placed.server;
        let server = launch(start, program, configuration, start.values, cpus).map_err(wrong)?;
        Ok(Running {
            name: name.clone(),
            server,
            origin,
            side,
            log: program.log.as_ref().map(|file| start.folder.join(file)),
        })
    }

    /// The processes whose CPU time is the server's: its own, and those of the one behind it if
    /// that is on its side.
    pub(crate) fn family(&self) -> Vec<u32> {
        let mut family = process::descendants(self.server.pid());
        family.extend(self.origin_on(Side::Server));
        family
    }

    /// The processes of the server behind it, if they are on the driver's side.
    pub(crate) fn beside_driver(&self) -> Vec<u32> {
        self.origin_on(Side::Driver)
    }

    fn origin_on(&self, side: Side) -> Vec<u32> {
        match &self.origin {
            Some(origin) if self.side == side => process::descendants(origin.pid()),
            _ => Vec::new(),
        }
    }

    /// The processes of the server without its origin; they accept the driver's connections.
    pub(crate) fn accepting(&self) -> Vec<u32> {
        process::descendants(self.server.pid())
    }

    /// The started process; the counters are those of its network.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// It has ended; the message has its output.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        let ended = match (self.server.ended(), &mut self.origin) {
            (Some(status), _) => Some(status),
            (None, Some(origin)) => origin.ended(),
            (None, None) => None,
        };
        match ended {
            None => Ok(()),
            Some(status) => {
                let log = self.log.as_deref().map(process::tail).unwrap_or_default();
                let output = format!("{} {log}", self.server.stderr());
                let text = format!("died half way with {status}: {}", output.trim());
                Err(LabError::contender(&self.name, text))
            }
        }
    }
}

fn program<'a>(start: &Start<'a>, name: &str) -> Result<&'a Program, LabError> {
    start.study.program(name).ok_or_else(|| {
        LabError::contender(start.contender.name.get_ref(), format!("no program {name}"))
    })
}

fn launch(
    start: &Start<'_>,
    program: &Program,
    configuration: Option<&str>,
    values: &Values,
    cpus: &[usize],
) -> Result<Process, String> {
    let folder = PathBuf::from(values.get("folder").cloned().unwrap_or_default());
    furnish(start, &folder, values)?;
    if let Some(text) = configuration.and_then(|name| start.study.configuration(name)) {
        let text = template::fill(text.get_ref(), values).map_err(|error| error.to_string())?;
        let path = folder.join(&program.file);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let port: u16 = values
        .get("port")
        .and_then(|port| port.parse().ok())
        .ok_or("no port")?;
    let mut filled = values.clone();
    let file = folder.join(&program.file).display().to_string();
    filled.insert("configuration".to_owned(), file);
    let words: Result<Vec<String>, _> = program
        .command
        .iter()
        .map(|word| template::fill(word, &filled))
        .collect();
    let words = start
        .topology
        .server_words(words.map_err(|error| error.to_string())?);
    let mut process = Process::start(&words, cpus, &folder, "server", signal(program.stop))?;
    let log = program.log.as_ref().map(|file| folder.join(file));
    await_ready(&mut process, program, port, start.topology)
        .map_err(|text| failure(&text, &process, log.as_deref(), port))?;
    Ok(process)
}

/// The failure with the server's output and, for the most frequent cause, our explanation.
fn failure(text: &str, process: &Process, log: Option<&Path>, port: u16) -> String {
    let log = log.map(process::tail).unwrap_or_default();
    let output = format!("{} {log}", process.stderr());
    let taken = output.contains("Address already in use") || output.contains("address in use");
    let cause = if taken {
        format!(" (port {port} is in use)")
    } else {
        String::new()
    };
    format!("{text}{cause}: {}", output.trim())
}

fn signal(stop: Stop) -> Signal {
    match stop {
        Stop::Term => Signal::SIGTERM,
        Stop::Quit => Signal::SIGQUIT,
        Stop::Interrupt => Signal::SIGINT,
    }
}

/// The folders that configurations expect, and the study's files.
fn furnish(start: &Start<'_>, folder: &Path, values: &Values) -> Result<(), String> {
    for name in ["logs", "html", "cache"] {
        let path = folder.join(name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    for (name, content) in &start.study.files {
        files::place(folder, start.constant, name.get_ref(), content, values)?;
    }
    Ok(())
}

fn await_ready(
    process: &mut Process,
    program: &Program,
    port: u16,
    topology: &Topology,
) -> Result<(), String> {
    let end = Instant::now() + READY_PATIENCE;
    let mut last = String::from("nothing was tried");
    while Instant::now() < end {
        if let Some(status) = process.ended() {
            return Err(format!("does not start, ended with {status}"));
        }
        interrupt::check().map_err(|error| error.to_string())?;
        match is_ready(program, port, topology) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Err(format!(
        "is not ready after {} s: {last}",
        READY_PATIENCE.as_secs()
    ))
}

fn is_ready(program: &Program, port: u16, topology: &Topology) -> Result<(), String> {
    if program.ready == Ready::Start {
        return Ok(());
    }
    let address: SocketAddr = format!("{}:{port}", topology.address())
        .parse()
        .map_err(|_| "no address".to_owned())?;
    let asked = topology.at_driver(|| match program.ready {
        Ready::Connect => TcpStream::connect_timeout(&address, ANSWER_PATIENCE).map(|_| ()),
        _ => ask(address, &program.ready_path),
    });
    asked
        .and_then(|answer| answer)
        .map_err(|error| error.to_string())
}

/// Whether it answers; any status is accepted except a server error.
fn ask(address: SocketAddr, path: &str) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_PATIENCE)?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    let host = address.ip();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    match head.get(9) {
        Some(b'2' | b'3' | b'4') => Ok(()),
        _ => Err(std::io::Error::other(
            String::from_utf8_lossy(&head).into_owned(),
        )),
    }
}

/// Two free ports, chosen by the kernel.
///
/// # Errors
/// There are none.
pub(crate) fn free_ports(topology: &Topology) -> Result<(u16, u16), LabError> {
    let two = || {
        let (first, second) = (
            TcpListener::bind("0.0.0.0:0")?,
            TcpListener::bind("0.0.0.0:0")?,
        );
        Ok((first.local_addr()?.port(), second.local_addr()?.port()))
    };
    topology
        .at_server(two)
        .and_then(|ports: std::io::Result<(u16, u16)>| ports)
        .map_err(|error| LabError::step("finding free ports", error))
}

#[cfg(test)]
mod tests;
