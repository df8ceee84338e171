//! The name servers of a resolver: those of the configuration, and those of a file in the format of
//! resolv.conf(5), which is read again when it has changed.
//!
//! The file is looked at before each question that goes out, on the thread that asks: next to the
//! question itself that costs nothing, and a machine that moves to another network has no stale
//! servers. Of the file only the lines with name servers count: names that are looked up are whole.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::file::{self, Links, Metadata, Purpose};

/// The most bytes of the file that are read: it has some lines, and comments.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// The most name servers of the file. The C library uses three.
const SERVERS_MAX: usize = 16;

/// A file with name servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServersFile {
    /// The file, with its full path.
    pub path: PathBuf,
    /// The port of its servers: the file names addresses only.
    pub port: u16,
}

/// Name servers that are asked in turn. There is at least one.
pub(super) struct Servers {
    pub(super) addresses: Vec<SocketAddr>,
    /// For each server, the end of the time in which it is queried without extensions, in monotonic
    /// milliseconds.
    pub(super) plain_until_ms: Box<[AtomicU64]>,
}

/// The source of name servers.
pub(super) struct ServerSource {
    /// The servers of the configuration.
    fixed: Vec<SocketAddr>,
    file: Option<ServersFile>,
    state: Mutex<State>,
}

struct State {
    servers: Arc<Servers>,
    /// The file as it was when it was read last.
    seen: Option<Metadata>,
    /// What was wrong with it, which is logged once.
    fault: Option<String>,
    log: ErrorLog,
}

impl Servers {
    fn new(addresses: Vec<SocketAddr>) -> Servers {
        Servers {
            plain_until_ms: addresses.iter().map(|_| AtomicU64::new(0)).collect(),
            addresses,
        }
    }
}

impl ServerSource {
    /// These servers, and those of the file.
    pub(super) fn new(fixed: Vec<SocketAddr>, file: Option<ServersFile>) -> ServerSource {
        ServerSource {
            state: Mutex::new(State {
                servers: Arc::new(Servers::new(fixed.clone())),
                seen: None,
                fault: None,
                log: ErrorLog::none(),
            }),
            fixed,
            file,
        }
    }

    /// Writes what is wrong with the file to this log from now on.
    pub(super) fn log_to(&self, log: ErrorLog) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .log = log;
    }

    /// The servers now.
    pub(super) fn current(&self) -> Arc<Servers> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &self.file {
            state.look(file, &self.fixed);
        }
        Arc::clone(&state.servers)
    }
}

impl State {
    /// Reads the file if it is not as it was.
    fn look(&mut self, file: &ServersFile, fixed: &[SocketAddr]) {
        let path = file.path.as_os_str().as_bytes();
        let fault = |call: &str, error: &io::Error| {
            format!("{call} \"{}\" failed {}", file.path.display(), Errno(error))
        };
        let text = match file::metadata_of(path, Links::Follow) {
            Ok(now) if self.seen == Some(now) => return,
            Ok(now) => {
                self.seen = Some(now);
                read(path, now).map_err(|error| fault("open()", &error))
            }
            Err(error) => {
                self.seen = None;
                Err(fault("stat()", &error))
            }
        };
        let mut addresses = fixed.to_vec();
        let fault = match text {
            Ok(text) => file.add_servers(&text, &mut addresses).err(),
            Err(fault) => Some(fault),
        };
        if addresses.is_empty() {
            // resolv.conf(5): without an entry the server is that of the machine itself.
            addresses.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), file.port));
        }
        if addresses != self.servers.addresses {
            self.servers = Arc::new(Servers::new(addresses));
        }
        if let Some(message) = &fault
            && fault != self.fault
        {
            self.log.event(Level::Error, format_args!("{message}"));
        }
        self.fault = fault;
    }
}

impl ServersFile {
    /// Adds the servers that the file's text names, and leaves out what is no address.
    ///
    /// # Errors
    /// The first word that is no address, in Angie's words.
    fn add_servers(&self, text: &str, addresses: &mut Vec<SocketAddr>) -> Result<(), String> {
        let mut fault = Ok(());
        for word in name_servers(text).take(SERVERS_MAX) {
            let Ok(address) = word.parse::<IpAddr>() else {
                let path = self.path.display();
                fault = fault.and(Err(format!(
                    "cannot parse IP address ({word}) from \"{path}\""
                )));
                continue;
            };
            let address = SocketAddr::new(address, self.port);
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        fault
    }
}

/// The text of the file; a file that is not a regular one could keep the thread waiting.
fn read(path: &[u8], metadata: Metadata) -> io::Result<String> {
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let opened = file::open(path, Purpose::Read, Links::Follow)?;
    let mut bytes = vec![0; FILE_BYTES_MAX];
    let length = file::fill_at(opened.as_fd(), &mut bytes, 0)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// The words behind `nameserver` in lines that begin with it.
fn name_servers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.strip_prefix("nameserver")?;
        let word = rest.split_ascii_whitespace().next()?;
        rest.starts_with([' ', '\t']).then_some(word)
    })
}
