//! Certificates for the chores' servers and clients: a root of their own, and what it has signed.

use std::path::Path;
use std::process::{Command, Stdio};

use turnpike_testkit::Folder;

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// The root's extensions, which RFC 5280 wants of an authority.
const ROOT: [&str; 4] = [
    "-addext",
    "basicConstraints=critical,CA:TRUE",
    "-addext",
    "keyUsage=critical,keyCertSign,cRLSign",
];

/// The extensions of each signed certificate; clients and servers have one kind.
const SIGNED: &str = "basicConstraints=CA:FALSE
subjectAltName=DNS:localhost,IP:127.0.0.1
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
authorityKeyIdentifier=keyid
subjectKeyIdentifier=hash
";

/// Days that a certificate is good for: under the 366 that Mozilla allows, above the 60 under which
/// judges warn.
const DAYS: &str = "90";

/// The kind of a key, as `openssl req` takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Ecdsa,
    Rsa,
}

impl Kind {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Kind::Ecdsa => &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
            Kind::Rsa => &["-newkey", "rsa:2048"],
        }
    }
}

/// A folder with `root.pem`, `root.key` and the signed certificates, `NAME.pem` and `NAME.key`.
pub(crate) struct Certificates {
    folder: Folder,
}

impl Certificates {
    /// Makes the root and a certificate of each name.
    ///
    /// # Errors
    /// OpenSSL fails, or the folder cannot be written.
    pub(crate) fn create(names: &[(&str, Kind)]) -> Result<Certificates, String> {
        let folder = Folder::create().map_err(|error| error.to_string())?;
        let certificates = Certificates { folder };
        let written = certificates.folder.write("extensions", SIGNED);
        written.map_err(|error| error.to_string())?;
        certificates.openssl(
            &["req", "-x509", "-subj", "/CN=test root", "-days", DAYS],
            &[
                &["-nodes", "-keyout", "root.key", "-out", "root.pem"],
                Kind::Ecdsa.arguments(),
                &ROOT,
            ]
            .concat(),
        )?;
        for (name, kind) in names {
            certificates.sign(name, *kind)?;
        }
        Ok(certificates)
    }

    /// The hash of the key in a certificate, as Chromium takes it: SHA-256 in base64.
    ///
    /// # Errors
    /// OpenSSL fails.
    pub(crate) fn key_hash(&self, name: &str) -> Result<String, String> {
        let line = format!(
            "openssl x509 -in {name}.pem -pubkey -noout | openssl pkey -pubin -outform der | \
             openssl dgst -sha256 -binary | base64"
        );
        workspace::output(
            Command::new("sh")
                .current_dir(self.folder.path())
                .args(["-c", &line]),
        )
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn sign(&self, name: &str, kind: Kind) -> Outcome {
        let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
        self.openssl(
            &["req", "-new", "-nodes", "-subj", &format!("/CN={name}")],
            &[kind.arguments(), &["-keyout", &key, "-out", "request"]].concat(),
        )?;
        self.openssl(
            &["x509", "-req", "-in", "request", "-days", DAYS],
            &[
                ["-CA", "root.pem", "-CAkey", "root.key"],
                ["-extfile", "extensions", "-out", &pem],
            ]
            .concat(),
        )
    }

    fn openssl(&self, arguments: &[&str], more: &[&str]) -> Outcome {
        must(
            Command::new("openssl")
                .current_dir(self.folder.path())
                .args(arguments)
                .args(more)
                .stderr(Stdio::null()),
        )
    }
}
