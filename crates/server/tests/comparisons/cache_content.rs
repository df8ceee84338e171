//! A comparison with an installed nginx of caches whose keys hold the content of requests in many
//! ways: no client of ours gets the answer to content of another.

use std::path::Path;

use turnpike_testkit::random::Random;
use turnpike_testkit::{Response, Server};

use crate::support::content_origin::{self, Framing, Protocol, ask_with, said};

const NGINX: &str = "/usr/sbin/nginx";

/// Cases of each run of the tests, and of a long run.
const CASES: u64 = 100;
const CASES_LONG: u64 = 2_000;

/// Cases that are tried with one configuration.
const CASES_OF_SERVER: u64 = 100;

/// Requests of a case.
const REQUESTS_OF_CASE: usize = 6;

/// Keys that nginx knows too; the content is in those of the first ones.
const NGINX_KEYS: &[&str] = &[
    "$uri|$request_body",
    "$uri|$mapped",
    "$uri|$request_method|$request_body",
    "$uri|$set",
    "$uri|$by_method",
    "$uri",
    "$uri|$content_length",
    "$uri|$request_body_file",
    "$uri|$http_content_length|$args",
];

/// A location of a case.
fn location(random: &mut Random, number: u64, ports: &[(Protocol, u16)]) -> String {
    let (protocol, port) = random.pick(ports);
    let pass = match protocol {
        Protocol::Http => "proxy_pass http://127.0.0.1",
        Protocol::FastCgi => "fastcgi_pass 127.0.0.1",
        Protocol::Scgi => "scgi_pass 127.0.0.1",
        Protocol::Uwsgi => "uwsgi_pass 127.0.0.1",
    };
    let (family, _) = pass.split_once('_').unwrap();
    let key = random.pick(NGINX_KEYS);
    let methods = random.pick(&["GET", "POST"]);
    let buffering = random.pick(&["on", "off"]);
    let buffer_bytes = random.pick(&["1k", "16k"]);
    let condition = random.pick(&["", "no_cache $mapped;", "cache_bypass $mapped;"]);
    let condition = match condition {
        "" => String::new(),
        condition => format!("{family}_{condition}"),
    };
    let in_file = random.pick(&["off", "off", "off", "clean"]);
    format!(
        "location /{number} {{
            {pass}:{port};
            set $set $request_body;
            {family}_cache {family}; {family}_cache_key {key}; {family}_cache_methods {methods};
            {family}_request_buffering {buffering}; {condition}
            client_body_buffer_size {buffer_bytes}; client_body_in_file_only {in_file};
        }}\n"
    )
}

fn configuration(seed: u64, ports: &[(Protocol, u16)]) -> String {
    let locations: String = (0..CASES_OF_SERVER)
        .map(|number| location(&mut Random::of_case(seed, number), number, ports))
        .collect();
    format!(
        "events {{ }}
        http {{
            access_log off;
            error_log %FOLDER%/error.log crit;
            client_body_temp_path %FOLDER%/bodies;
            proxy_temp_path %FOLDER%/proxy;
            fastcgi_temp_path %FOLDER%/fastcgi;
            scgi_temp_path %FOLDER%/scgi;
            uwsgi_temp_path %FOLDER%/uwsgi;
            proxy_cache_path %FOLDER%/1 keys_zone=proxy:1m use_temp_path=off;
            fastcgi_cache_path %FOLDER%/2 keys_zone=fastcgi:1m use_temp_path=off;
            scgi_cache_path %FOLDER%/3 keys_zone=scgi:1m use_temp_path=off;
            uwsgi_cache_path %FOLDER%/4 keys_zone=uwsgi:1m use_temp_path=off;
            map $request_body $mapped {{ default $request_body; }}
            map $request_method $by_method {{ default none; POST $request_body; }}
            server {{
                listen 127.0.0.1:%PORT%;
                fastcgi_param REQUEST_METHOD $request_method;
                uwsgi_param CONTENT_LENGTH $content_length;
                {locations}
            }}
        }}"
    )
}

/// Sends the requests of a case to both. Ours answers each with its own content; returns how often
/// nginx has answered with another's.
fn compare(random: &mut Random, number: u64, [ours, nginx]: [&Server; 2]) -> usize {
    let large = ["x".repeat(3000), "y".repeat(3000)];
    let contents = ["", "", "a", "a", "b", "c", &large[0], &large[1]];
    let mut wrong = 0;
    for _ in 0..REQUESTS_OF_CASE {
        let method = random.pick(&["GET", "GET", "GET", "HEAD", "POST"]);
        let framing = random.pick(&[Framing::Length, Framing::Chunked, Framing::Expected]);
        let content = random.pick(&contents);
        let request = format!("{method} /{number}");
        let [got, peer] =
            [ours, nginx].map(|server| ask_with(&mut server.connect(), &request, framing, content));
        let case = format!("{request} {framing:?} {}", said(content));
        let own = Some(said(content));
        let answer = |got: &Response| got.header("X-Content").map(str::to_owned);
        assert_eq!((got.status, answer(&got)), (200, own.clone()), "{case}");
        assert!(method == "HEAD" || got.text() == content, "{case}");
        wrong += usize::from(peer.status == 200 && answer(&peer) != own);
    }
    wrong
}

fn check(cases: u64) {
    if !Path::new(NGINX).exists() {
        println!("skipped: no {NGINX}");
        return;
    }
    let protocols = [
        Protocol::Http,
        Protocol::FastCgi,
        Protocol::Scgi,
        Protocol::Uwsgi,
    ];
    let ports = protocols.map(|protocol| (protocol, content_origin::start(protocol)));
    let mut wrong = 0;
    for seed in 0..cases / CASES_OF_SERVER {
        let text = configuration(seed, &ports);
        let start = |program: &str| Server::builder(program).configuration(&text).start();
        let servers = [env!("CARGO_BIN_EXE_turnpike"), NGINX].map(start);
        for number in 0..CASES_OF_SERVER {
            let mut random = Random::of_case(!seed, number);
            wrong += compare(&mut random, number, [&servers[0], &servers[1]]);
        }
    }
    println!("of {cases} cases: nginx answered {wrong} requests as another's");
    assert!(wrong > 0, "no case would show a key without the content");
}

#[test]
fn no_client_gets_the_answer_to_content_of_another() {
    check(CASES);
}

#[test]
#[ignore = "2,000 cases take a minute: a part of make test-long"]
fn no_client_gets_the_answer_to_content_of_another_in_a_long_run() {
    check(CASES_LONG);
}
