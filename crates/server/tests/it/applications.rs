//! Tests of `scgi_pass`, `uwsgi_pass` and `memcached_pass`: requests to scripted servers, responses
//! from their answers, and real servers (uWSGI, memcached).

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use crate::support::applications::Application;
use turnpike_testkit::process::{self, find_program};
use turnpike_testkit::{Folder, Origin, Server, Signal, Step, wait_for};

/// A server that passes requests to `origin` by this family's directives.
fn server(origin: &Origin, family: &str, directives: &str) -> Server {
    let port = origin.port();
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            server_tokens off;
            large_client_header_buffers 4 32k;
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ {family}_pass 127.0.0.1:{port}; {directives} }}
                location /other {{ return 200 other; }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// The bytes that the client receives until the connection is closed.
fn received(server: &Server, method: &str) -> String {
    let request = format!("{method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    String::from_utf8_lossy(&server.exchange(request)).into_owned()
}

const POST: &str = "POST /a HTTP/1.1\r\nHost: localhost\r\nX-Set: theirs\r\nX-F: 1\r\nX-F: 2\r\n\
                    Content-Length: 5\r\nConnection: close\r\n\r\n12345";

/// An application's answer, the beginning and a part of the client's, and a part of the error log.
const CGI: &[(&str, &str, &str, &str)] = &[
    (
        "HTTP/1.1 404 Gone\r\nStatus: 200\r\nContent-Length: 4\r\n\r\nbody",
        "HTTP/1.1 404 Gone\r\n",
        "\r\n\r\nbody",
        "",
    ),
    (
        "Status: 201 Made\r\n\r\nbody",
        "HTTP/1.1 201 Made\r\n",
        "body\r\n0\r\n\r\n",
        "",
    ),
    ("Location: /b\n\n", "HTTP/1.1 302 ", "Location: /b\r\n", ""),
    (
        "X-Accel-Redirect: /other\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
        "other",
        "",
    ),
    (
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 502 ",
        "",
        "upstream sent invalid status",
    ),
    (
        "HTTP/1.1 101 Up\r\nUpgrade: a\r\n\r\n",
        "HTTP/1.1 502 ",
        "",
        "upstream sent unexpected status 101",
    ),
    (
        "H\0: x\r\n\r\n",
        "HTTP/1.1 502 ",
        "",
        "upstream sent invalid header",
    ),
    (
        "Status: 200",
        "HTTP/1.1 502 ",
        "",
        "upstream prematurely closed connection",
    ),
    (
        "Content-Length: 9\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\n",
        "\r\n\r\nbody",
        "upstream prematurely closed connection",
    ),
    (
        "Content-Length: 4\r\n\r\nbodysurplus",
        "HTTP/1.1 200 OK\r\n",
        "\r\n\r\nbody",
        "upstream sent more data than specified in \"Content-Length\" header",
    ),
];

#[test]
fn answers_of_applications_become_responses() {
    for (family, request_bytes) in [("scgi", 27), ("uwsgi", 12)] {
        let script = |(answer, ..): &(&str, &str, &str, &str)| {
            vec![Step::ReadBytes(request_bytes), Step::send(answer)]
        };
        let origin = Origin::start(CGI.iter().map(script).collect());
        let directives = format!(
            "{family}_pass_request_headers off; {family}_param A bcd; {family}_param HTTP_HOST ''; "
        );
        let server = server(&origin, family, &directives);
        for (answer, begins, holds, logged) in CGI {
            let response = received(&server, "GET");
            let shown = format!("{family} {answer:?}: {response}");
            assert!(response.starts_with(begins), "{shown}");
            assert!(response.contains(holds), "{shown}");
            assert!(!response.contains("surplus") && !response.contains("\r\nStatus:"));
            server.wait_for_log("error.log", logged);
        }
        let scheme = format!("upstream: \"{family}://127.0.0.1:");
        server.wait_for_log("error.log", &scheme);
    }
}

#[test]
fn a_request_of_scgi_is_a_netstring_and_a_body() {
    let params: &[u8] =
        b"CONTENT_LENGTH\x005\0A\0POST\0NONE\0\0HTTP_X_SET\0own\0HTTP_HOST\0localhost\0\
        HTTP_X_F\x001, 2\0HTTP_CONTENT_LENGTH\x005\0HTTP_CONNECTION\0close\0";
    let expected = [format!("{}:", params.len()).as_bytes(), params, b",12345"].concat();
    let script = vec![Step::ReadBytes(expected.len()), Step::send("\r\n")];
    let origin = Origin::start(vec![script]);
    let directives = "scgi_param A $request_method; scgi_param EMPTY $arg_none if_not_empty;
        scgi_param NONE $arg_none; scgi_param HTTP_X_SET own; scgi_param CONTENT_LENGTH 99;";
    let server = server(&origin, "scgi", directives);
    server.exchange(POST);
    let request = origin.received().remove(0);
    assert_eq!(request, expected, "{}", String::from_utf8_lossy(&request));
}

#[test]
fn a_zero_byte_begins_no_parameter_of_scgi() {
    let params: &[u8] = b"CONTENT_LENGTH\x003\0A\0b\0";
    let expected = [format!("{}:", params.len()).as_bytes(), params, b",x\0y"].concat();
    let script = vec![Step::ReadBytes(expected.len()), Step::send("\r\n")];
    let origin = Origin::start(vec![script]);
    let directives = "scgi_pass_request_headers off; scgi_param B $request_body;
        scgi_param A b; scgi_param HTTP_HOST ''; client_body_in_single_buffer on;";
    let server = server(&origin, "scgi", directives);
    let post =
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3\r\n\r\n";
    server.exchange([post, "x\0y"].concat());
    assert_eq!(origin.received().remove(0), expected);
    server.wait_for_log("error.log", "scgi param \"B\" holds a zero byte");
}

/// Directives of a location whose name ends with a slash, and the answer to a request without it.
const SLASHES: &[(&str, &str)] = &[
    ("scgi_pass 127.0.0.1:%ORIGIN%;", "HTTP/1.1 301 "),
    ("scgi_pass 127.0.0.1:$arg_port;", "HTTP/1.1 200 "),
    ("uwsgi_pass 127.0.0.1:%ORIGIN%;", "HTTP/1.1 301 "),
    ("uwsgi_pass suwsgi://127.0.0.1:$arg_port;", "HTTP/1.1 200 "),
    ("fastcgi_pass 127.0.0.1:$arg_port;", "HTTP/1.1 301 "),
    ("proxy_pass http://127.0.0.1:$arg_port;", "HTTP/1.1 301 "),
    ("grpc_pass 127.0.0.1:$arg_port;", "HTTP/1.1 301 "),
    (
        "set $memcached_key a; memcached_pass 127.0.0.1:%ORIGIN%;",
        "HTTP/1.1 301 ",
    ),
    ("tunnel_pass;", "HTTP/1.1 200 "),
];

/// The coding of a client's body is taken off, and the applications get none of it.
#[test]
fn applications_are_told_of_no_transfer_coding() {
    for (protocol, unbuffered) in [
        ("fastcgi", false),
        ("fastcgi", true),
        ("scgi", false),
        ("uwsgi", false),
    ] {
        let told = |parameter| {
            let application = Application::start(protocol, parameter);
            let buffering = if unbuffered { "off" } else { "on" };
            let directives = format!(
                "{protocol}_pass 127.0.0.1:{}; {protocol}_request_buffering {buffering};
                {protocol}_param CONTENT_LENGTH $content_length;",
                application.port()
            );
            let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
                .configuration(&format!(
                    "events {{ }}
                    http {{ server {{
                        listen 127.0.0.1:%PORT%;
                        location / {{ {directives} }}
                    }} }}"
                ))
                .start();
            let request = "POST / HTTP/1.1\r\nHost: a\r\nX-Own: b\r\nConnection: close\r\n\
                           Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
            let answer = String::from_utf8(server.exchange(request)).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "{protocol}: {answer}");
            answer.split_once("\r\n\r\n").unwrap().1.to_owned()
        };
        assert_eq!(told("HTTP_TRANSFER_ENCODING"), "", "{protocol}");
        assert_eq!(told("HTTP_X_OWN"), "b", "{protocol}");
    }
}

#[test]
fn a_slash_is_added_for_addresses_without_variables() {
    let numbered = SLASHES.iter().enumerate();
    let locations: String = numbered
        .map(|(number, (directive, _))| format!("location /{number}/ {{ {directive} }}\n"))
        .collect();
    let locations = locations.replace("%ORIGIN%", "1");
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "events {{ }}
            http {{ server {{
                listen 127.0.0.1:%PORT%;
                {locations}
                location / {{ return 200 rest; }}
            }} }}"
        ))
        .start();
    for (number, (directive, begins)) in SLASHES.iter().enumerate() {
        let request = format!("GET /{number} HTTP/1.0\r\n\r\n");
        let answer = String::from_utf8(server.exchange(request)).unwrap();
        assert!(answer.starts_with(begins), "{directive}: {answer}");
    }
}

