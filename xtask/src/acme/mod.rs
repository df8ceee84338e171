//! Certificates of Pebble, the ACME server that Let's Encrypt tests clients with: orders, renewals
//! and refusals, by each challenge. curl judges what the server shows.

mod authority;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use turnpike_testkit::{Server, Signal};

use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use authority::Authority;

/// How long something may take that must come: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Every server of a test: `%SERVERS%` stand behind the issuer, whose block has `%LINES%`.
const CONFIGURATION: &str = r"
worker_processes 2;
error_log %FOLDER%/error.log info;
events { }
http {
    access_log off;
    resolver 127.0.0.1:%DNS% ipv6=off;
    acme_issuer pebble {
        uri https://127.0.0.1:%ACME%/dir;
        contact admin@example.test;
        ssl_trusted_certificate %AUTHORITY%/server.pem;
        state_path %FOLDER%/state;
        accept_terms_of_service;
        %LINES%
    }
    acme_shared_zone zone=acme:1m;
    server {
        listen 127.0.0.1:%HTTP%;
        return 301 https://$host$request_uri;
    }
    %SERVERS%
}
";

/// A server with a certificate of the issuer.
const SERVER: &str = r"
    server {
        listen 127.0.0.1:%TLS% ssl;
        server_name %NAMES%;
        acme_certificate pebble %IDENTIFIERS%;
        ssl_certificate $acme_certificate;
        ssl_certificate_key $acme_certificate_key;
        location / { return 200 $ssl_server_name; }
    }
";

/// The program that sets records; the name server takes them by HTTP.
const SET_RECORD: &str = r#"#!/bin/sh
case $1 in
add) path=set-txt ;;
*) path=clear-txt ;;
esac
record="{\"host\": \"$2.\", \"value\": \"$3\"}"
exec curl --silent --fail --data "$record" http://127.0.0.1:%PORT%/$path
"#;

/// What every test is given.
struct Bench {
    ours: Contender,
    authority: Authority,
}

/// A test by its name.
type Test = (&'static str, fn(&Bench) -> Outcome);

const TESTS: &[Test] = &[
    ("http-01: order, restart, reload", orders_over_http),
    ("renewal", renews),
    ("tls-alpn-01", orders_in_handshakes),
    ("dns-01: a wildcard", orders_by_dns),
    ("two processes", orders_once),
    ("a refused order", is_refused),
];

/// Runs the tests, each with servers of its own.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug", "--install"])?;
    let programs = authority::Programs::build()?;
    if options.has("--install") {
        return Ok(());
    }
    let bench = Bench {
        ours: Contender::ours(&options)?,
        authority: Authority::start(&programs)?,
    };
    for (name, test) in TESTS {
        let since = Instant::now();
        test(&bench).map_err(|why| format!("{name}: {why}"))?;
        println!("{name}: passed in {} s", since.elapsed().as_secs());
    }
    Ok(())
}

impl Bench {
    /// The text of a configuration with an issuer of these lines, and with these servers.
    fn configuration(&self, lines: &str, servers: &str) -> String {
        let authority = &self.authority;
        CONFIGURATION
            .replace("%SERVERS%", servers)
            .replace("%LINES%", lines)
            .replace("%AUTHORITY%", &authority.folder().display().to_string())
            .replace("%ACME%", &authority.acme_port.to_string())
            .replace("%DNS%", &authority.dns_port.to_string())
            .replace("%HTTP%", &authority.http_port.to_string())
            .replace("%TLS%", &authority.tls_port.to_string())
    }

    fn start(&self, lines: &str, servers: &str) -> Result<Server, String> {
        self.ours.start(&self.configuration(lines, servers))
    }

    /// What curl gets for a name: it must trust the authority's certificate for it.
    fn fetch(&self, name: &str) -> Result<String, String> {
        self.fetch_from("127.0.0.1", name)
    }

