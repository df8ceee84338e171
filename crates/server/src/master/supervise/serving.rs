//! Serving processes: how they are started, what they say, and what follows when one ends.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::epoll::Interest;
use turnpike_lane::sys::process::{self, Ending};

use super::state::Phase;
use super::{Master, STOP_WAIT};
use crate::channel::{self, End, Reply};
use crate::embedded;
use crate::master::child::{Child, Server, State};
use crate::master::pid_file::PidFile;
use crate::master::systemd::State as Told;
use crate::settings::ProcessSettings;
use crate::standard_error::write_standard_error;

/// A serving process that lived shorter than this died of its start.
const LIFE_SHORT: Duration = Duration::from_millis(300);
/// How many such deaths in a row are answered at once: more is a loop, not an accident.
const RESTARTS_AT_ONCE: u32 = 5;
/// The pause before the first restart in a loop; doubled from one to the next, so that a machine is
/// not kept busy with starting what cannot live.
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause: whoever mends the cause need not wait longer.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Addresses that the log names at a start: a line that people can read.
const ADDRESSES_LOGGED_MAX: usize = 16;

impl Master {
    /// Starts a server for the configuration in force.
    pub(super) fn start_serving(&mut self) -> io::Result<()> {
        self.log
            .event(Level::Notice, format_args!("start worker processes"));
        self.generation += 1;
        let child = self.spawn(&self.loaded.configuration.settings.process.clone())?;
        let bundle = self.first_bundle()?;
        self.serving.children.push(child);
        self.tell_counts();
        // Before the sockets: should this master die now, it has where to be found with them.
        self.tell_adoption();
        let child = self.serving.children.last_mut();
        let sent = child.map_or(Ok(()), |child| child.apply(&bundle));
        if let Err(error) = sent {
            // Its end will be noticed, and answered like any other.
            self.log.event(
                Level::Alert,
                format_args!("sendmsg() failed {}", Errno(&error)),
            );
        }
        Ok(())
    }

    pub(super) fn spawn(&mut self, settings: &ProcessSettings) -> io::Result<Child> {
        let token = self.events.new_token();
        let child = if self.serving.has_processes {
            let child = Child::process(token, settings)?;
            let message = format_args!("start worker process {}", child.number());
            self.log.event(Level::Notice, message);
            child
        } else {
            Child::thread(token)?
        };
        self.events
            .epoll
            .add(child.channel(), Interest::READ, child.token)?;
        Ok(child)
    }

    pub(super) fn restart(&mut self) {
        if let Err(error) = self.start_serving() {
            let message = format_args!("could not respawn worker process {}", Errno(&error));
            self.log.event(Level::Alert, message);
            self.serving.restart_at = Some(Instant::now() + RESTART_PAUSE);
        }
    }

    pub(super) fn reap(&mut self) {
        loop {
            let (process, ending) = match process::reap_child() {
                Ok(Some(ended)) => ended,
                Ok(None) => return,
                Err(error) => {
                    let message = format_args!("waitpid() failed {}", Errno(&error));
                    self.log.event(Level::Alert, message);
                    return;
                }
            };
            if self.successor_ended(process, ending) {
                continue;
            }
            self.log_ending(process, ending);
            let is_it =
                |child: &Child| matches!(child.server, Server::Process(own) if own == process);
            if let Some(index) = self.serving.children.iter().position(is_it) {
                if let Ending::Signal { has_core: true, .. } = ending {
                    self.control.counts.cores += 1;
                    self.tell_counts();
                }
                self.drain_replies(index);
                let child = self.serving.children.remove(index);
                self.child_gone(&child);
            }
        }
    }

    pub(super) fn log_ending(&self, process: i32, ending: Ending) {
        match ending {
            Ending::Signal { number, has_core } => {
                let core = if has_core { " (core dumped)" } else { "" };
                let message =
                    format_args!("worker process {process} exited on signal {number}{core}");
                self.log.event(Level::Alert, message);
            }
            Ending::Status(code) => {
                let message = format_args!("worker process {process} exited with code {code}");
                self.log.event(Level::Notice, message);
            }
        }
    }

    /// What a child said before it ended may still be unread.
    pub(super) fn drain_replies(&mut self, index: usize) {
        let (token, state) = (
            self.serving.children[index].token,
            self.serving.children[index].state,
        );
        if state == State::Starting {
            self.take_reply(token);
        }
    }

    /// Closes the sockets of removed addresses that no process uses any more.
    pub(super) fn close_gates(&mut self) {
        let children = &self.serving.children;
        let is_used = |number| children.iter().any(|child| child.may_hold(number));
        self.loaded.gates.close_unused(is_used);
    }

