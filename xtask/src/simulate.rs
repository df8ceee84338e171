//! Runs simulated lanes, or shows one run in detail.

use crate::outcome::Outcome;
use crate::workspace::{self, must};

/// Optimised, since ten thousand seeds are run; only our own crates are built once more for that,
/// in the folder of the other tests, and with the features that these have.
const PROFILE: &str = "profile.dev.opt-level=2";

/// Runs the tests of the simulator, or the simulator with these arguments.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut command = workspace::cargo();
    match arguments {
        [] => command.args([
            "test",
            "--workspace",
            "--test",
            "seeds",
            "--test",
            "message",
        ]),
        _ => command.args(["run", "--bin", "simulate"]),
    };
    command
        .args(["--quiet", "--features", "turnpike-simulate/simulation"])
        .args(["--locked", "--config", PROFILE, "--"]);
    match arguments {
        [] => command.arg("--nocapture"),
        arguments => command.args(arguments),
    };
    must(&mut command)
}
