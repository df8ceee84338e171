//! The configuration that serves when there is none: a page that says what to do next.

use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// The control socket's file in a folder that only root may write to, or only the user.
const CONTROL_FILE: &str = "turnpike-built-in.control";

/// Where the built-in page is, and how to go on from it.
const INVITATION: &str = "turnpike: no configuration file, serving the built-in page on \
    http://127.0.0.1:8080/ (Ctrl+C stops; give a file of your own with -c FILE)\n";

/// Added in a folder with a page of its own.
const HAS_INDEX: &str = "turnpike: this folder has an index.html: \"turnpike serve\" serves it\n";

/// What is said at start.
pub fn invitation() -> String {
    if Path::new("index.html").is_file() {
        [INVITATION, HAS_INDEX].concat()
    } else {
        INVITATION.to_owned()
    }
}

/// What to do when the port is taken.
pub const PORT_TAKEN: &str = "turnpike: another program listens there: stop it, or give a file of \
    your own with -c FILE whose \"listen\" names a free port\n";

/// The configuration's text; what a page needs stands in it, so that no file is needed.
pub const CONFIGURATION: &str = include_str!("default.conf");

/// Where the control socket of the current user's server is: in the folder that the system makes
/// for the user's sockets, else in `/tmp`.
pub fn control_path() -> PathBuf {
    let user = geteuid().as_raw();
    control_path_of(user, &Path::is_dir)
}

fn control_path_of(user: u32, is_folder: &dyn Fn(&Path) -> bool) -> PathBuf {
    let own = match user {
        0 => PathBuf::from("/run"),
        user => PathBuf::from(format!("/run/user/{user}")),
    };
    if is_folder(&own) {
        own.join(CONTROL_FILE)
    } else {
        PathBuf::from(format!("/tmp/turnpike-built-in-{user}.control"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_a_control_socket() {
        let cases: &[(u32, &[&str], &str)] = &[
            (0, &["/run"], "/run/turnpike-built-in.control"),
            (
                7,
                &["/run", "/run/user/7"],
                "/run/user/7/turnpike-built-in.control",
            ),
            (7, &["/run"], "/tmp/turnpike-built-in-7.control"),
        ];
        for (user, folders, expected) in cases {
            let is_folder = |path: &Path| folders.iter().any(|folder| Path::new(folder) == path);
            assert_eq!(control_path_of(*user, &is_folder), Path::new(expected));
        }
    }
}
