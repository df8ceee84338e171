//! Tests of changes by proxies: cookies, redirects, fields; tunnels, trailers and files.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use turnpike_testkit::{Origin, Server, Step, check, wait_for};

fn server(origin: &Origin, locations: &str) -> Server {
    server_with("", origin, locations)
}

fn server_with(globals: &str, origin: &Origin, locations: &str) -> Server {
    let locations = locations.replace("%ORIGIN%", &format!("127.0.0.1:{}", origin.port()));
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            log_format up '$status $upstream_http_x_a $upstream_cookie_c $upstream_trailer_x_t.';
            access_log %FOLDER%/access.log up;
            server {{
                listen 127.0.0.1:%PORT%;
                server_tokens off;
                {locations}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .globals(globals)
        .start()
}

fn answers(response: &str) -> Origin {
    Origin::start(vec![vec![Step::ReadHead, Step::send(response)]])
}

/// Directives, a field of the response, and the client's field; empty for none.
const FIELDS: &[(&str, &str, &str)] = &[
    ("", "Location: http://other/a", "Location: http://other/a"),
    (
        "proxy_redirect http://u/ /v/;",
        "Location: http://u/w",
        "Location: http://localhost:%PORT%/v/w",
    ),
    (
        "proxy_redirect ~^http://u(.*) http://v$1;",
        "Location: http://u/w",
        "Location: http://v/w",
    ),
    (
        "proxy_redirect http://u/ /v/;",
        "Refresh: 5; url=http://u/w",
        "Refresh: 5; url=/v/w",
    ),
    ("proxy_hide_header X-B;", "X-B: c", ""),
    ("", "Server: origin", "Server: nginx"),
    (
        "proxy_pass_header Server;",
        "Server: origin",
        "Server: origin",
    ),
    ("", "X-Accel-Expires: 5", ""),
    (
        "proxy_cookie_domain a.org b.org;",
        "Set-Cookie: c=d; domain=a.org",
        "Set-Cookie: c=d; domain=b.org",
    ),
    (
        "proxy_cookie_path /a/ /b/;",
        "Set-Cookie: c=d; Path=/a/x",
        "Set-Cookie: c=d; Path=/b/x",
    ),
    (
        "proxy_cookie_flags c secure samesite=lax;",
        "Set-Cookie: c=d",
        "Set-Cookie: c=d; Secure; SameSite=Lax",
    ),
    (
        "proxy_cookie_flags ~. nosecure;",
        "Set-Cookie: c=d; Secure; x",
        "Set-Cookie: c=d; x",
    ),
];

#[test]
fn fields_are_rewritten() {
    for (directives, field, expected) in FIELDS {
        let origin = answers(&format!(
            "HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: 0\r\n\r\n"
        ));
        let locations = format!("location / {{ proxy_pass http://%ORIGIN%; {directives} }}");
        let server = server(&origin, &locations);
        let head = server.get("/").head;
        let name = format!("{}:", field.split(':').next().unwrap());
        let lines: Vec<&str> = head
            .lines()
            .filter(|line| line.starts_with(&name))
            .collect();
        let expected = expected.replace("%PORT%", &server.port().to_string());
        assert_eq!(lines.join("\n"), expected, "{directives} {field}");
    }
}

#[test]
fn the_usual_redirect_leads_back_here() {
    // The origin's port is known only once it listens: it redirects to the address of the request.
    let script = |location: &str| vec![Step::ReadHead, Step::send(location)];
    let origin = Origin::start(vec![script("")]);
    let port = origin.port();
    drop(origin);
    let response = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/b/c\r\nContent-Length: 0\r\n\r\n"
    );
    let listener = std::net::TcpListener::bind(("127.0.0.1", port));
    let Ok(listener) = listener else { return };
    let serving = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).unwrap();
        stream.write_all(response.as_bytes()).unwrap();
    });
    let configuration = format!(
        "events {{ }} http {{ server {{ listen 127.0.0.1:%PORT%;
         location /a/ {{ proxy_pass http://127.0.0.1:{port}/b/; }} }} }}"
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    let mut peer = server.connect();
    let response = peer.round("GET /a/ HTTP/1.1\r\nHost: x\r\n\r\n");
    let expected = format!("http://x:{}/a/c", server.port());
    assert_eq!(response.header("Location"), Some(expected.as_str()));
    serving.join().unwrap();
}

#[test]
fn requests_follow_the_directives() {
    let origin = answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let server = server(
        &origin,
        "location / {
            proxy_pass http://%ORIGIN%;
            proxy_method PUT;
            proxy_set_body \"b=$arg_b\";
            proxy_set_header Host $host:$proxy_port;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Forwarded $proxy_add_forwarded;
            proxy_set_header X-None $arg_none;
            proxy_set_header Cookie \"\";
        }",
    );
    check(
        &server,
        &[(
            "made",
            "GET /?b=c HTTP/1.1\nHost: here\nCookie: a\nX-Own: d\nX-Forwarded-For: e\n\
             Forwarded: for=\"[2001:db8::1]\"\nForwarded: for=\"open\nConnection: close\n\n",
            "HTTP/1.1 200 OK\n*\n(closed)",
        )],
    );
    let came = String::from_utf8(origin.received()[0].clone()).unwrap();
    let expected = format!(
        "PUT /?b=c HTTP/1.1\nHost: here:{}\nX-Forwarded-For: e, 127.0.0.1\n\
         Forwarded: for=\"[2001:db8::1]\", for=127.0.0.1;proto=http\nContent-Length: 3\n\
         X-Own: d\n\n",
        origin.port()
    );
    assert_eq!(came.replace("\r\n", "\n"), expected);
}

#[test]
fn a_tunnel_carries_bytes_both_ways() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\nhello",
        ),
        Step::ReadBytes(4),
        Step::send("pong"),
        Step::ReadToEnd,
    ]]);
    let server = server(
        &origin,
        "location / {
            proxy_pass http://%ORIGIN%;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
        }",
    );
    let mut peer = server.connect();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n");
    let mut came = Vec::new();
    while !came.ends_with(b"hello") {
        let mut byte = [0];
        std::io::Read::read_exact(&mut peer.stream(), &mut byte).unwrap();
        came.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&came).into_owned();
    assert!(
        head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
        "{head}"
    );
    for field in ["Upgrade: echo\r\n", "Connection: upgrade\r\n"] {
        assert_eq!(head.matches(field).count(), 1, "{head}");
    }
    peer.send("ping");
    let mut pong = [0; 4];
    std::io::Read::read_exact(&mut peer.stream(), &mut pong).unwrap();
    assert_eq!(&pong, b"pong");
    peer.finish();
    assert!(peer.is_closed());
    server.wait_for_log("access.log", "101 ");
}

