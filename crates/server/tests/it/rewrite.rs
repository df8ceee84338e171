//! Tests of rewriting, dependent variables, and added fields.

use crate::support::{stderr, turnpike};
use turnpike_testkit::{Folder, Server, check};

const CONFIGURATION: &str = r#"
events { }
http {
    error_log %FOLDER%/error.log notice;
    server_tokens off;
    map $arg_a $map {
        default           none;
        hostnames;
        volatile;
        one               1;
        ""                empty;
        *.example.com     sub-$uri;
        example.*         "any end";
        \default          word;
        ~^x(?<rest>.+)$   "$rest and $1";
        ~*^SHOUT          caseless;
    }
    num_map $arg_a $range_of {
        default     other;
        -1          minus;
        80          http;
        <=1023      "low $uri";
        8080-8090   proxy;
        >9000       high;
    }
    map $loop_b $loop_a { default $loop_b; }
    map $loop_a $loop_b { default $loop_a; }
    geo $geo { default out; 127.0.0.0/8 in; 127.0.0.1 self; }
    geo $arg_ip $range { ranges; default no; 10.0.0.0-10.255.255.255 ten; 10.1.0.0-10.1.0.9 few; }
    geo $proxied { default no; proxy 127.0.0.1; 192.0.2.0/24 yes; }
    split_clients "$arg_a" $half { 50% first; * second; }
    upstream_list universe moon sun earth;
    server {
        listen 127.0.0.1:%PORT%;
        server_name local;
        root %FOLDER%/html;
        rewrite ^/from-server/(.*)$ /text/$1;
        if ($arg_stop) { return 403; }
        location /text { return 200 "$uri $is_args$args\n"; }
        location /code { return 204; }
        location /none { return 444; }
        location /gone { return 410; }
        location /gone-text { return 410 "no more"; }
        location /own-status { return 202 $status; }
        location /url { return http://example.com/?$args; }
        location /moved { return 308 /text; }
        location /computed {
            set $own $arg_a;
            set_unescape_uri $own;
            set_escape_uri $escaped $own;
            set_if_empty $own nothing;
            set_hmac_sha1 $keyed key $own;
            set_encode_hex $keyed;
            set_random $number 7 7;
            set_secure_random_lcalpha $letters 0$arg_b;
            if ($arg_b) { set_md5 $own; }
            return 200 "$own $escaped $keyed $number";
        }
        upstream_list inner 2:one two;
        location /hashed {
            set $list $arg_list;
            set_if_empty $list Inner;
            set_hashed_upstream $outer universe $arg_a;
            set_hashed_upstream $inner $list $arg_a;
            return 200 "$outer $inner";
        }
        location /random { set_secure_random_alphanum $text 64; return 200 $text; }
        location /args/ { rewrite ^/args/(.+)$ /text?name=$1; }
        location /noargs/ { rewrite ^/noargs/(.+)$ /text/$1?; }
        location /permanent/ { rewrite ^/permanent(/.*)$ /new$1 permanent; }
        location /redirect/ { rewrite ^/redirect/(.*)$ https://x/$1; }
        location /break/ { rewrite ^/break(/.*)$ $1 break; }
        location /loop { rewrite ^ /loop; }
        location /empty { rewrite ^ $nothing; set $nothing ""; }
        location /if {
            set $kind other;
            if ($arg_a = one) { set $kind one; }
            if ($arg_a != one) { set $kind $kind,not-one; }
            if ($arg_a ~* ^X(.)) { set $kind $kind,x-$1; }
            if ($arg_a !~ a) { set $kind $kind,no-a; }
            if (-f $document_root$arg_f) { set $kind $kind,file; }
            if (-d $document_root$arg_f) { set $kind $kind,folder; }
            if (!-e $document_root$arg_f) { set $kind $kind,nothing; }
            return 200 $kind;
        }
        location /if-location {
            default_type a/b;
            add_header X-Outer 1;
            if ($arg_a) { add_header X-Inner 2; }
            if ($arg_b) { break; }
            return 200 text;
        }
        location /unset { return 200 "[$unset]"; set $unset 1; }
        location /map { return 200 "$map"; }
        location /numbers { return 200 "$range_of"; }
        location /cycle { return 200 "[$loop_a]"; }
        location /geo { return 200 "$geo $range $proxied"; }
        location /split { return 200 $half; }
        location /referer {
            valid_referers none blocked server_names *.example.com/welcome ~\.friend\.;
            if ($invalid_referer) { return 403; }
            return 200 welcome;
        }
        location /headers {
            expires epoch;
            add_header X-Args $args;
            add_header X-Always yes always;
            add_header ETag '"tag"';
            location /headers/none { add_header_inherit off; return 200; }
            location /headers/merge {
                add_header_inherit merge;
                add_header X-More 1;
                return 200;
            }
            if ($arg_a = bad) { return 404; }
            return 200;
        }
    }
}"#;

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/file", "content")
        .file("html/folder/x", "x")
        .start()
}

/// Requests each target; compares status and body.
fn answers(server: &Server, table: &[(&str, u16, &str)]) {
    for (target, status, body) in table {
        let response = server.get(target);
        assert_eq!(response.status, *status, "{target}");
        // An empty body in the table means the server's own page too.
        if !body.is_empty() || *status == 200 {
            assert_eq!(response.text(), *body, "{target}");
        }
    }
}

/// Requests each target; compares status and Location.
fn redirects(server: &Server, table: &[(&str, u16, &str)]) {
    for (target, status, location) in table {
        let response = server.get(target);
        let location = location.replace("%PORT%", &server.port().to_string());
        assert_eq!(response.status, *status, "{target}");
        assert_eq!(response.header("Location"), Some(&*location), "{target}");
    }
}

#[test]
fn paths_are_rewritten_and_answered() {
    let server = server();
    answers(
        &server,
        &[
            ("/text", 200, "/text \n"),
            ("/text?a=b", 200, "/text ?a=b\n"),
            ("/code", 204, ""),
            ("/gone", 410, ""),
            ("/gone-text", 410, "no more"),
            ("/own-status", 202, "202"),
            ("/from-server/x", 200, "/text/x \n"),
            ("/text?stop=1", 403, ""),
            ("/text?stop=0", 200, "/text ?stop=0\n"),
            ("/args/x", 200, "/text ?name=x\n"),
            ("/args/x?a=b", 200, "/text ?name=x&a=b\n"),
            ("/args/x%20y%26z", 200, "/text ?name=x%20y%26z\n"),
            ("/noargs/x?a=b", 200, "/text/x \n"),
            ("/break/file", 200, "content"),
            ("/loop", 500, ""),
            ("/empty", 500, ""),
            ("/unset", 200, "[]"),
        ],
    );
    redirects(
        &server,
        &[
            ("/url?a", 302, "http://example.com/?a"),
            ("/moved", 308, "http://localhost:%PORT%/text"),
            ("/permanent/a?b", 301, "http://localhost:%PORT%/new/a?b"),
            ("/redirect/a%20b%41", 302, "https://x/a%20bA"),
        ],
    );
    check(
        &server,
        &[("no answer", "GET /none HTTP/1.1\nHost: x\n\n", "(closed)")],
    );
    server.wait_for_log("error.log", "rewrite or internal redirection cycle");
    server.wait_for_log("error.log", "the rewritten URI has a zero length");
    server.wait_for_log("error.log", "using uninitialized \"unset\" variable");
}

#[test]
fn functions_compute_values() {
    let server = server();
    // HMACs as OpenSSL writes them.
    let table: &[(&str, u16, &str)] = &[
        (
            "/computed?a=x+%2F",
            200,
            "x / x%20%2F b124c9c5ee456fd7013cad8034558f35745c92a5 7",
        ),
        (
            "/computed",
            200,
            "nothing  e6670a71ff8933a97d23054abf8b426ad17ad518 7",
        ),
        (
            "/computed?a=x&b=1",
            200,
            "9dd4e461268c8034f5c8564e155c67a6 x 2a00e8e8343df86c4c188b263eeca331afa31548 7",
        ),
    ];
    answers(&server, table);
    // As Debian's module answers them.
    answers(
        &server,
        &[
            ("/hashed", 200, "moon one"),
            ("/hashed?a=hello", 200, "sun one"),
            ("/hashed?a=larry", 200, "earth two"),
            ("/hashed?a=larry&list=universe", 200, "earth earth"),
            ("/hashed?list=none", 500, ""),
        ],
    );
    server.wait_for_log(
        "error.log",
        "set_hashed_upstream: upstream list \"none\" not defined yet",
    );
    let (first, second) = (server.get("/random").text(), server.get("/random").text());
    assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_ne!(first, second);
}

#[test]
fn conditions_choose() {
    let server = server();
    answers(
        &server,
        &[
            ("/if", 200, "other,not-one,no-a,folder"),
            ("/if?a=one&f=/file", 200, "one,no-a,file"),
            ("/if?a=xa&f=/absent", 200, "other,not-one,x-a,nothing"),
        ],
    );
    let own = server.get("/if-location");
    assert_eq!(own.header("X-Outer"), Some("1"));
    assert_eq!(own.header("Content-Type"), Some("a/b"));
    let inner = server.get("/if-location?a=1");
    assert_eq!(inner.header("X-Outer"), None);
    assert_eq!(inner.header("X-Inner"), Some("2"));
    assert_eq!(inner.header("Content-Type"), Some("a/b"));
    // `break` ends the program, so only the file system can answer.
    assert_eq!(server.get("/if-location?b=1").status, 404);
}

#[test]
fn variables_depend_on_others() {
    let server = server();
    answers(
        &server,
        &[
            ("/map", 200, "empty"),
            ("/map?a=ONE", 200, "1"),
            ("/map?a=www.example.com", 200, "sub-/map"),
            ("/map?a=example.net.", 200, "any end"),
            ("/map?a=default", 200, "word"),
            ("/map?a=xyz", 200, "yz and yz"),
            ("/map?a=shout", 200, "caseless"),
            ("/map?a=other", 200, "none"),
            ("/numbers", 200, "other"),
            ("/numbers?a=80", 200, "http"),
            ("/numbers?a=0080", 200, "http"),
            ("/numbers?a=-1", 200, "minus"),
            ("/numbers?a=1023", 200, "low /numbers"),
            ("/numbers?a=8090", 200, "proxy"),
            ("/numbers?a=9000", 200, "other"),
            ("/numbers?a=9001", 200, "high"),
            ("/numbers?a=80x", 200, "other"),
            ("/numbers?a=99999999999999999999", 200, "other"),
            ("/cycle", 200, "[]"),
            ("/geo", 200, "self no no"),
            ("/geo?ip=10.0.0.1", 200, "self ten no"),
            ("/geo?ip=10.1.0.9", 200, "self few no"),
            ("/geo?ip=11.0.0.0", 200, "self no no"),
            // Hashes 0x1aa14063 and 0x92685f5e.
            ("/split?a=ab", 200, "first"),
            ("/split?a=a", 200, "second"),
        ],
    );
    server.wait_for_log("error.log", "cycle while evaluating variable \"loop_");
    check(
        &server,
        &[(
            "the address that a trusted proxy tells",
            "GET /geo HTTP/1.0\nX-Forwarded-For: 10.0.0.1, 192.0.2.7\n\n",
            "HTTP/1.1 200 OK\n*\n\nself no yes\n(closed)",
        )],
    );
}

#[test]
fn predicates_choose_locations() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            r#"
events { }
http {
    error_log %FOLDER%/error.log;
    map $arg_a $wanted { volatile; ~^x yes; 0 0; default ""; }
    map $loop_b $loop_a { default $loop_b; }
    map $loop_a $loop_b { default $loop_a; }
    server {
        listen 127.0.0.1:%PORT%;
        location / { return 200 "prefix"; }
        location = /exact { return 200 "exact"; }
        location /moved { rewrite ^ /?a=x last; }
        location $wanted {
            return 200 "wanted";
            location /sub { alias %FOLDER%/html/file; }
        }
        location $arg_loop { location $loop_a { return 200 "never"; } }
    }
}"#,
        )
        .file("html/file", "content")
        .start();
    answers(
        &server,
        &[
            ("/", 200, "prefix"),
            ("/?a=xy", 200, "wanted"),
            ("/?a=0", 200, "prefix"),
            ("/exact?a=x", 200, "exact"),
            ("/moved", 200, "wanted"),
            ("/sub?a=x", 200, "content"),
            ("/?loop=1", 500, ""),
        ],
    );
    server.wait_for_log("error.log", "cycle while evaluating variable \"loop_");
}

