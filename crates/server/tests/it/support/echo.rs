//! A server of TCP that sends back what it gets.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// Starts it, with threads of its own that end with the process, and returns its port.
pub(crate) fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut piece) {
                    client.write_all(&piece[..count]).unwrap();
                }
            });
        }
    });
    port
}
