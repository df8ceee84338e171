//! Tests of `userid`: identifiers are given, recognised, and replaced if configured.

use turnpike_testkit::Server;

const CONFIGURATION: &str = "error_log %FOLDER%/error.log info;
    events { }
    http {
        add_header X-Got $uid_got;
        add_header X-Set $uid_set;
        map $arg_reset $uid_reset { default $arg_reset; }
        server {
            listen 127.0.0.1:%PORT%;
            location / { userid on; userid_mark m; return 200; }
            location /log { userid log; return 200; }
            location /off { return 200; }
        }
    }";

/// The target, the client's cookie, whether it gets another one, and whether that has the same
/// identifier.
const CASES: &[(&str, Option<&str>, bool, Option<bool>)] = &[
    ("/", None, true, None),
    ("/", Some("fwAAAQECAwQFAAAAAAAAAAm="), false, None),
    ("/", Some("fwAAAQECAwQFAAAAAAAAAA=="), true, Some(true)),
    (
        "/?reset=1",
        Some("fwAAAQECAwQFAAAAAAAAAAm="),
        true,
        Some(false),
    ),
    ("/?reset=0", Some("fwAAAQECAwQFAAAAAAAAAAm="), false, None),
    ("/", Some("short"), true, None),
    ("/", Some("***********************"), true, None),
    ("/log", None, false, None),
    ("/log", Some("fwAAAQECAwQFAAAAAAAAAAm="), false, None),
    ("/off", Some("fwAAAQECAwQFAAAAAAAAAAm="), false, None),
];

#[test]
fn clients_are_known_again() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .start();
    let mut seen = Vec::new();
    for (target, cookie, gets, same) in CASES {
        let cookie = cookie.map(|cookie| format!("Cookie: a=b; uid={cookie}\r\n"));
        let cookie = cookie.unwrap_or_default();
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{cookie}\r\n");
        let head = String::from_utf8_lossy(&server.exchange(&request)).into_owned();
        let field = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::to_owned)
        };
        let given = field("Set-Cookie: uid=");
        assert_eq!(given.is_some(), *gets, "{target} {cookie} {head}");
        assert_eq!(
            field("X-Set: uid=").is_some(),
            *gets,
            "{target} {cookie} {head}"
        );
        if let Some(given) = given {
            assert!(given[22..].starts_with("m=; path=/"), "{head}");
            assert!(!seen.contains(&given), "{given} twice");
            seen.push(given);
        }
        if let Some(same) = same {
            assert_eq!(field("X-Set: ") == field("X-Got: "), *same, "{head}");
        }
    }
    server.wait_for_log("error.log", "client sent too short userid cookie \"short\"");
    server.wait_for_log("error.log", "client sent invalid userid cookie");
}
