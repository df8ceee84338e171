//! A site in Flask under uWSGI and under flup's SCGI: forms, sessions, an upload, a streamed page,
//! a cache, and reloads meanwhile.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_testkit::Folder;

use super::{ENVIRONMENT, with_reloads};
use crate::contender::Contender;
use crate::outcome::Outcome;
use crate::workspace::must;

const PAGES: &str = include_str!("pages.py");
const VISIT: &str = include_str!("visit.py");

/// The longest wait for a server's socket: uWSGI imports Flask before.
const DEADLINE: Duration = Duration::from_secs(60);

const CONFIGURATION: &str = r#"
error_log %FOLDER%/error.log notice;
events { }
http {
    client_max_body_size 8m;
    uwsgi_cache_path %FOLDER%/uwsgi keys_zone=uwsgi:1m;
    scgi_cache_path %FOLDER%/scgi keys_zone=scgi:1m;
    server {
        listen 127.0.0.1:%PORT_UWSGI%;
        include /etc/nginx/uwsgi_params;
        location / { uwsgi_pass unix:%PEERS%/uwsgi; }
        location /cached {
            uwsgi_pass unix:%PEERS%/uwsgi;
            uwsgi_cache uwsgi;
            add_header X-Cache $upstream_cache_status;
        }
    }
    server {
        listen 127.0.0.1:%PORT_SCGI%;
        include /etc/nginx/scgi_params;
        scgi_param SCRIPT_NAME "";
        scgi_param PATH_INFO $document_uri;
        location / { scgi_pass unix:%PEERS%/scgi; }
        location /cached {
            scgi_pass unix:%PEERS%/scgi;
            scgi_cache scgi;
            add_header X-Cache $upstream_cache_status;
        }
    }
}
"#;

/// Starts both servers, and visits the site by each.
pub(super) fn run(ours: &Contender) -> Outcome {
    let python = ENVIRONMENT.python()?;
    let pages = ENVIRONMENT.program("pages.py", PAGES)?;
    let visit = ENVIRONMENT.program("visit.py", VISIT)?;
    let folder = Folder::create().map_err(|error| error.to_string())?;
    let socket = |name: &str| folder.path().join(name);
    let mut uwsgi = Command::new(python.with_file_name("uwsgi"));
    uwsgi.args([
        "--master",
        "--need-app",
        "--die-on-term",
        "--disable-logging",
    ]);
    uwsgi.args(["--processes", "2", "--threads", "2", "--chmod-socket=666"]);
    uwsgi.arg("--socket").arg(socket("uwsgi"));
    uwsgi
        .arg("--virtualenv")
        .arg(folder_of(&folder_of(&python)?)?);
    uwsgi.arg("--wsgi-file").arg(&pages);
    let mut scgi = Command::new(&python);
    scgi.arg(&pages).arg(socket("scgi"));
    let _uwsgi = Running::start(&mut uwsgi, &socket("uwsgi"))?;
    let _scgi = Running::start(&mut scgi, &socket("scgi"))?;
    let path = folder.path().display().to_string();
    let server = ours.start(&CONFIGURATION.replace("%PEERS%", &path))?;
    for name in ["UWSGI", "SCGI"] {
        let port = server.port_named(name).to_string();
        let (visited, reloads) = with_reloads(&server, || {
            must(Command::new(&python).arg(&visit).arg(&port))
        });
        let log = || server.log("error.log");
        visited.map_err(|error| format!("{name}: {error}\n{}", log()))?;
        println!("peers: the site was visited through {name}, {reloads} reloads meanwhile");
    }
    Ok(())
}

fn folder_of(path: &Path) -> Result<std::path::PathBuf, String> {
    let folder = path.parent().map(Path::to_path_buf);
    folder.ok_or_else(|| format!("{}: no folder", path.display()))
}

/// A server that runs until this is dropped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command, socket: &Path) -> Result<Running, String> {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("{command:?}: {error}"))?;
        let mut running = Running(child);
        let start = Instant::now();
        while std::os::unix::net::UnixStream::connect(socket).is_err() {
            if start.elapsed() > DEADLINE || !matches!(running.0.try_wait(), Ok(None)) {
                return Err(format!("{command:?} did not start"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        turnpike_testkit::process::signal(self.0.id(), turnpike_testkit::Signal::SIGTERM);
        let _ = self.0.wait();
    }
}
