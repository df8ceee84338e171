//! Clients and origins of the study of `stream`: bytes and short connections over TCP, datagrams
//! over UDP, for relays that know nothing of HTTP.
//!
//! `turnpike-traffic serve KIND ADDRESS:PORT` is an origin, for both protocols, until it is killed.
//! `turnpike-traffic drive KIND ADDRESS:PORT SECONDS` makes operations for so long, and prints
//! their rate and the lost ones as the lab reads them from a driver.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_lab::relays::Burst;

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

/// Threads of an origin, each with a connection at a time: more than there are clients, as some
/// connections may be ending. A thread for each connection would cost more than the connection.
const SERVERS: usize = 2 * CLIENTS;

/// Large datagrams that an origin sends for one request.
const BURST: usize = 32;

/// After this time a datagram counts as lost.
const LOSS: Duration = Duration::from_millis(200);

/// What goes through a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    Download,
    Upload,
    Short,
    Exchange,
    Once,
    Flows,
    Datagrams,
}

const KINDS: &[(&str, Traffic)] = &[
    ("download", Traffic::Download),
    ("upload", Traffic::Upload),
    ("short", Traffic::Short),
    ("exchange", Traffic::Exchange),
    ("once", Traffic::Once),
    ("flows", Traffic::Flows),
    ("datagrams", Traffic::Datagrams),
];

/// The operations of a client.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    done: u64,
    /// Datagrams that have not come.
    lost: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match carry_out(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("turnpike-traffic: {error}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(words: &[&str]) -> Result<(), Box<dyn Error>> {
    let usage = "serve KIND ADDRESS:PORT, or drive KIND ADDRESS:PORT SECONDS";
    let (kind, address) = match words {
        [_, kind, address, ..] => (*kind, *address),
        _ => return Err(usage.into()),
    };
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    let (_, traffic) = *known.ok_or_else(|| format!("no traffic is called \"{kind}\""))?;
    match words {
        ["serve", ..] => Ok(serve_all(traffic, address)?),
        ["drive", _, _, seconds] => {
            let time = Duration::try_from_secs_f64(seconds.parse()?)?;
            let started = Instant::now();
            let Done { done, lost } = drive(traffic, address, time)?;
            println!(
                "requests_per_s {}",
                done as f64 / started.elapsed().as_secs_f64()
            );
            println!("errors {lost}");
            Ok(())
        }
        _ => Err(usage.into()),
    }
}

/// An origin for both protocols.
fn serve_all(traffic: Traffic, address: &str) -> io::Result<()> {
    let socket = UdpSocket::bind(address)?;
    let listener = TcpListener::bind(address)?;
    thread::scope(|scope| {
        let accept = || {
            for connection in listener.incoming().flatten() {
                serve(traffic, connection);
            }
        };
        for _ in 0..SERVERS {
            scope.spawn(accept);
        }
        answer(traffic, &socket)
    })
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
    let mut burst = Burst::default();
    loop {
        let count = burst.receive(socket)?;
        match traffic {
            Traffic::Datagrams => burst.answer(socket, count, (BURST, LARGE)),
            _ => {
                // What a full socket loses is lost.
                let _ = burst.send_back(socket, count);
            }
        }
    }
}

/// Makes operations through a server for a time.
///
/// # Errors
/// A connection broke, or no socket could be made.
fn drive(traffic: Traffic, address: &str, time: Duration) -> io::Result<Done> {
    let is_over = AtomicBool::new(false);
    let goes_on = || !is_over.load(Ordering::Relaxed);
    let clients = match traffic {
        Traffic::Download | Traffic::Upload | Traffic::Datagrams => 4,
        _ => CLIENTS,
    };
    thread::scope(|scope| {
        let client = || match traffic {
            Traffic::Download | Traffic::Upload | Traffic::Exchange => {
                exchange(traffic, address, &goes_on)
            }
            Traffic::Short => short(address, &goes_on),
            Traffic::Once => once(address, &goes_on),
            Traffic::Flows => flow(address, &goes_on),
            Traffic::Datagrams => datagrams(address, &goes_on),
        };
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        let mut all = Done::default();
        for client in clients {
            let Done { done, lost } = client.join().map_err(|_| io::Error::other("a client"))??;
            all.done += done;
            all.lost += lost;
        }
        Ok(all)
    })
}

fn exchange(traffic: Traffic, address: &str, goes_on: &impl Fn() -> bool) -> io::Result<Done> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
    let mut buffer = vec![0; MEGABYTE];
    let (request, response) = match traffic {
        Traffic::Download => (1, MEGABYTE),
        Traffic::Upload => (MEGABYTE, 1),
        _ => (SMALL, SMALL),
    };
    let mut all = Done::default();
    while goes_on() {
        connection.write_all(&buffer[..request])?;
        connection.read_exact(&mut buffer[..response])?;
        all.done += 1;
    }
    Ok(all)
}

fn short(address: &str, goes_on: &impl Fn() -> bool) -> io::Result<Done> {
    let mut buffer = [0; SMALL];
    let mut all = Done::default();
    while goes_on() {
        let mut connection = TcpStream::connect(address)?;
        connection.write_all(&buffer)?;
        connection.read_exact(&mut buffer)?;
        all.done += 1;
    }
    Ok(all)
}

fn client(address: &str) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(LOSS))?;
    Ok(socket)
}

impl Done {
    /// Counts so many datagrams that were sent, of which some have come.
    fn count(&mut self, sent: usize, come: usize) {
        self.done += come as u64;
        self.lost += sent.saturating_sub(come) as u64;
    }
}

fn once(address: &str, goes_on: &impl Fn() -> bool) -> io::Result<Done> {
    let mut buffer = [0; SMALL];
    let mut all = Done::default();
    while goes_on() {
        let socket = client(address)?;
        socket.send(&buffer)?;
        all.count(1, usize::from(socket.recv(&mut buffer).is_ok()));
    }
    Ok(all)
}

fn flow(address: &str, goes_on: &impl Fn() -> bool) -> io::Result<Done> {
    let socket = client(address)?;
    let mut burst = Burst::default();
    let mut all = Done::default();
    while goes_on() {
        burst.send(&socket, WINDOW, SMALL)?;
        all.count(WINDOW, come(&mut burst, &socket, WINDOW));
    }
    Ok(all)
}

fn datagrams(address: &str, goes_on: &impl Fn() -> bool) -> io::Result<Done> {
    let socket = client(address)?;
    let mut burst = Burst::default();
    let mut all = Done::default();
    while goes_on() {
        burst.send(&socket, 1, 1)?;
        all.count(BURST, come(&mut burst, &socket, BURST));
    }
    Ok(all)
}

/// How many of so many expected datagrams come; after one that is lost, the others are.
fn come(burst: &mut Burst, socket: &UdpSocket, expected: usize) -> usize {
    let mut come = 0;
    while come < expected {
        match burst.receive(socket) {
            Ok(count) => come += count,
            Err(_) => break,
        }
    }
    come
}
