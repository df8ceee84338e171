//! Tests of the host of a request: whoever sees it sees the same one, whether the request names it
//! in its target or in `Host` (RFC 9112 section 3.2.2).

use std::path::Path;

use crate::support::applications::Application;
use turnpike_testkit::random::Random;
use turnpike_testkit::{Origin, Server, Step, exchange, wait_for};

const NGINX: &str = "/usr/sbin/nginx";

/// The cases of each run of the tests, and of a long run.
const CASES: u64 = 60;
const CASES_LONG: u64 = 2000;

const SEED: u64 = 9112;

/// The protocols of applications; each has a location of its name.
const PROTOCOLS: &[&str] = &["fastcgi", "scgi", "uwsgi"];

/// A server with names, one with another, and one without any; `$host` and all that is chosen by
/// it, and applications whose answer is the `HTTP_HOST` that they are sent.
fn configuration(applications: &[Application]) -> String {
    let mut locations =
        r#"location /seen { return 200 "$host $server_name $http_host"; }"#.to_owned();
    for application in applications {
        let (name, port) = (application.protocol(), application.port());
        locations.push_str(&format!(
            "location /{name} {{ {name}_pass 127.0.0.1:{port}; }}\n"
        ));
    }
    format!(
        "worker_processes 1;
        error_log %FOLDER%/error.log crit;
        events {{ }}
        http {{
            access_log off;
            server {{
                listen 127.0.0.1:%PORT% default_server;
                server_name first.example www.first.example;
                {locations}
            }}
            server {{
                listen 127.0.0.1:%PORT%;
                server_name good.example *.good.example;
                {locations}
            }}
            server {{ listen 127.0.0.1:%PORT%; server_name ~^re[0-9]\\.; {locations} }}
            server {{ listen 127.0.0.1:%PORT_NAMELESS%; {locations} }}
        }}"
    )
}

/// A request without its path.
#[derive(Debug)]
struct Case {
    /// Host and port in the target.
    authority: Option<String>,
    /// `Host`
    field: Option<String>,
    version: &'static str,
    is_nameless: bool,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let has_authority = random.percent(50);
        let has_field = random.percent(75);
        Case {
            authority: has_authority.then(|| host(random)),
            field: has_field.then(|| host(random)),
            version: random.pick(&["1.0", "1.1"]),
            is_nameless: random.percent(30),
        }
    }

    /// The bytes that ask a server for this path.
    fn request(&self, path: &str) -> String {
        let origin = match &self.authority {
            Some(authority) => format!("http://{authority}"),
            None => String::new(),
        };
        let field = match &self.field {
            Some(field) => format!("Host: {field}\r\n"),
            None => String::new(),
        };
        let version = self.version;
        format!("GET {origin}{path} HTTP/{version}\r\n{field}Connection: close\r\n\r\n")
    }

    /// The host that counts, as it is written.
    fn written(&self) -> Option<&str> {
        self.authority.as_deref().or(self.field.as_deref())
    }

    /// Status and body of a server's answer.
    fn ask(&self, server: &Server, path: &str) -> (String, String) {
        let port = if self.is_nameless {
            server.port_named("NAMELESS")
        } else {
            server.port()
        };
        let answer = String::from_utf8(exchange(port, self.request(path))).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap();
        let body = if status == "200" { body } else { "" };
        (status.to_owned(), body.to_owned())
    }
}

/// A host with or without a port, in a form that nginx 1.22 and the RFC read alike.
fn host(random: &mut Random) -> String {
    const HOSTS: &[&str] = &[
        "good.example",
        "GOOD.Example",
        "good.example.",
        "a.good.example",
        "first.example",
        "WWW.first.example.",
        "re1.example",
        "evil.example",
        "evil-1.example",
        "x",
        "127.0.0.1",
        "[::1]",
        "[2001:DB8::1]",
        "",
        ".",
        "a..b",
        "a/b",
    ];
    const PORTS: &[&str] = &["", "", "", ":", ":80", ":8099", ":0", ":080", ":65535"];
    format!("{}{}", random.pick(HOSTS), random.pick(PORTS))
}

/// The port in a host that was accepted; empty if there is none.
fn port(written: &str) -> String {
    let behind = written.rsplit(']').next().unwrap_or_default();
    let digits = behind.split_once(':').map_or("", |(_, digits)| digits);
    match digits.parse::<u16>() {
        Ok(port @ 1..) => format!(":{port}"),
        _ => String::new(),
    }
}

