//! Reload: another configuration is opened beside the one in force, and takes its place when it
//! is served.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use turnpike_lane::log::{Errno, ErrorLog, Kept, Level, Sink, Target};

use super::Master;
use super::state::{Pending, Phase};
use crate::channel::{self, End};
use crate::control::RequestError;
use crate::control::socket::Ticket;
use crate::master::child::State;
use crate::master::loaded::{LoadError, LoadedConfiguration};
use crate::master::pid_file::PidFile;
use crate::master::systemd::State as Told;
use crate::master::watch::Seen;

/// A configuration with all that it needs, or why there is none.
type Opened = Result<LoadedConfiguration, LoadError>;

impl Master {
    /// A reload whose outcome a client waits for.
    pub(super) fn reload_for(&mut self, ticket: Ticket) {
        if self.is_ending() {
            self.tell(&ticket, Err(RequestError::failed("the server is ending")));
            return;
        }
        self.reloads.tickets.push(ticket);
        self.reload();
    }

    pub(super) fn reload(&mut self) {
        if self.reloads.pending.is_some() || self.course.phase == Phase::Starting {
            self.reloads.is_asked_again = true;
            return;
        }
        if self.is_upgrading() {
            // The other binary has read its files before, or is backed out.
            let message = format_args!("the reload waits for the end of the upgrade");
            self.log.event(Level::Notice, message);
            self.reloads.is_asked_again = true;
            return;
        }
        if self.others.successor.is_some() {
            self.come_back();
            let tickets = std::mem::take(&mut self.reloads.tickets);
            self.reload_failed(&tickets, "another binary was started");
            return;
        }
        if let Some(given) = &self.paths.given {
            let from = given.from;
            let why = format!(
                "there is no file to read again: the configuration came from {from}; restart the \
                 server to change it"
            );
            self.log.event(Level::Error, format_args!("{why}"));
            let tickets = std::mem::take(&mut self.reloads.tickets);
            self.reload_failed(&tickets, &why);
            return;
        }
        self.log.event(Level::Notice, format_args!("reconfiguring"));
        let (paths, globals) = (self.paths.clone(), self.globals.clone());
        self.replace(|old, log| {
            LoadedConfiguration::open(&paths, globals.as_deref(), &old.logs, &old.gates, log)
        });
    }

    /// Puts files in force that have changed since the configuration was read, which stays what it
    /// is.
    pub(super) fn look_at_files(&mut self) {
        let Seen { changed, gone } = self.watch.look(&self.loaded.configuration);
        for path in &gone {
            let path = path.display();
            let what = format_args!(
                "\"{path}\" is gone: its contents stay in use, but the next start or reload will \
                 fail"
            );
            self.log.event(Level::Warn, what);
        }
        for path in &changed {
            let path = path.display();
            let what = format_args!("\"{path}\" has changed, and is read again");
            self.log.event(Level::Notice, what);
        }
        if !changed.is_empty() {
            self.replace(LoadedConfiguration::reread);
        }
    }

    /// Has another process serve what is in force, in the place of one that is stuck.
    pub(super) fn replace_stuck(&mut self, index: usize) {
        let child = &self.serving.children[index];
        let number = child.number();
        if child.state == State::Leaving || self.is_ending() {
            return;
        }
        if !self.serving.has_processes {
            let message = format_args!("a lane is lost until a restart: master_process is off");
            self.log.event(Level::Alert, message);
            return;
        }
        self.reloads.needs_process = true;
        let message = format_args!("worker process {number} is stuck: another one is started");
        self.log.event(Level::Alert, message);
        if self.is_settled() {
            self.replace(LoadedConfiguration::reread);
        } else {
            // As soon as it can be.
            self.reloads.is_asked_again = true;
        }
    }

    /// Whether another configuration can be put in force now.
    pub(super) fn is_settled(&self) -> bool {
        self.reloads.pending.is_none()
            && self.course.phase == Phase::Running
            && self.others.successor.is_none()
    }