#[test]
fn memcached_is_asked_by_get_and_head_only() {
    let origin = Origin::start(vec![vec![
        Step::ReadBytes("get a\r\n".len()),
        Step::send("VALUE a 0 4\r\nbody\r\nEND\r\n"),
    ]]);
    let directives = "set $memcached_key a; error_page 402 = /; if ($arg_x) { return 402; }";
    let server = server(&origin, "memcached", directives);
    for (method, begins) in [
        ("GET", "HTTP/1.1 200 "),
        ("HEAD", "HTTP/1.1 200 "),
        ("POST", "HTTP/1.1 405 "),
        ("PUT", "HTTP/1.1 405 "),
        ("DELETE", "HTTP/1.1 405 "),
        ("OPTIONS", "HTTP/1.1 405 "),
        ("UNKNOWN", "HTTP/1.1 501 "),
    ] {
        let answer = received(&server, method);
        assert!(answer.starts_with(begins), "{method}: {answer}");
        let says_what = answer.contains("\r\nAllow: GET, HEAD\r\n");
        assert_eq!(says_what, begins.contains("405"), "{method}: {answer}");
    }
    // The page of an error is asked for by GET.
    let request = "POST /?x=1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = String::from_utf8(server.exchange(request)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(origin.received().len(), 3);
}

