//! Tests of access rules and of limits on rates and connections, with their log lines.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use turnpike_testkit::{Server, check};

const CONFIGURATION: &str = "
events { }
http {
    log_format line '$uri $status $remote_addr $remote_user $http_referer';
    log_format json escape=json '{\"uri\":\"$uri\"}';
    access_log %FOLDER%/all.log line;
    limit_req_zone $arg_k zone=rate:1m rate=1r/m;
    limit_conn_zone $arg_k zone=count:1m;
    server {
        listen 127.0.0.1:%PORT%;
        root %FOLDER%/html;
        server_tokens off;
        location /denied/ { deny 127.0.0.0/8; alias %FOLDER%/html/; }
        location /allowed/ { allow 127.0.0.1; deny all; alias %FOLDER%/html/; }
        location /password/ {
            auth_basic 'the site';
            auth_basic_user_file users;
            alias %FOLDER%/html/;
        }
        location /any/ {
            satisfy any;
            allow 127.0.0.1;
            deny all;
            auth_basic site;
            auth_basic_user_file users;
            alias %FOLDER%/html/;
        }
        location /rate/ {
            limit_req zone=rate;
            limit_req_status 429;
            add_header X-Limit $limit_req_status always;
            alias %FOLDER%/html/;
        }
        location /count/ {
            limit_conn count 1;
            add_header X-Limit $limit_conn_status always;
            alias %FOLDER%/html/;
        }
        location /real/ {
            set_real_ip_from 127.0.0.0/8;
            real_ip_header X-Forwarded-For;
            real_ip_recursive on;
            add_header X-Client $remote_addr;
            add_header X-Connection $realip_remote_addr;
            alias %FOLDER%/html/;
        }
        location /logged/ {
            access_log %FOLDER%/json.log json if=$arg_log;
            access_log %FOLDER%/lines/of-$arg_log.log json;
            alias %FOLDER%/html/;
        }
        location = /status { status json; }
    }
}";

fn server() -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(CONFIGURATION)
        .file("html/a", "content")
        .file("lines/none", "")
        .file("users", "# users\nme:{PLAIN}secret\n")
        .start()
}

const OK: &str = "HTTP/1.1 200 OK\n*";

const EXCHANGES: &[(&str, &str, &str)] = &[
    (
        "a denied network",
        "GET /denied/a HTTP/1.0\n\n",
        "HTTP/1.1 403 Forbidden\n*",
    ),
    ("an allowed address", "GET /allowed/a HTTP/1.0\n\n", OK),
    (
        "no password",
        "GET /password/a HTTP/1.0\n\n",
        "HTTP/1.1 401 Unauthorized\nServer: nginx\nDate: *\nContent-Type: text/html\n\
         Content-Length: 172\nConnection: close\n\
         WWW-Authenticate: Basic realm=\"the site\"\n\n*",
    ),
    (
        "the right password",
        "GET /password/a HTTP/1.0\nAuthorization: Basic bWU6c2VjcmV0\n\n",
        OK,
    ),
    (
        "a wrong password",
        "GET /password/a HTTP/1.0\nAuthorization: Basic bWU6d3Jvbmc=\n\n",
        "HTTP/1.1 401 Unauthorized\n*",
    ),
    ("either is enough", "GET /any/a HTTP/1.0\n\n", OK),
    (
        "a first request in the rate",
        "GET /rate/a?k=1 HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nX-Limit: PASSED\n*",
    ),
    (
        "a second one above it",
        "GET /rate/a?k=1 HTTP/1.0\n\n",
        "HTTP/1.1 429 Too Many Requests\n*\nX-Limit: REJECTED\n*",
    ),
    ("another key", "GET /rate/a?k=2 HTTP/1.0\n\n", OK),
    ("no key", "GET /rate/a HTTP/1.0\n\n", OK),
    (
        "one after another is one at a time",
        "GET /count/a?k=1 HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nX-Limit: PASSED\n*",
    ),
    (
        "and again",
        "GET /count/a?k=1 HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\nX-Limit: PASSED\n*",
    ),
    (
        "a client behind proxies",
        "GET /real/a HTTP/1.0\nX-Forwarded-For: 192.0.2.1, 127.0.0.2\n\n",
        "HTTP/1.1 200 OK\n*\nX-Client: 192.0.2.1\nX-Connection: 127.0.0.1\n*",
    ),
    (
        "the status page",
        "GET /status HTTP/1.0\n\n",
        "HTTP/1.1 200 OK\n*\n{\"generation\":1,\"accepted\":*,\"handled\":*,\"active\":*,\
         \"reading\":*,\"writing\":*,\"waiting\":*,\"requests\":*,\"made_room\":*,\
         \"log_lines_lost\":*,\"lanes\":[{\"lane\":0,\"accepted\":*,\"log_lines_lost\":0}*]}\n",
    ),
];

#[test]
fn requests_are_let_in_or_refused() {
    check(&server(), EXCHANGES);
}

const LOGGED: &[(&str, &str, &str)] = &[
    ("a line", "GET /a HTTP/1.0\nReferer: x\"y\n\n", OK),
    (
        "a user",
        "GET /password/a HTTP/1.0\nAuthorization: Basic bWU6c2VjcmV0\n\n",
        OK,
    ),
    (
        "a condition that holds",
        "GET /logged/a?log=1 HTTP/1.0\n\n",
        OK,
    ),
    ("one that does not", "GET /logged/a?log=0 HTTP/1.0\n\n", OK),
];

#[test]
fn lines_are_in_their_files_when_the_connection_closes() {
    let server = server();
    // The serving process may run as another user, who opens the logs that requests name.
    let folder = server.folder().join("lines");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    check(&server, LOGGED);
    let files = [
        (
            "all.log",
            "/a 200 127.0.0.1 - x\\x22y\n/password/a 200 127.0.0.1 me -\n",
        ),
        ("json.log", "{\"uri\":\"/logged/a\"}\n"),
        ("lines/of-1.log", "{\"uri\":\"/logged/a\"}\n"),
        ("lines/of-0.log", "{\"uri\":\"/logged/a\"}\n"),
    ];
    for (name, lines) in files {
        let got = fs::read_to_string(server.folder().join(name)).unwrap();
        assert_eq!(got, lines, "{name}");
    }
}