    /// Opens another configuration and hands it over.
    fn replace(&mut self, open: impl FnOnce(&LoadedConfiguration, &ErrorLog) -> Opened) {
        self.starter.manager.notify(Told::Reloading);
        let since = Instant::now();
        let kept = |level| {
            let kept = Arc::new(Kept::default());
            let sink = Sink::Kept(Arc::clone(&kept));
            (kept, Target::new(level, sink))
        };
        let (said, errors) = kept(Level::Error);
        // As many lines as nginx's control API shows.
        let (shown, warnings) = kept(Level::Warn);
        let log = self.log.with(errors).with(warnings);
        let opened = open(&self.loaded, &log);
        self.reloads.logs = shown.whole_lines();
        let loaded = match opened {
            Ok(loaded) => loaded,
            Err(LoadError::Files | LoadError::Gate(_)) => {
                let tickets = std::mem::take(&mut self.reloads.tickets);
                self.reload_failed(&tickets, &said.lines().join("\n"));
                return;
            }
        };
        if let Err(error) = self.hand_over(loaded, since) {
            let message = format!(
                "the new configuration was not handed over {}",
                Errno(&error)
            );
            self.log.event(Level::Emerg, format_args!("{message}"));
            self.give_up_pending(&message);
        }
    }

    fn reload_failed(&mut self, tickets: &[Ticket], why: &str) {
        self.starter.manager.notify(Told::Ready);
        self.control.counts.reloads_failed += 1;
        self.tell_counts();
        self.tell_all(tickets, &Err(RequestError::failed(why)));
    }

    /// Gives a configuration to the serving process, or to a new one when the running one cannot
    /// become what it asks for.
    pub(super) fn hand_over(
        &mut self,
        loaded: LoadedConfiguration,
        since: Instant,
    ) -> io::Result<()> {
        self.generation += 1;
        let (generation, new) = (self.generation, &loaded.configuration.settings.process);
        let is_stuck = std::mem::take(&mut self.reloads.needs_process);
        let same = self.loaded.can_become(&loaded) && !is_stuck;
        let serving = self
            .serving
            .children
            .iter()
            .position(|child| child.state == State::Serving);
        let index = match serving.filter(|_| same || !self.serving.has_processes) {
            Some(index) => index,
            None => {
                let new = new.clone();
                self.log
                    .event(Level::Notice, format_args!("start worker processes"));
                match self.spawn(&new) {
                    Ok(child) => self.serving.children.push(child),
                    Err(error) => {
                        self.reinstate(loaded, false);
                        return Err(error);
                    }
                }
                self.serving.children.len() - 1
            }
        };
        let takes_over = serving.is_some_and(|serving| serving != index);
        let (ours, links) = if takes_over {
            self.succession_links()
        } else {
            Default::default()
        };
        let token = self.serving.children[index].token;
        self.serving.restart_at = None;
        self.loaded.gates.stop_listening_except(&loaded.gates);
        let pending = self.reloads.pending.insert(Pending {
            loaded,
            generation,
            token,
            tickets: std::mem::take(&mut self.reloads.tickets),
            since,
        });
        let mut bundle = pending.loaded.bundle(generation)?;
        bundle.extras.extend(links.into_extras());
        self.serving.children[index].apply(&bundle)?;
        self.announce_successor(&ours);
        Ok(())
    }

    /// The configuration in force stays so; who asked for another is told why.
    pub(super) fn give_up_pending(&mut self, why: &str) {
        let Some(pending) = self.reloads.pending.take() else {
            // It was not handed over: who asked for it still waits for the next one.
            let tickets = std::mem::take(&mut self.reloads.tickets);
            self.reload_failed(&tickets, why);
            return;
        };
        self.reload_failed(&pending.tickets, why);
        let mut children = self.serving.children.iter();
        let is_other =
            children.any(|one| one.state == State::Serving && one.token != pending.token);
        // The process that was to follow may have taken the memory with what commands change.
        self.reinstate(pending.loaded, is_other);
    }

    /// `given_up` does not come into force. The serving process gets the sockets that are left of
    /// it, since something may wait there; the next reload would give it those too. `is_due`: it
    /// gets its configuration again in any case.
    fn reinstate(&mut self, given_up: LoadedConfiguration, is_due: bool) {
        let has_new_sockets = self.loaded.reinstate(given_up);
        if (has_new_sockets || is_due) && !self.reloads.is_asked_again {
            self.hand_serving_again();
        }
    }

    /// Gives the process that serves, where there is one, its configuration once more.
    pub(super) fn hand_serving_again(&mut self) {
        let mut children = self.serving.children.iter();
        if let Some(index) = children.position(|child| child.state == State::Serving) {
            self.hand_again(index);
        }
    }

