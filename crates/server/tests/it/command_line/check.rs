//! Tests of `turnpike check`.

use crate::support::{stderr, turnpike};
use serde_json::Value;
use turnpike_testkit::Folder;

const MIXED: &str = "\
lock_file a.lock;
pid nginx.pid;
events {}
http {
    cookie_flag * secure;
    server {
        listen unix:s;
        location / {
            perl main::handler;
            root html;
        }
        location /b {
            perl main::handler;
            gzip yes;
        }
    }
}
";

#[test]
fn a_report_shows_support_and_alternatives() {
    let folder = Folder::create().unwrap();
    folder.write("nginx.conf", MIXED).unwrap();
    let path = format!("{}/nginx.conf", folder.name());
    let output = turnpike(&["check", &path]);
    let text = String::from_utf8(output.stdout)
        .unwrap()
        .replace(&path, "@");
    let expected = "\
@: 1 file, 13 directives

works          8
refused        2
unknown        1
mistake        1
no effect      1

Refused: nginx has these, and the server does not start with them

  perl  nginx.conf:9, nginx.conf:13  njs and Perl. Express it with map, set, if and rewrite, or move
                                     it to the application.

Unknown: nginx itself does not have these either

  cookie_flag  nginx.conf:5  cookie flags. Use proxy_cookie_flags.

Mistakes: these are wrong in nginx too

  nginx.conf:14  Invalid value \"yes\" in \"gzip\" directive, it must be \"on\" or \"off\"

No effect: these are checked and change nothing here

  lock_file  nginx.conf:1  Accepted for compatibility with nginx, without effect. Lanes of one
                           process need no lock file.

The server does not start with this file.
";
    assert_eq!((output.status.code(), text.as_str()), (Some(1), expected));
    assert!(!folder.has("nginx.pid") && !folder.has("s"));
}

#[test]
fn a_report_is_json_too() {
    let folder = Folder::create().unwrap();
    folder.write("nginx.conf", MIXED).unwrap();
    let path = format!("{}/nginx.conf", folder.name());
    let output = turnpike(&["check", "--json", &path]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(report["directives"], 13);
    assert_eq!(report["loads"], false);
    let refused = &report["findings"].as_array().unwrap()[..];
    let perl = refused
        .iter()
        .find(|one| one["directive"] == "perl")
        .unwrap();
    assert_eq!(perl["state"], "refused");
    assert_eq!(perl["places"][1], format!("{path}:13"));
}

#[test]
fn the_exit_status_shows_whether_the_file_loads() {
    let folder = Folder::create().unwrap();
    let good = format!("{}/good.conf", folder.name());
    folder
        .write("good.conf", "events {}\nhttp { server { listen unix:s; } }")
        .unwrap();
    let missing = format!("{}/missing.conf", folder.name());
    let cases: &[(&[&str], i32, &str)] = &[
        (&["check", &good], 0, ""),
        (&["check", "--help"], 0, ""),
        (&["check", &missing], 2, "No such file or directory"),
        (&["check"], 2, "name a file, for example"),
        (&["check", "--frob", &good], 2, "invalid option: \"--frob\""),
        (&["check", &good, &good], 2, "one file at a time"),
        (&["check", "-p"], 2, "option \"-p\" requires directory name"),
    ];
    for (arguments, code, message) in cases {
        let output = turnpike(arguments);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

/// Configurations, the exit status, and lines of the report about the machine and of the others.
const MACHINE: &[(&str, i32, &[&str], &str)] = &[
    (
        "events {} http { proxy_cache_path none/c keys_zone=z:1m; }",
        1,
        &["Mkdir() \"@/none/c\" failed (2: No such file or directory)"],
        "The server does not start with this file on this machine.",
    ),
    (
        "events {} http { server { listen 192.0.2.7:21090; listen unix:@/none/s; } }",
        1,
        &[
            "Bind() to 192.0.2.7:21090 failed (99: Cannot assign requested address)",
            "Bind() to unix:@/none/s failed (2: No such file or directory)",
        ],
        "The server does not start with this file on this machine.",
    ),
    (
        "user nosuchuser;\nevents {} http { include none.conf; gzip yes; }",
        1,
        &[
            "Getpwnam(\"nosuchuser\") failed",
            "Open() \"@/none.conf\" failed (2: No such file or directory)",
        ],
        "The server does not start with this file.",
    ),
    (
        "events {} http { server { listen unix:s ssl; ssl_certificate none.pem; \
         ssl_certificate_key none.key; } }",
        1,
        &["Cannot load certificate \"@/none.pem\""],
        "The server does not start with this file on this machine.",
    ),
    (
        "events {} http { server { listen unix:s; } }",
        0,
        &[],
        "The server can start with this file.",
    ),
];

#[test]
fn what_this_machine_lacks_is_listed_apart_from_mistakes() {
    let is_root = nix::unistd::geteuid().is_root();
    for (text, code, lines, verdict) in MACHINE {
        let folder = Folder::create().unwrap();
        let written = text.replace('@', folder.name());
        folder.write("nginx.conf", written).unwrap();
        let path = format!("{}/nginx.conf", folder.name());
        let output = turnpike(&["check", &path]);
        let report = String::from_utf8(output.stdout).unwrap();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (others, machine) = report
            .split_once("\nOn this machine: ")
            .unwrap_or((&report, ""));
        assert_eq!(output.status.code(), Some(*code), "{report}");
        // Only root's server takes another user.
        let is_judged = |line: &&&str| is_root || !line.starts_with("Getpwnam");
        for line in lines.iter().filter(is_judged) {
            let line = line.replace('@', folder.name());
            assert!(words(machine).contains(&line), "{line}: {report}");
            assert!(!words(others).contains(&line), "{line}: {report}");
        }
        assert_eq!(machine.is_empty(), lines.is_empty(), "{report}");
        assert!(report.ends_with(&format!("\n{verdict}\n")), "{report}");
        assert_eq!(
            others.contains("\nMistakes: "),
            text.contains("gzip yes"),
            "{report}"
        );
        assert!(!folder.has("nginx.pid") && !folder.has("s") && !folder.has("logs"));
    }
}

#[test]
fn advice_is_given_once() {
    let folder = Folder::create().unwrap();
    folder
        .write(
            "nginx.conf",
            "load_module a.so;\nwroker_processes 1;\nevents {}",
        )
        .unwrap();
    let path = format!("{}/nginx.conf", folder.name());
    let output = turnpike(&["check", "--json", &path]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let texts: Vec<&str> = findings
        .iter()
        .map(|one| one["text"].as_str().unwrap())
        .collect();
    for text in &texts {
        assert!(
            text.to_lowercase().matches("remove the line").count() <= 1,
            "{text}"
        );
    }
    let asked = |text: &&str| text.ends_with("did you mean \"worker_processes\"?");
    assert!(texts.iter().any(asked), "{texts:?}");
}