/// Compares these cases with nginx; returns the number of those that both answer.
fn compare(cases: u64) -> usize {
    let applications: Vec<Application> = PROTOCOLS
        .iter()
        .map(|name| Application::start(name, "HTTP_HOST"))
        .collect();
    let text = configuration(&applications);
    let ours = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&text)
        .start();
    let nginx = Server::builder(NGINX).configuration(&text).start();
    let mut answered = 0;
    for number in 0..cases {
        let case = Case::random(&mut Random::of_case(SEED, number));
        let (status, seen) = case.ask(&nginx, "/seen");
        let (host, server) = match seen.split_once(' ') {
            Some((host, rest)) => (host, rest.split(' ').next().unwrap()),
            None => ("", ""),
        };
        let expected = match status.as_str() {
            "200" => format!("{host} {server} {}", case.written().unwrap_or_default()),
            _ => String::new(),
        };
        let got = case.ask(&ours, "/seen");
        assert_eq!(got, (status.clone(), expected), "case {number}: {case:?}");
        if status != "200" {
            continue;
        }
        answered += 1;
        // nginx 1.22 has no variable for the port, and sends applications the field.
        let expected = match host {
            "" => String::new(),
            host => format!("{host}{}", port(case.written().unwrap_or_default())),
        };
        for protocol in PROTOCOLS {
            let got = case.ask(&ours, &format!("/{protocol}"));
            let expected = ("200".to_owned(), expected.clone());
            assert_eq!(got, expected, "case {number}, {protocol}: {case:?}");
        }
    }
    answered
}

fn check(cases: u64) {
    if !Path::new(NGINX).exists() {
        println!("skipped: no {NGINX}");
        return;
    }
    let answered = compare(cases);
    assert!(
        answered > cases as usize / 4,
        "only {answered} were answered"
    );
}

#[test]
fn hosts_are_those_that_nginx_sees() {
    check(CASES);
}

#[test]
#[ignore = "thousands of connections take seconds: a part of make test-long"]
fn hosts_are_those_that_nginx_sees_in_a_long_run() {
    check(CASES_LONG);
}

/// The host that the target of the request has, beside another one in `Host`.
const GOOD: &str = "Good.example:80";

/// Locations that show the host in different ways.
const PLACES: &str = "
    error_log %FOLDER%/error.log info;
    events { }
    http {
        log_format host '$host $http_host $server_name';
        access_log %FOLDER%/access.log host;
        server { listen 127.0.0.1:%PORT%; server_name evil.example; return 403; }
        server {
            listen 127.0.0.1:%PORT%;
            server_name good.example;
            location /variables { return 200 '$host $http_host'; }
            location /ssi { ssi on; ssi_types *; root %FOLDER%; }
            location /redirect { return 301 /there; }
            location /parameter { fastcgi_pass 127.0.0.1:APPLICATION; }
            location /passed {
                proxy_pass http://127.0.0.1:ORIGIN;
                proxy_set_header Host $http_host;
            }
            location /mirrored { mirror /passed; echo mirrored; }
            location /judged { auth_request /passed; echo judged; }
        }
    }";

#[test]
fn all_who_see_the_host_see_that_of_the_target() {
    let application = Application::start("fastcgi", "HTTP_HOST");
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send("HTTP/1.1 204 No Content\r\n\r\n"),
    ]]);
    let configuration = PLACES
        .replace("APPLICATION", &application.port().to_string())
        .replace("ORIGIN", &origin.port().to_string());
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file(
            "ssi",
            "<!--#echo var=\"HTTP_HOST\" --> <!--#echo var=\"host\" -->",
        )
        .start();
    let port = server.port();
    let there = format!("Location: http://good.example:{port}/there\r\n");
    for (path, holds) in [
        ("/variables", "good.example Good.example:80"),
        ("/ssi", "Good.example:80 good.example"),
        ("/redirect", there.as_str()),
        ("/parameter", "\r\n\r\ngood.example:80"),
        ("/passed", "HTTP/1.1 204 "),
        ("/mirrored", "mirrored"),
        ("/judged", "judged"),
        (
            "/refused HTTP/1.1\r\nContent-Length: x\r\nA:",
            "HTTP/1.1 400 ",
        ),
    ] {
        for version in ["1.0", "1.1"] {
            let request = format!(
                "GET http://{GOOD}{path} HTTP/{version}\r\n\
                 Host: evil.example\r\nConnection: close\r\n\r\n"
            );
            let answer = String::from_utf8(server.exchange(request)).unwrap();
            assert!(answer.contains(holds), "{path} {version}: {answer}");
        }
    }
    // The request itself, the mirrored ones and the judged ones.
    origin.wait_for_ended(6);
    for head in origin.received() {
        let head = String::from_utf8(head).unwrap();
        assert!(head.contains("\r\nHost: Good.example:80\r\n"), "{head}");
        assert!(!head.contains("evil"), "{head}");
    }
    let logged =
        wait_for(|| Some(server.log("access.log")).filter(|log| log.lines().count() >= 16));
    for line in logged.unwrap().lines() {
        assert_eq!(line, format!("good.example {GOOD} good.example"));
    }
    let errors = server.log("error.log");
    assert!(errors.contains(", host: \"Good.example:80\""), "{errors}");
    assert!(!errors.contains("evil"), "{errors}");
}

