//! Tests of both kinds of transport, with the library's own blocking session as the peer.

#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::facts::SocketFacts;
use super::{FileSent, Handshake, HandshakeError, Hello, Identify, Transport};
use crate::sys::file::fake_disk;
use crate::sys::socket::More;
use crate::sys::socket_option::tcp_info;
use crate::timeout::within;
use crate::waiting::Waited;

const CERTIFICATE: &[u8] = include_bytes!("../../../upstream/src/tls/tests/own.pem");
const KEY: &[u8] = include_bytes!("../../../upstream/src/tls/tests/own.key");

/// The bytes per read.
const PIECE: usize = 4096;

fn server() -> rustls::Connection {
    server_with_tickets(2)
}

fn server_with_tickets(count: usize) -> rustls::Connection {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_slice(KEY).unwrap())
        .unwrap();
    config.send_tls13_tickets = count;
    rustls::Connection::Server(ServerConnection::new(Arc::new(config)).unwrap())
}

fn client() -> ClientConnection {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CERTIFICATE).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("peer.test").unwrap();
    ClientConnection::new(Arc::new(config), name).unwrap()
}

fn pair() -> (Transport, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Transport::plain(OwnedFd::from(ours)), theirs)
}

/// Repeats an attempt while it would block: the peer is a thread.
fn insist<T>(mut attempt: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            other => return other,
        }
    }
}

fn shake(transport: &Transport) {
    while transport.handshake().unwrap() != Handshake::Done {
        std::thread::yield_now();
    }
}

/// A transport with a session; `peer` runs on the other side.
fn secured(peer: impl FnOnce(&mut dyn ReadWrite) + Send + 'static) -> Transport {
    let (transport, mut socket) = pair();
    transport.secure(server());
    std::thread::spawn(move || {
        let mut session = client();
        peer(&mut rustls::Stream::new(&mut session, &mut socket));
    });
    transport
}

trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

#[test]
fn plain_bytes_are_sent_unchanged() {
    let (transport, mut peer) = pair();
    assert!(transport.is_plain());
    assert_eq!(transport.handshake().unwrap(), Handshake::Done);
    assert_eq!(transport.peek().unwrap_err().kind(), ErrorKind::WouldBlock);
    peer.write_all(b"hello").unwrap();
    assert_eq!(transport.peek().unwrap(), 1);
    let mut buffer = b"> ".to_vec();
    assert_eq!(transport.try_read(&mut buffer, PIECE).unwrap(), 5);
    assert!(transport.was_emptied(5, PIECE));
    assert_eq!(buffer, b"> hello");
    let slices = [IoSlice::new(b"wor"), IoSlice::new(b"ld")];
    assert_eq!(transport.try_write(&slices, More::No).unwrap(), 5);
    drop(transport);
    let mut all = Vec::new();
    peer.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"world");
}

#[test]
fn facts_are_those_of_the_socket() {
    use std::net::{TcpListener, TcpStream};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let transport = Transport::plain(listener.accept().unwrap().0.into());
    let facts = transport.facts();
    assert_eq!(
        facts.local_address().unwrap().inet(),
        Some(peer.peer_addr().unwrap())
    );
    assert!(facts.tcp_info().is_ok());
    let kind = |error: std::io::Error| error.kind();
    let no_socket = SocketFacts::NONE;
    assert_eq!(
        no_socket.tcp_info().err().map(kind),
        Some(ErrorKind::NotConnected)
    );
    assert_eq!(
        no_socket.local_address().err().map(kind),
        Some(ErrorKind::NotConnected)
    );
}

#[test]
fn a_session_carries_both_ways_and_is_ended_when_dropped() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let transport = secured(move |stream| {
        stream.write_all(b"question").unwrap();
        let mut all = Vec::new();
        // Without the peer's end of session this would be an error.
        stream.read_to_end(&mut all).unwrap();
        sender.send(all).unwrap();
    });
    shake(&transport);
    assert_eq!(insist(|| transport.peek()).unwrap(), 8);
    let mut buffer = Vec::new();
    assert_eq!(transport.try_read(&mut buffer, 5).unwrap(), 5);
    assert!(!transport.was_emptied(5, PIECE));
    assert_eq!(transport.try_read(&mut buffer, PIECE).unwrap(), 3);
    assert_eq!(buffer, b"question");
    let slices = [IoSlice::new(b"ans"), IoSlice::new(b"wer")];
    assert_eq!(transport.try_write(&slices, More::No).unwrap(), 6);
    drop(transport);
    assert_eq!(receiver.recv().unwrap(), b"answer");
}

