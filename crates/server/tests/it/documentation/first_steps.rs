//! The recording of a terminal in `docs/first-steps.md`, played again: what is typed there is
//! typed here, and what came is what comes.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use turnpike_testkit::{Folder, Signal, ports, process};

use crate::support::{TURNPIKE, wait_for};

/// The lines of the recording: what is typed, and what comes then.
fn recording(page: &str) -> Vec<(&str, Vec<&str>)> {
    let (_, text) = page.split_once("\n```console\n").unwrap();
    let (text, _) = text.split_once("\n```\n").unwrap();
    let mut steps: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(typed), _) => steps.push((typed, Vec::new())),
            (None, Some((_, comes))) => comes.push(line),
            (None, None) => panic!("{line}"),
        }
    }
    steps
}

/// A line without what differs each time: the time of a request, and how long it took.
fn without_times(line: &str) -> String {
    match (line.split_once(" ["), line.split_once("] \"")) {
        (Some((client, _)), Some((_, rest))) => {
            let rest = rest.rsplit_once(' ').map_or(rest, |(before, _)| before);
            format!("{client} \"{rest}")
        }
        _ => line.to_owned(),
    }
}

/// A terminal in a home of its own.
struct Terminal {
    home: Folder,
    jobs: Vec<(Child, std::path::PathBuf)>,
}

impl Terminal {
    fn new() -> Terminal {
        let home = Folder::create().unwrap();
        home.write("site/empty", "").unwrap();
        // The serving process of root is another user.
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        home.write("output", "").unwrap();
        fs::create_dir(home.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(TURNPIKE, home.path().join("bin/turnpike")).unwrap();
        Terminal {
            home,
            jobs: Vec::new(),
        }
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.home.path().join("bin");
        command
            .args(["-c", script])
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env("XDG_STATE_HOME", self.home.path().join(".local/state"))
            .env("PATH", format!("{}:{path}", bin.display()))
            .stdin(Stdio::null());
        command
    }

    /// Types a line; what is printed until the lines are there that should come.
    fn types(&mut self, line: &str, comes: &[String]) {
        if let Some(number) = line.strip_prefix("kill %") {
            let job = number.parse::<usize>().unwrap() - 1;
            process::signal(self.jobs[job].0.id(), Signal::SIGTERM);
            let _ = self.jobs[job].0.wait();
        } else if let Some(line) = line.strip_suffix(" &") {
            let log = self.home.path().join(format!("job{}", self.jobs.len()));
            let output = File::create(&log).unwrap();
            // The process is that of the line, so that it can be ended.
            let mut command = self.command(&format!("exec {line}"));
            command.stdout(output.try_clone().unwrap()).stderr(output);
            let child = command.spawn().unwrap();
            self.jobs.push((child, log));
        } else if line.contains('>') {
            let status = self.command(line).status().unwrap();
            assert!(status.success(), "{line}");
        } else {
            // What was started may not listen yet.
            let retried = line.replace("curl -s", "curl -s --retry 9 --retry-all-errors");
            let output = self.command(&retried).output().unwrap();
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            self.home.write("output", &shown).unwrap();
        }
        for expected in comes {
            wait_for(expected, || self.shown().contains(expected));
        }
    }

    /// All lines of the last command and of the jobs.
    fn shown(&self) -> Vec<String> {
        let logs = self.jobs.iter().map(|(_, log)| log.clone());
        let logs = logs.chain([self.home.path().join("output")]);
        let texts = logs.map(|log| fs::read_to_string(log).unwrap_or_default());
        let text: String = texts.collect();
        text.lines().map(without_times).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for (job, _) in &mut self.jobs {
            let _ = job.kill();
            let _ = job.wait();
        }
    }
}

#[test]
fn the_first_steps_go_as_they_are_shown() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-steps.md");
    let page = fs::read_to_string(path).unwrap();
    let steps = recording(&page);
    assert!(steps.len() >= 6, "{steps:?}");
    let mut terminal = Terminal::new();
    let mut secure = String::new();
    let application = ports::reserve().unwrap().to_string();
    let home = terminal.home.name().to_owned();
    for (typed, comes) in steps {
        let mut typed = typed.to_owned();
        if typed.contains("turnpike ") && typed.ends_with('&') {
            secure = ports::reserve().unwrap().to_string();
        }
        // Ports of our own in place of the defaults.
        typed = typed
            .replace(
                "serve site --https localhost",
                "serve site --https localhost --listen 8443",
            )
            .replace("proxy https://localhost", "proxy 8443 --https localhost");
        let place = |text: &str| {
            text.replace("8443", &secure)
                .replace("3000", &application)
                .replace("/home/you", &home)
        };
        let comes = comes.iter().map(|line| without_times(&place(line)));
        let comes: Vec<String> = comes.collect();
        terminal.types(&place(&typed), &comes);
    }
}
