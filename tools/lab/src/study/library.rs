//! The built-in studies, and the programs that can be contenders.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::model::Program;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// The names of the studies that ship, in their order.
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        const TEXTS: &[&str] = &[
            $(include_str!(concat!("../../../../studies/", $name, ".toml"))),*
        ];
    };
}

shipped![
    "s1a-polling",
    "s1b-requests-per-connection",
    "s1c-worker-count",
    "s1d-object-size",
    "s2-accelerator",
    "s2-kept-connections",
    "s3-tuning-ladder",
    "s4-tengine",
    "s5-accept-modes",
    "real-configurations",
    "real-applications",
    "beside-nginx",
    "beside-nginx-secure",
    "beside-nginx-stream",
];

const PROGRAMS: &str = include_str!("../../../../studies/programs/programs.toml");

/// The text of a study that ships.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    let at = NAMES.iter().position(|known| *known == name)?;
    TEXTS.get(at).copied()
}

/// The message for an unknown study.
pub(crate) fn unknown(name: &str) -> String {
    let near = NAMES
        .iter()
        .find(|known| known.contains(name) || name.contains(**known) || begins_alike(known, name));
    match near {
        Some(near) => format!("there is no study \"{name}\"; did you mean \"{near}\"?"),
        None => format!(
            "there is no study \"{name}\"; there are {}",
            NAMES.join(", ")
        ),
    }
}

fn begins_alike(known: &str, name: &str) -> bool {
    let start = |text: &str| text.split('-').next().unwrap_or_default().to_owned();
    start(known) == start(name)
}

/// A program that ships.
pub(crate) fn program(name: &str) -> Option<&'static Program> {
    static PARSED: OnceLock<BTreeMap<String, Program>> = OnceLock::new();
    PARSED
        .get_or_init(|| toml::from_str(PROGRAMS).unwrap_or_default())
        .get(name)
}

/// The names of the programs that ship.
pub(crate) fn program_names() -> Vec<String> {
    let parsed: BTreeMap<String, Program> = toml::from_str(PROGRAMS).unwrap_or_default();
    parsed.into_keys().collect()
}
