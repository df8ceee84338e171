//! Tables of addresses and of requests, which need no socket.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;

use turnpike_plan::product::Product;

use super::request::Reader;
use super::{ApiAddress, ApiCall, Status};

#[test]
fn only_what_this_machine_alone_reaches_is_an_address() {
    let accepted = [
        ("unix:/run/api.sock", "unix:/run/api.sock"),
        ("8000", "127.0.0.1:8000"),
        ("127.0.0.1:8000", "127.0.0.1:8000"),
        ("127.1.2.3:1", "127.1.2.3:1"),
        ("localhost:65535", "127.0.0.1:65535"),
        ("[::1]:8000", "[::1]:8000"),
    ];
    for (value, address) in accepted {
        let parsed = ApiAddress::parse(OsStr::new(value)).unwrap();
        assert_eq!(parsed.to_string(), address, "{value}");
    }
    let relative = ApiAddress::parse(OsStr::new("unix:api.sock")).unwrap();
    let folder = std::env::current_dir().unwrap();
    assert_eq!(relative, ApiAddress::Unix(folder.join("api.sock")));
    let refused = [
        ("unix:", "no path in the unix domain socket in \"unix:\""),
        ("0", "invalid port in \"0\""),
        ("", "invalid port in \"\""),
        ("65536", "invalid port in \"65536\""),
        ("127.0.0.1", "invalid port in \"127.0.0.1\""),
        ("localhost", "invalid port in \"localhost\""),
        ("[::1]", "invalid port in \"[::1]\""),
        ("127.0.0.1:", "invalid port in \"127.0.0.1:\""),
        ("*:8000", "\"*:8000\" is not a loopback address"),
        ("0.0.0.0:8000", "\"0.0.0.0:8000\" is not a loopback address"),
        ("[::]:8000", "\"[::]:8000\" is not a loopback address"),
        (
            "10.0.0.1:8000",
            "\"10.0.0.1:8000\" is not a loopback address",
        ),
        (
            "example.com:80",
            "\"example.com:80\" is not a loopback address",
        ),
    ];
    for (value, sentence) in refused {
        let error = ApiAddress::parse(OsStr::new(value)).unwrap_err();
        assert!(
            error.starts_with(&format!("control: {sentence}")),
            "{error}"
        );
    }
}

/// A request line and its host, and what comes of it at a unix socket and at a port.
type Case = (
    &'static str,
    &'static str,
    Result<ApiCall, Status>,
    Result<ApiCall, Status>,
);

const CASES: &[Case] = &[
    (
        "GET /1/nginx HTTP/1.1",
        "x",
        Ok(ApiCall::Version),
        Err(Status::Misdirected),
    ),
    (
        "GET /1/nginx/ HTTP/1.0",
        "localhost",
        Ok(ApiCall::Version),
        Ok(ApiCall::Version),
    ),
    (
        "GET http://127.0.0.1:80/1/control/processes?x HTTP/1.1",
        "127.0.0.1:80",
        Ok(ApiCall::Processes),
        Ok(ApiCall::Processes),
    ),
    (
        "GET / HTTP/1.1",
        "[::1]:1",
        Ok(ApiCall::Names(&["1"])),
        Ok(ApiCall::Names(&["1"])),
    ),
    (
        "PATCH /1/control/config HTTP/1.1",
        "localhost",
        Ok(ApiCall::Reload),
        Err(Status::NotAllowed("GET")),
    ),
    (
        "POST /1/control/config HTTP/1.1",
        "localhost",
        Err(Status::NotAllowed("GET, PATCH")),
        Err(Status::NotAllowed("GET")),
    ),
    (
        "HEAD /1 HTTP/1.1",
        "localhost",
        Err(Status::NotAllowed("GET")),
        Err(Status::NotAllowed("GET")),
    ),
    (
        "GET /2 HTTP/1.1",
        "localhost",
        Err(Status::NotFound),
        Err(Status::NotFound),
    ),
    (
        "GET /1//control HTTP/1.1",
        "localhost",
        Err(Status::NotFound),
        Err(Status::NotFound),
    ),
    (
        "GET /1 HTTP/2.0",
        "localhost",
        Err(Status::BadRequest),
        Err(Status::BadRequest),
    ),
];

#[test]
fn a_request_is_understood_however_it_comes_in_parts() {
    for (line, host, at_file, at_port) in CASES {
        let text = format!("{line}\r\nHost: {host}\r\nX: y\r\n\r\n");
        for (is_port, expected) in [(false, at_file), (true, at_port)] {
            for step in [1, 7, text.len()] {
                let mut reader = Reader::default();
                let mut ends: Vec<usize> = (0..text.len()).step_by(step).skip(1).collect();
                ends.push(text.len());
                let mut seen = ends.iter();
                let wish = seen.find_map(|end| reader.read(&text.as_bytes()[..*end], is_port));
                assert_eq!(wish, Some(*expected), "{line} {is_port} {step}");
            }
        }
    }
    let endless = format!("GET /1?{} HTTP/1.1\r\n", "x".repeat(9000));
    let wish = Reader::default().read(endless.as_bytes(), false);
    assert_eq!(wish, Some(Err(Status::BadRequest)));
}

#[test]
fn answers_are_nginxs() {
    let bytes = Status::NotAllowed("GET").response(None, Product::Turnpike);
    let text = String::from_utf8(bytes).unwrap();
    let server = Product::Turnpike.name_and_version();
    assert_eq!(
        text,
        format!(
            "HTTP/1.1 405 Not Allowed\r\nServer: {server}\r\nConnection: close\r\nAllow: GET\r\n\
             Content-Type: application/json\r\nContent-Length: 0\r\n\r\n"
        )
    );
}
