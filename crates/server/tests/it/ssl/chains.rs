//! Chains of certificates that are expired, mixed up, or in another order: what nginx serves is
//! served as it is written, with a warning, and what nginx refuses is refused.
//!
//! OpenSSL makes the certificates, and its client shows what it got.

use std::path::Path;

use turnpike_testkit::{Folder, Server, StartError};

use crate::support::tls::{NEW_KEY, TURNPIKE, configured, openssl, s_client};

const NGINX: &str = "/usr/sbin/nginx";

/// The certificates: the name, the issuer, and the first and the last day.
const CERTIFICATES: &[(&str, &str, &str, &str)] = &[
    ("root", "root", "2020", "2049"),
    ("other", "other", "2020", "2049"),
    ("int", "root", "2020", "2049"),
    ("leaf", "int", "2020", "2049"),
    ("old", "int", "2020", "2021"),
    ("future", "int", "2048", "2049"),
];

/// A configuration of the command `openssl ca`, which takes any dates.
const CA: &str = "
[ca]
default_ca = c
[c]
database = index
rand_serial = yes
new_certs_dir = .
default_md = sha256
unique_subject = no
policy = p
x509_extensions = e
[p]
commonName = supplied
[e]
basicConstraints = CA:TRUE
";

/// The parts of a certificate file, and the warning about it. Its key is that of the first part.
const SERVED: &[(&[&str], Option<&str>)] = &[
    (&["leaf"], None),
    (&["leaf", "int"], None),
    (&["leaf", "int", "root"], None),
    (&["root"], None),
    (
        &["old", "int"],
        Some("certificate 1 of \"%FILE%\" has expired"),
    ),
    (
        &["future", "int"],
        Some("certificate 1 of \"%FILE%\" is not valid yet"),
    ),
    (
        &["leaf", "root", "int"],
        Some("certificate 2 of \"%FILE%\" is not the issuer of certificate 1"),
    ),
    (
        &["leaf", "other"],
        Some("certificate 2 of \"%FILE%\" is not the issuer of certificate 1"),
    ),
    (
        &["leaf", "int", "other", "int"],
        Some("certificate 3 of \"%FILE%\" is not the issuer of certificate 2"),
    ),
    (
        &["leaf", "leaf", "int"],
        Some("certificate 2 of \"%FILE%\" is not the issuer of certificate 1"),
    ),
    (&["leaf", "text", "int"], None),
];

/// The parts of a certificate file that is refused, the owner of the key, and why.
const REFUSED: &[(&[&str], &str, &str)] = &[
    // The issuer comes first.
    (&["int", "leaf"], "leaf", "key values mismatch"),
    (&["root", "int", "leaf"], "leaf", "key values mismatch"),
    // The certificate of another server.
    (&["old", "int"], "leaf", "key values mismatch"),
    (&["leaf", "cut"], "leaf", "PEM_read_bio_X509"),
    (&["cut", "leaf"], "leaf", "PEM_read_bio_X509"),
    (&["text"], "leaf", "PEM_read_bio_X509"),
];

fn keys() -> Folder {
    let keys = Folder::create().unwrap();
    let at = keys.path();
    keys.write("ca.conf", CA).unwrap();
    keys.write("index", "").unwrap();
    for (name, issuer, first, last) in CERTIFICATES {
        let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
        let (subject, csr) = (format!("/CN={name}"), format!("{name}.csr"));
        let request = ["req", "-new", "-subj", &subject, "-keyout", &key];
        openssl(at, &[&request[..], &["-out", &csr], &NEW_KEY].concat());
        let (ca, ca_key) = (format!("{issuer}.pem"), format!("{issuer}.key"));
        let by: &[&str] = match name == issuer {
            true => &["-selfsign", "-keyfile", &key],
            false => &["-cert", &ca, "-keyfile", &ca_key],
        };
        let [first, last] = [first, last].map(|year| format!("{year}0101000000Z"));
        let sign = ["ca", "-batch", "-notext", "-config", "ca.conf", "-in", &csr];
        let dates = ["-startdate", &first, "-enddate", &last, "-out", &pem];
        openssl(at, &[&sign[..], by, &dates].concat());
    }
    let leaf = keys.read("leaf.pem");
    let cut = leaf[..leaf.len() / 2].to_owned() + "\n-----END CERTIFICATE-----\n";
    keys.write("cut.pem", cut).unwrap();
    keys.write("text.pem", "Some text.\n").unwrap();
    keys
}

/// Writes the file of these parts; returns its name.
fn file(keys: &Folder, parts: &[&str]) -> String {
    let name = format!("{}.chain", parts.join("-"));
    let texts = parts.iter().map(|part| keys.read(format!("{part}.pem")));
    keys.write(&name, texts.collect::<String>()).unwrap();
    name
}

fn server_block(name: &str, file: &str, key: &str) -> String {
    format!(
        "server {{
            listen 127.0.0.1:%PORT% ssl;
            server_name {name};
            ssl_certificate %KEYS%/{file};
            ssl_certificate_key %KEYS%/{key}.key;
        }}\n"
    )
}

/// The certificates that a server shows, in their order.
fn shown(server: &Server, name: &str) -> Vec<String> {
    let options = ["-showcerts", "-servername", name];
    let said = s_client(server, "GET / HTTP/1.0\r\n\r\n", &options);
    let parts = said.split("-----BEGIN CERTIFICATE-----").skip(1);
    let body = |part: &str| part.split_once("-----END").unwrap().0.to_owned();
    parts.map(body).collect()
}

fn start(program: &Path, keys: &Folder, http: &str) -> Result<Server, StartError> {
    let configuration = configured(keys, http);
    Server::builder(program)
        .configuration(&configuration)
        .try_start()
}

#[test]
fn chains_are_served_as_nginx_serves_them_and_oddities_are_warnings() {
    let keys = keys();
    let folder = keys.path().display().to_string();
    let mut blocks = String::new();
    let mut files = Vec::new();
    for (at, (parts, _)) in SERVED.iter().enumerate() {
        let file = file(&keys, parts);
        blocks += &server_block(&format!("s{at}.test"), &file, parts[0]);
        files.push(file);
    }
    let servers = [Path::new(TURNPIKE), Path::new(NGINX)];
    let [ours, nginx] = servers.map(|program| start(program, &keys, &blocks).unwrap());
    let log = format!("{}{}", ours.output(), ours.log("error.log"));
    for (at, (parts, warning)) in SERVED.iter().enumerate() {
        let name = format!("s{at}.test");
        let chain = shown(&nginx, &name);
        let written = parts.iter().filter(|part| **part != "text");
        assert_eq!(chain.len(), written.count(), "{parts:?}");
        assert_eq!(shown(&ours, &name), chain, "{parts:?}");
        let file = format!("{folder}/{}", files[at]);
        match warning {
            Some(warning) => {
                let warning = warning.replace("%FILE%", &file);
                assert!(log.contains(&warning), "{parts:?}: {log}");
            }
            None => assert!(!log.contains(&file), "{parts:?}: {log}"),
        }
    }
}

#[test]
fn chains_that_nginx_refuses_are_refused() {
    let keys = keys();
    for (parts, key, why) in REFUSED {
        let block = server_block("a.test", &file(&keys, parts), key);
        for program in [TURNPIKE, NGINX] {
            let Err(StartError::Ended(_, output)) = start(Path::new(program), &keys, &block) else {
                panic!("{program} started with {parts:?}");
            };
            assert!(output.contains(why), "{program} {parts:?}: {output}");
        }
    }
}
