//! Tests of `-t` with configurations that have one mistake or one odd value, by a table of nginx's
//! results.
//!
//! Each row of `verdicts/table.tsv` replaces one line of a configuration in that folder. The
//! results are those of nginx 1.22.1, without those that depend on the machine (memory, files,
//! names), that later versions changed, and features that are refused by name here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use turnpike_conf::{Errors, MemoryLoader};
use turnpike_plan::product::Product;
use turnpike_server::checked::Checked;
use turnpike_server::paths::{Paths, Places};
use turnpike_testkit::Folder;

const TABLE: &str = include_str!("table/table.tsv");

const BASES: &[(&str, &str)] = &[
    ("idle", include_str!("table/idle.conf")),
    ("proxy", include_str!("table/proxy.conf")),
    ("site", include_str!("table/site.conf")),
];

const NGINX: &str = "/usr/sbin/nginx";

/// The interval of rows that are tested with an installed nginx: it starts a process for each.
const NGINX_STRIDE: usize = 16;

struct Row {
    base: &'static str,
    line: usize,
    text: &'static str,
    accepted: bool,
    /// `*` if it is not compared, `-` if there is no mistake.
    mistake_line: &'static str,
}

impl Row {
    fn of(line: &'static str) -> Row {
        let words: Vec<&str> = line.split('\t').collect();
        let [base, line, text, verdict, mistake_line] = words[..] else {
            panic!("not five columns: {line}");
        };
        Row {
            base,
            line: line.parse().unwrap(),
            text,
            accepted: verdict == "ok",
            mistake_line,
        }
    }

    fn configuration(&self) -> String {
        let base = BASES.iter().find(|(name, _)| *name == self.base).unwrap().1;
        let mut lines: Vec<&str> = base.lines().collect();
        lines[self.line - 1] = self.text;
        lines.join("\n") + "\n"
    }
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.map(Row::of).collect()
}

/// The difference from the row; empty if there is none.
fn complaint(row: &Row, prefix: &Path) -> String {
    let paths = Paths {
        prefix: prefix.to_path_buf(),
        configuration: PathBuf::from("/nginx.conf"),
        given: None,
        embedded: false,
        error_log: None,
        product: Product::Turnpike,
        cpu_count: 2,
        places: Places::Prefix,
        user: None,
    };
    let text = row.configuration();
    let file = (paths.configuration.clone(), text.as_str());
    let loader: MemoryLoader = [file].into_iter().collect();
    let read = Checked::read_through(Box::new(loader), &paths, None);
    let mut complaint = String::new();
    let (base, line, text) = (row.base, row.line, row.text);
    match read {
        Ok(_) if row.accepted => {}
        Ok(_) => {
            let _ = writeln!(complaint, "{base}:{line}: {text}: accepted");
        }
        Err(errors) if row.accepted => {
            let _ = writeln!(complaint, "{base}:{line}: {text}: {errors}");
        }
        Err(errors) => {
            let place = errors.0[0].place.as_ref().map(|(_, line)| line.to_string());
            if row.mistake_line != "*" && place.as_deref() != Some(row.mistake_line) {
                let expected = row.mistake_line;
                let _ = writeln!(
                    complaint,
                    "{base}:{line}: {text}: expected in line {expected}: {errors}"
                );
            }
        }
    }
    complaint
}

