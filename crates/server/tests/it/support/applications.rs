//! Applications behind FastCGI, SCGI and uwsgi that answer with what they are sent: code that
//! shares nothing with the server's own.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Bytes of a record's header in FastCGI, and the kinds of records.
const HEADER_BYTES: usize = 8;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;

/// An application; it answers each request with the values of one parameter, with a bar between
/// them.
pub(crate) struct Application {
    protocol: &'static str,
    port: u16,
}

impl Application {
    /// Starts one, with threads of its own that end with the process. The protocol is `fastcgi`,
    /// `scgi` or `uwsgi`.
    pub(crate) fn start(protocol: &'static str, parameter: &'static str) -> Application {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                // A client that goes away is not answered.
                thread::spawn(move || answer(protocol, parameter, &mut client));
            }
        });
        Application { protocol, port }
    }

    /// The name of the protocol.
    pub(crate) fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// The port of 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn answer(protocol: &str, parameter: &str, client: &mut TcpStream) -> io::Result<()> {
    let params = match protocol {
        "fastcgi" => read_fastcgi(client)?,
        "scgi" => read_scgi(client)?,
        _ => read_uwsgi(client)?,
    };
    // Records hold their body; a server would reset a connection with one that was not read.
    let length = params.iter().find(|(name, _)| name == "CONTENT_LENGTH");
    if protocol != "fastcgi"
        && let Some(Ok(length)) = length.map(|(_, length)| length.parse())
    {
        take(client, length)?;
    }
    let values = params.iter().filter(|(name, _)| name == parameter);
    let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
    let body = values.join("|");
    let length = body.len();
    let answer = format!("Status: 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
    let answer = match protocol {
        "fastcgi" => {
            let [high, low] = u16::try_from(answer.len()).unwrap().to_be_bytes();
            let end = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            [&[1, 6, 0, 1, high, low, 0, 0], answer.as_bytes(), &end].concat()
        }
        _ => answer.into_bytes(),
    };
    client.write_all(&answer)
}

type Params = Vec<(String, String)>;

fn take(client: &mut TcpStream, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Records up to the end of the body; those with parameters hold names and values behind their
/// lengths.
fn read_fastcgi(client: &mut TcpStream) -> io::Result<Params> {
    let mut params = Vec::new();
    loop {
        let header = take(client, HEADER_BYTES)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let content = take(client, length + usize::from(header[6]))?;
        match (header[1], length) {
            (STDIN, 0) => break,
            (PARAMS, _) => params.extend_from_slice(&content[..length]),
            _ => {}
        }
    }
    let mut rest = params.as_slice();
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let name_len = length(&mut rest);
        let value_len = length(&mut rest);
        let (name, behind) = rest.split_at(name_len);
        let (value, behind) = behind.split_at(value_len);
        pairs.push((text(name), text(value)));
        rest = behind;
    }
    Ok(pairs)
}

/// A length in one byte, or in four.
fn length(rest: &mut &[u8]) -> usize {
    let bytes = *rest;
    match bytes[0] & 0x80 {
        0 => {
            *rest = &bytes[1..];
            usize::from(bytes[0])
        }
        _ => {
            *rest = &bytes[4..];
            let four = [bytes[0] & 0x7f, bytes[1], bytes[2], bytes[3]];
            u32::from_be_bytes(four) as usize
        }
    }
}

/// A netstring of texts that end with zero bytes.
fn read_scgi(client: &mut TcpStream) -> io::Result<Params> {
    let mut length = 0;
    loop {
        match take(client, 1)?[0] {
            b':' => break,
            digit => length = length * 10 + usize::from(digit - b'0'),
        }
    }
    let content = take(client, length + 1)?;
    let texts: Vec<&[u8]> = content[..length].split(|byte| *byte == 0).collect();
    let pairs = texts.chunks_exact(2);
    Ok(pairs.map(|pair| (text(pair[0]), text(pair[1]))).collect())
}

/// A packet of names and values behind their lengths.
fn read_uwsgi(client: &mut TcpStream) -> io::Result<Params> {
    let head = take(client, 4)?;
    let content = take(client, usize::from(u16::from_le_bytes([head[1], head[2]])))?;
    let mut texts = Vec::new();
    let mut rest = content.as_slice();
    while let [low, high, behind @ ..] = rest {
        let (one, behind) = behind.split_at(usize::from(u16::from_le_bytes([*low, *high])));
        texts.push(text(one));
        rest = behind;
    }
    let pairs = texts.chunks_exact(2);
    Ok(pairs
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect())
}