/// Names and values, each after its length.
fn packet(modifiers: [u8; 2], params: &[(&str, &str)], behind: &str) -> Vec<u8> {
    let mut content = Vec::new();
    for text in params.iter().flat_map(|(name, value)| [name, value]) {
        content.extend_from_slice(&(text.len() as u16).to_le_bytes());
        content.extend_from_slice(text.as_bytes());
    }
    content.extend_from_slice(behind.as_bytes());
    let [low, high] = (content.len() as u16).to_le_bytes();
    let head = [modifiers[0], low, high, modifiers[1]];
    [&head[..], &content].concat()
}

#[test]
fn a_request_of_uwsgi_is_a_packet_and_a_body() {
    let params = [
        ("A", "POST"),
        ("HTTP_X_SET", "own"),
        ("HTTP_HOST", "localhost"),
        ("HTTP_X_F", "1, 2"),
        ("HTTP_CONTENT_LENGTH", "5"),
        ("HTTP_CONNECTION", "close"),
    ];
    let expected = [packet([5, 7], &params, "tail"), b"12345".to_vec()].concat();
    let script = vec![Step::ReadBytes(expected.len()), Step::send("\r\n")];
    let origin = Origin::start(vec![script, vec![Step::ReadToEnd]]);
    let directives = "uwsgi_param A $request_method; uwsgi_param HTTP_X_SET own;
        uwsgi_modifier1 5; uwsgi_modifier2 7; uwsgi_string tail;
        location /big {
            uwsgi_pass 127.0.0.1:%ORIGIN%;
            uwsgi_param A $arg_a$arg_a$arg_a$arg_a$arg_a$arg_a$arg_a$arg_a;
            uwsgi_param B $arg_a;
        }";
    let directives = directives.replace("%ORIGIN%", &origin.port().to_string());
    let server = server(&origin, "uwsgi", &directives);
    server.exchange(POST);
    let request = origin.received().remove(0);
    assert_eq!(request, expected, "{}", String::from_utf8_lossy(&request));
    let target = format!("/big?a={}", "b".repeat(9000));
    assert_eq!(server.get(&target).status, 500);
    server.wait_for_log("error.log", "[alert] ");
    server.wait_for_log("error.log", "uwsgi request is too big: ");
}