#[test]
fn verdicts_are_those_of_nginx() {
    let rows = rows();
    assert!(rows.len() > 7000, "{} rows", rows.len());
    let folder = Folder::create().unwrap();
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let part = rows.len().div_ceil(threads);
    let complaints: Vec<String> = thread::scope(|scope| {
        let parts: Vec<_> = rows
            .chunks(part)
            .map(|rows| {
                let prefix = folder.path();
                scope.spawn(move || rows.iter().map(|row| complaint(row, prefix)).collect())
            })
            .collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    let complaints = complaints.concat();
    assert!(complaints.is_empty(), "{complaints}");
}

#[test]
fn an_installed_nginx_agrees() {
    if !Path::new(NGINX).exists() {
        println!("skipped: an_installed_nginx_agrees (nginx is not installed)");
        return;
    }
    let folder = Folder::create().unwrap();
    std::fs::create_dir(folder.path().join("logs")).unwrap();
    let (mut compared, mut differences) = (0, String::new());
    for row in rows().iter().step_by(NGINX_STRIDE) {
        folder.write("nginx.conf", row.configuration()).unwrap();
        let file = folder.path().join("nginx.conf");
        let mut nginx = Command::new(NGINX);
        let nginx = nginx
            .arg("-t")
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(file);
        let output = nginx.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        // This build cannot test features that it does not know, or may not use.
        let unable = ["unknown directive", "unknown variable", "Permission denied"];
        if row.accepted && unable.iter().any(|words| stderr.contains(words)) {
            continue;
        }
        // Without root, nginx ignores `user`, even a wrong one.
        if stderr.contains("makes sense only if the master process runs with super-user") {
            continue;
        }
        compared += 1;
        if output.status.success() != row.accepted {
            let _ = writeln!(
                differences,
                "{}:{}: {}\n{stderr}",
                row.base, row.line, row.text
            );
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(compared > 0);
}

/// A file with a mistake of every kind: main context, values, places, variables, references.
const MISTAKEN: &str = "worker_processes lots;
events { }
http {
    limit_req_zone $remote_addr zone=a:1m rate=many;
    keepalive_timeout abc;
    proxy_cache_bypass $nosuch;
    proxy_cache_path c keys_zone=good:1m;
    proxy_cache_path d keys_zone=bad;
    gzip_comp_level 77;
    expires foo;
    server {
        listen 127.0.0.1:18080;
        expires 1h;
        error_page foo /x;
        access_log logs/a nosuch;
        location / { limit_req zone=a; proxy_cache bad; expires soon; }
        location /b { proxy_cache good; proxy_pass http://127.0.0.1:1; client_max_body_size 10x; }
    }
}
";

#[test]
fn a_forgotten_semicolon_gives_a_hint() {
    for (text, expected) in [
        (
            "events { }\nhttp { server {\nlisten 127.0.0.1:18080\nroot /x;\n} }\n",
            "invalid parameter \"root\", is a \";\" missing in line 3? in /f:4",
        ),
        (
            "events { }\nhttp {\nsendfile on\ngzip on;\n}\n",
            "invalid number of arguments in \"sendfile\" directive, is a \";\" missing in line 3? \
             in /f:4",
        ),
    ] {
        let errors = read(text).unwrap_err();
        assert_eq!(errors.0[0].to_string(), expected, "{text}");
    }
    let text = "events { }\nhttp { server { listen 127.0.0.1:18080; server_name a\nroot; } }\n";
    assert!(read(text).is_ok());
}

fn read(text: &str) -> Result<Checked, Errors> {
    let paths = Paths {
        prefix: PathBuf::from("/"),
        configuration: PathBuf::from("/f"),
        given: None,
        embedded: false,
        error_log: None,
        product: Product::Turnpike,
        cpu_count: 2,
        places: Places::Prefix,
        user: None,
    };
    let file = (paths.configuration.clone(), text);
    let loader: MemoryLoader = [file].into_iter().collect();
    Checked::read_through(Box::new(loader), &paths, None)
}

#[test]
fn all_mistakes_are_reported_at_once_and_in_order() {
    let errors = read(MISTAKEN).unwrap_err();
    let messages: Vec<String> = errors.0.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "\"worker_processes\" directive invalid value in /f:1",
            "invalid rate \"rate=many\" in /f:4",
            "\"keepalive_timeout\" directive invalid value in /f:5",
            "unknown \"nosuch\" variable in /f:6",
            "invalid keys zone size \"keys_zone=bad\" in /f:8",
            "value must be between 1 and 9 in /f:9",
            "\"expires\" directive invalid value in /f:10",
            "invalid value \"foo\"; known here: response in /f:14",
            "unknown log format \"nosuch\"; \"log_format\" defines one in /f:15",
            "\"expires\" directive invalid value in /f:16",
            "\"client_max_body_size\" directive invalid value; a size is in bytes, or a number \
             with k, m or g in /f:17",
        ]
    );
}
