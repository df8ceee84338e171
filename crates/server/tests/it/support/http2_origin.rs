//! An upstream server of HTTP/2 whose every answer a test decides. It ends with the process.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::frames::{DATA, END_STREAM, HEADERS, SETTINGS, frame};

/// Bytes of a client's preface.
const PREFACE_BYTES: usize = 24;

/// The frames that answer a request: of how many on its connection, from 0 on, and on which stream.
pub type Answer = fn(usize, u32) -> Vec<u8>;

/// Starts such a server; its port.
pub fn start(answer: Answer) -> u16 {
    accept(move |stream| {
        let _ = serve(stream, answer);
    })
}

/// Serves each connection to a port of its own by a thread.
pub fn accept(serve: impl Fn(TcpStream) + Copy + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    port
}

fn serve(mut stream: TcpStream, answer: Answer) -> std::io::Result<()> {
    stream.write_all(&frame(SETTINGS, 0, 0, b""))?;
    stream.read_exact(&mut [0; PREFACE_BYTES])?;
    let mut requests = 0;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [high, middle, low, kind, flags, number @ ..] = head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        stream.read_exact(&mut vec![0; length as usize])?;
        if [HEADERS, DATA].contains(&kind) && flags & END_STREAM != 0 {
            stream.write_all(&answer(requests, u32::from_be_bytes(number)))?;
            requests += 1;
        }
    }
}