#[test]
fn a_read_from_the_session_does_not_mark_the_socket_as_empty() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let transport = secured(move |stream| {
        stream.write_all(b"question").unwrap();
        receiver.recv().unwrap();
        stream.write_all(b" again").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    });
    shake(&transport);
    let mut buffer = Vec::new();
    assert_eq!(insist(|| transport.try_read(&mut buffer, 5)).unwrap(), 5);
    sender.send(()).unwrap();
    while crate::sys::socket::peek(transport.as_fd(), &mut [0]).is_err() {
        std::thread::yield_now();
    }
    // The event of the second record came before this read, and comes only once.
    assert_eq!(transport.try_read(&mut buffer, PIECE).unwrap(), 3);
    assert!(!transport.was_emptied(3, PIECE));
    assert_eq!(transport.try_read(&mut buffer, PIECE).unwrap(), 6);
    assert!(transport.was_emptied(6, PIECE));
    assert_eq!(buffer, b"question again");
}

#[test]
fn a_file_is_sent_over_both() {
    let content: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    let path = std::env::temp_dir().join(format!("lane-transport-{}", std::process::id()));
    std::fs::write(&path, &content).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let plain_sender = sender.clone();
    let (plain, mut socket) = pair();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        socket.read_to_end(&mut all).unwrap();
        plain_sender.send(all).unwrap();
    });
    let secure = secured(move |stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        sender.send(all).unwrap();
    });
    shake(&secure);
    for transport in [plain, secure] {
        let mut buffer = Vec::new();
        let mut sent = 0;
        loop {
            let piece =
                insist(|| transport.try_send_file(file.as_fd(), sent, 2_000_000, &mut buffer));
            match piece.unwrap() {
                FileSent::Bytes(0) => break,
                FileSent::Bytes(piece) => sent += piece as u64,
                FileSent::MustBeRead => panic!("the file was written just now"),
            }
        }
        transport.end_session();
        insist(|| transport.flush()).unwrap();
        assert!(!transport.has_unsent());
        drop(transport);
        assert!(receiver.recv().unwrap() == content, "the file is whole");
    }
}

/// A socket whose input is kept.
struct Tapped<'a> {
    socket: UnixStream,
    input: &'a mut Vec<u8>,
}

impl Read for Tapped<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.socket.read(buffer)?;
        self.input.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

impl Write for Tapped<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The bytes of each record, without its head.
fn record_sizes(mut bytes: &[u8]) -> Vec<usize> {
    let mut sizes = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let size = usize::from(u16::from_be_bytes([*high, *low]));
        sizes.push(size);
        bytes = &rest[size..];
    }
    sizes
}

#[test]
fn a_server_sends_small_records_first() {
    let (transport, socket) = pair();
    transport.secure(server());
    let peer = std::thread::spawn(move || {
        let mut session = client();
        let mut input = Vec::new();
        let mut stream = Tapped {
            socket,
            input: &mut input,
        };
        session.complete_io(&mut stream).unwrap();
        let mut all = Vec::new();
        rustls::Stream::new(&mut session, &mut stream)
            .read_to_end(&mut all)
            .unwrap();
        (all, record_sizes(&input))
    });
    shake(&transport);
    let content: Vec<u8> = (0..60_000_u32).map(|at| (at % 251) as u8).collect();
    let mut sent = 0;
    while sent < content.len() {
        let (first, second) = content[sent..].split_at(1000.min(content.len() - sent));
        let slices = [IoSlice::new(first), IoSlice::new(second)];
        sent += insist(|| transport.try_write(&slices, More::No)).unwrap();
    }
    transport.end_session();
    insist(|| transport.flush()).unwrap();
    drop(transport);
    let (all, sizes) = peer.join().unwrap();
    assert!(all == content);
    // In TLS 1.3 each record has 17 bytes more: its kind and its tag. The last one is the end.
    let mut expected = vec![1370 + 17; 10];
    expected.extend([
        16_384 + 17,
        16_384 + 17,
        60_000 - 13_700 - 2 * 16_384 + 17,
        2 + 17,
    ]);
    assert_eq!(sizes[sizes.len() - expected.len()..], expected);
}