    /// Gives a child the configuration that it serves once more, with all sockets.
    pub(super) fn hand_again(&mut self, index: usize) {
        self.generation += 1;
        let sent = self.loaded.bundle(self.generation);
        let child = &mut self.serving.children[index];
        if let Err(error) = sent.and_then(|bundle| child.apply(&bundle)) {
            let message = format_args!("sendmsg() failed {}", Errno(&error));
            self.log.event(Level::Alert, message);
        }
    }

    /// The new configuration is being served: what only the old one needed is closed.
    pub(super) fn commit(&mut self, report: &str) {
        let Some(pending) = self.reloads.pending.take() else {
            return;
        };
        let old = std::mem::replace(&mut self.loaded, pending.loaded);
        self.log = self.loaded.log.clone();
        self.watch.begin(&self.loaded.configuration);
        for child in &mut self.serving.children {
            if child.token != pending.token && child.state != State::Leaving {
                child.state = State::Leaving;
                // A child that cannot be told is gone, and its end will be noticed.
                let _ = channel::send_end(child.channel(), End::Drained);
            }
        }
        old.gates.unlink_except(&self.loaded.gates, &self.log);
        // Whoever waits at a socket that is closed now is reset.
        let reset = old.gates.queued_except(&self.loaded.gates);
        self.loaded.gates.keep_closing(old.gates);
        self.close_gates();
        self.loaded.lead_stderr();
        self.move_pid_file();
        self.place_control();
        self.place_adoption();
        self.settle_express();
        self.starter.manager.notify(Told::Ready);
        self.control.counts.reloads += 1;
        self.tell_counts();
        let mut report: Value = serde_json::from_str(report).unwrap_or_default();
        if report.is_null() {
            report = json!({});
        }
        report["connections"]["reset"] = reset.into();
        report["generation"] = pending.generation.into();
        report["took_ms"] = (pending.since.elapsed().as_millis() as u64).into();
        self.log
            .event(Level::Notice, format_args!("{}", sentence(&report)));
        self.tell_all(&pending.tickets, &Ok(report));
        self.reload_if_asked();
    }

    /// A reload was asked for while another one was under way.
    pub(super) fn reload_if_asked(&mut self) {
        if std::mem::take(&mut self.reloads.is_asked_again) && !self.is_ending() {
            self.reload();
        }
    }

    pub(super) fn move_pid_file(&mut self) {
        let path = &self.loaded.configuration.settings.pid_file;
        let Some(old) = self.pid_file.take_if(|file| file.path() != path) else {
            return;
        };
        match self.paths.open_with_folder(path, PidFile::create) {
            Ok(file) => {
                old.remove(&self.log);
                self.pid_file = Some(file);
            }
            Err(error) => {
                let (name, error) = (path.display(), Errno(&error));
                self.log.event(
                    Level::Emerg,
                    format_args!("open() \"{name}\" failed {error}"),
                );
                self.pid_file = Some(old);
            }
        }
    }
}

/// The report as a line of the log.
fn sentence(report: &Value) -> String {
    let changes = |name: &str| {
        let of = |count: &str| report[name][count].as_u64().unwrap_or_default();
        let (now, added, removed) = (of("now"), of("added"), of("removed"));
        format!("{name} {now} (+{added} -{removed} ~{})", of("changed"))
    };
    let zones = |count: &str| {
        let zones = report["zones"].as_object();
        let counts = zones.into_iter().flat_map(|zones| zones.values());
        counts.filter_map(|zone| zone[count].as_u64()).sum::<u64>()
    };
    let replaced = |kind: &str| {
        let zones = report["zones"].as_object();
        let lists = zones.into_iter().flat_map(|zones| zones.values());
        lists
            .filter_map(|zone| Some(zone[kind].as_array()?.len()))
            .sum::<usize>()
    };
    let (lanes, connections) = (&report["lanes"], &report["connections"]);
    format!(
        "reloaded: generation {} in {}ms; {}, {}, {}, lanes {} (before {}), {}, {}, {}, zones {} \
         kept {} new {} dropped {} emptied; connections {} kept, {} moved, {} closed, {} reset",
        report["generation"],
        report["took_ms"],
        changes("servers"),
        changes("locations"),
        changes("listens"),
        lanes["now"],
        lanes["before"],
        changes("upstreams"),
        changes("upstream_servers"),
        changes("directives"),
        zones("kept"),
        zones("new"),
        zones("dropped"),
        replaced("emptied"),
        connections["kept"],
        connections["moved"],
        connections["closed"],
        connections["reset"],
    )
}
