#![allow(clippy::unwrap_used)]

use super::*;
use crate::placement;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lab-process-{}-{name}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    path
}

fn start(script: &str, folder: &Path) -> Process {
    let words = ["sh", "-c", script].map(str::to_owned);
    Process::start(&words, &placement::allowed(), folder, "p", Signal::SIGTERM).unwrap()
}

/// Waits for a condition, however slow the machine.
fn wait_for(condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < end, "it never came true");
        std::thread::sleep(LOOK_INTERVAL);
    }
}

#[test]
fn everything_that_a_process_started_is_stopped_with_it() {
    let folder = folder("family");
    let mut process = start("sleep 1000 & sleep 1000 & wait", &folder);
    wait_for(|| descendants(process.pid()).len() == 3);
    let family = descendants(process.pid());
    process.stop();
    assert!(family.iter().all(|pid| !is_alive(*pid)), "{family:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn its_output_is_kept() {
    let folder = folder("said");
    let mut process = start("echo one >&2; echo two >&2; exit 3", &folder);
    let pid = process.pid();
    wait_for(|| !is_alive(pid));
    assert_eq!(process.ended().and_then(|status| status.code()), Some(3));
    assert_eq!(process.stderr(), "one; two");
    drop(process);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_missing_program_is_reported() {
    let folder = folder("missing");
    let words = ["no-such-program".to_owned()];
    let error = Process::start(&words, &[0], &folder, "p", Signal::SIGTERM).unwrap_err();
    assert_eq!(error, "\"no-such-program\" is not installed");
    let error = Process::start(&[], &[0], &folder, "p", Signal::SIGTERM).unwrap_err();
    assert_eq!(error, "the command is empty");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn time_on_a_cpu_grows() {
    let own = [std::process::id()];
    let before = run_ns(&own);
    wait_for(|| run_ns(&own) > before);
}
