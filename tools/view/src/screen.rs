//! The terminal: taken over at the start and given back at the end, whatever the end is.
//!
//! Draws on standard error, so that the text on standard output stays clean, and leaves the
//! terminal's modes alone, so that Ctrl-C is the signal it always is.

use std::io::{self, Stderr};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};

/// A terminal that shows one picture after another.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When it cannot be drawn on.
    pub(crate) fn open() -> io::Result<Screen> {
        // Everything that asks the terminal for an answer is left out: the answer would come on
        // standard input, which carries the frames.
        let terminal = Terminal::new(CrosstermBackend::new(io::stderr()))?;
        execute!(io::stderr(), EnterAlternateScreen, Clear(ClearType::All))?;
        Ok(Screen { terminal })
    }

    /// Shows one picture.
    ///
    /// # Errors
    /// When the terminal went away.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(picture).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing can be done for a terminal that refuses.
        let _ = self.terminal.show_cursor();
        let _ = execute!(io::stderr(), LeaveAlternateScreen);
    }
}
