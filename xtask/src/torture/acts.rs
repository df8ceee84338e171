//! Which actions come, and how often.

use super::ledger::Act;
use crate::options::Options;

/// The actions, by the name for `--acts`, and whether they work with nginx too.
pub(super) const ACTS: &[(&str, Act, bool)] = &[
    ("reload", Act::Reload, true),
    ("lanes", Act::LaneCount, true),
    ("upgrade", Act::Upgrade, false),
    ("stall", Act::Stall, false),
    ("kill", Act::Kill, false),
    ("kill-master", Act::KillMaster, false),
    ("kill-both", Act::KillBoth, false),
];

/// The actions of a run: any of them in turn while the time lasts, or each so often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Acts {
    Any(Vec<Act>),
    /// How often each is still to be done.
    Counted(Vec<(Act, usize)>),
}

/// Whether `--acts` says how often each comes.
pub(super) fn are_counted(options: &Options) -> bool {
    options
        .text("--acts")
        .is_some_and(|text| text.contains('='))
}

impl Acts {
    /// Reads the list of `--acts`: `reload,kill`, `reload=100,kill=5` or `none`. Without it all
    /// are meant.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub(super) fn of(options: &Options, is_nginx: bool) -> Result<Acts, String> {
        match options.text("--acts") {
            None => Acts::named(ACTS.iter().map(|(name, ..)| *name), is_nginx),
            Some("none") => Ok(Acts::Any(Vec::new())),
            Some(text) => Acts::named(text.split(','), is_nginx),
        }
    }

    fn named<'a>(names: impl Iterator<Item = &'a str>, is_nginx: bool) -> Result<Acts, String> {
        let (mut any, mut counted) = (Vec::new(), Vec::new());
        for name in names {
            let (name, count) = match name.split_once('=') {
                None => (name, None),
                Some((name, count)) => {
                    let count: usize = count
                        .parse()
                        .map_err(|_| format!("\"{count}\" is no number of {name}"))?;
                    (name, Some(count))
                }
            };
            let known = ACTS.iter().find(|(known, ..)| *known == name);
            let (_, act, nginx_too) = known.ok_or_else(|| {
                let known: Vec<&str> = ACTS.iter().map(|(known, ..)| *known).collect();
                let known = known.join(", ");
                format!("no act is called \"{name}\"; there are {known}")
            })?;
            match count {
                _ if is_nginx && !nginx_too => {}
                None => any.push(*act),
                Some(count) => counted.push((*act, count)),
            }
        }
        match (any.is_empty(), counted.is_empty()) {
            (false, true) => Ok(Acts::Any(any)),
            (true, false) => Ok(Acts::Counted(counted)),
            (true, true) => Err("there is no act left to do".to_owned()),
            (false, false) => Err("either all acts have a number, or none has".to_owned()),
        }
    }

    /// Whether the run ends when all were done.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self, Acts::Counted(_))
    }

    /// How often an act is to be done, where that is said.
    pub(super) fn wanted(&self, act: Act) -> Option<usize> {
        match self {
            Acts::Any(_) => None,
            Acts::Counted(counted) => {
                let counted = counted.iter().find(|(other, _)| *other == act);
                counted.map(|(_, count)| *count)
            }
        }
    }

    /// The next one, by a random number: those that are to come often come early too. `None`: all
    /// were done.
    pub(super) fn choose(&self, random: u64) -> Option<Act> {
        match self {
            Acts::Any(any) => {
                let at = (random as usize).checked_rem(any.len())?;
                any.get(at).copied()
            }
            Acts::Counted(counted) => {
                let total = counted.iter().map(|(_, count)| count).sum();
                let mut at = (random as usize).checked_rem(total)?;
                let chosen = counted.iter().find(|(_, count)| {
                    let is_here = at < *count;
                    at = at.saturating_sub(*count);
                    is_here
                });
                chosen.map(|(act, _)| *act)
            }
        }
    }

    /// Notes that one was done.
    pub(super) fn was_done(&mut self, act: Act) {
        if let Acts::Counted(counted) = self
            && let Some((_, count)) = counted.iter_mut().find(|(other, _)| *other == act)
        {
            *count = count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
