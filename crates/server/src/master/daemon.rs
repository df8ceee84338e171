//! Going into the background, before any thread exists.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use turnpike_lane::sys::process::{self, Side, Stream};

/// Which process this is after [`detach`].
#[derive(Debug)]
pub(super) enum Detached {
    /// The one that the person started: it ends with this code, once the other is up or has
    /// failed.
    Launcher(ExitCode),
    /// The one in the background.
    Daemon(Launcher),
}

/// The waiting launcher, as the daemon sees it. Dropped unreleased it reports a failed start.
#[derive(Debug)]
pub(super) struct Launcher(UnixStream);

impl Launcher {
    /// The server is up: the launcher may end with success.
    pub(super) fn release(mut self) {
        // A launcher that is gone needs no answer.
        let _ = self.0.write_all(&[1]);
    }
}

/// Forks; the new process leaves the terminal. The old one waits for it, so that whoever starts
/// the server finds it up, and its pid file written, when the command returns.
///
/// # Errors
/// Those of `fork(2)` and the calls around it.
pub(super) fn detach() -> io::Result<Detached> {
    let (mut launcher, daemon) = UnixStream::pair()?;
    match process::fork()? {
        Side::Parent { .. } => {
            drop(daemon);
            let up = launcher.read_exact(&mut [0]).is_ok();
            let code = if up {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
            Ok(Detached::Launcher(code))
        }
        Side::Child => {
            drop(launcher);
            process::new_session()?;
            let null: OwnedFd = OpenOptions::new()
                .read(true)
                .write(true)
                .open("/dev/null")?
                .into();
            process::redirect(Stream::Input, null.as_fd())?;
            process::redirect(Stream::Output, null.as_fd())?;
            Ok(Detached::Daemon(Launcher(daemon)))
        }
    }
}
