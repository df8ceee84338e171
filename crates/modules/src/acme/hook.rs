//! The program that sets and removes records of DNS for `challenge dns-01`.
//!
//! The hook is run with the rights of the serving process, as `PROGRAM add NAME VALUE` and
//! `PROGRAM remove NAME VALUE`. `add` ends when the name servers answer with the record.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The longest run. Name servers may need minutes to take a record.
const RUN_MAX: Duration = Duration::from_secs(5 * 60);

/// Between two looks whether the program has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// What the program is to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verb {
    Add,
    Remove,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Verb::Add => "add",
            Verb::Remove => "remove",
        }
    }
}

/// Runs the program and waits for its end. It blocks.
///
/// # Errors
/// Why the record is not set, for the log.
pub(super) fn run(program: &Path, verb: Verb, name: &str, value: &str) -> Result<(), String> {
    let failed = |why: String| {
        let (program, verb) = (program.display(), verb.word());
        format!("\"{program} {verb} {name} {value}\" failed: {why}")
    };
    let of_system = |error: io::Error| failed(error.to_string());
    let mut child = Command::new(program)
        .args([verb.word(), name, value])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(of_system)?;
    let until = Instant::now() + RUN_MAX;
    loop {
        match child.try_wait().map_err(of_system)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed(status.to_string())),
            None if Instant::now() >= until => {
                let _ = child.kill(); // it may have ended meanwhile
                let _ = child.wait();
                let limit_s = RUN_MAX.as_secs();
                return Err(failed(format!("it was ended after {limit_s} s")));
            }
            None => thread::sleep(LOOK_PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Tests with programs that every system has.

    use std::path::Path;

    use super::{Verb, run};

    #[test]
    fn the_end_of_the_program_counts() {
        let run = |program| run(Path::new(program), Verb::Add, "_acme-challenge.a.test", "x");
        assert_eq!(run("/bin/true"), Ok(()));
        let text = "\"/bin/false add _acme-challenge.a.test x\" failed: exit status: 1";
        assert_eq!(run("/bin/false"), Err(text.to_owned()));
        assert!(run("/nonexistent/program").is_err());
    }
}