    pub(super) fn child_gone(&mut self, child: &Child) {
        self.unanswered(child.token);
        self.close_gates();
        if self
            .reloads
            .pending
            .as_ref()
            .is_some_and(|pending| pending.token == child.token)
        {
            let message = "the new configuration was not taken over";
            self.log.event(Level::Emerg, format_args!("{message}"));
            self.give_up_pending(message);
            self.reload_if_asked();
        }
        if self.is_ending() {
            if self.serving.children.is_empty() {
                self.finish();
            }
            return;
        }
        if self.course.phase == Phase::Starting && child.state != State::Leaving {
            self.give_back();
            self.course.exit = Some(ExitCode::FAILURE);
            return;
        }
        let replaced = self
            .serving
            .children
            .iter()
            .any(|other| other.state != State::Leaving);
        if child.state == State::Leaving || replaced {
            return;
        }
        self.control.counts.restarts += 1;
        self.serving.short_lives = if child.started.elapsed() < LIFE_SHORT {
            self.serving.short_lives + 1
        } else {
            0
        };
        match restart_pause(self.serving.short_lives) {
            None => self.restart(),
            Some(pause) => {
                let (lives, pause_s) = (self.serving.short_lives, pause.as_secs());
                let message = format_args!(
                    "serving processes died {lives} times in a row at their start, the next is \
                     started in {pause_s} s; connections wait meanwhile"
                );
                self.log.event(Level::Alert, message);
                self.serving.restart_at = Some(Instant::now() + pause);
            }
        }
    }

    pub(super) fn take_reply(&mut self, token: u64) {
        let Some(index) = self
            .serving
            .children
            .iter()
            .position(|child| child.token == token)
        else {
            return;
        };
        match channel::receive_reply(self.serving.children[index].channel()) {
            Ok(Some(Reply::Ready { generation, report })) => {
                self.ready(index, generation, &report);
            }
            Ok(Some(Reply::Refused { message, .. })) => self.refused(index, &message),
            Ok(Some(Reply::Released { generation })) => {
                let message = format_args!("worker generation {generation} exited with code 0");
                self.log.event(Level::Notice, message);
            }
            Ok(Some(Reply::GatesClosed { generation, gates })) => {
                self.serving.children[index].has_closed(&gates, generation);
                self.close_gates();
            }
            Ok(Some(Reply::Stuck)) => self.replace_stuck(index),
            Ok(Some(Reply::Answer { number, outcome })) => self.answered(number, &outcome),
            Ok(None) => self.channel_closed(index),
            Err(error) => {
                self.log.event(
                    Level::Alert,
                    format_args!("recvmsg() failed {}", Errno(&error)),
                );
                self.serving.children[index].kill();
                self.channel_closed(index);
            }
        }
    }

    /// A process's end comes as a signal too; a thread's is this.
    pub(super) fn channel_closed(&mut self, index: usize) {
        // It was added when the child was started.
        let _ = self
            .events
            .epoll
            .delete(self.serving.children[index].channel());
        if let Server::Thread(handle) = &mut self.serving.children[index].server {
            if let Some(handle) = handle.take() {
                // A panic of the thread has been printed where it happened.
                let _ = handle.join();
            }
            let child = self.serving.children.remove(index);
            self.child_gone(&child);
        }
    }

    pub(super) fn ready(&mut self, index: usize, generation: u64, report: &str) {
        let child = &mut self.serving.children[index];
        if child.state == State::Starting {
            child.state = State::Serving;
        }
        let message = format_args!("serving with configuration {generation}");
        self.log.event(Level::Notice, message);
        self.paused(generation);
        if self.on_trial(generation) {
            return;
        }
        if self.course.phase == Phase::Starting {
            self.log_addresses();
            self.up();
        } else if self
            .reloads
            .pending
            .as_ref()
            .is_some_and(|pending| pending.generation == generation)
        {
            self.commit(report);
        }
    }

    pub(super) fn refused(&mut self, index: usize, message: &str) {
        for line in message.lines() {
            self.log.event(Level::Emerg, format_args!("{line}"));
        }
        let child = &self.serving.children[index];
        if self
            .reloads
            .pending
            .as_ref()
            .is_some_and(|pending| pending.token == child.token)
        {
            self.give_up_pending(message);
            self.reload_if_asked();
        } else if self.course.phase == Phase::Starting && child.is_adopted() && self.give_back() {
            // It serves what it did, and another start may find it.
            self.course.exit = Some(ExitCode::FAILURE);
        }
    }

