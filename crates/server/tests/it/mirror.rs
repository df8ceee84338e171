//! Tests of subrequests: `auth_request`, `auth_request_set`, `mirror` and `mirror_request_body`.

use turnpike_testkit::{Origin, Server, Step, check};

fn start(http: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            server_tokens off;
            root %FOLDER%/html;
            log_format all '$request_method $uri $args $status';
            access_log %FOLDER%/access.log all;
            proxy_http_version 1.1;
            {http}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file("html/page", "page")
        .file("html/asked", "never seen")
        .start()
}

const AUTHORIZATION: &str = "
    server {
        listen 127.0.0.1:%PORT%;
        add_header X-Filtered $uri;
        location /page { auth_request /asked; }
        location /by/args { auth_request /by-args?200; rewrite ^ /page break; }
        location /by/ { auth_request /by-args; rewrite ^ /page break; }
        location = /by-args {
            internal;
            if ($request_uri ~ 401) { return 401; }
            if ($request_uri ~ 403) { return 403; }
            if ($request_uri ~ 302) { return 302 /login; }
            if ($request_uri ~ 444) { return 444; }
            if ($request_uri ~ 204) { set $seen \"$request_method $uri[$args]\"; return 204; }
            return 500;
        }
        location /seen { auth_request /by-args; error_page 404 = /values; }
        location /values { return 200 \"$seen\"; }
        location /twice { auth_request off; rewrite ^ /page break; }
        location /any {
            satisfy any; deny all; auth_request /by-args; rewrite ^ /page break;
        }
        location /all {
            satisfy all; deny all; auth_request /asked; rewrite ^ /page break;
        }
        location /missing { auth_request /nothing-there; rewrite ^ /page break; }
        location /page-of-401 {
            auth_request /by-args; error_page 401 = @login; rewrite ^ /page break;
        }
        location @login { return 302 /login?back=$uri; }
        location /cycle { auth_request /cycle; rewrite ^ /page break; }
    }";

const ANSWERS: &[(&str, &str, &str)] = &[
    (
        "a file allows, and is not sent; filters see the answer alone",
        "GET /page HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\nX-Filtered: /page\nAccept-Ranges: bytes\n\npage",
    ),
    (
        "204 allows",
        "GET /by/204 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\npage",
    ),
    (
        "a question mark is part of the path",
        "GET /by/args HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 500 Internal Server Error\n*",
    ),
    (
        "401 refuses",
        "GET /by/401 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 401 Unauthorized\n*",
    ),
    (
        "403 refuses, a body is thrown away",
        "POST /by/403 HTTP/1.1\nHost: a\nContent-Length: 4\n\nbody",
        "HTTP/1.1 403 Forbidden\n*",
    ),
    (
        "a redirect is no answer",
        "GET /by/302 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 500 Internal Server Error\n*",
    ),
    (
        "444 closes",
        "GET /by/444 HTTP/1.1\nHost: a\n\n",
        "(closed)",
    ),
    (
        "what is missing is no answer",
        "GET /missing HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 500 Internal Server Error\n*",
    ),
    (
        "the subrequest shares the values of variables, and has no query and no body",
        "POST /seen?204 HTTP/1.1\nHost: a\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\n*\n\nPOST /by-args[]",
    ),
    (
        "off",
        "GET /twice HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\npage",
    ),
    (
        "satisfy any: it grants",
        "GET /any/204 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*",
    ),
    (
        "satisfy any: 401 before 403",
        "GET /any/401 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 401 Unauthorized\n*",
    ),
    (
        "satisfy all: another refuses",
        "GET /all HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 403 Forbidden\n*",
    ),
    (
        "error_page of the request",
        "GET /page-of-401/401 HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 302 *\n*\nLocation: http://a:*/login?back=/page\n*",
    ),
    (
        "a subrequest is not asked about itself",
        "GET /cycle HTTP/1.1\nHost: a\n\n",
        "HTTP/1.1 200 OK\n*\n\npage",
    ),
];

#[test]
fn another_location_decides_about_access() {
    let server = start(AUTHORIZATION);
    check(&server, ANSWERS);
    let log = server.log("error.log");
    let words = "auth request unexpected status: 404";
    assert!(log.contains(words), "{log}");
    assert!(log.contains(", subrequest: \"/nothing-there\""), "{log}");
    let log = server.log("access.log");
    assert!(!log.contains("by-args"), "{log}");
}

/// The request to an authorization server, and the use of its response.
#[test]
fn an_authorization_server_gets_no_body_and_its_response_counts() {
    let grant = "HTTP/1.1 200 OK\r\nX-User: maria\r\nContent-Length: 6\r\n\r\nsecret";
    let refuse = "HTTP/1.1 401 No\r\nWWW-Authenticate: one\r\nWWW-Authenticate: two\r\n\
        Content-Length: 0\r\n\r\n";
    let judge = Origin::start(vec![
        vec![Step::ReadHead, Step::send(grant)],
        vec![Step::ReadHead, Step::send(refuse)],
    ]);
    let content = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::ReadBytes(4),
        Step::send(content),
    ]]);
    let server = start(&format!(
        "server {{
            listen 127.0.0.1:%PORT%;
            location /judge {{ proxy_pass http://127.0.0.1:{}; }}
            location / {{
                auth_request /judge;
                auth_request_set $user $upstream_http_x_user;
                auth_request_set $greeting \"hello $user\";
                add_header X-Greeting $greeting;
                proxy_set_header X-User $user;
                proxy_pass http://127.0.0.1:{};
            }}
        }}",
        judge.port(),
        origin.port()
    ));
    check(
        &server,
        &[
            (
                "granted",
                "POST /a?b HTTP/1.1\nHost: a\nCookie: c=d\nContent-Length: 4\n\nbody",
                "HTTP/1.1 200 OK\n*\nX-Greeting: hello maria\n\nok",
            ),
            (
                "refused",
                "GET /a HTTP/1.1\nHost: a\n\n",
                "HTTP/1.1 401 Unauthorized\n*\nWWW-Authenticate: one\nWWW-Authenticate: two\n*",
            ),
        ],
    );
    let asked = String::from_utf8(judge.received()[0].clone()).unwrap();
    assert!(asked.starts_with("GET /judge HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nCookie: c=d\r\n"), "{asked}");
    assert!(!asked.contains("Content-Length"), "{asked}");
    let passed = String::from_utf8(origin.received()[0].clone()).unwrap();
    assert!(passed.contains("\r\nX-User: maria\r\n"), "{passed}");
    assert!(passed.ends_with("\r\n\r\nbody"), "{passed}");
}