/// memcached's answer, the beginning and a part of the client's, and a part of the error log.
const VALUES: &[(&str, &str, &str, &str)] = &[
    (
        "VALUE /%20a 2 4\r\nbody\r\nEND\r\n",
        "HTTP/1.1 200 OK\r\n",
        "Content-Encoding: gzip\r\n",
        "",
    ),
    (
        "VALUE /%20a 0 4\r\nbody\r\nEND\r\n",
        "HTTP/1.1 200 OK\r\n",
        "\r\n\r\nbody",
        "",
    ),
    (
        "VALUE /%20a 0 0\r\n\r\nEND\r\n",
        "HTTP/1.1 200 OK\r\n",
        "Content-Length: 0\r\n",
        "",
    ),
    (
        "END\r\n",
        "HTTP/1.1 404 ",
        "404 Not Found",
        "key: \"/%20a\" was not found by memcached",
    ),
    (
        "ERROR\r\n",
        "HTTP/1.1 502 ",
        "",
        "memcached sent invalid response: \"ERROR\"",
    ),
    (
        "VALUE /b 0 4\r\nbody\r\nEND\r\n",
        "HTTP/1.1 502 ",
        "",
        "memcached sent invalid key in response \"VALUE /b 0 4\" for key \"/%20a\"",
    ),
    (
        "VALUE /%20a x 4\r\nbody\r\nEND\r\n",
        "HTTP/1.1 502 ",
        "",
        "memcached sent invalid flags in response",
    ),
    (
        "VALUE /%20a 0 4x\r\nbody\r\nEND\r\n",
        "HTTP/1.1 502 ",
        "",
        "memcached sent invalid length in response",
    ),
    (
        "VALUE /%20a 0 9223372036854775801\r\nbody\r\nEND\r\n",
        "HTTP/1.1 502 ",
        "",
        "memcached sent invalid length in response",
    ),
    (
        "VALUE /%20a 0 99999999999999999999\r\nbody\r\nEND\r\n",
        "HTTP/1.1 502 ",
        "",
        "memcached sent invalid length in response",
    ),
    (
        "VALUE /%20a 0 4\r\nbodies\r\nEND\r\n",
        "HTTP/1.1 502 ",
        "",
        "memcached sent invalid trailer",
    ),
    (
        "VALUE /%20a 0 4\r\nbo",
        "HTTP/1.1 200 OK\r\n",
        "\r\n\r\nbo",
        "upstream prematurely closed connection",
    ),
    (
        "VALUE /%20a",
        "HTTP/1.1 502 ",
        "",
        "upstream prematurely closed connection",
    ),
];

#[test]
fn values_of_memcached_become_responses() {
    let script = |(answer, ..): &(&str, &str, &str, &str)| {
        vec![Step::ReadBytes("get /%20a\r\n".len()), Step::send(answer)]
    };
    let origin = Origin::start(VALUES.iter().map(script).collect());
    let directives = "set $memcached_key \"/ a\"; memcached_gzip_flag 2;";
    let server = server(&origin, "memcached", directives);
    for (answer, begins, holds, logged) in VALUES {
        let response = received(&server, "GET");
        let shown = format!("{answer:?}: {response}");
        assert!(response.starts_with(begins), "{shown}");
        assert!(response.contains(holds), "{shown}");
        server.wait_for_log("error.log", logged);
    }
}

/// A program that listens at `SOCKET` in a folder of its own.
struct Program {
    child: Child,
    folder: Folder,
}

impl Program {
    fn start(name: &str, arguments: &[&str], files: &[(&str, &str)]) -> Program {
        let program = find_program(name);
        let program = program.expect("run `cargo xtask setup test`: a server is not installed");
        let folder = Folder::create().unwrap();
        for (name, content) in files {
            folder.write(name, content).unwrap();
        }
        let path = folder.path().display().to_string();
        let arguments = arguments.iter().map(|text| text.replace("%FOLDER%", &path));
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let program = Program { child, folder };
        wait_for(|| program.connect()).expect("the program listens");
        program
    }

    fn connect(&self) -> Option<UnixStream> {
        UnixStream::connect(self.folder.path().join("socket")).ok()
    }

