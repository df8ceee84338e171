//! What the comparisons with other clients share: an nginx that answers both, and our program.

#![allow(clippy::unwrap_used, unreachable_pub)]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One nginx process, pinned to CPU 0, that serves a file as its index.
pub struct Server {
    child: Child,
    pub folder: PathBuf,
}

impl Server {
    /// Starts it with a file of that size. `configuration` makes the blocks `events` and `http` for
    /// a folder, and the last of `ports` is the one that is waited for.
    pub fn start(
        name: &str,
        body_bytes: usize,
        ports: &[u16],
        configuration: impl Fn(&Path) -> String,
    ) -> Server {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir(folder.join("html")).unwrap();
        std::fs::write(folder.join("html/index.html"), "a".repeat(body_bytes)).unwrap();
        let at = folder.display();
        let main = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\n{}",
            configuration(&folder)
        );
        let file = folder.join("nginx.conf");
        std::fs::write(&file, main).unwrap();
        let child = Command::new("taskset")
            .args(["-c", "0", "nginx", "-c"])
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = *ports.last().unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Server { child, folder }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The program of this build.
pub fn built() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(Path::parent).unwrap();
    folder.join("turnpike-load")
}
