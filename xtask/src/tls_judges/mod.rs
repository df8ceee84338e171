//! testssl.sh and sslyze, foreign judges of TLS, against our server.
//!
//! testssl.sh judges a server that has nothing but `listen ... ssl` and its certificates. What it
//! finds above INFO must have a row in `ACCEPTED`; a row that it no longer finds has to go. sslyze
//! compares the same server, and two with Mozilla's recommended settings, with Mozilla's rules.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use turnpike_testkit::process::find_program;

use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::python::Environment;
use crate::workspace::text;

/// sslyze, with the rules of Mozilla that its version knows.
const SSLYZE: Environment = Environment {
    folder: "sslyze",
    imports: "sslyze",
    packages: &["sslyze==6.3.1"],
};

/// A server with both kinds of certificates; `%DIRECTIVES%` is all that it says about TLS.
const CONFIGURATION: &str = "
error_log %FOLDER%/error.log notice;
events { }
http {
    access_log off;
    server {
        listen 127.0.0.1:%PORT% ssl;
        server_name localhost;
        ssl_certificate %KEYS%/ecdsa.pem;
        ssl_certificate_key %KEYS%/ecdsa.key;
        ssl_certificate %KEYS%/rsa.pem;
        ssl_certificate_key %KEYS%/rsa.key;
        root %FOLDER%/html;
        %DIRECTIVES%
    }
}
";

/// What Mozilla recommends for servers that need not serve clients from before 2015.
const INTERMEDIATE: &str = "
        http2 on;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_ecdh_curve X25519:prime256v1:secp384r1;
        ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305;
        ssl_prefer_server_ciphers off;
        ssl_session_timeout 1d;
        ssl_session_cache shared:judged:1m;
";

/// What Mozilla recommends for servers of modern clients only. Its rules want ECDSA alone, which
/// the order of the certificates gives every client that sslyze imitates.
const MODERN: &str = "
        http2 on;
        ssl_protocols TLSv1.3;
        ssl_ecdh_curve X25519:prime256v1:secp384r1;
        ssl_prefer_server_ciphers off;
";

/// The directives of a server, and the rules of Mozilla that it keeps.
const COMPARED: &[(&str, &str, &str)] = &[
    ("default", "", "intermediate"),
    ("intermediate", INTERMEDIATE, "intermediate"),
    ("modern", MODERN, "modern"),
];

/// A finding that is right as it is.
struct Accepted {
    id: &'static str,
    reason: &'static str,
}

const ACCEPTED: &[Accepted] = &[
    Accepted {
        id: "cipher_order",
        reason: "the client chooses the suite, as with nginx's default and Mozilla's advice: \
                 every suite on offer is a good one",
    },
    Accepted {
        id: "cert_revocation",
        reason: "the test's authority answers no questions about its certificates",
    },
    Accepted {
        id: "DNS_CAArecord",
        reason: "the name localhost has no records",
    },
    Accepted {
        id: "HSTS",
        reason: "a site that is served over plain HTTP too must not be sent it; add_header does",
    },
    Accepted {
        id: "security_headers",
        reason: "what a page may do is decided by who writes it; add_header sends it",
    },
];

/// Severities of testssl.sh that are not findings.
const QUIET: [&str; 3] = ["OK", "INFO", "DEBUG"];

/// The checks of a whole run; one that broke off has fewer.
const CHECKS_MIN: usize = 100;

/// Runs both judges.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server"], &["--debug"])?;
    let ours = Contender::ours(&options)?;
    let python = SSLYZE.python()?;
    let keys = Certificates::create(&[("ecdsa", Kind::Ecdsa), ("rsa", Kind::Rsa)])?;
    for (name, directives, rules) in COMPARED {
        compare(&ours, &python, &keys, directives, rules)
            .map_err(|error| format!("sslyze, {name}: {error}"))?;
        println!("sslyze, {name}: keeps Mozilla's rules \"{rules}\"");
    }
    let findings = examine(&ours, &keys)?;
    judge(&findings)
}

fn configuration(keys: &Certificates, directives: &str) -> String {
    CONFIGURATION
        .replace("%KEYS%", &keys.path().display().to_string())
        .replace("%DIRECTIVES%", directives)
}

/// Has sslyze compare a server with Mozilla's rules.
fn compare(
    ours: &Contender,
    python: &Path,
    keys: &Certificates,
    directives: &str,
    rules: &str,
) -> Outcome {
    let server = ours.start(&configuration(keys, directives))?;
    let output = Command::new(python)
        .args(["-W", "ignore", "-m", "sslyze", "--mozilla_config", rules])
        .arg("--certinfo_ca_file")
        .arg(keys.path().join("root.pem"))
        .arg(format!("localhost:{}", server.port()))
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && said.contains("OK - Compliant") {
        Ok(())
    } else {
        Err(format!(
            "{said}{}\n{}",
            String::from_utf8_lossy(&output.stderr),
            server.log("error.log")
        ))
    }
}

/// What testssl.sh says of a server without a word about TLS.
fn examine(ours: &Contender, keys: &Certificates) -> Result<Vec<Value>, String> {
    let testssl = find_program("testssl").ok_or("no testssl; please run: cargo xtask setup tls")?;
    let server = ours.start(&configuration(keys, ""))?;
    let file = keys.path().join("testssl.json");
    let output = Command::new(testssl)
        .args(["--quiet", "--color", "0", "--warnings", "batch"])
        .args(["--ip", "127.0.0.1", "--add-ca"])
        .arg(keys.path().join("root.pem"))
        .arg("--jsonfile")
        .arg(&file)
        .arg(format!("localhost:{}", server.port()))
        .output()
        .map_err(|error| format!("testssl: {error}"))?;
    let read = std::fs::read_to_string(&file).map_err(|error| error.to_string());
    let said = || String::from_utf8_lossy(&output.stdout).into_owned();
    read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
        .map_err(|error| format!("testssl: {error}; it said:\n{}", said()))
}

/// Prints the findings, and says what should be otherwise.
fn judge(findings: &[Value]) -> Outcome {
    let severe: Vec<&Value> = findings
        .iter()
        .filter(|finding| !QUIET.contains(&text(finding, "severity")))
        .collect();
    println!(
        "testssl.sh: {} of {} checks passed",
        findings.len() - severe.len(),
        findings.len()
    );
    let mut wrong = Vec::new();
    if findings.len() < CHECKS_MIN {
        wrong.push(format!("testssl.sh made only {} checks", findings.len()));
    }
    for finding in &severe {
        let (severity, said) = (text(finding, "severity"), text(finding, "finding"));
        if !ACCEPTED.iter().any(|accepted| accepted.id == id(finding)) {
            wrong.push(format!("{}, {severity}: {said}", text(finding, "id")));
        }
    }
    for Accepted { id: known, reason } in ACCEPTED {
        if severe.iter().any(|finding| id(finding) == *known) {
            println!("testssl.sh: {known}: {reason}");
        } else {
            wrong.push(format!("is not found now, drop its row: {known}"));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("; "))
    }
}

/// A finding's name, without the certificate that it is about.
fn id(finding: &Value) -> &str {
    let id = text(finding, "id");
    id.split(' ').next().unwrap_or(id)
}

#[cfg(test)]
mod tests;
