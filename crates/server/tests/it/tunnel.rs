//! Tests of `tunnel_pass`: `CONNECT` to servers of the configuration and to those that clients
//! name.

use turnpike_testkit::{Origin, Server, Step};

const CONFIGURATION: &str = "
error_log %FOLDER%/error.log info;
events { }
http {
    log_format tunnels '$request_method $host:$request_port $status $upstream_status';
    access_log %FOLDER%/tunnels.log tunnels;
    upstream group { server 127.0.0.1:1; server 127.0.0.1:%ORIGIN%; }
    server {
        listen 127.0.0.1:%PORT%;
        tunnel_pass;
    }
    server {
        listen 127.0.0.1:%PORT_group%;
        tunnel_pass group;
    }
    server {
        listen 127.0.0.1:%PORT_auth%;
        auth_basic proxy;
        auth_basic_user_file %FOLDER%/users;
        tunnel_pass;
    }
    server {
        listen 127.0.0.1:%PORT_any%;
        satisfy any;
        auth_basic proxy;
        auth_basic_user_file %FOLDER%/users;
        auth_request /granted;
        location / { tunnel_pass; }
        location /granted { internal; auth_basic off; return 204; }
    }
    server {
        listen 127.0.0.1:%PORT_plain%;
        location / { root %FOLDER%; }
        location /inside { internal; tunnel_pass; }
    }
}";

fn origin() -> Origin {
    Origin::start(vec![vec![
        Step::ReadBytes(4),
        Step::send("pong"),
        Step::ReadToEnd,
        Step::send("end"),
    ]])
}

fn server(origin: &Origin) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&CONFIGURATION.replace("%ORIGIN%", &origin.port().to_string()))
        .file("users", "a:{PLAIN}b\n")
        .start()
}

fn connect(to: u16, fields: &str) -> String {
    format!("CONNECT 127.0.0.1:{to} HTTP/1.1\r\nHost: 127.0.0.1:{to}\r\n{fields}\r\n")
}

/// Which server is asked, with which fields, and whether bytes come with the head.
const TUNNELS: &[(&str, &str, bool)] = &[
    ("%PORT%", "", false),
    ("%PORT%", "Content-Length: 0\r\n", true),
    ("%PORT%", "If-None-Match: *\r\nIf-Match: \"x\"\r\n", false),
    ("group", "", false),
    ("auth", "Proxy-Authorization: Basic YTpi\r\n", true),
    ("any", "", false),
];

#[test]
fn a_tunnel_carries_bytes_both_ways_and_each_end() {
    for (port, fields, early) in TUNNELS {
        let origin = origin();
        let server = server(&origin);
        let port = match *port {
            "%PORT%" => server.port(),
            name => server.port_named(name),
        };
        let mut peer = turnpike_testkit::Peer::connect(port);
        let mut head = connect(origin.port(), fields);
        if *early {
            head.push_str("ping");
        }
        let response = peer.round_without_body(&head);
        assert_eq!(response.status, 200, "{}", response.head);
        for name in [
            "Connection",
            "Content-Length",
            "Transfer-Encoding",
            "Proxy-Authenticate",
        ] {
            assert_eq!(response.header(name), None, "{}", response.head);
        }
        if !early {
            peer.send("ping");
        }
        peer.finish();
        assert_eq!(peer.rest(), b"pongend");
        let line = format!("CONNECT 127.0.0.1:{} 200 ", origin.port());
        server.wait_for_log("tunnels.log", &line);
    }
}

/// The name and value of a field of a response, where one is to be there.
type Field = Option<(&'static str, &'static str)>;

/// The port that is asked, the request's first line and fields, and the answer's status and field.
const REFUSED: &[(&str, &str, u16, Field)] = &[
    (
        "",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        405,
        Some(("Allow", "CONNECT")),
    ),
    ("", "CONNECT a:80 HTTP/1.0\r\nHost: a\r\n", 405, None),
    ("", "CONNECT a: HTTP/1.1\r\nHost: a\r\n", 400, None),
    (
        "",
        "CONNECT a:80 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n",
        400,
        None,
    ),
    (
        "",
        "CONNECT a.invalid:80 HTTP/1.1\r\nHost: a\r\n",
        502,
        None,
    ),
    (
        "auth",
        "CONNECT a:80 HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YTpi\r\n",
        407,
        Some(("Proxy-Authenticate", "Basic realm=\"proxy\"")),
    ),
    ("plain", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n", 405, None),
];

#[test]
fn requests_that_ask_for_no_tunnel_here_are_refused() {
    let origin = origin();
    let server = server(&origin);
    for (port, head, status, field) in REFUSED {
        let port = match *port {
            "" => server.port(),
            name => server.port_named(name),
        };
        let mut peer = turnpike_testkit::Peer::connect(port);
        let response = peer.round(format!("{head}\r\n"));
        assert_eq!(response.status, *status, "{head}");
        if let Some((name, value)) = field {
            assert_eq!(response.header(name), Some(*value), "{head}");
        }
    }
    assert!(origin.received().is_empty());
}
