//! Command lines and the configurations that they amount to.

#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::path::Path;

use super::state_folder::StateFolder;
use super::words::SiteOptions;
use super::{Read, text, words};

fn site(line: &[&str]) -> Result<SiteOptions, String> {
    let read: Read = match line[0] {
        "serve" => words::serve,
        "proxy" => words::proxy,
        _ => words::php,
    };
    let rest: Vec<OsString> = line[1..].iter().map(OsString::from).collect();
    read(&rest)
}

fn configuration(line: &[&str]) -> Result<String, String> {
    text::configuration(&site(line)?, &StateFolder::at(Path::new("/state")))
}

/// A command line, the URL that it serves, and lines of its configuration.
type Case = (
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
);

const CASES: &[Case] = &[
    (
        &["serve", "/tmp"],
        "http://127.0.0.1:8080/",
        &[
            "listen 127.0.0.1:8080;",
            "root \"/tmp\";",
            "location / { try_files $uri $uri/ =404; }",
            r"location ~ /\.(?!well-known(/|$)) { return 404; }",
        ],
    ),
    (
        &["serve", "--list", "--listen", "0.0.0.0:81", "/tmp"],
        "http://0.0.0.0:81/",
        &[
            "listen 0.0.0.0:81;",
            "location / { try_files $uri $uri/ =404; autoindex on; }",
        ],
    ),
    (
        &["serve", "--https=localhost", "/tmp"],
        "https://localhost:8443/",
        &[
            "listen 127.0.0.1:8443 ssl;",
            "server_name localhost;",
            "http2 on;",
            "ssl_certificate \"/state/localhost.pem\";",
            "ssl_certificate_key \"/state/localhost.key\";",
        ],
    ),
    (
        &[
            "serve",
            "--https",
            "Shop.example.com",
            "--listen",
            "192.0.2.1",
            "/tmp",
        ],
        "https://shop.example.com/",
        &[
            "listen 192.0.2.1:80;",
            "location / { return 301 https://$host$request_uri; }",
            "listen 192.0.2.1:443 ssl;",
            "server_name shop.example.com;",
            "acme_certificate letsencrypt;",
            "state_path acme;",
        ],
    ),
    (
        &["proxy", "8080", "3000", "app:4000", "http://10.0.0.1"],
        "http://127.0.0.1:8080/",
        &[
            "server 127.0.0.1:3000;",
            "server app:4000;",
            "server 10.0.0.1:80;",
            "proxy_pass http://application;",
            "proxy_websocket auto;",
            "proxy_set_header X-Forwarded-For $remote_addr;",
        ],
    ),
    (
        &[
            "proxy",
            ":8080",
            "https://a.example.com",
            "https://b.example.com:8443",
        ],
        "http://0.0.0.0:8080/",
        &[
            "server a.example.com:443;",
            "server b.example.com:8443;",
            "proxy_pass https://application;",
            "proxy_ssl_name a.example.com;",
            "proxy_ssl_verify on;",
        ],
    ),
    (
        &["proxy", "https://localhost", "unix:/run/app.sock"],
        "https://localhost:8443/",
        &["listen 127.0.0.1:8443 ssl;", "server unix:/run/app.sock;"],
    ),
    (
        &["proxy", "9443", "3000", "--https", "localhost"],
        "https://localhost:9443/",
        &["listen 127.0.0.1:9443 ssl;"],
    ),
    (
        &["php", "--fpm", "/run/php/a.sock", "/tmp"],
        "http://127.0.0.1:8080/",
        &[
            "fastcgi_pass unix:/run/php/a.sock;",
            "include fastcgi.conf;",
            "location / { try_files $uri $uri/ /index.php?$args; }",
        ],
    ),
];

#[test]
fn words_become_a_configuration() {
    for (line, url, expected) in CASES {
        let text = configuration(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        assert_eq!(site(line).unwrap().url(), *url, "{line:?}");
        for part in *expected {
            let found = text.lines().any(|line| line.trim() == *part);
            assert!(found, "{line:?}: {part}\n{text}");
        }
    }
    // Lists of files are shown on demand only.
    assert!(!configuration(CASES[0].0).unwrap().contains("autoindex"));
}

const MISTAKES: &[(&[&str], &str)] = &[
    (
        &["serve", "/nowhere"],
        "\"/nowhere\": (2: No such file or directory)",
    ),
    (&["serve", "/dev/null"], "\"/dev/null\" is not a folder"),
    (&["serve", "/tmp", "/tmp"], "one folder can be named"),
    (
        &["serve", "--lsit"],
        "unknown option \"--lsit\", did you mean \"--list\"?",
    ),
    (&["serve", "--list=x"], "option \"--list\" takes no value"),
    (&["serve", "--listen"], "option \"--listen\" needs a value"),
    (
        &["serve", "--listen", "70000"],
        "\"70000\" is not an address: write PORT, ADDRESS or ADDRESS:PORT",
    ),
    (
        &["serve", "--https", "a b;"],
        "\"a b;\" is not the name of a host",
    ),
    (
        &[
            "serve",
            "--https",
            "example.com",
            "--listen",
            "8443",
            "/tmp",
        ],
        "a public name needs ports 80 and 443, where the authority checks it: leave the port out",
    ),
    (
        &["proxy", "8080"],
        "name the address for clients and the application: turnpike proxy FROM TO...",
    ),
    (
        &["proxy", "8080", "a b"],
        "\"a b\" is not an application: write PORT, HOST:PORT, http://HOST:PORT, https://HOST or \
         unix:SOCKET",
    ),
    (
        &["proxy", "8080", "3000;return"],
        "\"3000;return\" is not an application: write PORT, HOST:PORT, http://HOST:PORT, \
         https://HOST or unix:SOCKET",
    ),
    (
        &["proxy", "8080", "3000", "https://a.example.com"],
        "either all applications are reached by https://, or none",
    ),
    (
        &["php"],
        "name the folder of the application: turnpike php DIR",
    ),
    (&["php", "--fpm", "a{b", "/tmp"], "\"a{b\" is no address"),
];

#[test]
fn words_that_cannot_be_meant_are_refused() {
    for (line, message) in MISTAKES {
        assert_eq!(configuration(line), Err((*message).to_owned()), "{line:?}");
    }
}

#[test]
fn a_path_stands_as_one_word() {
    let folder = turnpike_testkit::Folder::create().unwrap();
    for (name, expected) in [
        ("a b", Some("a b\";")),
        ("c;d", Some("c;d\";")),
        ("e\"f", Some("e\\\"f\";")),
        ("g$h", None),
        ("i\nj", None),
    ] {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let text = configuration(&["serve", path.to_str().unwrap()]);
        match expected {
            Some(end) => assert!(text.unwrap().contains(&format!("/{end}")), "{name}"),
            None => assert!(text.is_err(), "{name}"),
        }
    }
}
