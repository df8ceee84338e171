//! Servers of foreign code behind ours, used by foreign clients: a site in Flask under uWSGI and
//! under flup's SCGI, PostgreSQL through TCP, and QUIC through UDP.

mod database;
mod pages;
mod quic;

use std::thread;
use std::time::Duration;

use turnpike_testkit::{Server, Signal};

use crate::contender::Contender;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::python::Environment;

/// The packages of all programs here. uWSGI is built from its sources.
const ENVIRONMENT: Environment = Environment {
    folder: "peers",
    imports: "aioquic, flask, flup.server.scgi",
    packages: &[
        "aioquic==1.7.2",
        "flask==3.1.3",
        "flup==1.0.3",
        "uwsgi==2.0.31",
    ],
};

/// The pause between two reloads.
const RELOAD_PAUSE: Duration = Duration::from_millis(200);

/// A peer, and what uses it.
type Peer = (&'static str, fn(&Contender) -> Outcome);

const PEERS: [Peer; 3] = [
    ("pages", pages::run),
    ("database", database::run),
    ("quic", quic::run),
];

/// Has each of them used through our server, or only the one that `--only` names.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let options = Options::parse(arguments, &["--server", "--only"], &["--debug"])?;
    let ours = Contender::ours(&options)?;
    let only = options.text("--only");
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    if !PEERS.iter().any(|(name, _)| wanted(name)) {
        let names: Vec<&str> = PEERS.iter().map(|(name, _)| *name).collect();
        return Err(format!("--only takes one of {}", names.join(", ")));
    }
    for (name, run) in PEERS {
        if wanted(name) {
            run(&ours).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    Ok(())
}

/// Reloads the server again and again until `work` has ended; returns its result and the number of
/// reloads.
fn with_reloads<T: Send>(server: &Server, work: impl FnOnce() -> T + Send) -> (T, u32) {
    thread::scope(|scope| {
        let worker = scope.spawn(work);
        let mut reloads = 0;
        while !worker.is_finished() {
            server.signal(Signal::SIGHUP);
            reloads += 1;
            thread::sleep(RELOAD_PAUSE);
        }
        match worker.join() {
            Ok(result) => (result, reloads),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
