//! Tests of `proxy_protocol` to upstream servers: nginx behind us shows the client's address.

use turnpike_testkit::{Origin, Server, Step};

fn server(port: u16, directives: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        worker_processes 1;
        events {{ }}
        http {{
            access_log off;
            set_real_ip_from 127.0.0.1;
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ proxy_pass http://127.0.0.1:{port}; {directives} }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

#[test]
fn servers_get_the_clients_address() {
    let origin = Server::builder("nginx")
        .configuration(
            "events { }
            http {
                access_log off;
                server {
                    listen 127.0.0.1:%PORT% proxy_protocol;
                    location / {
                        return 200 \"$proxy_protocol_addr $connection_requests $request\";
                    }
                }
            }",
        )
        .start();
    let cases = [
        ("proxy_protocol on;", "", "127.0.0.1 1"),
        ("proxy_protocol v2;", "", "127.0.0.1 1"),
        (
            "proxy_protocol on;",
            "X-Real-IP: 192.0.2.7\r\n",
            "192.0.2.7 1",
        ),
        (
            "proxy_protocol v2;",
            "X-Real-IP: 192.0.2.7\r\n",
            "192.0.2.7 1",
        ),
        (
            "proxy_protocol on;",
            "X-Real-IP: 2001:db8::7\r\n",
            "2001:db8::7 1",
        ),
        (
            "proxy_protocol v2;",
            "X-Real-IP: 2001:db8::7\r\n",
            "2001:db8::7 1",
        ),
    ];
    for (directives, fields, expected) in cases {
        let server = server(origin.port(), directives);
        let mut peer = server.connect();
        // The second request has a connection of its own: it could be another client's.
        for _ in 0..2 {
            let reply = peer.round(format!("GET /a HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
            let expected = format!("{expected} GET /a HTTP/1.1");
            assert_eq!(reply.text(), expected, "{directives} {fields}");
        }
        let head = peer.round_without_body("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(head.status, 200, "{directives}");
    }
}

#[test]
fn the_line_follows_its_specification() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(answer),
        Step::ReadToEnd,
    ]]);
    let server = server(origin.port(), "proxy_protocol on;");
    let mut peer = server.connect();
    let own = peer.stream().local_addr().unwrap().port();
    assert_eq!(peer.round("GET / HTTP/1.1\r\nHost: x\r\n\r\n").text(), "ok");
    let came = String::from_utf8(origin.received()[0].clone()).unwrap();
    let line = format!(
        "PROXY TCP4 127.0.0.1 127.0.0.1 {own} {}\r\nGET / ",
        server.port()
    );
    assert!(came.starts_with(&line), "{came}");
}