/// Requests that name no `Host` beside that of their target have one all the same.
#[test]
fn a_target_without_host_field_gives_one() {
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(
            "events { }
            http { server {
                listen 127.0.0.1:%PORT%;
                location / { return 200 '[$http_host] $host'; }
            } }",
        )
        .start();
    for (request, body) in [
        ("GET http://A:81/ HTTP/1.0\r\n\r\n", "[A:81] a"),
        ("GET http://A:81/\r\n", "[A:81] a"),
        ("GET / HTTP/1.0\r\n\r\n", "[] "),
    ] {
        let answer = String::from_utf8(server.exchange(request)).unwrap();
        assert!(answer.ends_with(body), "{request}: {answer}");
    }
}

/// The configuration's own `HTTP_HOST`, with and without the client's fields.
#[test]
fn the_host_of_applications_can_be_set() {
    for (directives, host) in [
        ("", "a:81"),
        ("fastcgi_pass_request_headers off;", "a:81"),
        ("fastcgi_param HTTP_HOST $http_host;", "A.:81"),
        ("fastcgi_param HTTP_HOST '';", ""),
        ("more_set_input_headers 'Host: Other.:82';", "other:82"),
        ("more_clear_input_headers Host;", "named"),
    ] {
        let application = Application::start("fastcgi", "HTTP_HOST");
        let port = application.port();
        let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&format!(
                "events {{ }}
                http {{ server {{
                    listen 127.0.0.1:%PORT%;
                    server_name named;
                    location / {{ fastcgi_pass 127.0.0.1:{port}; {directives} }}
                }} }}"
            ))
            .start();
        let request = "GET / HTTP/1.1\r\nHost: A.:81\r\nConnection: close\r\n\r\n";
        let answer = String::from_utf8(server.exchange(request)).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body, host, "{directives}");
    }
}

/// Answers that an application makes for one port, or for one server, are no other's.
#[test]
fn the_host_with_its_port_is_in_the_key_of_applications() {
    let application = Application::start("fastcgi", "HTTP_HOST");
    let port = application.port();
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "events {{ }}
            http {{
                fastcgi_cache_path %FOLDER%/cache keys_zone=z:1m;
                fastcgi_cache z;
                fastcgi_cache_valid 1m;
                server {{
                    listen 127.0.0.1:%PORT%;
                    server_name one;
                    location / {{ fastcgi_pass 127.0.0.1:{port}; }}
                }}
                server {{
                    listen 127.0.0.1:%PORT_OTHER%;
                    server_name other;
                    location / {{ fastcgi_pass 127.0.0.1:{port}; }}
                }}
            }}"
        ))
        .start();
    let other = server.port_named("OTHER");
    for (port, request, host) in [
        (server.port(), "GET / HTTP/1.0\r\nHost: a:1\r\n\r\n", "a:1"),
        (server.port(), "GET / HTTP/1.0\r\nHost: a:2\r\n\r\n", "a:2"),
        (server.port(), "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "a"),
        (server.port(), "GET / HTTP/1.0\r\n\r\n", "one"),
        (other, "GET / HTTP/1.0\r\n\r\n", "other"),
    ] {
        let answer = String::from_utf8(exchange(port, request)).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body, host, "{request}");
    }
}