#[test]
fn a_silent_server_of_a_tunnel_is_cut_once_its_client_is_silent_too() {
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        Step::ReadToEnd,
    ]]);
    let server = server(
        &origin,
        "location / {
            proxy_pass http://%ORIGIN%;
            proxy_read_timeout 1s;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
        }",
    );
    let mut peer = server.connect();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
    // Half as long again as the time-out.
    for _ in 0..15 {
        std::thread::sleep(Duration::from_millis(100));
        peer.send("telemetry.");
    }
    let all_came = || {
        origin.received()[0]
            .ends_with(&b"telemetry.".repeat(15))
            .then_some(())
    };
    assert!(wait_for(all_came).is_some());
    server.wait_for_log(
        "error.log",
        "upstream timed out (110: Connection timed out)",
    );
}

/// More than the buffers of a connection's sockets.
const BEFORE_READING_BYTES: usize = 32 << 20;

#[test]
fn a_client_may_send_its_whole_request_before_it_reads_the_response() {
    // More than the sockets on the way hold.
    let answer = vec![b'x'; 8 << 20];
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
        answer.len()
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let response = [head.as_bytes(), &answer].concat();
    // An origin that reads and writes at the same time.
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut reading = stream.try_clone().unwrap();
        std::thread::spawn(move || std::io::copy(&mut reading, &mut std::io::sink()));
        stream.write_all(&response)
    });
    let text = format!(
        "events {{ }}
        http {{
            server {{
                listen 127.0.0.1:%PORT% sndbuf=32k;
                location / {{
                    proxy_pass http://127.0.0.1:{port};
                    proxy_http_version 1.1;
                    proxy_buffering off;
                    proxy_request_buffering off;
                    client_max_body_size 0;
                }}
            }}
        }}"
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start();
    let mut peer = server.connect();
    peer.send(format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {BEFORE_READING_BYTES}\r\n\r\n"
    ));
    peer.send("y".repeat(BEFORE_READING_BYTES));
    assert_eq!(peer.response().body.len(), answer.len());
}

