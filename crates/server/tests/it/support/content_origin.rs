//! An origin that answers with the content of each request, in four protocols: a client that gets
//! the answer to another one's content sees it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use turnpike_testkit::{DEADLINE, Peer, Response};

/// What the origin speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http,
    FastCgi,
    Scgi,
    Uwsgi,
}

/// Starts an origin, with threads that end with the process, and returns its port.
pub fn start(protocol: Protocol) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // The server under test may end before it has read an answer.
            thread::spawn(move || serve(&client, protocol));
        }
    });
    port
}

fn serve(client: &TcpStream, protocol: Protocol) -> io::Result<()> {
    client.set_read_timeout(Some(DEADLINE))?;
    let mut reader = BufReader::new(client);
    let content = match protocol {
        Protocol::Http => http_content(&mut reader)?,
        Protocol::FastCgi => fastcgi_content(&mut reader)?,
        Protocol::Scgi => {
            let mut length = Vec::new();
            reader.read_until(b':', &mut length)?;
            length.pop();
            let length: usize = String::from_utf8_lossy(&length).parse().unwrap();
            let head = read(&mut reader, length + 1)?;
            let text = head.split(|byte| *byte == 0).nth(1).unwrap();
            let length: usize = String::from_utf8_lossy(text).parse().unwrap_or(0);
            read(&mut reader, length)?
        }
        Protocol::Uwsgi => {
            let head = read(&mut reader, 4)?;
            let size = usize::from(u16::from_le_bytes([head[1], head[2]]));
            let head = read(&mut reader, size)?;
            read(&mut reader, uwsgi_length(&head))?
        }
    };
    let content = String::from_utf8_lossy(&content).into_owned();
    let mut answer = answer(&content);
    if protocol == Protocol::Http {
        answer.insert_str(0, "HTTP/1.1 200 OK\r\nConnection: close\r\n");
    }
    if protocol == Protocol::FastCgi {
        return (&mut &*client).write_all(&records(answer.as_bytes()));
    }
    (&mut &*client).write_all(answer.as_bytes())
}

/// Fields and body of an answer that says what the content was.
fn answer(content: &str) -> String {
    let (said, length) = (said(content), content.len());
    format!(
        "Content-Length: {length}\r\nContent-Type: text/plain\r\nCache-Control: max-age=600\r\n\
         X-Content: {said}\r\n\r\n{content}"
    )
}

/// How content is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    Expected,
}

/// Sends a request with content; the end of the content comes late, if it has one.
pub fn ask_with(peer: &mut Peer, request: &str, framing: Framing, content: &str) -> Response {
    let length = content.len();
    let (fields, text) = match framing {
        Framing::Length => (format!("Content-Length: {length}\r\n"), content.to_owned()),
        Framing::Expected => (
            format!("Content-Length: {length}\r\nExpect: 100-continue\r\n"),
            content.to_owned(),
        ),
        Framing::Chunked if content.is_empty() => (
            "Transfer-Encoding: chunked\r\n".to_owned(),
            "0\r\n\r\n".to_owned(),
        ),
        Framing::Chunked => (
            "Transfer-Encoding: chunked\r\n".to_owned(),
            format!("{length:x}\r\n{content}\r\n0\r\n\r\n"),
        ),
    };
    let head = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n");
    peer.send(head);
    if framing == Framing::Expected {
        assert_eq!(peer.response().status, 100);
    }
    let (first, rest) = text.split_at(text.len().min(1));
    peer.send(first);
    if request.starts_with("HEAD ") {
        peer.round_without_body(rest)
    } else {
        peer.round(rest)
    }
}

/// What the answer's field says of content: its length and its first byte.
pub fn said(content: &str) -> String {
    format!("{}{}", content.len(), content.get(..1).unwrap_or_default())
}

fn read(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn http_content(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let (mut length, mut chunked) = (0, false);
    loop {
        let line = line(reader)?;
        if let Some(text) = line.strip_prefix("Content-Length: ") {
            length = text.parse().unwrap();
        }
        chunked |= line == "Transfer-Encoding: chunked";
        if line.is_empty() {
            break;
        }
    }
    if !chunked {
        return read(reader, length);
    }
    let mut content = Vec::new();
    loop {
        let length = usize::from_str_radix(&line(reader)?, 16).unwrap();
        content.extend(read(reader, length)?);
        line(reader)?;
        if length == 0 {
            return Ok(content);
        }
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// The content of the records of one request; the answer comes after the last one.
fn fastcgi_content(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    const STDIN: u8 = 5;
    let mut content = Vec::new();
    loop {
        let head = read(reader, 8)?;
        let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
        let piece = read(reader, length)?;
        read(reader, usize::from(head[6]))?;
        if head[1] == STDIN {
            content.extend_from_slice(&piece);
            if length == 0 {
                return Ok(content);
            }
        }
    }
}

/// The records of an answer.
fn records(text: &[u8]) -> Vec<u8> {
    const STDOUT: u8 = 6;
    const END_REQUEST: u8 = 3;
    let mut records = Vec::new();
    for piece in text.chunks(30_000) {
        let [high, low] = u16::try_from(piece.len()).unwrap().to_be_bytes();
        records.extend_from_slice(&[1, STDOUT, 0, 1, high, low, 0, 0]);
        records.extend_from_slice(piece);
    }
    records.extend_from_slice(&[1, END_REQUEST, 0, 1, 0, 8, 0, 0]);
    records.extend_from_slice(&[0; 8]);
    records
}

/// The content's length that the head of a uwsgi request says.
fn uwsgi_length(mut head: &[u8]) -> usize {
    let mut text = || {
        let length = usize::from(u16::from_le_bytes([*head.first()?, *head.get(1)?]));
        let text = head.get(2..2 + length)?;
        head = &head[2 + length..];
        Some(String::from_utf8_lossy(text).into_owned())
    };
    while let (Some(name), Some(value)) = (text(), text()) {
        if name == "CONTENT_LENGTH" {
            return value.parse().unwrap_or(0);
        }
    }
    0
}
