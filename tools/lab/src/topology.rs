//! The network between driver and server: the loopback, or two network namespaces joined by a veth
//! pair, created here and always removed. The machine's own network is never changed.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sched::{CloneFlags, setns};

use crate::process;

/// Addresses of a range that RFC 2544 keeps for measurements.
const SERVER_ADDRESS: &str = "198.18.0.1";
const DRIVER_ADDRESS: &str = "198.18.0.2";
/// What the addresses of the network begin with.
const NETWORK: &str = "198.18.0.";

/// The name of both ends of the pair, each in its namespace.
const INTERFACE: &str = "lab0";

/// Generic receive offload, which ethtool(8) switches.
const GRO: &str = "gro";

/// Kernel settings are read no longer than this.
const SETTING_BYTES_MAX: usize = 4096;

/// A network that driver and server meet in.
#[derive(Debug)]
pub enum Topology {
    /// 127.0.0.1, in a namespace of the lab's own where it may have one: then settings, counters
    /// and TIME_WAIT sockets are the study's alone, and the machine keeps its own.
    Loopback(Option<Namespace>),
    /// Two namespaces, joined by a veth pair.
    Pair {
        server: Namespace,
        driver: Namespace,
    },
}

/// A network namespace of ours; removed when dropped.
#[derive(Debug)]
pub struct Namespace(String);

impl Topology {
    /// Makes the wished-for one; where that may not be, says why and takes what is there.
    pub fn make(wish: &str) -> (Topology, Option<String>) {
        let made = match wish {
            "netns" => pair(),
            _ => loopback(),
        };
        made.map_or_else(
            |error| {
                let text = format!(
                    "no network namespace: {error}; running over the machine's own loopback"
                );
                (Topology::Loopback(None), Some(text))
            },
            |topology| (topology, None),
        )
    }

    /// The topology's name, as studies say it.
    pub fn name(&self) -> &'static str {
        match self {
            Topology::Loopback(_) => "loopback",
            Topology::Pair { .. } => "netns",
        }
    }

    /// Where the server listens.
    pub fn address(&self) -> &'static str {
        match self {
            Topology::Loopback(_) => "127.0.0.1",
            Topology::Pair { .. } => SERVER_ADDRESS,
        }
    }

    fn server(&self) -> Option<&Namespace> {
        match self {
            Topology::Loopback(namespace) => namespace.as_ref(),
            Topology::Pair { server, .. } => Some(server),
        }
    }

    fn driver(&self) -> Option<&Namespace> {
        match self {
            Topology::Loopback(namespace) => namespace.as_ref(),
            Topology::Pair { driver, .. } => Some(driver),
        }
    }

    /// The words that run a command on the server's side.
    pub fn server_words(&self, words: Vec<String>) -> Vec<String> {
        within(self.server(), words)
    }

    /// The words that run a command on the driver's side.
    pub fn driver_words(&self, words: Vec<String>) -> Vec<String> {
        within(self.driver(), words)
    }

    /// Runs a closure on the driver's side: what it connects to it reaches as the driver does.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn at_driver<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        inside(self.driver(), work)
    }

    /// Runs a closure on the server's side.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn at_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        inside(self.server(), work)
    }

    /// A kernel setting as the server has it, by its path under /proc/sys.
    ///
    /// # Errors
    /// It is not there.
    pub fn setting(&self, path: &str) -> io::Result<String> {
        let path = format!("/proc/sys/{path}");
        let text = match self.at_server(|| std::fs::read_to_string(&path))? {
            // What is the whole machine's is seen outside of namespaces only.
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::read_to_string(&path),
            result => result,
        }?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut text = words.join(" ");
        text.truncate(SETTING_BYTES_MAX);
        Ok(text)
    }

    /// Changes a kernel setting on both sides.
    ///
    /// # Errors
    /// It is not there, or may not be changed.
    pub fn change(&self, path: &str, value: &str) -> io::Result<()> {
        let path = format!("/proc/sys/{path}");
        let write = || std::fs::write(&path, value);
        match self.at_server(write)? {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return write(),
            result => result?,
        }
        match self {
            Topology::Loopback(_) => Ok(()),
            Topology::Pair { .. } => self.at_driver(write)?,
        }
    }
}

impl Topology {
    /// How the server's end of the pair is set: `gro` (on or off), or an attribute by its path in
    /// `/sys/class/net/INTERFACE`.
    ///
    /// # Errors
    /// In words; also where there is no pair, since a loopback has no queue of its own.
    pub fn interface(&self, name: &str) -> Result<String, String> {
        if name == GRO {
            let text = self.at_interface(&["ethtool", "-k", INTERFACE])?;
            let found = text
                .lines()
                .find_map(|line| line.strip_prefix("generic-receive-offload: "));
            let word = found.and_then(|rest| rest.split(' ').next());
            return word
                .map(ToOwned::to_owned)
                .ok_or_else(|| format!("ethtool -k {INTERFACE} shows no generic-receive-offload"));
        }
        self.at_interface(&["cat", &attribute(name)])
    }

