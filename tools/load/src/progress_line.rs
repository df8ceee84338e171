//! The line at a terminal that says how far a run is. Escape sequences that every terminal knows do
//! for it, so that the server's binary links no library for terminals.

use std::io::{self, IsTerminal as _, Write as _};

/// To the line's start, and no wrapping: a narrow terminal cuts the line.
const BEGIN: &str = "\r\x1b[?7l";
/// Clears the rest of the line, and wraps again.
const END: &str = "\x1b[K\x1b[?7h";

/// A line on standard error that each text replaces, gone when it is dropped.
pub struct ProgressLine(());

impl ProgressLine {
    /// A line on standard error, if that is a terminal.
    pub fn on_terminal() -> Option<ProgressLine> {
        // A line that is made is also cleared, so none is made for a file or a pipe.
        io::stderr().is_terminal().then(|| ProgressLine(()))
    }

    /// Shows a text in place of the last one.
    pub fn show(&mut self, text: &str) {
        // Without a terminal nobody misses it.
        let _ = io::stderr().write_all(format!("{BEGIN}{text}{END}").as_bytes());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.show("");
        let _ = io::stderr().write_all(b"\r");
    }
}

/// A bar of so many characters, of which a share (0.0 to 1.0) is filled.
pub fn bar(share: f64, characters: usize) -> String {
    let filled = (share.clamp(0.0, 1.0) * characters as f64) as usize;
    let (filled, empty) = ("#".repeat(filled), "-".repeat(characters - filled));
    format!("{filled}{empty}")
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn a_bar_is_filled_by_its_share() {
        for (share, drawn) in [
            (0.0, "----"),
            (0.49, "#---"),
            (0.5, "##--"),
            (1.0, "####"),
            (1.5, "####"),
            (-1.0, "----"),
            (f64::NAN, "----"),
        ] {
            assert_eq!(bar(share, 4), drawn, "{share}");
        }
    }
}
