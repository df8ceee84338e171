//! A client in a network namespace of its own, that asks a server with the express lane.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use turnpike_express::{Program, Refusal};
use turnpike_testkit::network::{Network, SERVER_V4};
use turnpike_testkit::{Folder, Server, needs_root};

/// The namespaces of a test; `None`: it is skipped.
pub fn join(test: &str) -> Option<Network> {
    if needs_root(test, "CAP_SYS_ADMIN") || needs_root(test, "CAP_NET_ADMIN") {
        return None;
    }
    if let Err(Refusal::NotSupported) = Program::load(4) {
        eprintln!("skipped: {test} needs a kernel with the express lane (Linux 6.9)");
        return None;
    }
    Some(Network::join("s0", "c0").unwrap())
}

/// The number of the first metric whose line begins so; 0 where there is none.
pub fn metric(server: &Server, start: &str) -> u64 {
    let page = server.get("/metrics").text();
    let line = page.lines().find(|line| line.starts_with(start));
    let number = line.and_then(|line| line.rsplit(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// One request on a connection of its own; what went wrong, else nothing.
pub fn ask(port: u16) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect((SERVER_V4, port)).map_err(text)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .map_err(text)?;
    let request = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).map_err(text)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(text)?;
    if answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhello") {
        Ok(())
    } else {
        Err(format!("{answer:?}"))
    }
}

/// Asks again and again while something is done, which is told how often; returns what failed.
pub fn under_load(network: &Network, port: u16, work: impl FnOnce(&AtomicU64)) -> Vec<String> {
    let (over, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            network.on_client(|| {
                let mut failures = Vec::new();
                while !over.load(Relaxed) {
                    failures.extend(ask(port).err());
                    asked.fetch_add(1, Relaxed);
                }
                failures
            })
        });
        work(&asked);
        over.store(true, Relaxed);
        load.join().unwrap()
    })
}

/// What a test of the configuration says of directives in `http`.
pub fn tested(directives: &str) -> String {
    let folder = Folder::create().unwrap();
    let text = format!("events {{ }} http {{ {directives} server {{ listen 127.0.0.1:8080; }} }}");
    folder.write("t.conf", text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .args(["-t", "-g", "pid t.pid;", "-e", "stderr", "-p"])
        .arg(folder.path().join(""))
        .arg("-c")
        .arg(folder.path().join("t.conf"))
        .output()
        .unwrap();
    String::from_utf8(output.stderr).unwrap()
}
