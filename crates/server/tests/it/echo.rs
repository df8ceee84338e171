//! Tests of `echo` and others of its family, one location a case.

use turnpike_testkit::Server;

/// What stands in a location, what is asked of it, and the body of the answer.
const CASES: &[(&str, &str, &str)] = &[
    ("echo;", "", "\n"),
    ("echo a b \"c  d\";", "", "a b c  d\n"),
    ("echo -n a; echo -n b;", "", "ab"),
    ("echo -n -- -n;", "", "-n"),
    ("echo -- a;", "", "a\n"),
    ("echo a -n;", "", "a -n\n"),
    ("echo $arg_a$request_method;", "?a=1", "1GET\n"),
    ("set $b x; echo \"$b\\ty\";", "", "x\ty\n"),
    ("echo_duplicate 3 ab; echo;", "", "ababab\n"),
    ("echo_duplicate $arg_n x;", "?n=2", "xx"),
    ("echo_duplicate 0 x; echo y;", "", "y\n"),
    ("echo_duplicate x y; echo z;", "", "z\n"),
    ("echo_duplicate 99999999999 ab; echo z;", "", "z\n"),
    ("echo a; echo_flush; echo b;", "", "a\nb\n"),
    ("echo a; echo_sleep 0.001; echo b;", "", "a\nb\n"),
    (
        "echo a; echo_location /part; echo b; echo_location_async /part x=2; echo c;",
        "",
        "a\n/part:\nb\n/part:2\nc\n",
    ),
    (
        "echo_location /none; echo_location $arg_p;",
        "?p=/part",
        "404\n/part:\n",
    ),
    ("echo_exec /part x=1;", "", "/part:1\n"),
    ("echo_exec /part?x=3;", "", "/part:3\n"),
    ("echo_exec /part?x=3 x=4;", "", "/part:4\n"),
    ("echo_exec $arg_p;", "?p=/part%3Fx=5", "/part?x=5:\n"),
    ("echo_location /part?x=6;", "", "/part:6\n"),
    ("echo_exec @named; echo not this;", "?x=4", "named 4\n"),
    (
        "echo_before_body b; echo_before_body -n c; echo_after_body a; return 200 text;",
        "",
        "b\nctexta\n",
    ),
    ("echo_after_body $status; echo text;", "", "text\n200\n"),
    (
        "echo $echo_client_request_method $echo_client_request_uri $echo_request_uri;",
        "?a=1",
        "GET /at?a=1 /at?a=1\n",
    ),
    (
        "if ($arg_a) { echo inside; } echo outside;",
        "?a=1",
        "inside\n",
    ),
    (
        "if ($arg_a) { echo inside; } echo outside;",
        "",
        "outside\n",
    ),
];

