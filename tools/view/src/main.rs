//! `turnpike-view` draws the measurements of another program on the whole terminal.
//!
//! The program is separate, so that the server, which often runs as root, links no terminal
//! library. Frames come on standard input, one line of JSON each; the end of input ends the view.
//! `turnpike load --live` and `turnpike top` start it; it is not meant to be started by hand.

mod load;
mod screen;
mod top;

use std::io::{self, BufRead as _};
use std::process::ExitCode;

use screen::Screen;

/// Longest frame in bytes: a real one has a few hundred. A longer line is not a frame.
const FRAME_BYTES_MAX: u64 = 64 * 1024;

/// The help text, for users who start it by hand.
const USAGE: &str = "turnpike-view draws the views of `turnpike load --live` and `turnpike top`; \
    these commands start it, and it takes \"load\" or \"top\" as its only argument\n";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let outcome = match arguments.as_slice() {
        [view] if view == "load" => run(),
        [view] if view == "top" => top::run(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("turnpike-view: nothing can be drawn on the terminal ({error})");
            ExitCode::FAILURE
        }
    }
}

/// Draws the frames of a load run until the input ends.
fn run() -> io::Result<()> {
    let mut screen = Screen::open()?;
    let mut view = load::View::default();
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = io::Read::take(&mut input, FRAME_BYTES_MAX);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // A line that is not a frame is skipped: the next one comes 250 ms later.
        if let Ok(frame) = serde_json::from_slice(&line) {
            screen.draw(|area| view.draw(area, &frame))?;
        }
    }
}
