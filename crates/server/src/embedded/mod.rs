//! The configuration that serves when there is none: a page that says what to do next.

/// Where the built-in page is, and how to go on from it; said at start.
pub const INVITATION: &str = "turnpike: no configuration file, serving the built-in page on \
    http://127.0.0.1:8080/ (Ctrl+C stops; give a file of your own with -c FILE)\n";

/// What to do when the port is taken.
pub const PORT_TAKEN: &str = "turnpike: another program listens there: stop it, or give a file of \
    your own with -c FILE whose \"listen\" names a free port\n";

/// The configuration's text; what a page needs stands in it, so that no file is needed.
pub const CONFIGURATION: &str = include_str!("default.conf");
