//! `turnpike top`: the activity of a running server, every second.
//!
//! Frames come on standard input, so keys are read from the terminal itself.

mod picture;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, BufRead as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use crate::screen::Screen;
use snapshot::Snapshot;

/// Longest frame in bytes: with thousands of upstream servers the metrics take some megabytes.
const FRAME_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The most rates for the graph: more than a wide terminal shows.
const RATES_MAX: usize = 512;

/// The frames that wait for the terminal; older ones are dropped.
const FRAMES_WAITING_MAX: usize = 1;

/// The longest delay of a key.
const KEY_WAIT: Duration = Duration::from_millis(50);

/// The order of the rows of lanes and upstream servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Name,
    Requests,
    Latency,
}

impl Order {
    fn next(self) -> Order {
        match self {
            Order::Name => Order::Requests,
            Order::Requests => Order::Latency,
            Order::Latency => Order::Name,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Order::Name => "name",
            Order::Requests => "requests",
            Order::Latency => "latency",
        }
    }
}

/// The state of the view.
#[derive(Default)]
struct View {
    before: Snapshot,
    now: Snapshot,
    /// Requests per second, oldest first.
    rates: VecDeque<u64>,
    order: Order,
    is_paused: bool,
    /// The selected server; `None` for all.
    server: Option<String>,
}

/// The action of a key.
#[derive(Debug, PartialEq, Eq)]
enum KeyAction {
    Draw,
    Quit,
    Nothing,
}

impl View {
    /// Takes a frame, unless the view is paused.
    fn take(&mut self, next: Snapshot) {
        if self.is_paused {
            return;
        }
        self.before = std::mem::replace(&mut self.now, next);
        if self.before.seconds() == 0.0 {
            return;
        }
        if self.rates.len() == RATES_MAX {
            self.rates.pop_front();
        }
        let rate = self.now.rate(&self.before, "requests", &[]);
        self.rates.push_back(rate as u64);
    }

    fn key(&mut self, key: KeyEvent) -> KeyAction {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => KeyAction::Quit,
            KeyCode::Char('q') | KeyCode::Esc => KeyAction::Quit,
            KeyCode::Char('p' | ' ') => {
                self.is_paused = !self.is_paused;
                KeyAction::Draw
            }
            KeyCode::Char('s') => {
                self.order = self.order.next();
                KeyAction::Draw
            }
            KeyCode::Tab => {
                self.next_server();
                KeyAction::Draw
            }
            _ => KeyAction::Nothing,
        }
    }

    /// Selects the next server; after the last one, all of them.
    fn next_server(&mut self) {
        let names = self.now.labels("server_requests", "server");
        let next = match &self.server {
            None => 0,
            Some(shown) => match names.iter().position(|name| name == shown) {
                Some(index) => index + 1,
                None => names.len(),
            },
        };
        self.server = names.get(next).cloned();
    }
}

/// Shows frames until the input ends or the user quits.
///
/// # Errors
/// The terminal cannot be drawn on or read.
pub(crate) fn run() -> io::Result<()> {
    let frames = frames();
    let mut screen = Screen::open()?;
    let _keys = Keys::open()?;
    let mut view = View::default();
    loop {
        let mut is_changed = false;
        match frames.recv_timeout(KEY_WAIT) {
            Ok(frame) => {
                view.take(frame);
                is_changed = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) => match view.key(key) {
                    KeyAction::Quit => return Ok(()),
                    KeyAction::Draw => is_changed = true,
                    KeyAction::Nothing => {}
                },
                Event::Resize(..) => is_changed = true,
                _ => {}
            }
        }
        if is_changed {
            screen.draw(|area| picture::draw(area, &view))?;
        }
    }
}

/// The frames on standard input, read by a thread of their own.
fn frames() -> Receiver<Snapshot> {
    let (sender, receiver) = sync_channel(FRAMES_WAITING_MAX);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut bounded = io::Read::take(&mut input, FRAME_BYTES_MAX);
            match bounded.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            // A line that is not a frame is skipped: the next one comes in a second.
            if let Some(frame) = Snapshot::parse(&line)
                && sender.send(frame).is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// The terminal's mode in which keys come one by one; dropping it restores the old mode.
struct Keys;

impl Keys {
    fn open() -> io::Result<Keys> {
        enable_raw_mode()?;
        Ok(Keys)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // There is no remedy if the terminal refuses.
        let _ = disable_raw_mode();
    }
}
