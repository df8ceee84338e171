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

Mistakes: these are wrong, or need what is not on this machine

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
        (&["check"], 2, "which file?"),
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
