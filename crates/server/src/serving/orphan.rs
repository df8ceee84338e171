//! A serving process whose master is gone: it goes on, and waits for another one to be started.
//!
//! Such a process is found at the socket that its master gave it; see [`crate::adoption`]. Only
//! that master's user and root are let in.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::descriptor::{self, socket_pair};
use turnpike_lane::sys::epoll::Interest;
use turnpike_lane::sys::socket;
use turnpike_lane::sys::socket_option::peer_credentials;

use super::{CHANNEL_TOKEN, Phase, Serving};
use crate::adoption::{self, Facts};

/// The number in the event queue.
pub(super) const ADOPTION_TOKEN: u64 = 3;
/// How long a visitor may take to say what is wanted: it sends a word as soon as it is connected.
const WORD_WAIT: Duration = Duration::from_secs(1);
/// Longest word, with its line feed.
const WORD_BYTES_MAX: usize = 16;

/// What is there for another master.
#[derive(Debug)]
pub(super) struct Adoption {
    /// Where it finds us; `None`: nowhere, and we end with our master.
    listener: Option<OwnedFd>,
    /// Whether somebody may come: only while there is no master.
    is_open: bool,
    /// The user of the master that has started us.
    master_user: u32,
    pub(super) facts: Facts,
}

impl Adoption {
    /// To be called while this process still has its master's user.
    pub(super) fn new() -> Adoption {
        Adoption {
            listener: None,
            is_open: false,
            master_user: nix::unistd::geteuid().as_raw(),
            facts: Facts {
                program: adoption::program(),
                ..Facts::default()
            },
        }
    }
}

impl Serving {
    /// The master says where another one will look for us.
    pub(super) fn be_found_at(&mut self, listener: OwnedFd) {
        self.adoption.listener = Some(listener);
    }

    /// The master is gone: its end of the channel is closed.
    pub(super) fn lose_master(&mut self) -> io::Result<()> {
        self.epoll.delete(self.channel.as_fd())?;
        if !self.is_serving() {
            return Ok(());
        }
        // One that holds no socket, because another binary is being tried, serves nobody.
        let has_gates = self
            .service
            .holdings()
            .is_ok_and(|held| !held.gates.is_empty());
        let listener = self.adoption.listener.as_ref();
        let Some(listener) = listener.filter(|_| has_gates && self.phase == Phase::Serving) else {
            let message = format_args!("the master process is gone, shutting down");
            self.log.event(Level::Alert, message);
            self.quit();
            return Ok(());
        };
        // Whoever connects then sees that it is this process. It is a help, and no more.
        let _ = socket::listen(listener.as_fd(), adoption::BACKLOG);
        self.epoll
            .add(listener.as_fd(), Interest::READ, ADOPTION_TOKEN)?;
        self.adoption.is_open = true;
        let message = format_args!(
            "the master process is gone; this process continues to serve, and is taken over when \
             the server is started again"
        );
        self.log.event(Level::Alert, message);
        Ok(())
    }

    /// Accepts a connection for adoption.
    pub(super) fn meet(&mut self) {
        let listener = self.adoption.listener.as_ref();
        let Some(listener) = listener.filter(|_| self.adoption.is_open) else {
            return;
        };
        let Ok((visitor, _)) = socket::accept(listener.as_fd()) else {
            return;
        };
        if let Err(error) = self.serve_visitor(visitor) {
            let message = format_args!("talking to another master failed {}", Errno(&error));
            self.log.event(Level::Alert, message);
        }
    }

    fn serve_visitor(&mut self, visitor: OwnedFd) -> io::Result<()> {
        let who = peer_credentials(visitor.as_fd())?;
        if who.user != 0 && who.user != self.adoption.master_user {
            let (process, user) = (who.process, who.user);
            let message = format_args!("process {process} of user {user} may not take over");
            self.log.event(Level::Alert, message);
            return Ok(());
        }
        let mut visitor = UnixStream::from(visitor);
        visitor.set_nonblocking(false)?;
        visitor.set_read_timeout(Some(WORD_WAIT))?;
        let (mut buffer, mut length) = ([0; WORD_BYTES_MAX], 0);
        while length < buffer.len() && !buffer[..length].ends_with(b"\n") {
            match visitor.read(&mut buffer[length..])? {
                // It only wanted to know whether there is somebody.
                0 => return Ok(()),
                count => length += count,
            }
        }
        let word = String::from_utf8_lossy(&buffer[..length]);
        let word = word.trim_end();
        let message = format_args!("process {} asks for \"{word}\"", who.process);
        self.log.event(Level::Notice, message);
        match word {
            adoption::ADOPT => return self.hand_over(&visitor, false),
            adoption::ADOPT_EXPRESS => return self.hand_over(&visitor, true),
            adoption::QUIT => self.quit(),
            adoption::STOP => self.stop(),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        // Whoever has said it may be gone.
        let _ = visitor.write_all(adoption::OK.as_bytes());
        Ok(())
    }

    /// Gives another master what it needs, and takes its orders from now on. Should it go before
    /// the first one, all is as before.
    fn hand_over(&mut self, visitor: &UnixStream, with_express: bool) -> io::Result<()> {
        let (channel, theirs) = socket_pair()?;
        let held = self.service.holdings()?;
        let express = held.express.filter(|_| with_express).unwrap_or_default();
        let facts = &mut self.adoption.facts;
        facts.gates = held.gates.iter().map(|(number, _)| *number).collect();
        facts.has_board = held.board.is_some();
        facts.express = express.words;
        facts.changes = held.changes.unwrap_or_default();
        let text = facts.text();
        let own = [Some(&theirs), self.adoption.listener.as_ref()];
        let own = own.into_iter().chain([held.board.as_ref()]).flatten();
        let gates = held.gates.iter().map(|(_, gate)| gate);
        let all = own.chain(gates).chain(&express.descriptors);
        let descriptors: Vec<_> = all.map(|one| one.as_fd()).collect();
        descriptor::send_parcel(visitor.as_fd(), text.as_bytes(), &descriptors)?;
        self.epoll
            .add(channel.as_fd(), Interest::READ, CHANNEL_TOKEN)?;
        self.channel = channel;
        self.close_adoption();
        Ok(())
    }

    /// Ends the offer of adoption, since this process ends.
    pub(super) fn forget_adoption(&mut self) {
        self.close_adoption();
        self.adoption.listener = None;
    }

    fn close_adoption(&mut self) {
        if let Some(listener) = self.adoption.listener.as_ref()
            && std::mem::take(&mut self.adoption.is_open)
        {
            // It was added when the master was found to be gone.
            let _ = self.epoll.delete(listener.as_fd());
        }
    }
}
