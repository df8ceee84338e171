//! Pebble, and the name server of its makers that knows every name. Both are built from
//! `xtask/pebble`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::json;
use turnpike_testkit::{Folder, ports};

use super::{LOOK_PAUSE, PATIENCE};
use crate::go_program;
use crate::outcome::Outcome;
use crate::workspace::must;

/// Seconds for which certificates of the profile `short` are valid.
const SHORT_LIFE_SECONDS: u32 = 9;

/// Seconds for which others are.
const LIFE_SECONDS: u32 = 90 * 24 * 60 * 60;

/// The programs.
pub(super) struct Programs {
    pebble: PathBuf,
    names: PathBuf,
}

impl Programs {
    /// Builds them where that was not done.
    pub(super) fn build() -> Result<Programs, String> {
        let of = |name| go_program::build("pebble", name);
        Ok(Programs {
            pebble: of("github.com/letsencrypt/pebble/v2/cmd/pebble")?,
            names: of("github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv")?,
        })
    }
}

/// A running program, ended with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended already
        let _ = self.0.wait();
    }
}

/// The authority, and where it looks for what it checks.
pub(super) struct Authority {
    folder: Folder,
    pub(super) acme_port: u16,
    /// The port that the authority asks for files of http-01.
    pub(super) http_port: u16,
    /// The port that it asks for certificates of tls-alpn-01; our servers listen there.
    pub(super) tls_port: u16,
    pub(super) dns_port: u16,
    /// The port that sets records of the name server.
    pub(super) records_port: u16,
    _running: [Running; 2],
}

impl Authority {
    /// Starts both programs.
    pub(super) fn start(programs: &Programs) -> Result<Authority, String> {
        let folder = Folder::create().map_err(|error| error.to_string())?;
        make_key(folder.path())?;
        let port = || ports::reserve().ok_or("no port is free");
        let (acme_port, management_port) = (port()?, port()?);
        let (http_port, tls_port) = (port()?, port()?);
        let (dns_port, records_port) = (port()?, port()?);
        let settings = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{acme_port}"),
            "managementListenAddress": format!("127.0.0.1:{management_port}"),
            "certificate": folder.path().join("server.pem"),
            "privateKey": folder.path().join("server.key"),
            "httpPort": http_port,
            "tlsPort": tls_port,
            "domainBlocklist": ["blocked.test"],
            "retryAfter": {"authz": 1, "order": 1},
            "keyAlgorithm": "ecdsa",
            "profiles": {
                "default": {"description": "usual", "validityPeriod": LIFE_SECONDS},
                "short": {"description": "short", "validityPeriod": SHORT_LIFE_SECONDS},
            },
        }});
        let file = folder.path().join("pebble.json");
        std::fs::write(&file, settings.to_string()).map_err(|error| error.to_string())?;
        let names = run(Command::new(&programs.names)
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
            .args(["-defaultIPv6", ""])
            .args(["-dnsserver", &format!("127.0.0.1:{dns_port}")])
            .args(["-management", &format!("127.0.0.1:{records_port}")]))?;
        let pebble = run(Command::new(&programs.pebble)
            .args(["-strict", "-dnsserver", &format!("127.0.0.1:{dns_port}")])
            .arg("-config")
            .arg(file)
            .env("PEBBLE_VA_NOSLEEP", "1"))?;
        for port in [acme_port, management_port, records_port] {
            wait_for(port)?;
        }
        let authority = Authority {
            folder,
            acme_port,
            http_port,
            tls_port,
            dns_port,
            records_port,
            _running: [names, pebble],
        };
        authority.fetch_root(management_port)?;
        Ok(authority)
    }

    /// The folder of its files: `root.pem` is the certificate that its clients trust.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Pebble makes a root at every start.
    fn fetch_root(&self, port: u16) -> Outcome {
        must(
            Command::new("curl")
                .current_dir(self.folder())
                .args(["--silent", "--show-error", "--fail", "--insecure"])
                .args(["--output", "root.pem"])
                .arg(format!("https://127.0.0.1:{port}/roots/0")),
        )
    }
}

/// The key and the certificate of Pebble's own server.
fn make_key(folder: &Path) -> Outcome {
    must(
        Command::new("openssl")
            .current_dir(folder)
            .args(["req", "-x509", "-nodes", "-days", "30", "-newkey", "ec"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=pebble"])
            .args(["-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-keyout", "server.key", "-out", "server.pem"])
            .stderr(Stdio::null()),
    )
}

fn run(command: &mut Command) -> Result<Running, String> {
    let started = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    Ok(Running(started))
}

fn wait_for(port: u16) -> Outcome {
    let until = Instant::now() + PATIENCE;
    while !ports::is_listening(port) {
        if Instant::now() > until {
            return Err(format!("nobody listens on port {port}"));
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}