    /// Gives the server's end of the pair more addresses, so that it has this many; all of them.
    ///
    /// # Errors
    /// In words; also where there is no pair, or it would have more than a byte counts.
    pub fn addresses(&self, count: u8) -> Result<Vec<String>, String> {
        let Topology::Pair { server, .. } = self else {
            return Err("there is no veth pair".to_owned());
        };
        let mut addresses = vec![SERVER_ADDRESS.to_owned()];
        for index in 1..count {
            // The driver has the second one.
            let last = index.checked_add(2).ok_or("there are too many addresses")?;
            let address = format!("{NETWORK}{last}");
            ip(&format!(
                "-n {} address add {address}/24 dev {INTERFACE}",
                server.0
            ))?;
            addresses.push(address);
        }
        Ok(addresses)
    }

    /// Changes such a setting.
    ///
    /// # Errors
    /// As for [`Topology::interface`], and where the interface cannot have this value.
    pub fn change_interface(&self, name: &str, value: &str) -> Result<(), String> {
        if name == GRO {
            let words = ["ethtool", "-K", INTERFACE, GRO, value];
            return self.at_interface(&words).map(drop);
        }
        let script = "printf %s \"$1\" > \"$2\"";
        let words = ["sh", "-c", script, "sh", value, &attribute(name)];
        self.at_interface(&words).map(drop)
    }

    /// Runs a command beside the server. `ip netns exec` mounts the namespace's own /sys, which a
    /// thread that enters the namespace has not.
    fn at_interface(&self, words: &[&str]) -> Result<String, String> {
        let Topology::Pair { server, .. } = self else {
            return Err("there is no veth pair".to_owned());
        };
        let words = words.iter().map(ToString::to_string).collect();
        run(&within(Some(server), words))
    }
}

/// The file of an attribute of the interface.
fn attribute(name: &str) -> String {
    format!("/sys/class/net/{INTERFACE}/{name}")
}

/// Runs a closure in a thread that enters the namespace.
fn inside<T: Send>(
    namespace: Option<&Namespace>,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    let Some(Namespace(name)) = namespace else {
        return Ok(work());
    };
    let file = File::open(Path::new("/run/netns").join(name))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            setns(&file, CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        });
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace died")))
    })
}

fn within(namespace: Option<&Namespace>, words: Vec<String>) -> Vec<String> {
    let Some(Namespace(name)) = namespace else {
        return words;
    };
    let prefix = ["ip", "netns", "exec", name];
    prefix
        .iter()
        .map(ToString::to_string)
        .chain(words)
        .collect()
}

fn loopback() -> Result<Topology, String> {
    let namespace = Namespace::make("loopback")?;
    ip(&format!("-n {} link set lo up", namespace.0))?;
    Ok(Topology::Loopback(Some(namespace)))
}

fn pair() -> Result<Topology, String> {
    // What is there is dropped, and so removed, when a later step fails.
    let server = Namespace::make("server")?;
    let driver = Namespace::make("driver")?;
    let (s, d) = (&server.0, &driver.0);
    for line in [
        format!("-n {s} link add {INTERFACE} type veth peer name {INTERFACE} netns {d}"),
        format!("-n {s} address add {SERVER_ADDRESS}/24 dev {INTERFACE}"),
        format!("-n {d} address add {DRIVER_ADDRESS}/24 dev {INTERFACE}"),
        format!("-n {s} link set lo up"),
        format!("-n {d} link set lo up"),
        format!("-n {s} link set {INTERFACE} up"),
        format!("-n {d} link set {INTERFACE} up"),
    ] {
        ip(&line)?;
    }
    Ok(Topology::Pair { server, driver })
}

impl Namespace {
    fn make(role: &str) -> Result<Namespace, String> {
        /// Namespaces of one process, as its tests make them side by side.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !nix::unistd::geteuid().is_root() {
            return Err("root is needed".to_owned());
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnpike-lab-{}-{count}-{role}", std::process::id());
        ip(&format!("netns add {name}"))?;
        Ok(Namespace(name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = ip(&format!("netns delete {}", self.0)) {
            eprintln!(
                "turnpike lab: cannot remove the network namespace {}: {error}",
                self.0
            );
        }
    }
}

fn ip(line: &str) -> Result<(), String> {
    let words = std::iter::once("ip").chain(line.split(' '));
    run(&words.map(ToOwned::to_owned).collect::<Vec<String>>()).map(drop)
}

/// Runs a command; gives its output without the last end of line.
fn run(words: &[String]) -> Result<String, String> {
    let program = process::find(&words[0]).ok_or(format!("\"{}\" is not installed", words[0]))?;
    let line = words.join(" ");
    let output = Command::new(program)
        .args(&words[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{line}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("{line}: {}", stderr.trim()))
    }
}

#[cfg(test)]
mod tests;
