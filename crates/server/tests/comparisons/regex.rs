//! Tests of regular expressions: nginx's result or 500, and never a bypass of a rule.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::thread;

use turnpike_testkit::{Server, check};

/// Patterns of many kinds: usual rules, and hostile ones.
const PATTERNS: &[&str] = &[
    // Locations of published configurations.
    r"\.php$",
    r"^/(.+?\.php)(/.*)?$",
    r"\.(?:css|cur|js|jpe?g|gif|htc|ico|png|html|xml|otf|ttf|eot|woff2?|svg)$",
    r"/\.(?!well-known)",
    r"/\.ht",
    r"^/wp-(?:admin|includes|content)/.*\.php$",
    r"(?:^|/)\.(?:git|svn|hg)(?:/|$)",
    r"^/(?:build|tests|config|lib|3rdparty|templates|data)(?:$|/)",
    r"^/api/v(?<version>[0-9]+)/(?<rest>.*)$",
    r"^/~(.+?)(/.*)?$",
    r"^/([a-z]{2})(?:-[A-Z]{2})?/",
    r"^(/[^/]+)+\.html?$",
    r"^/download/(.*)/(?:media|files)/(.*)\..*$",
    r"^/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    // From an attack on another server.
    r"^/px2/(.*)/(.*)/(.*)/admin",
    r"([a-z]+/)+secret",
    r"(\.\./)+etc/passwd",
    r"(x)+",
    r"^/(x)+$",
    r"^/((x)|(y))+$",
    // Nested and adjoining quantifiers.
    r"^/(a+)+$",
    r"^/(a*)*b$",
    r"^/(a|aa)+$",
    r"^/(a|a?)+$",
    r"^/(?:[a-z]+[0-9]*)*-$",
    r"^/(.*?,){5}P$",
    r"(.*)a(.*)b(.*)c$",
    r"x+x+y",
    r"\w+\d+\w+\d+z",
    r"(?:a?){25}a{25}$",
    // Lookaround.
    r"^/(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$",
    r"(?<=/)admin(?!-panel)",
    r"(?<!x)y(?=z)",
    r"^/(?=(a+))a*b\1",
    // References back.
    r"(\w+)/\1$",
    r"^/(?<q>['x])[^'x]*\k<q>",
    r"(a*)(b*)\2\1c",
    // Atomic groups, possessive and lazy quantifiers.
    r"^/(?>a+)b",
    r"^/a++b",
    r"^/(?:a+b?)++c$",
    r"^/.*?/.*?/.*?/end$",
    r"^/[^/]*+/x",
    // Recursion, conditions, and choices.
    r"^/(\((?:[^()]|(?1))*\))$",
    r"^/(?:(x)|y)(?(1)a|b)$",
    r"^/(?:foo|foobar|fo)(?:bar|barbaz)?$",
    r"^/(?:a|b|c|d|e)*[^a-e]$",
    // Classes, anchors, options.
    r"[[:upper:]]{3}[[:digit:]]+",
    r"(?i)^/ADMIN",
    r"(?s)^/a.b",
    r"\bselect\b.+\bfrom\b",
    r"^\S+\s*$",
    r"(?x) ^/ a \s* b $",
    r"(*UTF)^/.$",
    r"^/(?#remark)abc$",
    r"[a-z]{60}[0-9]",
    r"^/\Q.*\E",
];

/// Paths for the patterns.
const PATHS: &[&str] = &[
    "/",
    "/index.php",
    "/a/index.php/info",
    "/static/app.min.js",
    "/.git/config",
    "/.well-known/x",
    "/.htaccess",
    "/wp-admin/x/y.php",
    "/data",
    "/api/v12/users/1",
    "/~user/www",
    "/en-GB/a",
    "/a/b/c.html",
    "/download/x/media/y.mp3",
    "/01234567-89ab-cdef-0123-456789abcdef",
    "/admin",
    "/ADMIN-panel",
    "/admin-panel",
    "/foobar",
    "/foobarbaz",
    "/fo",
    "/xa",
    "/yb",
    "/ya",
    "/(a(b)c)",
    "/((",
    "/abc",
    "/a",
    "/ab",
    "/Passw0rdX",
    "/aab",
    "/aaaa",
    "/yz",
    "/xyz",
    "/abcXYZ123",
    "/select-1-from-x",
    "/x'y'x",
    "/one/two/two",
    "/.*",
    "/1,2,3,4,5,P",
    "/end/a/b/end",
];