#[test]
fn trailers_are_passed_on_if_wanted() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\nSet-Cookie: c=d\r\n\
                    \r\n1\r\nx\r\n0\r\nX-T: y\r\n\r\n";
    for (directives, end) in [("", "0\n\n"), ("proxy_pass_trailers on;", "0\nX-T: y\n\n")] {
        let origin = answers(response);
        let location = format!("location / {{ proxy_pass http://%ORIGIN%; {directives} }}");
        let server = server(&origin, &location);
        let expected = format!("HTTP/1.1 200 OK\n*\n\n1\nx\n{end}\n(closed)");
        let request = "GET / HTTP/1.1\nHost: x\nConnection: close\n\n";
        check(&server, &[(directives, request, &expected)]);
        server.wait_for_log("access.log", "200 b d y.");
    }
}

#[test]
fn cookies_of_servers_are_read_by_the_rule_of_nginx() {
    for (cookies, expected) in [
        ("Set-Cookie: c=d; Path=/", "d"),
        ("Set-Cookie: C = d  e ;x", "d  e "),
        (
            "Set-Cookie: c=one,c=two\r\nSet-Cookie: c=three",
            "one,c=two",
        ),
        ("Set-Cookie: b=a\r\nset-cookie: c==f", "=f"),
        ("Set-Cookie: c\t=d", ""),
        ("Set-Cookie: =c=d\r\nSet-Cookie: cc=e", ""),
        ("Set-Cookie: c=;d", ""),
    ] {
        let origin = answers(&format!(
            "HTTP/1.1 200 OK\r\n{cookies}\r\nContent-Length: 0\r\n\r\n"
        ));
        let location = "location / {
            proxy_pass http://%ORIGIN%;
            add_header X-Cookie <$upstream_cookie_c>;
        }";
        let response = server(&origin, location).get("/");
        let expected = format!("<{expected}>");
        assert_eq!(response.header("X-Cookie"), Some(&*expected), "{cookies}");
    }
}

#[test]
fn responses_are_stored_as_files() {
    let origin = answers(
        "HTTP/1.1 200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Content-Length: 5\r\n\r\nhello",
    );
    // The folder is created later: a sandbox cannot allow writing to it.
    let server = server_with(
        "sandbox off;",
        &origin,
        "location / {
            root %FOLDER%/stored;
            proxy_pass http://%ORIGIN%;
            proxy_store on;
            proxy_store_access user:rw all:r;
        }",
    );
    let folder = server.folder().join("stored");
    std::fs::create_dir(&folder).unwrap();
    // If root runs the test, the serving process has another user.
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(server.get("/a/b.txt").text(), "hello");
    let path = server.folder().join("stored/a/b.txt");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello");
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let seconds = modified
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    assert_eq!(seconds, 784_111_777);
}

#[test]
fn an_accelerated_redirect_is_followed() {
    let origin = answers(
        "HTTP/1.1 200 OK\r\nX-Accel-Redirect: /inside/a?b\r\nContent-Type: text/own\r\n\
         Content-Length: 0\r\n\r\n",
    );
    let server = server(
        &origin,
        "location / { proxy_pass http://%ORIGIN%; }
         location /inside/ { internal; return 200 $uri$is_args$args; }",
    );
    let response = server.get("/x");
    assert_eq!(response.text(), "/inside/a?b");
    assert_eq!(server.get("/inside/a").status, 404);
}

