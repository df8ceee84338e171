//! The terminal: taken over at the start and always restored at the end.
//!
//! The screen is drawn on standard error, so that the text on standard output stays clean, and
//! keeps the terminal's modes, so that Ctrl-C is still a signal.

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
    /// Takes over the terminal.
    ///
    /// # Errors
    /// The terminal cannot be drawn on.
    pub(crate) fn open() -> io::Result<Screen> {
        // Queries to the terminal are avoided: the answers would come on standard input, which
        // carries the frames.
        let terminal = Terminal::new(CrosstermBackend::new(io::stderr()))?;
        execute!(io::stderr(), EnterAlternateScreen, Clear(ClearType::All))?;
        Ok(Screen { terminal })
    }

    /// Shows one picture.
    ///
    /// # Errors
    /// The terminal was closed.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(picture).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is no remedy if the terminal refuses.
        let _ = self.terminal.show_cursor();
        let _ = execute!(io::stderr(), LeaveAlternateScreen);
    }
}