#[test]
fn a_stored_permission_holds_for_its_key() {
    // The judge answers two requests: the third would have no answer.
    let content = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let judge = Origin::start(vec![vec![Step::ReadHead, Step::send(content)]; 2]);
    let server = start(&format!(
        "proxy_cache_path mem keys_zone=Z:1m memory;
        server {{
            listen 127.0.0.1:%PORT%;
            location / {{ auth_request /judge; rewrite ^ /page break; }}
            location = /judge {{
                internal;
                proxy_pass http://127.0.0.1:{};
                proxy_cache Z;
                proxy_cache_key $http_authorization;
                proxy_cache_valid 1h;
            }}
        }}",
        judge.port()
    ));
    for client in ["one", "one", "two", "two"] {
        let request = format!("GET /{client} HTTP/1.1\nHost: a\nAuthorization: Basic {client}\n\n");
        let expected = "HTTP/1.1 200 OK\n*\n\npage";
        check(&server, &[(client, &request, expected)]);
    }
    assert_eq!(judge.received().len(), 2);
}

#[test]
fn a_client_that_leaves_ends_its_authorization() {
    let judge = Origin::start(vec![vec![Step::ReadHead, Step::ReadToEnd]]);
    let server = start(&format!(
        "server {{
            listen 127.0.0.1:%PORT%;
            location /judge {{ log_subrequest on; proxy_pass http://127.0.0.1:{}; }}
            location / {{ auth_request /judge; }}
        }}",
        judge.port()
    ));
    let mut peer = server.connect();
    peer.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n");
    judge.wait_for_connections(1);
    drop(peer);
    judge.wait_for_ended(1);
    server.wait_for_log("access.log", "GET /judge - 499");
    server.wait_for_log("access.log", "GET /page - 499");
}

