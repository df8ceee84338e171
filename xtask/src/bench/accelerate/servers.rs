//! The cases, and how each is started: the study's own configuration with another location.

use std::process::{Child, Command, Stdio};

use turnpike_testkit::{Folder, Server, ports, process, wait_for};

use crate::contender::{self, Contender, OBJECT, OBJECT_BYTES};
use crate::machine;

/// The server in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    /// Ours, every answer from a zone in memory.
    TurnpikeCache,
    /// Ours, a file.
    TurnpikeStatic,
    /// nginx, a file.
    NginxStatic,
    /// nginx, every answer from its cache.
    NginxCache,
    /// varnish, every answer from its cache.
    Varnish,
    /// Ours, every answer from the origin.
    TurnpikeProxy,
    /// nginx, every answer from the origin.
    NginxProxy,
}

impl Case {
    pub(super) const ALL: [Case; 7] = [
        Case::TurnpikeCache,
        Case::TurnpikeStatic,
        Case::NginxStatic,
        Case::NginxCache,
        Case::Varnish,
        Case::TurnpikeProxy,
        Case::NginxProxy,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Case::TurnpikeCache => "turnpike, memory cache",
            Case::TurnpikeStatic => "turnpike, static",
            Case::NginxStatic => "nginx, static",
            Case::NginxCache => "nginx, proxy_cache",
            Case::Varnish => "varnish",
            Case::TurnpikeProxy => "turnpike, proxied",
            Case::NginxProxy => "nginx, proxied",
        }
    }

    /// A name without spaces, for data.
    pub(super) fn key(self) -> &'static str {
        match self {
            Case::TurnpikeCache => "turnpike_cache",
            Case::TurnpikeStatic => "turnpike_static",
            Case::NginxStatic => "nginx_static",
            Case::NginxCache => "nginx_cache",
            Case::Varnish => "varnish",
            Case::TurnpikeProxy => "turnpike_proxy",
            Case::NginxProxy => "nginx_proxy",
        }
    }

    /// The directives of the http level and of the location that make it so.
    fn directives(self, origin: u16) -> (String, String) {
        let upstream = format!("upstream origin {{ server 127.0.0.1:{origin}; keepalive 256; }}");
        let pass = "proxy_pass http://origin; proxy_http_version 1.1; \
            proxy_set_header Connection \"\";";
        let cached = format!("{pass} proxy_cache z; proxy_cache_valid 200 1h;");
        match self {
            Case::TurnpikeCache => (
                format!("{upstream} proxy_cache_path mem keys_zone=z:64m memory;"),
                cached,
            ),
            Case::NginxCache => (
                format!("{upstream} proxy_cache_path %FOLDER%/cache keys_zone=z:10m inactive=1h;"),
                cached,
            ),
            Case::TurnpikeProxy | Case::NginxProxy => (upstream, pass.to_owned()),
            Case::TurnpikeStatic | Case::NginxStatic | Case::Varnish => {
                (String::new(), "root %FOLDER%/html;".to_owned())
            }
        }
    }

    /// The configuration of an nginx-like server on this core.
    pub(super) fn configuration(self, cpu: usize, origin: u16) -> Result<String, String> {
        let (http, location) = self.directives(origin);
        let text = contender::pinned(cpu)?;
        let text = text.replace("root %FOLDER%/html;", &location);
        Ok(text.replace("    server {", &format!("    {http}\n    server {{")))
    }
}

/// The origin: nginx with the study's configuration, on the client's core.
///
/// It answers with the file's bytes and fields, but from its configuration. Serving a file takes so
/// much of the client's core that the server under measurement has to wait. Each wait costs a
/// wake-up, and a faster server waits more often, so its savings would not be visible.
pub(super) struct Origin {
    server: Server,
}

impl Origin {
    pub(super) fn start(nginx: &Contender, cpu: usize) -> Result<Origin, String> {
        let text = contender::pinned(cpu)?;
        let text = text.replace("root %FOLDER%/html;", &origin_answer());
        let server = nginx.start(&text)?;
        Ok(Origin { server })
    }

    fn port(&self) -> u16 {
        self.server.port()
    }
}

/// Directives that answer as a file of the study would be answered.
fn origin_answer() -> String {
    let body = "x".repeat(OBJECT_BYTES);
    format!(
        "default_type text/html; \
         add_header Last-Modified \"Sun, 22 Nov 2026 00:00:00 GMT\"; \
         add_header ETag '\"6a0f2c80-258\"'; \
         add_header Accept-Ranges bytes; \
         return 200 {body};"
    )
}

/// A started case.
pub(super) enum Front {
    /// With nginx's command line.
    Server(Server),
    /// With its own.
    Varnish(Varnish),
}

/// A running varnish; it ends when dropped.
pub(super) struct Varnish {
    master: Child,
    port: u16,
    /// The folder, which is removed with it.
    _folder: Folder,
}

impl Front {
    pub(super) fn start(
        case: Case,
        ours: &Contender,
        nginx: &Contender,
        origin: &Origin,
        cpu: usize,
    ) -> Result<Front, String> {
        let contender = match case {
            Case::Varnish => return varnish(origin.port(), cpu),
            Case::TurnpikeCache | Case::TurnpikeStatic | Case::TurnpikeProxy => ours,
            Case::NginxStatic | Case::NginxCache | Case::NginxProxy => nginx,
        };
        let text = case.configuration(cpu, origin.port())?;
        contender.start(&text).map(Front::Server)
    }

    pub(super) fn url(&self) -> String {
        let port = match self {
            Front::Server(server) => server.port(),
            Front::Varnish(varnish) => varnish.port,
        };
        format!("http://127.0.0.1:{port}{OBJECT}")
    }

    /// Microseconds that its processes have run.
    pub(super) fn process_us(&self) -> u64 {
        let pids = match self {
            Front::Server(server) => server.serving_pids(),
            Front::Varnish(varnish) => process::children(varnish.master.id()),
        };
        pids.into_iter().map(machine::process_us).sum()
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        process::signal(self.master.id(), turnpike_testkit::Signal::SIGTERM);
        let _ = self.master.wait(); // it is gone either way
    }
}

/// varnish with its defaults, except for one pool of threads: it runs on one core.
fn varnish(origin: u16, cpu: usize) -> Result<Front, String> {
    let failed = |error: std::io::Error| format!("varnish: {error}");
    let folder = Folder::create().map_err(failed)?;
    let port = ports::reserve().ok_or("no free port")?;
    let work = folder.path().join("varnish");
    let master = Command::new("taskset")
        .args(["-c", &cpu.to_string(), "varnishd", "-F", "-j", "none"])
        .arg("-n")
        .arg(&work)
        .args(["-a", &format!("127.0.0.1:{port}")])
        .args(["-b", &format!("127.0.0.1:{origin}")])
        .args(["-s", "malloc,64m", "-t", "3600", "-p", "thread_pools=1"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let varnish = Varnish {
        master,
        port,
        _folder: folder,
    };
    let answers = || std::net::TcpStream::connect(("127.0.0.1", port)).ok();
    match wait_for(answers) {
        Some(_) => Ok(Front::Varnish(varnish)),
        None => Err("varnish does not listen".to_owned()),
    }
}

pub(super) fn varnish_version() -> String {
    let line = machine::first_line("varnishd", &["-V"]);
    let name = line.trim_start_matches("varnishd (");
    name.split(' ').next().unwrap_or_default().to_owned()
}