/// The parts of hostile paths: a beginning, a text that is repeated, and an end.
const HOSTILE: &[(&str, &str, &str)] = &[
    ("/px2", "/a", "/admin"),
    ("/px2", "/a", "/admix-n"),
    ("/", "abc/", "secret"),
    ("/", "abc/", "secre-t"),
    ("/..x/", ".../", "etc/passwd"),
    ("/", "x", ""),
    ("/", "x", "y"),
    ("/", "xy", "-"),
    ("/", "a", ""),
    ("/", "a", "b"),
    ("/", "a", "!c"),
    ("/", "ab", "c"),
    ("/", "a1", "z"),
    ("/", "1,", "xP"),
    ("/", "a/", "end"),
    ("/", "ab/ab", "/x"),
    ("/(", "(a)", ")"),
    ("/", "aA1", "-"),
    ("/", "xxxxxxxx", ";y"),
];

/// Connections that ask at the same time, one for each of the server's processes.
const CONNECTIONS: usize = 2;

fn subjects() -> Vec<String> {
    let mut subjects: Vec<String> = PATHS.iter().map(|path| (*path).to_owned()).collect();
    for (start, text, end) in HOSTILE {
        for bytes in [30, 160, 2700, 4100, 32_000] {
            let count = (bytes - start.len() - end.len()) / text.len();
            subjects.push([start, &*text.repeat(count), end].concat());
        }
    }
    subjects
}

fn configuration() -> String {
    let mut text = String::from(
        "worker_processes 2;
        events { worker_connections 64; }
        http {
            access_log off;
            error_log %FOLDER%/error.log alert;
            large_client_header_buffers 4 64k;
            client_header_buffer_size 64k;
            keepalive_requests 1000000;
            keepalive_timeout 1h;
            merge_slashes off;
            server { listen 127.0.0.1:%PORT%; server_name none; }
        ",
    );
    for (number, pattern) in PATTERNS.iter().enumerate() {
        let pattern = pattern.replace('\\', r"\\").replace('"', "\\\"");
        write!(
            text,
            "server {{ listen 127.0.0.1:%PORT%; server_name p{number};
                location ~ \"{pattern}\" {{ return 200 yes; }}
                location / {{ return 200 no; }} }}\n"
        )
        .unwrap();
    }
    text + "}\n"
}

type Verdicts = HashMap<(usize, usize), String>;

/// The results of a server, except for pairs of pattern and subject that are `left_out`. Each
/// connection asks for a part of the patterns: hostile ones keep a thread of the server busy.
fn verdicts(
    server: &Server,
    subjects: &[String],
    left_out: impl Fn(&(usize, usize)) -> bool + Sync,
) -> Verdicts {
    let left_out = &left_out;
    thread::scope(|scope| {
        let parts: Vec<_> = (0..CONNECTIONS)
            .map(|first| {
                let patterns = (first..PATTERNS.len()).step_by(CONNECTIONS);
                scope.spawn(move || verdicts_of(server, patterns, subjects, left_out))
            })
            .collect();
        let parts = parts.into_iter().map(|part| part.join().unwrap());
        parts.flatten().collect()
    })
}

/// The results for some of the patterns, one after the other on one connection.
fn verdicts_of(
    server: &Server,
    patterns: impl Iterator<Item = usize>,
    subjects: &[String],
    left_out: impl Fn(&(usize, usize)) -> bool,
) -> Verdicts {
    let mut verdicts = HashMap::new();
    let mut peer = server.connect();
    for pattern in patterns {
        for (number, subject) in subjects.iter().enumerate() {
            if left_out(&(pattern, number)) {
                continue;
            }
            let request = format!("GET {subject} HTTP/1.1\r\nHost: p{pattern}\r\n\r\n");
            let got = peer.round(&request);
            let verdict = match got.head.split(' ').nth(1) {
                Some("200") => got.text(),
                Some(status) => {
                    peer = server.connect();
                    status.to_owned()
                }
                None => panic!("{request}: {}", got.head),
            };
            verdicts.insert((pattern, number), verdict);
        }
    }
    verdicts
}

