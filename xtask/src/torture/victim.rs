//! The server under torture, and the actions on it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use turnpike_testkit::ports;
use turnpike_testkit::process::{self, Moment};
use turnpike_testkit::{Server, Signal, wait_for};

use super::ledger::{Act, Deed, now_us};
use crate::certificates::{Certificates, Kind};
use crate::contender::Contender;

/// How long a lane is stopped.
const STALL: Duration = Duration::from_secs(2);
/// The largest number of lanes.
const LANES_MAX: u64 = 4;
/// When a dead master is started again: the unit's RestartSec.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// The longest gap between two kills.
const GAP_MS_MAX: u64 = 300;
/// Starts a program as systemd does, with its standard input and output as the sockets that it
/// passes.
const WITH_SOCKETS: &str = "exec 3<&0 4<&1 </dev/null >/dev/null; \
    LISTEN_PID=$$ LISTEN_FDS=2 exec \"$0\" \"$@\"";
/// Bytes of the secret of connection IDs and resets.
const HOST_KEY_BYTES: usize = 32;
/// When a command counts as hung.
const COMMAND_PATIENCE: Duration = Duration::from_secs(120);

/// A running server.
pub(super) struct Victim {
    program: PathBuf,
    server: Server,
    is_nginx: bool,
    origin: u16,
    lanes: u64,
    generation: u64,
    /// The certificate of HTTP/3.
    keys: Certificates,
    /// The objects of systemd: the sockets for clients of TCP and UDP while no server runs, and the
    /// masters that it has started.
    sockets: Option<[OwnedFd; 2]>,
    masters: Vec<Child>,
}

impl Victim {
    pub(super) fn start(contender: &Contender, origin: u16) -> Result<Victim, String> {
        let is_nginx = contender.name == "nginx";
        let keys = Certificates::create(&[("server", Kind::Ecdsa)])?;
        // With it a client learns at once that its connection was lost with all processes.
        std::fs::write(keys.path().join("host.key"), [7; HOST_KEY_BYTES])
            .map_err(|error| error.to_string())?;
        let text = configuration(is_nginx, &keys, origin, 2, 0);
        let mut server = contender.start(&text)?;
        let mut sockets = None;
        if !is_nginx {
            // From now on it is started as a service.
            server.signal(Signal::SIGQUIT);
            server.wait();
            let text = |error: std::io::Error| error.to_string();
            sockets = Some([
                ports::listen_shared(server.port()).map_err(text)?,
                ports::bind_shared(server.port()).map_err(text)?,
            ]);
        }
        let mut victim = Victim {
            program: contender.program.clone(),
            server,
            is_nginx,
            origin,
            lanes: 2,
            generation: 0,
            keys,
            sockets,
            masters: Vec::new(),
        };
        if !is_nginx {
            victim.start_service()?;
        }
        Ok(victim)
    }

    pub(super) fn port(&self) -> u16 {
        self.server.port()
    }

    pub(super) fn folder(&self) -> &Path {
        self.server.folder()
    }

    pub(super) fn log(&self) -> String {
        self.server.log("error.log")
    }

    /// The master: an upgrade makes another one.
    fn master(&self) -> Option<u32> {
        self.server.log("pid").trim().parse().ok()
    }

    /// The serving process. It need not be its master's child.
    fn serving(&self) -> Option<u32> {
        if self.is_nginx {
            return process::children(self.master()?).first().copied();
        }
        let pid = self.status()?["serving"]["pid"].as_u64()?;
        u32::try_from(pid).ok()
    }

    /// The master's answer to `status`.
    fn status(&self) -> Option<Value> {
        let output = Command::new(&self.program)
            .args(["status", "--json", "--socket"])
            .arg(self.folder().join("pid.control"))
            .stdin(Stdio::null())
            .output()
            .ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Runs an action; `random` makes its choices. A part that takes long, and does not hinder the
    /// next action, runs in a thread of `scope`, and reports to `done`. `false`: it could
    /// not be done.
    pub(super) fn suffer<'scope>(
        &mut self,
        act: Act,
        random: u64,
        scope: &'scope std::thread::Scope<'scope, '_>,
        done: &'scope (impl Fn(Deed) + Sync),
    ) -> Result<bool, String> {
        let from_us = now_us();
        let deed = move |until_us| Deed {
            act,
            from_us,
            until_us,
            is_done: true,
        };
        let mut is_done = true;
        match act {
            Act::Reload => self.reload(),
            Act::LaneCount => {
                self.lanes = (self.lanes + random % (LANES_MAX - 1)) % LANES_MAX + 1;
                self.reload();
            }
            Act::Upgrade => is_done = self.upgrade()?,
            Act::Stall => {
                let Some(thread) = self.some_lane(random) else {
                    return Ok(false);
                };
                scope.spawn(move || {
                    let begun = Instant::now();
                    // A lane that has ended need not be stopped.
                    let _ = process::hold_thread(thread, Moment::Any, || begun.elapsed() < STALL);
                    done(deed(now_us()));
                });
                return Ok(true);
            }
            Act::Kill => {
                let Some(pid) = self.serving() else {
                    return Ok(false);
                };
                kill(pid);
            }
            Act::KillMaster => {
                self.kill_master();
                self.start_again()?;
            }
            Act::KillBoth => self.kill_both(random, done)?,
        }
        done(Deed {
            is_done,
            ..deed(now_us())
        });
        Ok(is_done)
    }

    fn kill_master(&self) {
        if let Some(master) = self.master() {
            process::signal(master, Signal::SIGKILL);
            wait_for(|| (!process::is_alive(master)).then_some(()));
        }
    }