fn server(location: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log;
        events {{ }}
        http {{
            default_type text/plain;
            server {{
                listen 127.0.0.1:%PORT%;
                root %FOLDER%;
                error_page 404 = /sorry;
                location = /sorry {{ echo_status 404; echo 404; }}
                location /part {{ echo $uri:$arg_x; }}
                location @named {{ echo named $arg_x; }}
                location /at {{ {location} }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file("kept.txt", "kept")
        .start()
}

#[test]
fn commands_are_carried_out_in_their_order() {
    for (location, query, expected) in CASES {
        let answer = server(location).get(&format!("/at{query}"));
        assert_eq!(answer.text(), *expected, "{location}");
        assert_eq!(answer.status, 200, "{location}");
    }
}

#[test]
fn paths_from_variables_stay_below_the_root() {
    for (location, query) in [
        ("echo_exec $arg_p;", "?p=/../%/kept.txt"),
        ("echo_exec $arg_p;", "?p=/%2e%2e/%/kept.txt"),
        ("echo_exec $arg_p x=1;", "?p=/part/%2e%2e/%2e%2e/%/kept.txt"),
        // The folder beside it whose name begins as that of the root.
        ("echo_exec $arg_p;", "?p=kept.txt"),
        ("echo_exec $arg_p;", ""),
        ("echo_location $arg_p;", "?p=/../%/kept.txt"),
        ("echo_location_async $arg_p x=1;", "?p=/%2e%2e/%/kept.txt"),
        ("echo -n; echo_location $arg_p;", "?p=kept.txt"),
    ] {
        let server = server(location);
        let folder = server.folder().file_name().unwrap().to_str().unwrap();
        let query = query.replace("/%/", &format!("/{folder}/"));
        let answer = server.exchange(format!(
            "GET /at{query} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        ));
        let answer = String::from_utf8(answer).unwrap();
        assert!(!answer.contains("kept"), "{location} {query}: {answer}");
        let is_answered = answer.starts_with("HTTP/1.1 500");
        assert_eq!(is_answered, location.starts_with("echo_exec"), "{answer}");
        server.wait_for_log("error.log", "unsafe URI \"");
        assert_eq!(server.get("/kept.txt").text(), "kept");
    }
}

#[test]
fn many_copies_are_sent_in_pieces() {
    let server = server("echo_duplicate $arg_n abc; echo_duplicate 40000 d; echo_duplicate 2 e;");
    for count in [10, 8193, 200_000] {
        let answer = server.exchange(format!(
            "GET /at?n={count} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        ));
        let answer = String::from_utf8(answer).unwrap();
        let (_, mut rest) = answer.split_once("\r\n\r\n").unwrap();
        let mut text = String::new();
        while let Some((size, more)) = rest.split_once("\r\n") {
            let bytes = usize::from_str_radix(size, 16).unwrap();
            assert!(bytes <= 64 * 1024, "{count}: a piece of {bytes} bytes");
            text.push_str(&more[..bytes]);
            rest = more[bytes..].strip_prefix("\r\n").unwrap();
        }
        let expected = ["abc".repeat(count), "d".repeat(40_000), "ee".to_owned()].concat();
        assert!(text == expected, "{count}: {} bytes", text.len());
    }
}

#[test]
fn heads_say_what_the_location_says() {
    let server = server("echo_status 418; echo_duplicate 1000 x;");
    let answer = server.get("/at");
    assert_eq!(answer.status, 418);
    assert_eq!(answer.header("Content-Type"), Some("text/plain"));
    assert_eq!(answer.text(), "x".repeat(1000));
    let head = server.exchange("HEAD /at HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert!(head.ends_with(b"\r\n\r\n"));
}

#[test]
fn bodies_are_read_where_it_is_asked_for() {
    for (location, expected) in [
        (
            "echo_read_request_body; echo_request_body; echo -n !;",
            "a=1!",
        ),
        (
            "echo_read_request_body; echo $echo_request_body $request_body;",
            "a=1 a=1\n",
        ),
        ("echo -n [; echo_request_body; echo -n ];", "[]"),
    ] {
        let server = server(location);
        let mut peer = server.connect();
        peer.send("POST /at HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
        peer.send("a=1");
        let answer = String::from_utf8(peer.rest()).unwrap();
        let chunk = format!("\r\n\r\n{:x}\r\n{expected}\r\n0\r\n\r\n", expected.len());
        assert!(answer.ends_with(&chunk), "{location}: {answer}");
    }
}

/// The body of the answer, and whether it came to its end.
fn body(server: &Server) -> (String, bool) {
    let answer = server.exchange("GET /at HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let answer = String::from_utf8(answer).unwrap();
    let is_whole = answer.ends_with("\r\n0\r\n\r\n");
    (answer, is_whole)
}

#[test]
fn parts_that_contain_themselves_end() {
    let repeated = |count: usize| "echo_location /some;".repeat(count);
    let deep = format!(
        "if ($arg_n = {}) {{ echo (; }} echo (; echo_location /at n=${{arg_n}}x;",
        "x".repeat(50)
    );
    // With 32 times `/dot`, each `/some` is 33 parts.
    let (some, cycle) = (31, "subrequests cycle while processing \"/");
    for (location, parts, is_whole) in [
        ("echo (; echo_location /at;".to_owned(), 51, false),
        (
            "echo (; echo_location /at; echo_location /at;".to_owned(),
            51,
            false,
        ),
        // Other filters at every level need some of the stack, too.
        (
            format!(
                "ssi on; ssi_types *; sub_filter a b; sub_filter_types *; echo_before_body b; \
                 echo_after_body a; {deep}"
            ),
            51,
            true,
        ),
        // As deep as they may be.
        (deep.clone(), 51, true),
        (repeated(some), some * 32, true),
        (repeated(some + 1), 1024 - (some + 1), false),
    ] {
        let server = server(&format!("{location} }} location /some {{ {}", {
            "echo_location /dot;".repeat(32) + "} location /dot { echo (;"
        }));
        let (body, ended) = body(&server);
        assert_eq!(body.matches('(').count(), parts, "{location}: {body}");
        assert_eq!(ended, is_whole, "{location}");
        if !is_whole {
            server.wait_for_log("error.log", cycle);
        }
        assert_eq!(server.get("/part").status, 200, "{location}");
    }
}
