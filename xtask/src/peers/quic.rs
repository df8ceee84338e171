//! QUIC of aioquic through UDP: each connection meets one of two servers from its first datagram to
//! its last, reloads and a change of lanes meanwhile.

use std::process::Command;

use super::{ENVIRONMENT, with_reloads};
use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;
use crate::outcome::Outcome;
use crate::python::Companion;
use crate::workspace::must;

const PROGRAM: &str = include_str!("quic.py");

/// Connections at once; each has its own flow.
const CLIENTS: &str = "8";

const CONFIGURATION: &str = "
worker_processes 2;
error_log %FOLDER%/error.log notice;
events { }
stream {
    log_format line '$protocol $status $bytes_received $bytes_sent $upstream_addr';
    access_log %FOLDER%/access.log line;
    upstream both { server 127.0.0.1:%ONE%; server 127.0.0.1:%TWO%; }
    server {
        listen 127.0.0.1:%PORT% udp reuseport;
        proxy_pass both;
        proxy_timeout 30s;
    }
}
";

/// Has clients talk to two servers.
pub(super) fn run(ours: &Contender) -> Outcome {
    let python = ENVIRONMENT.python()?;
    let program = ENVIRONMENT.program("quic.py", PROGRAM)?;
    let keys = Certificates::create(&[("server", Kind::Ecdsa)])?;
    let serve = |name: &str| {
        let mut command = Command::new(&python);
        command.arg(&program).args(["serve", name]).arg(keys.path());
        Companion::start(&mut command)
    };
    let (one, two) = (serve("one")?, serve("two")?);
    let ([one_port], [two_port]) = (one.ports, two.ports);
    let text = CONFIGURATION
        .replace("%ONE%", &one_port.to_string())
        .replace("%TWO%", &two_port.to_string());
    let server = ours.start(&text)?;
    let mut ask = Command::new(&python);
    let port = server.port().to_string();
    ask.arg(&program).args(["ask", &port]);
    ask.arg(keys.path()).arg(CLIENTS);
    let (asked, reloads) = with_reloads(&server, || must(&mut ask));
    asked.map_err(|error| format!("{error}\n{}", server.log("error.log")))?;
    println!("peers: aioquic was used through UDP, {reloads} reloads meanwhile");
    Ok(())
}