    /// Kills master and serving process, in either order. If the serving process is killed first,
    /// another one exists or is being started when the master dies.
    fn kill_both(&mut self, random: u64, done: &impl Fn(Deed)) -> Result<(), String> {
        let Some(serving) = self.serving() else {
            return Ok(());
        };
        let gap = Duration::from_millis((random >> 1) % GAP_MS_MAX);
        let kill_serving = || {
            let from_us = now_us();
            kill(serving);
            done(Deed {
                act: Act::Kill,
                from_us,
                until_us: now_us(),
                is_done: true,
            });
        };
        if random.is_multiple_of(2) {
            self.kill_master();
            std::thread::sleep(gap);
            kill_serving();
        } else {
            kill_serving();
            std::thread::sleep(gap);
            self.kill_master();
        }
        self.start_again()
    }

    /// Starts the server again, as systemd would: after a second, whatever is left of it.
    fn start_again(&mut self) -> Result<(), String> {
        std::thread::sleep(RESTART_PAUSE);
        // Those that are dead are collected.
        self.masters
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.start_service()
    }

    fn start_service(&mut self) -> Result<(), String> {
        let [tcp, udp] = self.sockets.as_ref().ok_or("nginx is no service")?;
        let passed = |socket: &OwnedFd| {
            let socket = socket.try_clone().map_err(|error| error.to_string())?;
            Ok::<_, String>(Stdio::from(socket))
        };
        let folder = self.folder();
        let child = Command::new("sh")
            .args(["-c", WITH_SOCKETS])
            .arg(&self.program)
            .arg("-p")
            .arg(folder.join(""))
            .arg("-c")
            .arg(folder.join("turnpike.conf"))
            .arg("-e")
            .arg(folder.join("error.log"))
            .arg("-g")
            .arg(format!("daemon off; pid {}/pid;", folder.display()))
            .stdin(passed(tcp)?)
            .stdout(passed(udp)?)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let pid = child.id();
        self.masters.push(child);
        let is_up = || {
            let status = self.status()?;
            (status["pid"] == pid && status["phase"] == "running").then_some(())
        };
        wait_for(is_up).ok_or_else(|| format!("no start:\n{}", self.log()))
    }

    fn reload(&mut self) {
        self.generation += 1;
        let (lanes, generation) = (self.lanes, self.generation);
        let text = configuration(self.is_nginx, &self.keys, self.origin, lanes, generation);
        self.server.write_configuration(&text);
        if let Some(master) = self.master() {
            process::signal(master, Signal::SIGHUP);
        }
    }

    fn some_lane(&self, random: u64) -> Option<u32> {
        let threads = process::threads(self.serving()?);
        let lanes: Vec<u32> = threads
            .into_iter()
            .filter(|(_, name)| name.starts_with("lane "))
            .map(|(thread, _)| thread)
            .collect();
        lanes
            .get((random % lanes.len().max(1) as u64) as usize)
            .copied()
    }

    /// Puts the same binary in its own place, by the command that does the whole dance. `false`: it
    /// was refused.
    fn upgrade(&self) -> Result<bool, String> {
        let socket = self.folder().join("pid.control");
        let mut child = Command::new(&self.program)
            .arg("upgrade")
            .arg("--socket")
            .arg(socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let until = Instant::now() + COMMAND_PATIENCE;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err("turnpike upgrade does not come back".to_owned());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// Kills a serving process. Its threads may hold connections after its first one has ended, so this
/// waits for the last of them.
fn kill(pid: u32) {
    process::signal(pid, Signal::SIGKILL);
    wait_for(|| process::has_ended(pid).then_some(()));
}

impl Drop for Victim {
    /// A master that an upgrade has started is not our child, nor is an adopted serving process.
    fn drop(&mut self) {
        let Some(master) = self.master().filter(|pid| *pid != self.server.pid()) else {
            return;
        };
        let serving = process::children(master).into_iter().chain(self.serving());
        let serving: Vec<u32> = serving.collect();
        process::signal(master, Signal::SIGTERM);
        wait_for(|| (!process::is_alive(master)).then_some(()));
        for pid in serving {
            process::signal(pid, Signal::SIGKILL);
        }
        for child in &mut self.masters {
            // It is dead, or ends now.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn configuration(
    is_nginx: bool,
    keys: &Certificates,
    origin: u16,
    lanes: u64,
    generation: u64,
) -> String {
    let (main, listen, quic) = if is_nginx {
        ("", "reuseport", String::new())
    } else {
        let keys = keys.path().display();
        let quic = format!(
            "listen 127.0.0.1:%PORT% quic reuseport;
        ssl_certificate {keys}/server.pem;
        ssl_certificate_key {keys}/server.key;
        quic_host_key {keys}/host.key;"
        );
        let listen = "reuseport=steer; http2 on";
        ("control %FOLDER%/pid.control;", listen, quic)
    };
    format!(
        "worker_processes {lanes};
{main}
error_log %FOLDER%/error.log notice;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    client_header_timeout 600s;
    client_body_buffer_size 1m;
    server {{
        listen 127.0.0.1:%PORT% {listen};
        {quic}
        root %FOLDER%/html;
        add_header X-Generation {generation};
        location /upload {{
            proxy_pass http://127.0.0.1:{origin};
        }}
        location /socket {{
            proxy_pass http://127.0.0.1:{origin};
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
            proxy_read_timeout 600s;
        }}
    }}
}}
"
    )
}