#[test]
fn only_a_session_asks_for_a_file_that_is_not_in_memory() {
    let path = std::env::temp_dir().join(format!("lane-cold-{}", std::process::id()));
    std::fs::write(&path, "content").unwrap();
    let file = std::fs::File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (plain, _peer) = pair();
    let secure = secured(|stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    shake(&secure);
    let cases = [
        (&plain, FileSent::Bytes(7), 0),
        (&secure, FileSent::MustBeRead, 1),
    ];
    for (transport, expected, reads) in cases {
        fake_disk::refuse(Some(libc::EAGAIN));
        let sent = transport.try_send_file(file.as_fd(), 0, 100, &mut Vec::new());
        assert_eq!(fake_disk::refuse(None), reads);
        assert_eq!(sent.unwrap(), expected);
    }
}

#[test]
fn bytes_that_the_socket_refuses_are_kept() {
    let (sender, wait) = std::sync::mpsc::channel::<()>();
    let (receiver, all) = std::sync::mpsc::channel();
    let transport = secured(move |stream| {
        stream.flush().unwrap();
        wait.recv().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        receiver.send(all.len()).unwrap();
    });
    shake(&transport);
    let piece = vec![7; 64 * 1024];
    let mut taken = 0;
    let blocked = loop {
        match transport.try_write(&[IoSlice::new(&piece)], More::No) {
            Ok(count) => taken += count,
            Err(error) => break error,
        }
    };
    assert_eq!(blocked.kind(), ErrorKind::WouldBlock);
    assert!(transport.has_unsent());
    assert_eq!(transport.flush().unwrap_err().kind(), ErrorKind::WouldBlock);
    sender.send(()).unwrap();
    transport.end_session();
    insist(|| transport.flush()).unwrap();
    drop(transport);
    assert_eq!(all.recv().unwrap(), taken);
}

#[test]
fn an_end_without_the_sessions_end_is_an_error() {
    let (shaken, wait) = std::sync::mpsc::channel::<()>();
    let (transport, mut socket) = pair();
    transport.secure(server());
    std::thread::spawn(move || {
        let mut session = client();
        let mut stream = rustls::Stream::new(&mut session, &mut socket);
        stream.write_all(b"cut").unwrap();
        wait.recv().unwrap();
        // Closing a unix socket with unread input resets its peer.
        let _tickets = socket.read(&mut [0; 16 * 1024]).unwrap();
    });
    shake(&transport);
    shaken.send(()).unwrap();
    let mut buffer = Vec::new();
    insist(|| transport.try_read(&mut buffer, PIECE)).unwrap();
    let ended = insist(|| transport.try_read(&mut buffer, PIECE));
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

/// A record of application data that no key has encrypted.
const DAMAGED: &[u8] = b"\x17\x03\x03\0\x20it was not encrypted by anybody..";

#[test]
fn a_session_that_has_failed_has_no_end() {
    for is_theirs in [false, true] {
        let (transport, mut socket) = pair();
        transport.secure(server_with_tickets(0));
        let shaken = std::thread::spawn(move || {
            let mut session = client();
            session.complete_io(&mut socket).unwrap();
            (session, socket)
        });
        shake(&transport);
        let (mut session, mut socket) = shaken.join().unwrap();
        if is_theirs {
            // The client finds the error, and says so.
            session.read_tls(&mut &*DAMAGED).unwrap();
            assert!(session.process_new_packets().is_err());
            session.write_tls(&mut socket).unwrap();
        } else {
            socket.write_all(DAMAGED).unwrap();
        }
        let read = insist(|| transport.try_read(&mut Vec::new(), PIECE));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::InvalidData);
        drop(transport);
        let mut records = Vec::new();
        socket.read_to_end(&mut records).unwrap();
        // An alert that answers the error, and never the end of a session that went well.
        let alerts = record_sizes(&records).len();
        assert_eq!(alerts, usize::from(!is_theirs));
    }
}

#[test]
fn the_end_of_a_handshake_is_acknowledged_though_nothing_is_sent_for_it() {
    use std::net::{TcpListener, TcpStream};
    for tickets in [0, 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        socket.set_nonblocking(true).unwrap();
        let transport = Transport::plain(socket.into());
        transport.secure(server_with_tickets(tickets));
        let watched = peer.try_clone().unwrap();
        let shaken = std::thread::spawn(move || client().complete_io(&mut peer).map(|_| peer));
        shake(&transport);
        let info = tcp_info(watched.as_fd()).unwrap();
        assert_eq!(info.unacknowledged, 0, "{tickets} tickets");
        shaken.join().unwrap().unwrap();
    }
}

#[test]
fn a_handshake_fails_for_other_bytes() {
    type Cases<'a> = [(&'a [u8], fn(&HandshakeError) -> bool); 3];
    let cases: Cases<'_> = [
        (b"GET / HTTP/1.0\r\n\r\n", |error| {
            matches!(error, HandshakeError::Tls(_))
        }),
        (&[22, 3, 1, 0, 4, 1, 0, 0, 0], |error| {
            matches!(error, HandshakeError::Tls(_))
        }),
        (b"", |error| {
            matches!(error, HandshakeError::Socket(error)
                if error.kind() == ErrorKind::UnexpectedEof)
        }),
    ];
    for (bytes, is_expected) in cases {
        let (transport, mut peer) = pair();
        transport.secure(server());
        assert_eq!(transport.handshake().unwrap(), Handshake::WantsRead);
        peer.write_all(bytes).unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        let error = transport.handshake().unwrap_err();
        assert!(is_expected(&error), "{bytes:?}: {error:?}");
    }
}