    fn fetch_from(&self, address: &str, name: &str) -> Result<String, String> {
        let port = self.authority.tls_port;
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--cacert"])
            .arg(self.authority.folder().join("root.pem"))
            .args(["--resolve", &format!("{name}:{port}:{address}")])
            .arg(format!("https://{name}:{port}/"))
            .output()
            .map_err(|error| format!("curl: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// The text of a server.
fn server(names: &str, identifiers: &str) -> String {
    SERVER
        .replace("%NAMES%", names)
        .replace("%IDENTIFIERS%", identifiers)
}

/// Waits until a text stands in the error log so often.
fn wait_for(server: &Server, text: &str, times: usize) -> Outcome {
    let until = Instant::now() + PATIENCE;
    while server.log("error.log").matches(text).count() < times {
        if Instant::now() > until {
            let log = server.log("error.log");
            return Err(format!("the log has no \"{text}\":\n{log}"));
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}

fn expect(found: &str, expected: &str) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("expected \"{expected}\", found \"{found}\""))
    }
}

/// A certificate is ordered while the configuration is loaded again, kept for the owner alone, and
/// used after a restart without another order.
fn orders_over_http(bench: &Bench) -> Outcome {
    let servers = [
        server("a.test b.test", ""),
        server("c.test", "c.test key=ecdsa:384"),
        server("r.test", "r.test key=rsa"),
    ];
    let servers = servers.concat();
    let state = bench.authority.folder().join("state");
    let configuration = bench.configuration("challenge http; profile default;", &servers);
    let configuration = configuration.replace("%FOLDER%/state", &state.display().to_string());
    let ours = bench.ours.start(&configuration)?;
    for _ in 0..3 {
        ours.signal(Signal::SIGHUP);
    }
    for names in ["a.test b.test", "c.test", "r.test"] {
        wait_for(&ours, &format!("a certificate for {names} is in force"), 1)?;
    }
    for name in ["a.test", "b.test", "c.test", "r.test"] {
        expect(&bench.fetch(name)?, name)?;
    }
    for entry in fs::read_dir(&state).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        is_private(&path)?;
    }
    is_private(&state)?;
    drop(ours);
    let again = bench.ours.start(&configuration)?;
    wait_for(&again, "this process orders certificates", 1)?;
    expect(&bench.fetch("a.test")?, "a.test")?;
    if again.log("error.log").contains("ordering a certificate") {
        Err("the certificate was ordered again".to_owned())
    } else {
        Ok(())
    }
}

fn is_private(path: &Path) -> Outcome {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    match metadata.permissions().mode() & 0o077 {
        0 => Ok(()),
        mode => Err(format!(
            "{}: others have the rights {mode:o}",
            path.display()
        )),
    }
}

/// A certificate of a short life is renewed, and the new one is shown.
fn renews(bench: &Bench) -> Outcome {
    let ours = bench.start("profile short;", &server("d.test", ""))?;
    wait_for(&ours, "a certificate for d.test is in force", 3)?;
    expect(&bench.fetch("d.test")?, "d.test")
}

/// The challenge is answered in the handshake, beside a server that has a certificate of its own.
fn orders_in_handshakes(bench: &Bench) -> Outcome {
    let servers = [server("f.test", "f.test 127.0.0.1"), server("g.test", "")].concat();
    let ours = bench.start("challenge tls-alpn-01; profile default;", &servers)?;
    wait_for(&ours, "a certificate for g.test is in force", 1)?;
    for name in ["f.test", "g.test"] {
        expect(&bench.fetch(name)?, name)?;
    }
    Ok(())
}

/// A program sets the records in the authority's name server.
fn orders_by_dns(bench: &Bench) -> Outcome {
    let program = bench.authority.folder().join("set-record");
    let port = bench.authority.records_port;
    let script = SET_RECORD.replace("%PORT%", &port.to_string());
    fs::write(&program, script).map_err(|error| error.to_string())?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .map_err(|error| error.to_string())?;
    let lines = format!("challenge dns-01 {}; profile default;", program.display());
    let ours = bench.start(&lines, &server("*.h.test h.test", ""))?;
    wait_for(&ours, "a certificate for *.h.test h.test is in force", 1)?;
    for name in ["www.h.test", "h.test"] {
        expect(&bench.fetch(name)?, name)?;
    }
    Ok(())
}

/// Of two servers with one folder, one orders, and both have the certificate.
fn orders_once(bench: &Bench) -> Outcome {
    let folder = bench.authority.folder().join("shared");
    let configuration = bench.configuration("profile default;", &server("i.test", ""));
    let configuration = configuration.replace("%FOLDER%/state", &folder.display().to_string());
    let first = bench.ours.start(&configuration)?;
    wait_for(&first, "a certificate for i.test is in force", 1)?;
    // The second one listens at an address of its own.
    let other = configuration.replace("listen 127.0.0.1:", "listen 127.0.0.2:");
    let second = bench.ours.start(&other)?;
    wait_for(&second, "another process has locked", 1)?;
    expect(&bench.fetch_from("127.0.0.2", "i.test")?, "i.test")?;
    drop(first);
    wait_for(&second, "this process orders certificates", 1)?;
    if second.log("error.log").contains("ordering a certificate") {
        Err("the certificate was ordered again".to_owned())
    } else {
        Ok(())
    }
}

/// An authority's refusal is in the log, and it is not asked again at once; other certificates are
/// ordered all the same.
fn is_refused(bench: &Bench) -> Outcome {
    let servers = [server("blocked.test", ""), server("e.test", "")].concat();
    let ours = bench.start("profile default;", &servers)?;
    wait_for(&ours, "ordering a certificate for blocked.test failed", 1)?;
    wait_for(&ours, "a certificate for e.test is in force", 1)?;
    expect(&bench.fetch("e.test")?, "e.test")?;
    let log = ours.log("error.log");
    if !log.contains("the next try is in 60 s") || !log.contains("rejectedIdentifier") {
        return Err(format!("the reason is not in the log:\n{log}"));
    }
    match bench.fetch("blocked.test") {
        Ok(_) => Err("a server without a certificate has answered".to_owned()),
        Err(_) => wait_for(&ours, "no certificate for blocked.test has been issued", 1),
    }
}
