//! curl as a client of a server under test.

use std::process::Command;

use turnpike_testkit::Server;

/// The output of curl for a target without TLS.
pub fn curl(server: &Server, target: &str, more: &[&str]) -> Vec<u8> {
    let address = format!("http://127.0.0.1:{}{target}", server.port());
    let mut command = Command::new("curl");
    command
        .args(["-s", "--max-time", "20"])
        .args(more)
        .arg(address);
    command.output().unwrap().stdout
}

/// More than any window or buffer holds at first.
pub fn large() -> Vec<u8> {
    (0..700_000u32)
        .map(|number| ((number * 31) >> 3) as u8)
        .collect()
}
