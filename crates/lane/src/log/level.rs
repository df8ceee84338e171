//! The severities of lines.

/// The severity of a line; a target takes its own level and all more severe ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// The server cannot start or continue.
    Emerg = 1,
    /// An event that must never happen: a bug, a lost child process.
    Alert,
    /// A critical condition of the machine or a peer.
    Crit,
    /// A request failed.
    Error,
    /// A warning.
    Warn,
    /// Start, stop, reload.
    Notice,
    /// Ordinary events, client mistakes.
    Info,
    /// Everything.
    Debug,
}

impl Level {
    /// All levels, most severe first.
    pub const ALL: [Level; 8] = [
        Level::Emerg,
        Level::Alert,
        Level::Crit,
        Level::Error,
        Level::Warn,
        Level::Notice,
        Level::Info,
        Level::Debug,
    ];

    /// The level's name in configurations and lines.
    pub fn name(self) -> &'static str {
        match self {
            Level::Emerg => "emerg",
            Level::Alert => "alert",
            Level::Crit => "crit",
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Notice => "notice",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }

    /// The level with this name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}
