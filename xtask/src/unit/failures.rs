//! What a failed suite's output says of its failures: the names of the tests, and the panics.
//!
//! The whole output of a suite may be shortened by whoever shows it, so these are printed apart.

/// The most panics that are kept of one suite: one cause seldom has more faces, and the whole
/// output follows.
const PANICS_MAX: usize = 20;

/// The most lines of one panic: its place and a comparison's three lines, with room for texts of
/// several lines.
const PANIC_LINES_MAX: usize = 8;

/// The lines that end a panic's message.
const AFTER_MESSAGE: [&str; 3] = ["stack backtrace:", "note: ", "---- "];

/// A failed suite, or a failed test of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FailedSuite {
    /// The suite and its failed tests in one line.
    pub(super) title: String,
    /// The first panics: each the lines of its place and its message.
    pub(super) panics: Vec<String>,
}

impl FailedSuite {
    /// Reads the output of the test harness; `status` is told if it names no test, as after a
    /// signal.
    pub(super) fn new(name: &str, status: &str, stdout: &str, stderr: &str) -> FailedSuite {
        let tests = tests(stdout);
        let title = if tests.is_empty() {
            format!("{name}: no test by name ({status})")
        } else {
            format!("{name}: {}", tests.join(", "))
        };
        let mut panics = [panics(stdout), panics(stderr)].concat();
        panics.truncate(PANICS_MAX);
        FailedSuite { title, panics }
    }

    /// Processes that are still running when all tests have ended.
    pub(super) fn of_strays(strays: Vec<String>) -> FailedSuite {
        FailedSuite {
            title: "processes were left behind, and are ended now".to_owned(),
            panics: strays,
        }
    }

    /// Prints the title and the panics.
    pub(super) fn print(&self) {
        println!("unit: failed: {}", self.title);
        for panic in &self.panics {
            println!("{panic}");
        }
    }
}

/// The names in the harness's last list.
fn tests(stdout: &str) -> Vec<&str> {
    let lines: Vec<&str> = stdout.lines().collect();
    let Some(begin) = lines.iter().rposition(|line| *line == "failures:") else {
        return Vec::new();
    };
    let names = lines[begin + 1..].iter();
    names.map_while(|line| line.strip_prefix("    ")).collect()
}

/// The first panics of a text.
fn panics(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_place = |line: &str| line.starts_with("thread '") && line.contains(" panicked at ");
    let places = (0..lines.len()).filter(|at| is_place(lines[*at]));
    let panic = |at: usize| {
        let message = lines[at + 1..].iter().take_while(|line| {
            !line.is_empty() && !AFTER_MESSAGE.iter().any(|after| line.starts_with(after))
        });
        let message = message.take(PANIC_LINES_MAX - 1).copied();
        let lines: Vec<&str> = std::iter::once(lines[at]).chain(message).collect();
        lines.join("\n")
    };
    places.take(PANICS_MAX).map(panic).collect()
}

#[cfg(test)]
mod tests;