#[test]
fn accelerated_redirects_stay_below_the_root() {
    for (target, status) in [
        ("/index.html", 200),
        ("/../index.html", 404),
        ("/%2e%2e/index.html", 404),
        ("index.html", 404),
        ("@named", 204),
    ] {
        let origin = answers(&format!(
            "HTTP/1.1 200 OK\r\nX-Accel-Redirect: {target}\r\nContent-Length: 0\r\n\r\n"
        ));
        let server = server(
            &origin,
            "location /x { proxy_pass http://%ORIGIN%; }
             location / { return 200; }
             location @named { return 204; }
             location ~ ^index { return 200; }",
        );
        assert_eq!(server.get("/x").status, status, "{target}");
    }
}

#[test]
fn a_large_response_waits_in_a_file_for_a_slow_client() {
    let body = "0123456789".repeat(1 << 20);
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send(response),
        Step::ReadToEnd,
    ]]);
    let server = server(&origin, "location / { proxy_pass http://%ORIGIN%; }");
    let mut peer = server.connect();
    peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    server.wait_for_log(
        "error.log",
        "an upstream response is buffered to a temporary file",
    );
    let response = peer.response();
    assert!(response.body == body.as_bytes());
}

/// A body of known length that no buffer holds, of which neighbouring parts differ.
fn large_body() -> Vec<u8> {
    (0..1_000_000_u32)
        .map(|at| (at ^ (at >> 8) ^ (at >> 13)) as u8)
        .collect()
}

#[test]
fn large_bodies_pass_whole_and_their_connection_is_used_again() {
    let body = large_body();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let answer = [head.as_bytes(), &body].concat();
    let (first, rest) = answer.split_at(300_000);
    for (name, directives) in [
        ("buffered", ""),
        ("unbuffered", "proxy_buffering off;"),
        ("to a client with a rate", "limit_rate 1000m;"),
        ("from a server with a rate", "proxy_limit_rate 1000m;"),
        ("filtered", "sub_filter nowhere x; sub_filter_types *;"),
    ] {
        let round = |pause_ms| {
            [
                Step::ReadHead,
                Step::send(first),
                Step::DelayMs(pause_ms),
                Step::send(rest),
            ]
        };
        let rounds = [round(0), round(20)].into_iter().flatten();
        let origin = Origin::start(vec![rounds.chain([Step::ReadToEnd]).collect()]);
        let location = format!(
            "location / {{ proxy_pass http://%ORIGIN%; proxy_http_version 1.1; {directives} }}"
        );
        let server = server(&origin, &location);
        let mut peer = server.connect();
        for _ in 0..2 {
            let response = peer.round("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
            assert!(
                response.body == body,
                "{name}: {} bytes",
                response.body.len()
            );
        }
        assert_eq!(origin.received().len(), 1, "{name}");
    }
}

#[test]
fn a_large_body_that_breaks_off_or_goes_on_is_noticed() {
    let body = large_body();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    for (came_bytes, more, line) in [
        (
            600_000,
            "",
            "upstream prematurely closed connection while reading upstream",
        ),
        (
            body.len(),
            "x",
            "upstream sent more data than specified in \"Content-Length\" header",
        ),
    ] {
        let came = &body[..came_bytes];
        let answer = [head.as_bytes(), came, more.as_bytes()].concat();
        let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(answer)]]);
        let server = server(&origin, "location / { proxy_pass http://%ORIGIN%; }");
        let answer = server.exchange("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert!(answer.ends_with(came), "{line}: {} bytes", answer.len());
        server.wait_for_log("error.log", line);
    }
}

/// A 416 has the length of the content (RFC 9110 section 15.5.17), and no other range field.
#[test]
fn a_416_has_one_content_range() {
    let origin = answers(
        "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nContent-Range: stub\r\n\
         Connection: close\r\n\r\nSEE-THIS",
    );
    let server = server(
        &origin,
        "location / { proxy_pass http://%ORIGIN%; proxy_force_ranges on; }",
    );
    check(
        &server,
        &[(
            "a range behind the end",
            "GET / HTTP/1.1\nHost: a\nRange: bytes=1000-\nConnection: close\n\n",
            "HTTP/1.1 416 Requested Range Not Satisfiable\nServer: nginx\nDate: *\n\
             Content-Type: text/html\nContent-Length: *\nConnection: close\n\
             Content-Range: bytes */8\n\n*\n(closed)",
        )],
    );
}
