//! Two network namespaces that a pair of virtual interfaces joins, for tests of what happens below
//! sockets. They need root.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};

/// The server's address in its namespace.
pub const SERVER_V4: &str = "10.9.0.1";
/// The same of IPv6.
pub const SERVER_V6: &str = "fd09::1";

/// The two namespaces. The thread that made them is in the server's for good, and so is what it
/// starts.
#[derive(Debug)]
pub struct Network {
    client: File,
    /// The thread whose namespace is the client's, until this is dropped.
    holder: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Network {
    /// Makes the namespaces, with an interface of these names in each.
    ///
    /// # Errors
    /// The kernel does not permit it, or `ip` refuses a step.
    pub fn join(server: &str, client: &str) -> io::Result<Network> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let (ready, made) = channel();
        let (stop, stopped) = channel::<()>();
        let holder = thread::spawn(move || {
            let thread = unshare(CloneFlags::CLONE_NEWNET).map(|()| nix::unistd::gettid().as_raw());
            let _ = ready.send(thread); // who made it waits for this
            let _ = stopped.recv();
        });
        let thread = made.recv().map_err(io::Error::other)??;
        let process = std::process::id();
        let namespace = format!("/proc/{process}/task/{thread}/ns/net");
        for command in [
            "link set lo up".to_owned(),
            format!("link add {server} type veth peer name {client}"),
            format!("addr add {SERVER_V4}/24 dev {server}"),
            format!("addr add {SERVER_V6}/64 dev {server} nodad"),
            format!("link set {server} up"),
            format!("link set {client} netns {namespace}"),
        ] {
            ip(&command)?;
        }
        let network = Network {
            client: File::open(&namespace)?,
            holder: Some((stop, holder)),
        };
        network.on_client(|| {
            ip(&format!("addr add 10.9.0.2/24 dev {client}"))?;
            ip(&format!("addr add fd09::2/64 dev {client} nodad"))?;
            ip(&format!("link set {client} up"))
        })?;
        Ok(network)
    }

    /// Has the server's side send what is for an address to the client's interface. The kernel
    /// there does not know the address, and only raw sockets see what comes.
    ///
    /// # Errors
    /// `ip` refuses a step.
    pub fn lend(&self, [server, client]: [&str; 2], address: IpAddr) -> io::Result<()> {
        let station = self.on_client(|| station(client))?;
        ip(&format!(
            "neigh replace {address} lladdr {station} nud permanent dev {server}"
        ))
    }

    /// Does something in the client's namespace, in a thread of its own.
    ///
    /// # Panics
    /// The work panics, or the namespace cannot be entered.
    pub fn on_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let done = thread::scope(|scope| {
            let there = scope.spawn(|| {
                let entered = setns(&self.client, CloneFlags::CLONE_NEWNET);
                entered.expect("the client's network namespace");
                work()
            });
            there.join()
        });
        match done {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some((stop, holder)) = self.holder.take() {
            drop(stop);
            let _ = holder.join();
        }
    }
}

/// The Ethernet address of an interface.
fn station(interface: &str) -> io::Result<String> {
    let text = ip_output(&format!("-o link show dev {interface}"))?;
    let mut words = text.split_whitespace();
    let found = words.find(|word| *word == "link/ether");
    let station = found.and_then(|_| words.next()).map(str::to_owned);
    station.ok_or_else(|| io::Error::other(format!("no address: {text}")))
}

/// Runs iproute2's `ip` with these words in this thread's namespace.
fn ip(words: &str) -> io::Result<()> {
    ip_output(words).map(drop)
}

/// The same; what it prints.
fn ip_output(words: &str) -> io::Result<String> {
    let output = Command::new("ip").args(words.split(' ')).output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let error = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!("ip {words}: {error}")))
    }
}