    fn address(&self) -> String {
        format!("unix:{}/socket", self.folder.path().display())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        process::signal(self.child.id(), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

const WSGI: &str = r#"
def application(env, start_response):
    path = env['PATH_INFO']
    if path == '/missing':
        start_response('404 Not Here', [('Content-Type', 'text/plain')])
        return [b'no such page']
    body = env['wsgi.input'].read(int(env.get('CONTENT_LENGTH') or 0))
    start_response('200 OK', [('Content-Type', 'text/plain'), ('X-Method', env['REQUEST_METHOD'])])
    if path == '/sum':
        return [b'%d %d' % (len(body), sum(body))]
    return [b'piece %d\n' % number for number in range(1000)]
"#;

#[test]
fn uwsgi_serves_an_application() {
    let arguments = [
        "--plugin",
        "python3",
        "--need-app",
        // Without this option the second process outlives the first.
        "--master",
        "--die-on-term",
        "--processes",
        "2",
        "--socket",
        "%FOLDER%/socket",
        "--chmod-socket=666",
        "--logto",
        "%FOLDER%/log",
        "--buffer-size",
        "32768",
        "--wsgi-file",
        "%FOLDER%/application.py",
    ];
    let program = Program::start("uwsgi", &arguments, &[("application.py", WSGI)]);
    let address = program.address();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "error_log %FOLDER%/error.log info; events {{ }}
            http {{
                upstream application {{ server {address}; }}
                uwsgi_cache_path memory keys_zone=z:1m memory;
                server {{
                    listen 127.0.0.1:%PORT%;
                    client_max_body_size 8m;
                    uwsgi_param PATH_INFO $document_uri;
                    uwsgi_param REQUEST_METHOD $request_method;
                    uwsgi_param CONTENT_LENGTH $content_length;
                    uwsgi_param QUERY_STRING $query_string;
                    uwsgi_param SERVER_PROTOCOL $server_protocol;
                    uwsgi_param SERVER_NAME $server_name;
                    location / {{ uwsgi_pass application; }}
                    location /sum {{ uwsgi_pass application; uwsgi_request_buffering off; }}
                    location /stored {{
                        uwsgi_pass application; uwsgi_cache z; uwsgi_cache_valid 1m;
                        add_header X-Cache $upstream_cache_status;
                    }}
                }}
            }}"
        ))
        .start();
    let page = server.get("/page");
    assert_eq!((page.status, page.header("X-Method")), (200, Some("GET")));
    assert!(page.text().ends_with("piece 999\n") && page.text().lines().count() == 1000);
    let missing = server.get("/missing");
    assert_eq!(
        (missing.status, missing.text().as_str()),
        (404, "no such page")
    );
    for bytes in [0, 1, 16_385, 3_000_000] {
        let head = format!(
            "POST /sum HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Length: {bytes}\r\n\r\n"
        );
        let answer = server.exchange([head.into_bytes(), vec![3; bytes]].concat());
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(
            answer.contains(&format!("{bytes} {}", 3 * bytes)),
            "{answer}"
        );
    }
    assert_eq!(server.get("/stored").header("X-Cache"), Some("MISS"));
    assert_eq!(server.get("/stored").header("X-Cache"), Some("HIT"));
}

#[test]
fn memcached_gives_what_was_stored_in_it() {
    let arguments = [
        "-s",
        "%FOLDER%/socket",
        "-a",
        "0777",
        "-U",
        "0",
        "-u",
        "root",
    ];
    let program = Program::start("memcached", &arguments, &[]);
    let mut store = program.connect().unwrap();
    let large = "0123456789".repeat(50_000);
    for (key, value) in [("/a.txt", "a value"), ("/large", large.as_str())] {
        let command = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
        store.write_all(command.as_bytes()).unwrap();
        let mut answer = [0; 8];
        store.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"STORED\r\n");
    }
    let address = program.address();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "error_log %FOLDER%/error.log info; events {{ }}
            http {{
                types {{ text/plain txt; }}
                upstream values {{ server {address}; keepalive 4; }}
                server {{
                    listen 127.0.0.1:%PORT%;
                    location / {{
                        set $memcached_key $uri;
                        memcached_pass values;
                        error_page 404 = /fallback;
                    }}
                    location = /fallback {{ return 200 made; }}
                    location /unset {{ memcached_pass values; }}
                }}
            }}"
        ))
        .start();
    for _ in 0..2 {
        let value = server.get("/a.txt");
        assert_eq!((value.status, value.text().as_str()), (200, "a value"));
        assert_eq!(value.header("Content-Type"), Some("text/plain"));
        assert_eq!(server.get("/missing").text(), "made");
    }
    assert_eq!(server.get("/large").text(), large);
    let range = "GET /a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=2-4\r\nConnection: close\r\n\r\n";
    let range = String::from_utf8_lossy(&server.exchange(range)).into_owned();
    assert!(
        range.starts_with("HTTP/1.1 206 ") && range.ends_with("\r\n\r\nval"),
        "{range}"
    );
    assert_eq!(server.get("/unset").status, 500);
    server.wait_for_log("error.log", "the \"$memcached_key\" variable is not set");
}
