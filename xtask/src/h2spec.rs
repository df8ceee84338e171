//! h2spec, a foreign judge of RFC 9113 and RFC 7541, against our server: over TLS and without.
//!
//! h2spec is built from `xtask/h2spec`.

use std::path::Path;
use std::process::Command;

use turnpike_testkit::Server;

use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::go_program;
use crate::options::Options;
use crate::outcome::Outcome;

/// The program's package.
const H2SPEC: &str = "github.com/summerwind/h2spec/cmd/h2spec";

/// How long h2spec waits for an answer, in seconds: a busy machine breaks no rule.
const PATIENCE_SECONDS: &str = "20";

/// Bytes of the file that h2spec asks for. They are more than its windows let through, so that the
/// stream is open until h2spec has sent all that it has for it, whatever the time.
const FILE_BYTES: usize = 300_000;

/// POST is answered like GET: h2spec sends both.
const CONFIGURATION: &str = r"
error_log %FOLDER%/error.log info;
events { }
http {
    access_log off;
    server {
        listen 127.0.0.1:%PORT%;
        listen 127.0.0.1:%PORT_tls% ssl;
        http2 on;
        ssl_certificate %KEYS%/server.pem;
        ssl_certificate_key %KEYS%/server.key;
        location = /open {
            alias %FOLDER%/html/open;
            error_page 405 =200 /open;
        }
    }
}
";

/// The arguments of h2spec for the listener.
struct Round {
    name: &'static str,
    port: &'static str,
    arguments: &'static [&'static str],
}

const ROUNDS: &[Round] = &[
    Round {
        name: "h2c",
        port: "",
        arguments: &[],
    },
    Round {
        name: "h2",
        port: "tls",
        arguments: &["--tls", "--insecure"],
    },
];

/// What h2spec found.
struct Report {
    tests: usize,
    /// Titles of the tests that failed.
    failed: Vec<String>,
}

/// Runs h2spec's tests, the strict ones too, against both listeners.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug", "--install"])?;
    let h2spec = go_program::build("h2spec", H2SPEC)?;
    if options.has("--install") {
        return Ok(());
    }
    let ours = Contender::ours(&options)?;
    let keys = Certificates::create(&[("server", Kind::Ecdsa)])?;
    let configuration = CONFIGURATION.replace("%KEYS%", &keys.path().display().to_string());
    let server = ours
        .builder(&configuration)
        .file("html/open", vec![b'x'; FILE_BYTES])
        .try_start()
        .map_err(|error| error.to_string())?;
    let mut wrong = Vec::new();
    for round in ROUNDS {
        let report = examine(&h2spec, &server, round, keys.path())?;
        wrong.extend(judge(round, &report));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("; "))
    }
}

fn examine(h2spec: &Path, server: &Server, round: &Round, folder: &Path) -> Result<Report, String> {
    let port = match round.port {
        "" => server.port(),
        name => server.port_named(name),
    };
    let file = folder.join(format!("{}.xml", round.name));
    let output = Command::new(h2spec)
        .args(["--strict", "--path", "/open", "--timeout", PATIENCE_SECONDS])
        .args(["--port", &port.to_string(), "--junit-report"])
        .arg(&file)
        .args(round.arguments)
        .output()
        .map_err(|error| format!("{}: {error}", h2spec.display()))?;
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stdout);
        format!("{}: {error}; h2spec said: {said}", file.display())
    })?;
    Ok(read_report(&text))
}

/// Reads the report, which has an element for each test, and within it one where it failed.
fn read_report(text: &str) -> Report {
    let mut report = Report {
        tests: 0,
        failed: Vec::new(),
    };
    for case in text.split("<testcase ").skip(1) {
        report.tests += 1;
        if case.contains("<failure") || case.contains("<error") {
            let title = case.split("classname=\"").nth(1).unwrap_or(case);
            let title = title.split('"').next().unwrap_or_default();
            report.failed.push(title.to_owned());
        }
    }
    report
}

/// Prints what was found, and returns what should be otherwise.
fn judge(round: &Round, report: &Report) -> Vec<String> {
    let passed = report.tests - report.failed.len();
    println!("{}: {passed} of {} tests passed", round.name, report.tests);
    let mut wrong: Vec<String> = Vec::new();
    if report.tests == 0 {
        wrong.push(format!("{}: h2spec ran no test", round.name));
    }
    let failed = report.failed.iter();
    wrong.extend(failed.map(|title| format!("{}: failed: {title}", round.name)));
    wrong
}

#[cfg(test)]
mod tests;