    /// Logs where the server can be reached.
    fn log_addresses(&self) {
        let listens = &self.loaded.needs.listens;
        let shown = listens.iter().take(ADDRESSES_LOGGED_MAX);
        let shown: Vec<String> = shown.map(|listen| listen.address.to_string()).collect();
        let more = match listens.len().saturating_sub(ADDRESSES_LOGGED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let lanes = self.loaded.configuration.settings.process.lanes;
        let lanes = match lanes {
            1 => "1 lane".to_owned(),
            lanes => format!("{lanes} lanes"),
        };
        if !shown.is_empty() {
            let message = format_args!("listening on {}{more}, {lanes}", shown.join(", "));
            self.log.event(Level::Notice, message);
        }
    }

    /// The first serving process is ready: all sockets accept, and the pid file can be written.
    pub(super) fn up(&mut self) {
        let settings = &self.loaded.configuration.settings;
        let named = settings.pid_file_named;
        if named || !self.paths.embedded {
            match self
                .paths
                .open_with_folder(&settings.pid_file, PidFile::create)
            {
                Ok(file) => self.pid_file = Some(file),
                Err(error) => {
                    let path = settings.pid_file.display();
                    let (level, rest) = if named {
                        (Level::Emerg, "")
                    } else {
                        (Level::Warn, ", no pid file is written")
                    };
                    let error = Errno(&error);
                    let message = format_args!("open() \"{path}\" failed {error}{rest}");
                    self.log.event(level, message);
                    if named {
                        self.fail_start();
                        return;
                    }
                }
            }
        }
        if !self.place_api() || !self.place_control() {
            self.fail_start();
            return;
        }
        self.course.phase = Phase::Running;
        self.place_adoption();
        self.settle_adoption();
        self.settle_express();
        self.dismiss_predecessor();
        if self.paths.embedded {
            write_standard_error(&embedded::invitation());
        }
        let given = self.paths.given.as_ref();
        if let Some(greeting) = given.and_then(|given| given.greeting.as_ref()) {
            write_standard_error(greeting);
        }
        self.loaded.lead_stderr();
        self.log = self.loaded.log.clone();
        if let Some(launcher) = self.starter.launcher.take() {
            launcher.release();
        }
        self.starter.manager.notify(Told::Ready);
        self.reload_if_asked();
    }

    fn fail_start(&mut self) {
        if self.give_back() {
            self.course.exit = Some(ExitCode::FAILURE);
            return;
        }
        self.course.phase = Phase::Stopping {
            kill_at: Instant::now() + STOP_WAIT,
        };
        self.course.exit = Some(ExitCode::FAILURE);
        self.end_children(End::Stopped);
        self.close_control();
        self.close_api();
        if let Some(pid_file) = self.pid_file.take() {
            pid_file.remove(&self.log);
        }
        self.unlink_gates();
    }

    /// Removes the unix sockets' files, unless another master has them too.
    fn unlink_gates(&self) {
        if !self.has_other_master() && !self.others.is_succeeded {
            self.loaded
                .gates
                .unlink_except(&Default::default(), &self.log);
        }
    }

    pub(super) fn finish(&mut self) {
        self.close_control();
        self.close_api();
        if let Some(socket) = self.adoption.socket.take() {
            self.remove_socket(&socket);
        }
        if let Some(pid_file) = self.pid_file.take() {
            pid_file.remove(&self.log);
        }
        self.log.event(Level::Notice, format_args!("exit"));
        self.unlink_gates();
        self.course.exit = Some(self.exit_code());
    }
}

/// How long to wait before the next start, after so many short lives in a row; `None`: not at all.
fn restart_pause(short_lives: u32) -> Option<Duration> {
    let in_loop = short_lives.checked_sub(RESTARTS_AT_ONCE + 1)?;
    let factor = 2_u32.saturating_pow(in_loop);
    Some(RESTART_PAUSE.saturating_mul(factor).min(RESTART_PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_of_deaths_is_slowed_down() {
        let pause_s = |lives| restart_pause(lives).map(|pause| pause.as_secs());
        for lives in 0..=RESTARTS_AT_ONCE {
            assert_eq!(pause_s(lives), None);
        }
        let pauses: Vec<_> = (6..13).map(pause_s).collect();
        let expected = [1, 2, 4, 8, 16, 30, 30].map(Some);
        assert_eq!(pauses, expected);
        assert_eq!(pause_s(u32::MAX), Some(30));
    }
}
