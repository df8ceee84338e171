//! Certificates of an authority with an OCSP responder, its answers, and the responder: OpenSSL
//! makes the first two, a scripted origin is the last.

use std::fs;
use std::path::Path;

use turnpike_testkit::{Folder, Origin, Step};

use super::tls::{NEW_KEY, keys, openssl};

/// The certificates of a table: the name, the issuer, the serial number, and the extensions.
const CERTIFICATES: &[(&str, &str, &str, &str)] = &[
    ("int", "root", "0x10", "basicConstraints=critical,CA:TRUE"),
    ("good", "int", "0x11", ""),
    ("gone", "int", "0x12", ""),
    ("appointed", "int", "0x13", "extendedKeyUsage=OCSPSigning"),
];

/// The answers: the name, the certificate and its state, and the signer.
const ANSWERS: &[(&str, &str, &str, &str)] = &[
    ("good", "good", "V", "int"),
    ("later", "good", "R", "int"),
    ("gone", "gone", "R", "int"),
    ("int", "int", "V", "root"),
    ("unknown", "good", "", "int"),
    ("appointed", "good", "V", "appointed"),
    ("unappointed", "good", "V", "gone"),
    ("foreign", "good", "V", "root"),
];

/// A folder with the certificates and the answers; `named` names a responder of this port.
pub fn certificates(port: u16) -> Folder {
    let keys = keys();
    let at = keys.path();
    let root = ["req", "-x509", "-subj", "/CN=root", "-days", "99"];
    let files = ["-keyout", "root.key", "-out", "root.pem"];
    openssl(at, &[&root[..], &NEW_KEY, &files].concat());
    let url = format!("authorityInfoAccess=OCSP;URI:http://127.0.0.1:{port}");
    let named = ("named", "int", "0x11", url.as_str());
    for certificate in CERTIFICATES.iter().chain([&named]) {
        sign(at, *certificate);
    }
    for answer in ANSWERS {
        respond(at, *answer);
    }
    let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();
    let trusted = read("int.pem") + &read("root.pem");
    keys.write("trusted.pem", trusted).unwrap();
    keys
}

fn sign(at: &Path, (name, issuer, serial, extensions): (&str, &str, &str, &str)) {
    fs::write(at.join("extensions"), extensions).unwrap();
    let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
    let (ca, ca_key) = (format!("{issuer}.pem"), format!("{issuer}.key"));
    let subject = format!("/CN={name}");
    let request = ["req", "-new", "-subj", &subject, "-keyout", &key];
    openssl(at, &[&request[..], &["-out", "csr"], &NEW_KEY].concat());
    let sign = ["x509", "-req", "-in", "csr", "-CA", &ca, "-CAkey", &ca_key];
    let more = ["-days", "9", "-set_serial", serial, "-out", &pem];
    let extensions = ["-extfile", "extensions"];
    openssl(at, &[&sign[..], &more, &extensions].concat());
}

fn respond(at: &Path, (name, certificate, state, signer): (&str, &str, &str, &str)) {
    let of = CERTIFICATES.iter().find(|one| one.0 == certificate);
    let (_, issuer, serial, _) = of.unwrap();
    let serial = serial.trim_start_matches("0x");
    let line = match state {
        "" => String::new(),
        "R" => format!("R\t491231000000Z\t250101000000Z\t{serial}\tunknown\t/CN=x\n"),
        _ => format!("V\t491231000000Z\t\t{serial}\tunknown\t/CN=x\n"),
    };
    fs::write(at.join("index"), line).unwrap();
    let [issuer, certificate, der] = [
        format!("{issuer}.pem"),
        format!("{certificate}.pem"),
        format!("{name}.der"),
    ];
    let [signer, signer_key] = ["pem", "key"].map(|kind| format!("{signer}.{kind}"));
    let ask = ["ocsp", "-issuer", &issuer, "-cert", &certificate];
    openssl(at, &[&ask[..], &["-reqout", "request.der"]].concat());
    let answer = ["ocsp", "-index", "index", "-CA", &issuer, "-ndays", "1"];
    let by = ["-rsigner", &signer, "-rkey", &signer_key];
    let files = ["-reqin", "request.der", "-respout", &der];
    openssl(at, &[&answer[..], &by, &files].concat());
}

/// A responder that gives these answers in turn; `-` closes the connection.
pub fn responder(at: &Path, answers: &[&str]) -> Origin {
    let script = |name: &&str| {
        let mut script = vec![Step::ReadHead];
        if *name != "-" {
            let der = fs::read(at.join(format!("{name}.der"))).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", der.len());
            script.push(Step::Send([head.into_bytes(), der].concat()));
        }
        script
    };
    Origin::start(answers.iter().map(script).collect())
}
