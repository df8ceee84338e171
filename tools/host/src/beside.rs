//! Programs that are installed together.

use std::path::PathBuf;

/// A program beside the running one, as they are installed; else its name, for `PATH` to be
/// searched.
pub fn program_beside(name: &str) -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|program| Some(program.parent()?.join(name)))
        .filter(|program| program.is_file());
    beside.unwrap_or_else(|| PathBuf::from(name))
}