#[test]
fn referers_are_judged() {
    let server = server();
    let cases = [
        ("", 200),
        ("Referer: blanked out\r\n", 200),
        ("Referer: http://local/a\r\n", 200),
        ("Referer: http://www.example.com/welcome/x\r\n", 200),
        ("Referer: http://www.example.com/other\r\n", 403),
        ("Referer: https://a.friend.org:80/\r\n", 200),
        ("Referer: http://stranger.org/\r\n", 403),
    ];
    for (field, status) in cases {
        let request = format!("GET /referer HTTP/1.1\r\nHost: x\r\n{field}\r\n");
        assert_eq!(server.connect().round(request).status, status, "{field}");
    }
}

#[test]
fn fields_are_added() {
    let server = server();
    let given = server.get("/headers?a=b");
    let expected = [
        ("Expires", Some("Thu, 01 Jan 1970 00:00:01 GMT")),
        ("Cache-Control", Some("no-cache")),
        ("X-Args", Some("a=b")),
        ("X-Always", Some("yes")),
        ("ETag", Some("\"tag\"")),
    ];
    for (name, value) in expected {
        assert_eq!(given.header(name), value, "{name}");
    }
    let error = server.get("/headers?a=bad");
    assert_eq!(error.header("X-Always"), Some("yes"));
    for name in ["Expires", "X-Args", "ETag"] {
        assert_eq!(error.header(name), None, "{name}");
    }
    let none = server.get("/headers/none");
    assert_eq!(none.header("X-Always"), None);
    assert_eq!(none.header("Expires"), expected[0].1);
    let merged = server.get("/headers/merge");
    assert_eq!(merged.header("X-Always"), Some("yes"));
    assert_eq!(merged.header("X-More"), Some("1"));
}