#[test]
fn a_hello_is_identified_only_where_somebody_asks() {
    let mut hello = Vec::new();
    client().write_tls(&mut hello).unwrap();
    let identified = |identify: Identify, piece_bytes: usize| {
        let mut read = Hello::new(identify);
        let mut pieces = hello.chunks(piece_bytes);
        let greeting = pieces.find_map(|piece| read.feed(piece).ok().unwrap());
        greeting.unwrap().offers().cloned()
    };
    let offers = identified(Identify::Yes, PIECE);
    assert!(offers.is_some());
    assert_eq!(identified(Identify::Yes, 100), offers);
    for piece_bytes in [PIECE, 100] {
        assert_eq!(identified(Identify::No, piece_bytes), None);
    }
}

/// Reads to the end or that many bytes on a runtime, once the handshake is complete.
fn read_up_to(bytes_max: usize, transport: Transport) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let waited = Waited::new(transport);
        let reading = async {
            waited.handshake().await.unwrap();
            let mut all = Vec::new();
            while all.len() < bytes_max && waited.read(&mut all, PIECE).await? > 0 {}
            Ok(all)
        };
        within(DEADLINE_MS, reading).await.unwrap()
    })
}

/// Reached only by a failing test.
const DEADLINE_MS: u64 = 60_000;

#[test]
fn what_a_session_holds_is_read_without_an_event_and_so_is_its_end() {
    let (transport, mut socket) = pair();
    transport.secure(server());
    let (sender, receiver) = std::sync::mpsc::channel();
    let peer = std::thread::spawn(move || {
        let mut session = client();
        rustls::Stream::new(&mut session, &mut socket)
            .write_all(b"hello")
            .unwrap();
        session.send_close_notify();
        while session.wants_write() {
            session.write_tls(&mut socket).unwrap();
        }
        sender.send(()).unwrap();
        socket // stays open: its end would raise an event
    });
    shake(&transport);
    receiver.recv().unwrap();
    assert_eq!(insist(|| transport.peek()).unwrap(), 5);
    let error = crate::sys::socket::peek(transport.as_fd(), &mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(read_up_to(PIECE, transport), b"hello");
    drop(peer.join().unwrap());
}

#[test]
fn what_a_handshake_leaves_in_the_socket_is_read_without_another_event() {
    let (transport, mut socket) = pair();
    transport.secure(server());
    let text = [b'a'; 30_000];
    let peer = std::thread::spawn(move || {
        let mut session = client();
        // Leaves together with the end of the handshake.
        session.writer().write_all(&text).unwrap();
        while session.is_handshaking() || session.wants_write() {
            session.complete_io(&mut socket).unwrap();
        }
        socket // stays open: its end would raise an event
    });
    assert_eq!(read_up_to(text.len(), transport), text);
    drop(peer.join().unwrap());
}