#[test]
fn copies_go_to_other_locations_with_the_body_or_without() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let origins: Vec<Origin> = [4, 4, 4, 0]
        .iter()
        .map(|bytes| {
            let read = vec![Step::ReadHead, Step::ReadBytes(*bytes), Step::send(ok)];
            Origin::start(vec![read])
        })
        .collect();
    let server = start(&format!(
        "server {{
            listen 127.0.0.1:%PORT%;
            location / {{
                mirror /one;
                mirror /two;
                proxy_pass http://127.0.0.1:{};
                location /off {{ mirror off; return 204; }}
            }}
            location /short {{ mirror /bare; mirror_request_body off; }}
            location = /one {{ internal; proxy_pass http://127.0.0.1:{}/copy$request_uri; }}
            location = /two {{ internal; proxy_pass http://127.0.0.1:{}; }}
            location = /bare {{ proxy_pass http://127.0.0.1:{}; }}
        }}",
        origins[0].port(),
        origins[1].port(),
        origins[2].port(),
        origins[3].port()
    ));
    let request = "POST /a?b HTTP/1.1\nHost: a\nExpect: 100-continue\nContent-Length: 4\n\n";
    let mut peer = server.connect();
    peer.send(request.replace('\n', "\r\n"));
    assert_eq!(peer.response().status, 100);
    peer.send("body");
    assert_eq!(peer.response().status, 200);
    let short = "PUT /short?x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    assert_eq!(peer.round(short).status, 405);
    assert_eq!(
        peer.round("GET /off HTTP/1.1\r\nHost: a\r\n\r\n").status,
        204
    );
    let got = |index: usize| -> String {
        let origin: &Origin = &origins[index];
        origin.wait_for_ended(1);
        assert_eq!(origin.received().len(), 1, "of origin {index}");
        String::from_utf8(origin.received()[0].clone()).unwrap()
    };
    for (index, line) in ["POST /a?b", "POST /copy/a?b", "POST /two?b"]
        .iter()
        .enumerate()
    {
        let text = got(index);
        assert!(text.starts_with(&format!("{line} HTTP/1.1\r\n")), "{text}");
        assert!(text.contains("\r\nContent-Length: 4\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\nbody"), "{text}");
    }
    let text = got(3);
    assert!(text.starts_with("PUT /bare?x HTTP/1.1\r\n"), "{text}");
    assert!(!text.contains("Content-Length"), "{text}");
}

#[test]
fn a_body_in_a_file_is_sent_to_all() {
    const BODY_BYTES: usize = 100_000;
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let steps = vec![Step::ReadHead, Step::ReadBytes(BODY_BYTES), Step::send(ok)];
    let (origin, copy) = (
        Origin::start(vec![steps.clone()]),
        Origin::start(vec![steps]),
    );
    let server = start(&format!(
        "server {{
            listen 127.0.0.1:%PORT%;
            client_body_temp_path %FOLDER%/bodies;
            client_body_buffer_size 1k;
            location / {{ mirror /copy; proxy_pass http://127.0.0.1:{}; }}
            location /copy {{ proxy_pass http://127.0.0.1:{}; }}
        }}",
        origin.port(),
        copy.port()
    ));
    let body = "0123456789".repeat(BODY_BYTES / 10);
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    assert_eq!(server.connect().round(head + &body).status, 200);
    for origin in [&origin, &copy] {
        origin.wait_for_ended(1);
        assert!(origin.received()[0].ends_with(body.as_bytes()));
    }
}

#[test]
fn a_body_that_came_with_its_head_is_in_a_file_if_it_is_too_large_for_memory() {
    let server = start(
        "server {
            listen 127.0.0.1:%PORT%;
            client_body_temp_path %FOLDER%/bodies;
            client_body_buffer_size 1k;
            location / { mirror /copy; }
            location /copy { return 204; }
        }",
    );
    let head = "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n";
    let response = server.connect().round(head.to_owned() + &"x".repeat(2000));
    assert_eq!(response.status, 405);
    server.wait_for_log(
        "error.log",
        "a client request body is buffered to a temporary file",
    );
}

#[test]
fn a_slow_copy_delays_no_request_and_is_logged_if_configured() {
    let slow = Origin::start(vec![vec![Step::ReadHead, Step::ReadToEnd]]);
    let server = start(&format!(
        "server {{
            listen 127.0.0.1:%PORT%;
            location / {{ mirror /slow; mirror /logged; }}
            location /slow {{ proxy_pass http://127.0.0.1:{}; }}
            location /logged {{ log_subrequest on; add_header X-Not 1; return 204; }}
        }}",
        slow.port()
    ));
    let mut peer = server.connect();
    for _ in 0..2 {
        let response = peer.round("GET /page?q HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(response.text(), "page");
    }
    slow.wait_for_connections(2);
    server.wait_for_log("access.log", "GET /logged q 204");
    let log = server.log("access.log");
    assert!(!log.contains("/slow"), "{log}");
}

/// Directives, and the error of the configuration test.
#[test]
fn contradictory_settings_are_refused() {
    let cases = [
        (
            "auth_request /a; auth_request /b;",
            "\"auth_request\" directive is duplicate",
        ),
        ("auth_request_set user x;", "invalid variable name \"user\""),
        (
            "auth_request_set $host x;",
            "the duplicate \"host\" variable",
        ),
        (
            "mirror /a; mirror off;",
            "\"mirror\" directive is duplicate",
        ),
        (
            "mirror_request_body 1;",
            "invalid value \"1\" in \"mirror_request_body\" directive, it must be \"on\"",
        ),
    ];
    for (directives, words) in cases {
        let configuration =
            format!("events {{ }} http {{ server {{ listen 127.0.0.1:%PORT%; {directives} }} }}");
        let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&configuration)
            .try_start();
        let message = format!("{:?}", started.err().unwrap());
        let message = message.replace("\\\"", "\"");
        assert!(message.contains(words), "{directives}: {message}");
    }
}

/// What a post action says of the request, which is over.
#[test]
fn a_post_action_knows_what_the_request_has_cost() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nunseen";
    let read = || vec![Step::ReadHead, Step::send(ok)];
    let told = Origin::start(vec![read(), read()]);
    let server = start(&format!(
        "server {{
            listen 127.0.0.1:%PORT%;
            location /page {{ post_action /told; }}
            location /named {{ post_action @told; return 403; }}
            location /off {{ post_action off; return 204; }}
            location /nowhere {{ post_action @nobody; return 204; }}
            location = /told {{
                internal;
                proxy_pass http://127.0.0.1:{0}/?bytes=$body_bytes_sent&$request_completion;
            }}
            location @told {{ proxy_pass http://127.0.0.1:{0}; }}
        }}",
        told.port()
    ));
    let asked = |count: usize| -> String {
        told.wait_for_ended(count);
        String::from_utf8(told.received()[count - 1].clone()).unwrap()
    };
    let answer = "HTTP/1.1 200 OK\n*\n\npage";
    check(
        &server,
        &[("a page", "GET /page HTTP/1.1\nHost: a\n\n", answer)],
    );
    let text = asked(1);
    assert!(text.starts_with("GET /?bytes=4&OK HTTP/1.1\r\n"), "{text}");
    check(
        &server,
        &[
            (
                "no other request",
                "GET /off HTTP/1.1\nHost: a\n\n",
                "HTTP/1.1 204 No Content\n*",
            ),
            (
                "no such location",
                "GET /nowhere HTTP/1.1\nHost: a\n\n",
                "HTTP/1.1 204 No Content\n*",
            ),
            (
                "a named location",
                "GET /named?x HTTP/1.1\nHost: a\n\n",
                "HTTP/1.1 403 Forbidden\n*",
            ),
        ],
    );
    let text = asked(2);
    assert!(text.starts_with("GET /named?x HTTP/1.1\r\n"), "{text}");
    server.wait_for_log("error.log", "could not find named location \"@nobody\"");
}
