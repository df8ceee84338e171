//! The memory of connections that wait, over TLS for the next request, or for a client that does
//! not read: what one of them costs the serving process.

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use turnpike_testkit::{Peer, Server, wait_for};

use crate::support::frames::{Client, get, opening};
use crate::support::memory::anonymous_bytes;
use crate::support::tls::{TURNPIKE, configured, keys};

/// Connections that are weighed: enough that what is made once does not count.
const CONNECTIONS: u64 = 400;

/// Options of `turnpike load`, and the most bytes of a connection.
const CASES: &[(&str, &[&str], u64)] = &[
    ("HTTP/1", &[], 12 * 1024),
    ("HTTP/2", &["--h2"], 12 * 1024),
    ("HTTP/3", &["--h3"], 64 * 1024),
];

/// What one test makes a machine do changes what the other one weighs.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn an_idle_connection_over_tls_is_small() {
    let _turn = turn();
    let keys = keys();
    for (name, options, bytes_max) in CASES {
        let http = "server {
            %SECURE%
            listen 127.0.0.1:%PORT% quic;
            http2 on;
            location / { return 200 served; }
        }";
        let text = configured(&keys, http)
            .replace(
                "worker_processes 2;",
                "worker_processes 1; control %FOLDER%/control;",
            )
            .replace("events { }", "events { worker_connections 2048; }");
        let server = Server::builder(TURNPIKE).configuration(&text).start();
        // What is made once is made now.
        drop(load(&server, options, 20, 1));
        let serving = status(&server)["serving"]["pid"].as_u64().unwrap();
        let before = anonymous_bytes(serving);
        let clients = load(&server, options, CONNECTIONS, 2);
        let after = anonymous_bytes(serving);
        drop(clients);
        let each = after.saturating_sub(before) / CONNECTIONS;
        println!("{name}: {each} bytes");
        assert!(each <= *bytes_max, "{name}: {each} bytes, not {bytes_max}");
    }
}

/// Clients that ask for a large proxied body and read nothing: enough that the growth of the
/// allocator by whole pieces does not count.
const SLOW_CLIENTS: usize = 400;

/// How often in a row the memory must be found as it was.
const STILL_LOOKS: u32 = 6;

/// The default of `proxy_buffers`, and the most bytes of such a connection. Counted by the sizes of
/// what is allocated without optimisation, it has 59 KB: these buffers, 8 KB that are being sent
/// (nginx has its `proxy_buffer_size` beside them too), 5 KB of the task, 4 KB of the head, and 10
/// KB of both connections and the request. The rest, 6 to 12 KB, is what the allocator rounds up
/// and has between pieces of several sizes.
const BODY_BYTES: u64 = 32 * 1024;
const SLOW_BYTES_MAX: u64 = BODY_BYTES + 40 * 1024;

#[test]
fn a_client_that_does_not_read_holds_the_buffers_of_its_body_and_little_more() {
    let _turn = turn();
    let http = |place: &str| {
        format!(
            "worker_processes 1;
            events {{ worker_connections 2048; }}
            http {{
                access_log off;
                server {{ listen 127.0.0.1:%PORT% sndbuf=16k; {place} }}
            }}"
        )
    };
    let origin = Server::builder(TURNPIKE)
        .file("html/object", "x".repeat(1024 * 1024))
        .configuration(&http("root %FOLDER%/html;"))
        .start();
    let place = format!(
        "location / {{ proxy_pass http://127.0.0.1:{}; proxy_max_temp_file_size 0; }}",
        origin.port()
    );
    let server = Server::builder(TURNPIKE)
        .configuration(&http(&place))
        .start();
    let serving = u64::from(server.serving_pids()[0]);
    let ask = |count: usize| -> Vec<Peer> {
        let requests = (0..count).map(|_| {
            let mut peer = server.connect();
            peer.send("GET /object HTTP/1.1\r\nHost: a\r\n\r\n");
            peer
        });
        requests.collect()
    };
    // The memory once nothing more is received for these clients: a busy machine may let the server
    // rest a while before.
    let still = || {
        let (mut last, mut alike) = (0, 0);
        wait_for(|| {
            std::thread::sleep(Duration::from_millis(50));
            let now = anonymous_bytes(serving);
            alike = if last == now { alike + 1 } else { 0 };
            last = now;
            (alike == STILL_LOOKS).then_some(now)
        })
        .unwrap()
    };
    let first = ask(10);
    let before = still();
    let slow = ask(SLOW_CLIENTS);
    let mut each = 0;
    // What more was needed on the way, as on a busy machine, goes back once the lane rests.
    let is_little = wait_for(|| {
        each = still().saturating_sub(before) / SLOW_CLIENTS as u64;
        (each <= SLOW_BYTES_MAX).then_some(())
    });
    drop((first, slow));
    println!("{each} bytes");
    assert!(is_little.is_some(), "{each} bytes, not {SLOW_BYTES_MAX}");
}

