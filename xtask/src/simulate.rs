//! Runs simulated lanes, or shows one run in detail.

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Optimised, since ten thousand seeds are run; only our own crates are built once more for that,
/// in the folder of the other tests.
const PROFILE: &str = "profile.dev.opt-level=2";

/// Runs the tests of the simulator, or the simulator with these arguments.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut command = workspace::cargo();
    command
        .arg(if arguments.is_empty() { "test" } else { "run" })
        .args(["--quiet", "--package", "turnpike-simulate"])
        .args(["--features", "simulation", "--locked", "--config", PROFILE])
        .arg("--");
    match arguments {
        [] => command.arg("--nocapture"),
        arguments => command.args(arguments),
    };
    must(&mut command)
}
