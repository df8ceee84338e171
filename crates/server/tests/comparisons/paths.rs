//! A comparison with an installed nginx of what access rules make of changed paths: the same
//! statuses and files, and never a file that the rules keep.

use std::path::Path;

use turnpike_testkit::random::Random;
use turnpike_testkit::{Server, exchange};

const NGINX: &str = "/usr/sbin/nginx";

/// The requests of each run of the tests, and of a long run.
const CASES: u64 = 300;
const CASES_LONG: u64 = 20_000;

const SEED: u64 = 403;

/// The beginning of a file that no request may get.
const SECRET: &str = "secret";

/// The most changes of a path.
const CHANGES_MAX: usize = 4;

const CONFIGURATION: &str = r"
worker_processes 1;
error_log %FOLDER%/error.log crit;
events { }
http {
    STRICTNESS
    access_log off;
    default_type text/plain;
    root %FOLDER%/html;
    server { listen 127.0.0.1:%PORT%; RULES }
    server { listen 127.0.0.1:%PORT_UNMERGED%; merge_slashes off; RULES }
}";

const RULES: &str = r"
location / { }
location /kept/ { deny all; }
location = /exact.txt { deny all; }
location ^~ /final/ { deny all; }
location ~ \.bak$ { deny all; }
location ~* ^/case/ { deny all; }
location ~ /\. { deny all; }
location /nested/ {
    location /nested/inner/ { deny all; }
    location ~ \.key$ { deny all; }
}
location /limited/ { limit_except GET { deny all; } }
location /internal/ { internal; }
location /aliased/ {
    alias %FOLDER%/html/open/;
    location /aliased/hidden/ { deny all; }
}
location /only/ { allow 10.0.0.0/8; deny all; }
location /both/ { satisfy all; deny 127.0.0.2; allow 127.0.0.1; deny all; }
";

/// Files, and whether the rules keep them from everybody.
const FILES: &[(&str, bool)] = &[
    ("open/a.txt", false),
    ("open/hidden/a.txt", false),
    ("kept/a.txt", true),
    ("kept/deep/a.txt", true),
    ("exact.txt", true),
    ("final/a.txt", true),
    ("a.bak", true),
    ("open/b.bak", true),
    ("case/a.txt", true),
    (".dot/a.txt", true),
    ("open/.git", true),
    ("nested/a.txt", false),
    ("nested/inner/a.txt", true),
    ("nested/x.key", true),
    ("limited/a.txt", false),
    ("internal/a.txt", true),
    ("only/a.txt", true),
    ("both/a.txt", false),
];

/// Paths that are asked for besides those of the files.
const PATHS: &[&str] = &[
    "/",
    "/kept",
    "/kept/",
    "/KEPT/a.txt",
    "/CASE/a.txt",
    "/aliased/a.txt",
    "/aliased/hidden/a.txt",
    "/aliased../kept/a.txt",
    "/open/../kept/a.txt",
    "/none",
];

/// Texts that are put into paths.
const WORDS: &[&str] = &[
    "/", "//", "/./", "/../", "/x/../", "%2f", "%2F", "%2e", "%2e%2e/", "..", ".", "%00", "%20",
    ";x", "?q", "#f", "\\", "%5c", "%252f", "%252e", "%c0%af", "%", "%zz", "~", "*",
];

/// A request.
#[derive(Debug)]
struct Case {
    method: &'static str,
    target: String,
    is_unmerged: bool,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let mut target = if random.percent(60) {
            format!("/{}", random.pick(FILES).0)
        } else {
            random.pick(PATHS).to_owned()
        };
        for _ in 0..random.index(CHANGES_MAX + 1) {
            change(&mut target, random);
        }
        if random.once_in(20) {
            target = format!("http://h{target}");
        }
        Case {
            method: random.pick(&["GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE"]),
            target,
            is_unmerged: random.once_in(4),
        }
    }

    /// The status, and the file where one is sent.
    fn ask(&self, server: &Server) -> (String, String) {
        let port = if self.is_unmerged {
            server.port_named("UNMERGED")
        } else {
            server.port()
        };
        let Case { method, target, .. } = self;
        let request = format!("{method} {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let answer = String::from_utf8_lossy(&exchange(port, request)).into_owned();
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = match (status.as_str(), answer.split_once("\r\n\r\n")) {
            ("200", Some((_, body))) => body.to_owned(),
            _ => String::new(),
        };
        (status, body)
    }
}

/// Changes a path in one place, behind its first slash.
fn change(path: &mut String, random: &mut Random) {
    let at = 1 + random.index(path.len());
    let at = at.min(path.len());
    match random.index(5) {
        0 => path.insert_str(at, random.pick(WORDS)),
        1 => path.push_str(random.pick(WORDS)),
        2 => {
            if let Some(byte) = path.as_bytes().get(at).copied() {
                path.replace_range(at..=at, &format!("%{byte:02x}"));
            }
        }
        3 => {
            if let Some(byte) = path.as_bytes().get(at).copied() {
                path.replace_range(at..=at, &format!("%{byte:02X}"));
            }
        }
        _ => {
            let turned: String = path
                .chars()
                .enumerate()
                .map(
                    |(index, letter)| match (index == at, letter.is_ascii_lowercase()) {
                        (true, true) => letter.to_ascii_uppercase(),
                        (true, false) => letter.to_ascii_lowercase(),
                        (false, _) => letter,
                    },
                )
                .collect();
            *path = turned;
        }
    }
}

fn start(program: &str, strictness: &str) -> Server {
    let text = CONFIGURATION
        .replace("STRICTNESS", strictness)
        .replace("RULES", RULES);
    let mut builder = Server::builder(program).configuration(&text);
    for (path, is_secret) in FILES {
        let begin = if *is_secret { SECRET } else { "open" };
        builder = builder.file(format!("html/{path}"), format!("{begin} {path}"));
    }
    builder.start()
}

/// Compares these cases; fails if rules and files were hardly met.
fn check(cases: u64) {
    if !Path::new(NGINX).exists() {
        println!("skipped: no {NGINX}");
        return;
    }
    let ours = start(env!("CARGO_BIN_EXE_turnpike"), "http_strictness nginx;");
    let nginx = start(NGINX, "");
    let (mut refused, mut served) = (0, 0);
    for number in 0..cases {
        let case = Case::random(&mut Random::of_case(SEED, number));
        let (got, expected) = (case.ask(&ours), case.ask(&nginx));
        assert_eq!(got, expected, "case {number}: {case:?}");
        // Two slashes are another path where they are not merged, for nginx too.
        let is_kept = case.is_unmerged || !got.1.starts_with(SECRET);
        assert!(is_kept, "case {number}: {case:?}");
        refused += u64::from(got.0 == "403");
        served += u64::from(got.0 == "200");
    }
    assert!(
        refused > cases / 10 && served > cases / 40,
        "{refused} refused, {served} served"
    );
}

#[test]
fn access_rules_hold_for_changed_paths() {
    check(CASES);
}

#[test]
#[ignore = "tens of thousands of connections take a minute: a part of make test-long"]
fn access_rules_hold_for_changed_paths_in_a_long_run() {
    check(CASES_LONG);
}