/// Connections of HTTP/2, requests of each that wait, and the most bytes of one of them.
const STREAM_CLIENTS: usize = 8;
const STREAMS: u32 = 128;
const STREAM_BYTES_MAX: u64 = 16 * 1024;

/// Bytes that may stay when all clients have gone.
const LEFT_BYTES_MAX: u64 = 2 * 1024 * 1024;

#[test]
fn a_stalled_stream_holds_no_piece_of_its_body_and_nothing_once_it_has_ended() {
    let _turn = turn();
    let server = Server::builder(TURNPIKE)
        .file("html/object", "x".repeat(1024 * 1024))
        .configuration(
            "worker_processes 1;
            events { }
            http {
                access_log off;
                server { listen 127.0.0.1:%PORT%; http2 on; root %FOLDER%/html; }
            }",
        )
        .start();
    let serving = u64::from(server.serving_pids()[0]);
    let ask = |clients: usize| -> Vec<Client> {
        let clients = (0..clients).map(|_| {
            let mut client = Client::connect(&server, &opening(0));
            let numbers = (0..STREAMS).map(|number| 2 * number + 1);
            let requests = numbers.map(|stream| get(stream, "/object", &[]));
            client.send(&requests.collect::<Vec<_>>().concat());
            assert!(client.is_served());
            client
        });
        clients.collect()
    };
    // What is made once is made now.
    drop(ask(1));
    let before = anonymous_bytes(serving);
    let mut clients = ask(STREAM_CLIENTS);
    let each = |after: u64| after.saturating_sub(before) / (STREAM_CLIENTS as u64 * 128);
    let first = each(anonymous_bytes(serving));
    for client in &mut clients {
        for number in 0..STREAMS {
            client.widen(2 * number + 1, 100);
        }
        assert!(client.is_served());
    }
    let begun = each(anonymous_bytes(serving));
    println!("{first} bytes, {begun} once they have begun");
    assert!(first.max(begun) <= STREAM_BYTES_MAX, "{first}, {begun}");
    drop(clients);
    let is_back = || (anonymous_bytes(serving) <= before + LEFT_BYTES_MAX).then_some(());
    let left = || anonymous_bytes(serving).saturating_sub(before);
    assert!(wait_for(is_back).is_some(), "{} bytes stay", left());
}

/// Clients that hold connections open.
struct Clients(Child);

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens connections, and waits until they have had so many requests each.
fn load(server: &Server, options: &[&str], connections: u64, requests: u64) -> Clients {
    let total = |name: &str| status(server)["serving"]["totals"][name].as_u64();
    let (requests_before, accepted_before) = (
        total("requests").unwrap(),
        total("connections_accepted").unwrap(),
    );
    let count = connections.to_string();
    let child = Command::new(TURNPIKE)
        .args(["load", "--insecure", "--threads", "1", "--quiet"])
        .args(["--duration", "3600s", "--timeout", "300s"])
        .args(["--connections", &count, "--rate", &count])
        .args(options)
        .arg(format!("https://127.0.0.1:{}/", server.port()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let clients = Clients(child);
    let are_there = || {
        let accepted = total("connections_accepted")? - accepted_before;
        let answered = total("requests")? - requests_before;
        (accepted >= connections && answered >= requests * connections).then_some(())
    };
    assert!(wait_for(are_there).is_some(), "{connections} connections");
    clients
}

fn status(server: &Server) -> Value {
    let socket = server.folder().join("control");
    let output = Command::new(TURNPIKE)
        .args(["status", "--json", "--socket"])
        .arg(socket)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}
