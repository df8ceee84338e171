//! Tests of `turnpike check`, with its own configurations and those of distributions.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;
use support::{stderr, turnpike};
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

/// The directives of the main file in the official container image, and of its one site.
const CONTAINER: &str = "\
worker_processes auto;
error_log error.log notice;
pid nginx.pid;
events { worker_connections 1024; }
http {
    include mime.types;
    default_type application/octet-stream;
    log_format main '$remote_addr $remote_user [$time_local] \"$request\" $status '
                    '$body_bytes_sent \"$http_referer\" \"$http_user_agent\" '
                    '\"$http_x_forwarded_for\"';
    access_log access.log main;
    sendfile on;
    keepalive_timeout 65;
    include conf.d/*.conf;
    server {
        listen 127.0.0.1:80;
        server_name localhost;
        location / { root html; index index.html index.htm; }
        error_page 500 502 503 504 /50x.html;
        location = /50x.html { root html; }
    }
}
";

/// The directives of Alpine's package.
const ALPINE: &str = "\
worker_processes auto;
pcre_jit on;
error_log error.log warn;
pid nginx.pid;
include modules/*.conf;
include conf.d/*.conf;
events { worker_connections 1024; }
http {
    include mime.types;
    default_type application/octet-stream;
    server_tokens off;
    client_max_body_size 1m;
    sendfile on;
    tcp_nopush on;
    ssl_protocols TLSv1.1 TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers on;
    ssl_session_cache shared:SSL:2m;
    ssl_session_timeout 1h;
    ssl_session_tickets off;
    gzip_vary on;
    map $http_upgrade $connection_upgrade { default upgrade; '' close; }
    log_format main '$remote_addr $request_time $request_length';
    access_log access.log main;
    include http.d/*.conf;
    server {
        listen 127.0.0.1:80 default_server;
        location / { return 404; }
        location = /404.html { internal; }
    }
}
";

/// The directives of Ubuntu's package; Debian's has other values.
const UBUNTU: &str = "\
worker_processes auto;
worker_cpu_affinity auto;
pid nginx.pid;
error_log error.log;
include modules-enabled/*.conf;
events { worker_connections 768; multi_accept on; }
http {
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    server_tokens build;
    server_names_hash_bucket_size 64;
    server_name_in_redirect off;
    include mime.types;
    default_type application/octet-stream;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_prefer_server_ciphers off;
    access_log access.log;
    gzip on;
    gzip_vary on;
    gzip_proxied any;
    gzip_comp_level 6;
    gzip_buffers 16 8k;
    gzip_http_version 1.1;
    gzip_types text/plain text/css application/json text/javascript;
    include conf.d/*.conf;
    include sites-enabled/*;
    server {
        listen 127.0.0.1:80 default_server;
        root html;
        index index.html index.htm;
        server_name _;
        location / { try_files $uri $uri/ =404; }
    }
}
";

#[test]
fn directives_of_stock_files_load() {
    for (name, text) in [
        ("container", CONTAINER),
        ("Alpine", ALPINE),
        ("Ubuntu", UBUNTU),
    ] {
        let folder = Folder::create().unwrap();
        folder
            .write("mime.types", "types { text/html html; }")
            .unwrap();
        folder.write("nginx.conf", text).unwrap();
        let path = format!("{}/nginx.conf", folder.name());
        let output = turnpike(&["check", &path]);
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{name}: {report}");
        let tested = turnpike(&folder.arguments(&["-tq"]));
        assert_eq!(
            (tested.status.code(), stderr(&tested).as_str()),
            (Some(0), ""),
            "{name}"
        );
    }
}

/// A server with a stock file, with another port, and its answer to `GET /`.
fn serve(folder: &Folder, text: &str) -> String {
    let port = turnpike_testkit::ports::reserve().unwrap();
    let text = text.replace("127.0.0.1:80", &format!("127.0.0.1:{port}"));
    let text = format!("daemon on; {text}");
    folder.write("nginx.conf", text).unwrap();
    std::fs::create_dir_all(folder.path().join("html")).unwrap();
    folder.write("html/index.html", "a stock page").unwrap();
    let output = turnpike(&folder.arguments(&[]));
    assert!(output.status.success(), "{}", stderr(&output));
    let response = TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    });
    let output = turnpike(&folder.arguments(&["-s", "quit"]));
    assert!(output.status.success(), "{}", stderr(&output));
    support::wait_for("the end", || !folder.has("nginx.pid"));
    response.unwrap()
}

#[test]
fn stock_files_serve() {
    let debian = std::fs::read_to_string("/etc/nginx/nginx.conf").unwrap();
    let site = "server { listen 127.0.0.1:80 default_server; root html; \
                location / { try_files $uri $uri/ =404; } }";
    for (name, text, status) in [
        ("container", CONTAINER, "200"),
        ("Alpine", ALPINE, "404"),
        ("Ubuntu", UBUNTU, "200"),
        ("Debian", &debian, "200"),
    ] {
        let folder = Folder::create().unwrap();
        let types = "types { text/html html; }";
        folder.write("mime.types", types).unwrap();
        let text = text
            .replace("include /etc/nginx/modules-enabled/*.conf;", "")
            .replace("include /etc/nginx/conf.d/*.conf;", "")
            .replace("include /etc/nginx/sites-enabled/*;", site)
            .replace("/run/nginx.pid", "nginx.pid")
            .replace("/var/log/nginx", folder.name());
        let response = serve(&folder, &text);
        let begin = format!("HTTP/1.1 {status} ");
        assert!(response.starts_with(&begin), "{name}: {response}");
        assert_eq!(
            response.ends_with("a stock page"),
            status == "200",
            "{name}"
        );
    }
}

#[test]
fn the_file_of_this_debian_loads() {
    let stock = "/etc/nginx/nginx.conf";
    assert!(
        Path::new(stock).exists(),
        "nginx-light is installed by \"cargo xtask setup\""
    );
    // Modules of others that this machine may have are left out; the rest is unchanged.
    let folder = Folder::create().unwrap();
    let text = std::fs::read_to_string(stock).unwrap();
    let modules = "include /etc/nginx/modules-enabled/*.conf;";
    assert!(text.contains(modules), "{text}");
    folder
        .write("nginx.conf", text.replace(modules, ""))
        .unwrap();
    let path = format!("{}/nginx.conf", folder.name());
    let output = turnpike(&["check", "-p", "/usr/share/nginx", &path]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{report}");
}
