//! The common code of integration tests and measurements: a server under test in its own folder,
//! raw peers that exchange exact bytes, scripted origins, and foreign clients.
//!
//! This crate imports no code of the server, because it judges the server and must not share its
//! errors. It never measures time to pass or fail a test; every deadline only ends a hung one.
//!
//! ```no_run
//! use turnpike_testkit::{Server, check};
//!
//! let server = Server::builder("target/debug/turnpike")
//!     .configuration(
//!         "events {}
//!          http { server { listen 127.0.0.1:%PORT%; location / { root %FOLDER%/html; } } }",
//!     )
//!     .file("html/a.txt", "hello")
//!     .start();
//! check(&server, &[(
//!     "a file is served",
//!     "GET /a.txt HTTP/1.0\n\n",
//!     "HTTP/1.1 200 OK\nServer: *\nDate: *\n*\nhello\n(closed)",
//! )]);
//! ```

pub mod authority;
pub mod clients;
pub mod collector;
pub mod corpus;
mod exchange;
mod folder;
pub mod mmdb;
pub mod network;
mod origin;
pub mod php;
pub mod ports;
mod privilege;
pub mod process;
pub mod python;
pub mod random;
pub mod raw_tcp;
pub mod requests;
mod server;
pub mod tracer;

pub use exchange::{Peer, Response, check, exchange, matches};
pub use folder::Folder;
pub use nix::sys::signal::Signal;
pub use origin::{Origin, Step};
pub use privilege::needs_root;
pub use server::{Builder, REFUSED_CALL, SANDBOX, Server, StartError};

use std::time::{Duration, Instant};

/// The longest wait, far longer than a loaded machine needs: reaching it is a failure.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The pause between two checks of a waiting loop.
const LOOK: Duration = Duration::from_millis(5);

/// Checks until there is a result or the deadline has passed.
pub fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}
