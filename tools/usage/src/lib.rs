//! What a command line takes, as data: manual pages and shell completions are written from it. A
//! program prints it in JSON for another one that writes them.

use serde::{Deserialize, Serialize};

/// A command with its options and what can follow it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The word that chooses it.
    pub name: String,
    /// The purpose, in a sentence.
    pub summary: String,
    /// The options, and the arguments that have no name.
    pub options: Vec<OptionUsage>,
    /// The commands that can follow.
    pub subcommands: Vec<Usage>,
}

/// One option, or an argument that has no name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptionUsage {
    /// The letter after one dash.
    pub short: Option<char>,
    /// The word after two dashes.
    pub long: Option<String>,
    /// The name of the value; `None` for a switch.
    pub value: Option<String>,
    /// The words that the value can be; empty where it is free.
    pub choices: Vec<String>,
    /// The effect.
    pub help: String,
}