/// A path, and the log's name of its loop. No error page replaces the response.
#[test]
fn goto_leads_to_a_named_location_with_the_path_as_it_is() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "error_log %FOLDER%/error.log;
             events { }
             http {
                 time_format $year \"[%Y|%%L]\";
                 server {
                     listen 127.0.0.1:%PORT%;
                     if ($arg_s) { goto @named; }
                     location / { return 200 direct; }
                     location /basic { set $way kept; goto @named; return 200 dead; }
                     location /if { if ($arg_c) { goto @named; } return 200 direct; }
                     location /chain { goto @first; }
                     location @first { goto @named; }
                     location @named { return 200 \"$uri$is_args$args $way\"; }
                     location /cycle { goto @a; }
                     location @a { goto @b; }
                     location @b { goto @a; }
                     location /missing { goto @nowhere; }
                     location /time { return 200 $year; }
                 }
             }",
        )
        .start();
    let table = [
        ("/basic?a=b", 200, "/basic?a=b kept"),
        ("/any?s=1", 200, "/any?s=1 "),
        ("/any", 200, "direct"),
        ("/if?c=1", 200, "/if?c=1 "),
        ("/if", 200, "direct"),
        ("/chain", 200, "/chain "),
        ("/cycle", 500, ""),
        ("/missing", 500, ""),
    ];
    answers(&server, &table);
    server.wait_for_log("error.log", "could not find named location \"@nowhere\"");
    let time = server.get("/time").text();
    assert!(time.starts_with("[2") && time.ends_with("|%L]"), "{time}");
    let folder = Folder::create().unwrap();
    for (directives, complaint) in [
        ("server { goto named; }", "invalid named location \"named\""),
        ("server { goto @; }", "invalid named location \"@\""),
        ("time_format year %Y;", "invalid variable name \"year\""),
        ("time_format $year %;", "invalid time format \"%\""),
    ] {
        let text = format!("events {{ }} http {{ {directives} }}");
        folder.write("nginx.conf", text).unwrap();
        let shown = stderr(&turnpike(&folder.arguments(&["-t"])));
        assert!(shown.contains(complaint), "{directives}: {shown}");
    }
}

