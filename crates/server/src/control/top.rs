//! `turnpike top`: asks a running server every second, and has `turnpike-view` draw the answers.

use std::io::{IsTerminal as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time between two questions.
const INTERVAL: Duration = Duration::from_secs(1);

/// How soon it is noticed that the view was closed.
const VIEW_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The program that draws, ended with this.
struct View(Child);

impl View {
    fn start() -> Result<View, String> {
        let program = turnpike_host::program_beside("turnpike-view");
        let child = Command::new(&program)
            .arg("top")
            .stdin(Stdio::piped())
            .spawn();
        child.map(View).map_err(|error| {
            let program = program.display();
            format!("top needs the program {program} beside turnpike or in PATH ({error})")
        })
    }

    /// Draws an answer. `false`: the view was closed.
    fn show(&mut self, frame: &Value) -> bool {
        let input = self.0.stdin.as_mut();
        input.is_some_and(|input| writeln!(input, "{frame}").is_ok())
    }

    /// Waits so long; `false`: the view was closed.
    fn rest(&mut self, until: Instant) -> bool {
        while Instant::now() < until {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return false;
            }
            thread::sleep(VIEW_POLL_INTERVAL);
        }
        true
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // The end of its input ends the view, which then gives the terminal back.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Shows what `ask` answers to a verb, until the view is closed.
///
/// # Errors
/// When there is no terminal or no view, or the server does not answer any more.
pub(super) fn run(mut ask: impl FnMut(&str, Value) -> Result<Value, String>) -> Result<(), String> {
    if !std::io::stderr().is_terminal() {
        return Err("top needs a terminal; try \"status\" or \"metrics\"".to_owned());
    }
    let mut frame = || -> Result<Value, String> {
        Ok(json!({
            "status": ask("status", json!({}))?,
            "metrics": ask("metrics", json!({ "format": "json" }))?,
        }))
    };
    let first = frame()?;
    let mut view = View::start()?;
    if !view.show(&first) {
        return Ok(());
    }
    loop {
        if !view.rest(Instant::now() + INTERVAL) || !view.show(&frame()?) {
            return Ok(());
        }
    }
}
