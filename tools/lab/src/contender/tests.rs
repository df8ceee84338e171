#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn free_ports_are_two_and_free() {
    let (first, second) = free_ports(&Topology::Loopback(None)).unwrap();
    assert_ne!(first, second);
    assert!(TcpListener::bind(("127.0.0.1", first)).is_ok());
}

#[test]
fn a_server_with_a_server_error_is_not_ready() {
    let answers = [
        ("HTTP/1.1 200 OK\r\n\r\n", true),
        ("HTTP/1.1 404 Not Found\r\n\r\n", true),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", false),
        ("", false),
    ];
    for (answer, ready) in answers {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        });
        assert_eq!(ask(address, "/").is_ok(), ready, "{answer}");
        server.join().unwrap();
    }
}
