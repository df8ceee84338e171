//! Certificates from OpenSSL, a server with them, and clients: curl and OpenSSL's own.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use turnpike_testkit::{Folder, Server};

pub const TURNPIKE: &str = env!("CARGO_BIN_EXE_turnpike");

/// Options of OpenSSL for a new key that is not encrypted.
pub const NEW_KEY: [&str; 5] = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
];

/// Parameters of Diffie-Hellman: ffdhe2048 (RFC 7919).
pub const DH_PARAMETERS: &str = "-----BEGIN DH PARAMETERS-----
MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz
+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a
87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7
YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi
7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD
ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==
-----END DH PARAMETERS-----
";

/// A server's first directives.
const SECURE: &str = "listen 127.0.0.1:%PORT% ssl;
    ssl_certificate %KEYS%/ec.pem;
    ssl_certificate_key %KEYS%/ec.key;";

/// Certificates in a folder, each with its key: ECDSA and RSA, and the same keys in the other
/// formats.
pub fn keys() -> Folder {
    let folder = Folder::create().unwrap();
    let at = folder.path();
    let ec = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    certificate(at, "ec", "a.test", &ec);
    certificate(at, "rsa", "b.test", &["rsa:2048"]);
    certificate(at, "wild", "w.test", &ec);
    openssl(at, &["ec", "-in", "ec.key", "-out", "sec1.key"]);
    openssl(
        at,
        &["rsa", "-in", "rsa.key", "-traditional", "-out", "pkcs1.key"],
    );
    let secret = ["-aes256", "-passout", "pass:secret"];
    openssl(
        at,
        &[
            &["pkcs8", "-topk8", "-in", "ec.key", "-out", "locked.key"][..],
            &["-v2", "aes256", "-passout", "pass:secret"],
        ]
        .concat(),
    );
    openssl(
        at,
        &[
            &[
                "rsa",
                "-in",
                "rsa.key",
                "-traditional",
                "-out",
                "old_locked.key",
            ][..],
            &secret,
        ]
        .concat(),
    );
    folder.write("text.pem", "no certificate").unwrap();
    folder
}

pub fn certificate(folder: &Path, file: &str, name: &str, kind: &[&str]) {
    let (key, pem) = (format!("{file}.key"), format!("{file}.pem"));
    let names = format!("subjectAltName=DNS:{name},DNS:*.{name}");
    let subject = format!("/CN={name}");
    let mut arguments = vec!["req", "-x509", "-nodes", "-days", "3650", "-newkey"];
    arguments.extend(kind);
    arguments.extend(["-subj", &subject, "-addext", &names]);
    arguments.extend(["-keyout", &key, "-out", &pem]);
    openssl(folder, &arguments);
}

/// Runs OpenSSL; returns its output.
pub fn openssl(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("openssl");
    let output = command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A server with these blocks at the http level; `%KEYS%` is the folder of the certificates.
///
/// `%SECURE%` listens with TLS and has the certificate `ec`.
pub fn configured(keys: &Folder, http: &str) -> String {
    let keys = keys.path().display().to_string();
    let http = http.replace("%SECURE%", SECURE).replace("%KEYS%", &keys);
    format!(
        "error_log %FOLDER%/error.log info;
        worker_processes 2;
        events {{ }}
        http {{ access_log %FOLDER%/access.log; {http} }}"
    )
}

pub fn start(keys: &Folder, http: &str) -> Server {
    Server::builder(TURNPIKE)
        .configuration(&configured(keys, http))
        .file("html/a.txt", "hello")
        .file("html/big.bin", big())
        .start()
}

/// More than fits into one record.
pub fn big() -> Vec<u8> {
    (0..1_000_000_u32).map(|at| (at % 251) as u8).collect()
}

/// The output of curl for a target on the server with that name.
pub fn curl(server: &Server, name: &str, target: &str, more: &[&str]) -> String {
    let output = curl_output(server, name, target, more);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn curl_output(server: &Server, name: &str, target: &str, more: &[&str]) -> Output {
    let port = server.port();
    let (resolve, url) = (
        format!("{name}:{port}:127.0.0.1"),
        format!("https://{name}:{port}{target}"),
    );
    let mut command = Command::new("curl");
    command.args(["-sk", "--max-time", "60", "--resolve", &resolve]);
    command.args(more).arg(url).output().unwrap()
}

/// The output of OpenSSL's client when it sends `request` and reads to the end.
pub fn s_client(server: &Server, request: &str, more: &[&str]) -> String {
    let at = format!("127.0.0.1:{}", server.port());
    let mut client = Command::new("openssl");
    let client = client
        .args(["s_client", "-connect", &at, "-ign_eof"])
        .args(more);
    let client = client
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut client = client.spawn().unwrap();
    let mut input = client.stdin.take().unwrap();
    // A client whose handshake failed reads nothing.
    let _ = input.write_all(request.as_bytes());
    let output = client.wait_with_output().unwrap();
    drop(input);
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout))
}
