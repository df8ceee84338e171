//! Reload: another configuration is opened beside the one in force, and takes its place when it
//! is served.

use std::io;

use turnpike_lane::log::{Errno, Level};

use super::{Master, Pending, Phase};
use crate::channel;
use crate::master::child::State;
use crate::master::pid_file::PidFile;
use crate::master::site::{Failure, Site};

impl Master {
    pub(super) fn reload(&mut self) {
        if self.pending.is_some() || self.phase == Phase::Starting {
            self.reload_again = true;
            return;
        }
        self.log.event(Level::Notice, format_args!("reconfiguring"));
        let globals = self.globals.clone();
        let opened = Site::open(&self.paths, globals.as_deref(), Some(&self.site), &self.log);
        let site = match opened {
            Ok(site) => site,
            Err(Failure::Files | Failure::Gate(_)) => return,
        };
        if let Err(error) = self.hand_over(site) {
            self.pending = None;
            let message = format_args!(
                "the new configuration was not handed over {}",
                Errno(&error)
            );
            self.log.event(Level::Emerg, message);
        }
    }

    /// Gives a configuration to the serving process, or to a new one when the running one cannot
    /// become what it asks for.
    pub(super) fn hand_over(&mut self, site: Site) -> io::Result<()> {
        self.generation += 1;
        let bundle = site.bundle(self.generation)?;
        let new = &site.configuration.settings.process;
        let same = *new == self.site.configuration.settings.process;
        let serving = self
            .children
            .iter()
            .position(|child| child.state == State::Serving);
        let index = match serving.filter(|_| same || !self.master_process) {
            Some(index) => index,
            None => {
                let new = new.clone();
                self.log
                    .event(Level::Notice, format_args!("start worker processes"));
                let child = self.spawn(&new)?;
                self.children.push(child);
                self.children.len() - 1
            }
        };
        let child = &self.children[index];
        let (generation, token) = (self.generation, child.token);
        self.restart_at = None;
        self.pending = Some(Pending {
            site,
            generation,
            token,
        });
        channel::send_apply(child.channel(), &bundle)
    }

    /// The new configuration is being served: what only the old one needed is closed.
    pub(super) fn commit(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let old = std::mem::replace(&mut self.site, pending.site);
        self.log = self.site.log.clone();
        for child in &mut self.children {
            if child.token != pending.token && child.state != State::Leaving {
                child.state = State::Leaving;
                // A child that cannot be told is gone, and its end will be noticed.
                let _ = channel::send_end(child.channel(), true);
            }
        }
        old.gates.unlink_except(&self.site.gates, &self.log);
        drop(old);
        self.site.lead_stderr();
        self.move_pid_file();
        self.reload_if_asked();
    }

    /// A reload was asked for while another one was under way.
    pub(super) fn reload_if_asked(&mut self) {
        if std::mem::take(&mut self.reload_again) && !self.is_ending() {
            self.reload();
        }
    }

    pub(super) fn move_pid_file(&mut self) {
        let path = &self.site.configuration.settings.pid_file;
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
