//! A proxy in front of one scripted origin, for tests of passed messages.

use turnpike_testkit::{Origin, Server, Step};

/// A proxy with a cache zone before one origin.
pub fn server(origin: &Origin, directives: &str) -> Server {
    server_under("rfc", origin, directives)
}

/// The same with this `http_strictness`.
pub fn server_under(strictness: &str, origin: &Origin, directives: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            http_strictness {strictness};
            proxy_cache_path %FOLDER%/cache keys_zone=z:1m;
            server {{
                listen 127.0.0.1:%PORT%;
                proxy_http_version 1.1;
                location / {{ proxy_pass http://127.0.0.1:{}; {directives} }}
            }}
        }}",
        origin.port()
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// An origin that answers each request with these fields and two bytes.
pub fn origin(fields: &str) -> Origin {
    let answer = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok");
    Origin::start(vec![vec![Step::ReadHead, Step::send(answer)]])
}

/// The last request that the origin received.
pub fn last_request(origin: &Origin) -> String {
    let received = origin.received();
    String::from_utf8_lossy(received.last().unwrap()).into_owned()
}
