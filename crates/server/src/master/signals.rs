//! The signals that a master obeys, and what nginx says about each.

use nix::libc;

/// What a signal asks of the master.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Request {
    /// TERM, INT: end at once.
    Stop,
    /// ABRT: end at once, with a serving process that nothing can be expected of. Systemd's
    /// watchdog sends it.
    Abort,
    /// QUIT: end when running requests are done.
    Quit,
    /// HUP: read the configuration anew.
    Reload,
    /// USR1: open log files anew.
    Reopen,
    /// WINCH: end the serving process only (in the background; a terminal that changes its size
    /// sends it too).
    Drain,
    /// USR2: start a new binary.
    Upgrade,
    /// CHLD: a serving process has ended.
    Reap,
}

/// One row for each signal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) number: i32,
    pub(super) name: &'static str,
    pub(super) request: Request,
    /// What the log says after who sent it.
    pub(super) action: &'static str,
}

const fn row(number: i32, name: &'static str, request: Request, action: &'static str) -> Row {
    Row {
        number,
        name,
        request,
        action,
    }
}

/// All of them.
pub(super) const SIGNALS: &[Row] = &[
    row(libc::SIGTERM, "SIGTERM", Request::Stop, ", exiting"),
    row(libc::SIGINT, "SIGINT", Request::Stop, ", exiting"),
    row(libc::SIGABRT, "SIGABRT", Request::Abort, ", aborting"),
    row(libc::SIGQUIT, "SIGQUIT", Request::Quit, ", shutting down"),
    row(libc::SIGHUP, "SIGHUP", Request::Reload, ", reconfiguring"),
    row(
        libc::SIGUSR1,
        "SIGUSR1",
        Request::Reopen,
        ", reopening logs",
    ),
    row(
        libc::SIGWINCH,
        "SIGWINCH",
        Request::Drain,
        ", stop accepting connections",
    ),
    row(
        libc::SIGUSR2,
        "SIGUSR2",
        Request::Upgrade,
        ", changing binary",
    ),
    row(libc::SIGCHLD, "SIGCHLD", Request::Reap, ""),
];

/// The row of a signal.
pub(super) fn find(number: i32) -> Option<&'static Row> {
    SIGNALS.iter().find(|row| row.number == number)
}
