//! Clients and origins of the measurements of `stream`, as threads of this program on one core.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

const MEGABYTE: usize = 1 << 20;

/// Bytes of a small message.
const SMALL: usize = 100;

/// Bytes of a large datagram: about what fits into a frame of Ethernet.
const LARGE: usize = 1200;

/// Clients at a time: some for each of a server's turns, and few enough that their threads cost
/// little.
const CLIENTS: usize = 16;

/// Datagrams of a flow on the way at a time.
const WINDOW: usize = 8;

/// Large datagrams that an origin sends for one request.
const BURST: usize = 32;

/// After this time a datagram counts as lost.
const LOSS: Duration = Duration::from_millis(200);

/// What goes through a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    Download,
    Upload,
    Short,
    Exchange,
    Once,
    Flows,
    Datagrams,
}

/// Ports of origins whose threads live as long as this program.
pub(super) struct Origin {
    pub(super) tcp: u16,
    pub(super) udp: u16,
}

/// Runs this thread, and those that it starts, on one core.
pub(super) fn run_on(cpu: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|error| format!("cpu {cpu}: {error}"))
}

impl Origin {
    /// Starts an origin for both protocols.
    pub(super) fn start(traffic: Traffic) -> Result<Origin, String> {
        Self::bind(traffic).map_err(|error| error.to_string())
    }

    fn bind(traffic: Traffic) -> io::Result<Origin> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let (tcp, udp) = (listener.local_addr()?.port(), socket.local_addr()?.port());
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                thread::spawn(move || serve(traffic, connection));
            }
        });
        thread::spawn(move || answer(traffic, &socket));
        Ok(Origin { tcp, udp })
    }
}

/// Serves a connection; its end, however it comes, is the client's to judge.
fn serve(traffic: Traffic, mut connection: TcpStream) -> Option<()> {
    connection.set_nodelay(true).ok()?;
    let mut buffer = vec![0; MEGABYTE];
    loop {
        match traffic {
            Traffic::Download => {
                connection.read_exact(&mut buffer[..1]).ok()?;
                connection.write_all(&buffer).ok()?;
            }
            Traffic::Upload => {
                connection.read_exact(&mut buffer).ok()?;
                connection.write_all(&buffer[..1]).ok()?;
            }
            _ => {
                connection.read_exact(&mut buffer[..SMALL]).ok()?;
                connection.write_all(&buffer[..SMALL]).ok()?;
            }
        }
    }
}

/// Answers datagrams.
fn answer(traffic: Traffic, socket: &UdpSocket) -> io::Result<()> {
    let mut buffer = [0; 2048];
    loop {
        let (count, peer) = socket.recv_from(&mut buffer)?;
        let (datagrams, bytes) = match traffic {
            Traffic::Datagrams => (BURST, LARGE),
            _ => (1, count),
        };
        for _ in 0..datagrams {
            // What a full socket loses is lost.
            let _ = socket.send_to(&buffer[..bytes], peer);
        }
    }
}

/// Makes so many operations through a server; returns how many were made.
///
/// # Errors
/// A connection broke, or too many datagrams were lost.
pub(super) fn drive(traffic: Traffic, port: u16, operations: u64) -> io::Result<u64> {
    let left = AtomicU64::new(operations);
    let next = |count: u64| {
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(count)
        });
        taken.is_ok()
    };
    let clients = match traffic {
        Traffic::Download | Traffic::Upload | Traffic::Datagrams => 4,
        _ => CLIENTS,
    };
    thread::scope(|scope| {
        let client = || match traffic {
            Traffic::Download | Traffic::Upload | Traffic::Exchange => {
                exchange(traffic, port, &next)
            }
            Traffic::Short => short(port, &next),
            Traffic::Once => once(port, &next),
            Traffic::Flows => flow(port, &next),
            Traffic::Datagrams => datagrams(port, &next),
        };
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        let mut done = 0;
        for client in clients {
            done += client.join().map_err(|_| io::Error::other("a client"))??;
        }
        Ok(done)
    })
}

fn exchange(traffic: Traffic, port: u16, next: &impl Fn(u64) -> bool) -> io::Result<u64> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    connection.set_nodelay(true)?;
    let mut buffer = vec![0; MEGABYTE];
    let (request, response) = match traffic {
        Traffic::Download => (1, MEGABYTE),
        Traffic::Upload => (MEGABYTE, 1),
        _ => (SMALL, SMALL),
    };
    let mut done = 0;
    while next(1) {
        connection.write_all(&buffer[..request])?;
        connection.read_exact(&mut buffer[..response])?;
        done += 1;
    }
    Ok(done)
}

fn short(port: u16, next: &impl Fn(u64) -> bool) -> io::Result<u64> {
    let mut buffer = [0; SMALL];
    let mut done = 0;
    while next(1) {
        let mut connection = TcpStream::connect(("127.0.0.1", port))?;
        connection.write_all(&buffer)?;
        connection.read_exact(&mut buffer)?;
        done += 1;
    }
    Ok(done)
}

fn client(port: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(LOSS))?;
    Ok(socket)
}

fn once(port: u16, next: &impl Fn(u64) -> bool) -> io::Result<u64> {
    let mut buffer = [0; SMALL];
    let mut done = 0;
    while next(1) {
        let socket = client(port)?;
        socket.send(&buffer)?;
        done += u64::from(socket.recv(&mut buffer).is_ok());
    }
    Ok(done)
}

fn flow(port: u16, next: &impl Fn(u64) -> bool) -> io::Result<u64> {
    let socket = client(port)?;
    let mut buffer = [0; SMALL];
    let mut done = 0;
    while next(WINDOW as u64) {
        for _ in 0..WINDOW {
            socket.send(&buffer)?;
        }
        for _ in 0..WINDOW {
            done += u64::from(socket.recv(&mut buffer).is_ok());
        }
    }
    Ok(done)
}

fn datagrams(port: u16, next: &impl Fn(u64) -> bool) -> io::Result<u64> {
    let socket = client(port)?;
    let mut buffer = [0; LARGE];
    let mut done = 0;
    while next(BURST as u64) {
        socket.send(&buffer[..1])?;
        for _ in 0..BURST {
            match socket.recv(&mut buffer) {
                Ok(_) => done += 1,
                Err(_) => break,
            }
        }
    }
    Ok(done)
}