const LOOPS: &[(&str, &str)] = &[
    ("/path", "internally redirecting to \"/path\""),
    ("/variable", "internally redirecting to \"/variable\""),
    ("/named", "redirect to named location \"@named\""),
    ("/rewritten", "processing \"/rewritten\""),
];

#[test]
fn a_loop_of_redirects_ends_in_500() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "error_log %FOLDER%/error.log;
             events { }
             http {
                 recursive_error_pages on;
                 server {
                     listen 127.0.0.1:%PORT%;
                     error_page 500 /path;
                     location /path { error_page 404 /path; return 404; }
                     location /variable { error_page 404 =200 $uri; return 404; }
                     location /named { error_page 404 @named; return 404; }
                     location @named { error_page 404 @named; return 404; }
                     location /rewritten { rewrite ^ /rewritten; }
                     location /long { error_page 404 /long1; return 404; }
                     location /long1 { error_page 404 /long2; return 404; }
                     location /long2 { return 200 end; }
                 }
             }",
        )
        .start();
    for (path, doing) in LOOPS {
        assert_eq!(server.get(path).status, 500, "{path}");
        let line = format!("rewrite or internal redirection cycle while {doing}");
        server.wait_for_log("error.log", &line);
    }
    assert_eq!(server.get("/long").text(), "end");
}