#[test]
fn every_result_is_nginxs_or_500() {
    let ours = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration())
        .start();
    assert!(PATTERNS.len() >= 40);
    let subjects = subjects();
    let got = verdicts(&ours, &subjects, |_| false);
    let refused = got.values().filter(|verdict| *verdict == "500").count();
    assert!(
        refused * 10 < got.len(),
        "{refused} of {} are 500",
        got.len()
    );
    let alerts = ours
        .log("error.log")
        .matches("pcre2_match() failed")
        .count();
    assert_eq!(alerts, refused, "each 500 has its alert");
    if !Path::new("/usr/sbin/nginx").exists() {
        println!("skipped: every_verdict_is_nginxs_or_500: no nginx is installed");
        return;
    }
    let nginx = Server::builder("/usr/sbin/nginx")
        .configuration(&configuration())
        .start();
    // If our answer is 500, nginx's does not matter, and it takes seconds.
    let expected = verdicts(&nginx, &subjects, |key| got[key] == "500");
    let mut wrong = Vec::new();
    for (key @ (pattern, subject), nginxs) in &expected {
        let verdict = &got[key];
        // If nginx reaches its own limit, a result is acceptable too.
        if verdict != nginxs && nginxs != "500" {
            let (pattern, subject) = (PATTERNS[*pattern], &subjects[*subject]);
            let head = &subject[..subject.len().min(40)];
            let bytes = subject.len();
            wrong.push(format!(
                "{pattern} on {head} ({bytes}): {verdict}, nginx {nginxs}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} verdicts compared, {refused} of them 500", got.len());
}

/// A pattern that cannot be matched within any limit: 2^60 ways.
const ENDLESS: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";

/// Matched only off the lane: some millions of steps.
const HEAVY: &str = "aaaaaaaaaaaaaaaaaaaab";

const CONFIGURATION: &str = r#"
worker_processes 1;
events { }
http {
    error_log %FOLDER%/error.log notice;
    log_format line "$request_uri $status $mapped";
    map $arg_m $mapped { default no; "~^(a+)+$" yes; "~^(a+)+b$" found; }
    map $arg_r $rewritten { default no; "~^(?<as>a+)+b$" "[$as]"; }
    server {
        listen 127.0.0.1:%PORT%;
        server_name "~^(a+)+b\.named$";
        location / { return 200 "named\n"; }
    }
    server {
        listen 127.0.0.1:%PORT% default_server;
        server_name local;
        location ~ "^/deny/(a+)+$" { deny all; }
        location /deny/ { return 200 "let in\n"; }
        location ~ "^/found/(a+)+b$" { return 200 "found $1\n"; }
        location /map { return 200 "$mapped\n"; }
        location /set {
            set $steps one;
            rewrite ^/set/(\w+)$ /set/$1/x;
            set $steps "$steps,$1";
            if ($arg_m ~ "^(a+)+b$") {
                set $steps "$steps,in,$1";
                set $steps "$steps,$rewritten";
                set $steps "$steps,out";
            }
            set $steps "$steps,$mapped";
            return 200 "$steps\n";
        }
        location /if { if ($arg_m ~ "^(a+)+$") { return 403; } return 200 "past\n"; }
        location /not { if ($arg_m !~ "^(a+)+$") { return 200 "past\n"; } return 403; }
        location /rewrite { rewrite "^/rewrite/(a+)+$" /denied; return 200 "past\n"; }
        location /header { add_header X-Mapped $mapped always; return 200 "header\n"; }
        location /referer {
            valid_referers "~^local/(a+)+$";
            if ($invalid_referer) { return 403; }
            return 200 "welcome\n";
        }
        location /proxy/ {
            proxy_set_header X-Mapped $mapped;
            proxy_pass http://127.0.0.1:%PORT_B%;
        }
        location /proxied/ {
            proxy_redirect "~^http://o/(a+)+$" /redirected;
            proxy_pass http://127.0.0.1:%PORT_B%;
        }
        location /log { access_log %FOLDER%/access.log line; return 200 "logged\n"; }
        location /choice { access_log %FOLDER%/choice.log line if=$mapped; return 200 "\n"; }
        location = /fine { return 200 "fine\n"; }
    }
    server {
        listen 127.0.0.1:%PORT_B%;
        location /proxied/ { add_header Location $arg_l; return 204; }
        location / { return 200 "upstream $http_x_mapped\n"; }
    }
}
"#;

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .start()
}

#[test]
fn a_match_without_a_result_is_answered_with_500_everywhere() {
    let server = server();
    for (target, more) in [
        (format!("/deny/{ENDLESS}"), String::new()),
        (format!("/map?m={ENDLESS}x"), String::new()),
        (format!("/set?m={ENDLESS}x"), String::new()),
        (format!("/if?m={ENDLESS}"), String::new()),
        (format!("/not?m={ENDLESS}"), String::new()),
        (format!("/rewrite/{ENDLESS}"), String::new()),
        (format!("/header?m={ENDLESS}x"), String::new()),
        (
            "/referer".to_owned(),
            format!("Referer: http://local/{ENDLESS}\r\n"),
        ),
        (format!("/proxy/?m={ENDLESS}x"), String::new()),
        (format!("/proxied/?l=http://o/{ENDLESS}"), String::new()),
        ("/".to_owned(), format!("Host: {ENDLESS}.name-d\r\n")),
    ] {
        let host = if more.starts_with("Host") {
            ""
        } else {
            "Host: local\r\n"
        };
        let request = format!("GET {target} HTTP/1.1\r\n{host}{more}Connection: close\r\n\r\n");
        let got = String::from_utf8(server.exchange(&request)).unwrap();
        assert!(got.starts_with("HTTP/1.1 500 "), "{target}: {got}");
        assert!(!got.contains("upstream"), "{target}: {got}");
    }
    let log = server.log("error.log");
    let folder = server.folder().display().to_string();
    let alerts = log.lines().filter(|line| line.contains("[alert]"));
    let mut count = 0;
    for alert in alerts {
        assert!(alert.contains("pcre2_match() failed: "), "{alert}");
        assert!(alert.contains(&format!(" in {folder}/")), "{alert}");
        count += 1;
    }
    assert!(count >= 11, "{log}");
    let line = log.lines().find(|line| line.contains("/deny/")).unwrap();
    assert!(line.contains("(match limit exceeded)"), "{line}");
    assert!(line.contains("using \"^/deny/(a+)+$\" in "), "{line}");
    assert_eq!(server.get("/fine").text(), "fine\n");
}

#[test]
fn a_heavy_match_is_finished_off_the_lane_and_nothing_is_done_twice() {
    let server = server();
    let ask = |target: &str, expected: &str| {
        let got = server.get(target);
        assert_eq!(got.text(), expected, "{target}: {}", got.head);
    };
    let ways = "a".repeat(20);
    ask(&format!("/deny/{HEAVY}"), "let in\n");
    ask(&format!("/found/{HEAVY}"), &format!("found {ways}\n"));
    ask(&format!("/map?m={HEAVY}"), "found\n");
    ask(&format!("/if?m={HEAVY}"), "past\n");
    ask(&format!("/rewrite/{HEAVY}"), "past\n");
    ask(
        &format!("/set/first?m={HEAVY}&r={HEAVY}"),
        &format!("one,first,in,{ways},[{ways}],out,found\n"),
    );
    ask(&format!("/proxy/?m={HEAVY}"), "upstream found\n");
    // Over a kept connection, and by name.
    ask(&format!("/proxy/?m={HEAVY}"), "upstream found\n");
    let request = format!("GET / HTTP/1.0\r\nHost: {HEAVY}.named\r\n\r\n");
    let got = String::from_utf8(server.exchange(&request)).unwrap();
    assert!(got.ends_with("named\n"), "{got}");
    let log = server.log("error.log");
    assert!(!log.contains("[alert]"), "{log}");
}

#[test]
fn after_the_head_a_value_without_a_result_is_empty() {
    let server = server();
    assert_eq!(server.get(&format!("/log?m={ENDLESS}x")).text(), "logged\n");
    server.wait_for_log("access.log", " 200 -\n");
    assert!(server.log("error.log").contains("[alert]"));
    // The configuration does not leave out this line.
    assert_eq!(server.get(&format!("/choice?m={ENDLESS}x")).text(), "\n");
    server.wait_for_log("choice.log", " 200 -\n");
}

#[test]
fn the_rules_of_the_attack_are_enforced() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            r#"events { } http { large_client_header_buffers 4 64k; server {
                listen 127.0.0.1:%PORT%;
                location ~ "^/px2/(.*)/(.*)/(.*)/admin" { deny all; }
                location ~ "([a-z]+/)+secret" { deny all; }
                location ~ "^/rep/(x)+$" { deny all; }
                location / {
                    if ($args ~* "(\.\./)+etc/passwd") { return 403; }
                    return 200 "let in";
                }
            } }"#,
        )
        .start();
    let repeated = |start: &str, text: &str, count: usize, end: &str| {
        [start, &text.repeat(count), end].concat()
    };
    for target in [
        repeated("/px2/", "a/", 72, "admin"),
        repeated("/", "abc/", 680, "secret"),
        repeated("/rep/", "x", 1366, ""),
        repeated("/rep/", "x", 30_000, ""),
        repeated("/?", "../", 1400, "etc/passwd"),
    ] {
        let got = server.get(&target);
        let status = got.head.split(' ').nth(1).unwrap();
        assert!(matches!(status, "403" | "500"), "{target}: {}", got.head);
        assert_eq!(status, "403", "{target}");
    }
    check(
        &server,
        &[(
            "others",
            "GET / HTTP/1.0\n\n",
            "HTTP/1.1 200 OK\n*\n\nlet in\n(closed)",
        )],
    );
}
