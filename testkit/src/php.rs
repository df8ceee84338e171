//! PHP's process manager in a folder of its own: an application server for FastCGI.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Folder, Signal, process, wait_for};

/// The names of the program in Debian's releases.
const PROGRAMS: &[&str] = &["php-fpm", "php-fpm8.2", "php-fpm8.4", "php-fpm8.3"];

/// A running process manager, with the settings of Debian's packages. It ends when it is dropped.
#[derive(Debug)]
pub struct PhpFpm {
    child: Child,
    /// The last field, so that the processes end before it is dropped.
    folder: Folder,
}

impl PhpFpm {
    /// Starts it with three processes. `settings` are more lines of its pool's section, such as
    /// `php_admin_value[post_max_size] = 64M`.
    ///
    /// # Panics
    /// It is not installed, or does not listen before the deadline.
    pub fn start(settings: &str) -> PhpFpm {
        let program = PROGRAMS.iter().find_map(process::find_program);
        let program = program.expect("php-fpm is not installed: run `cargo xtask setup test`");
        let folder = Folder::create().expect("a folder");
        let path = folder.path().display().to_string();
        // As root it requires a user, and must be allowed to use root.
        let user = if nix::unistd::geteuid().is_root() {
            "user = root\ngroup = root\n"
        } else {
            ""
        };
        let configuration = format!(
            "[global]\nerror_log = {path}/fpm.log\ndaemonize = no\n\
             [www]\n{user}listen = {path}/php.sock\nlisten.mode = 0666\n\
             pm = static\npm.max_children = 3\ncatch_workers_output = no\n{settings}\n"
        );
        folder
            .write("fpm.conf", configuration)
            .expect("a file in the folder");
        let child = Command::new(program)
            .args(["--nodaemonize", "--allow-to-run-as-root", "-y"])
            .arg(folder.path().join("fpm.conf"))
            .args(["-p", &path])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("php-fpm starts");
        let php = PhpFpm { child, folder };
        let socket = php.socket();
        wait_for(|| UnixStream::connect(&socket).ok()).expect("php-fpm listens");
        php
    }

    /// The folder of php-fpm, for scripts; `fpm.log` is there.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.path().join("php.sock")
    }

    /// Writes a file into its folder.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        self.folder
            .write(name, content)
            .expect("a file in the folder");
    }
}

impl Drop for PhpFpm {
    fn drop(&mut self) {
        process::signal(self.child.id(), Signal::SIGTERM);
        let _ = self.child.wait(); // there is nothing else to learn of it
    }
}
