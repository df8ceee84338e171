//! Factors and levels become cases, and cases an order: each round has every case once, and
//! compared cases are neighbours; the next round has the opposite order (A B B A), so that drift
//! over time affects all cases alike.

use std::collections::{BTreeMap, HashMap};

use toml::Spanned;

use crate::study::Study;
use crate::study::model::{Drive, Level, Selection, Selector};

/// The dimension that every study has.
pub(crate) const CONTENDER: &str = "contender";

/// One combination of levels, in the order of the dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Case {
    pub(crate) at: Vec<(String, String)>,
}

impl Case {
    /// The level of a dimension.
    pub(crate) fn level(&self, dimension: &str) -> Option<&str> {
        let found = self.at.iter().find(|(name, _)| name == dimension)?;
        Some(&found.1)
    }

    /// Whether it has all of these levels.
    pub(crate) fn is_at(&self, selector: &BTreeMap<String, String>) -> bool {
        selector
            .iter()
            .all(|(dimension, level)| self.level(dimension) == Some(level))
    }

    /// Whether it is at one of the levels of each of these dimensions.
    pub(crate) fn is_within(&self, selection: &Selection) -> bool {
        selection.iter().all(|(dimension, levels)| {
            let own = self.level(dimension.get_ref());
            levels
                .iter()
                .any(|level| own == Some(level.get_ref().as_str()))
        })
    }

    /// The case as text; dimensions other than the contender have their names.
    pub(crate) fn label(&self) -> String {
        let word = |(dimension, level): &(String, String)| {
            if dimension == CONTENDER {
                level.clone()
            } else {
                format!("{dimension} {level}")
            }
        };
        self.at.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

/// A dimension with its levels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) levels: Vec<ResolvedLevel>,
}

/// A level with what it changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ResolvedLevel {
    pub(crate) name: String,
    pub(crate) set: BTreeMap<String, String>,
    /// Words for the driver.
    pub(crate) arguments: Vec<String>,
    /// The load, in place of the study's.
    pub(crate) drive: Option<Drive>,
    pub(crate) sysctl: BTreeMap<String, String>,
    pub(crate) interface: BTreeMap<String, String>,
    /// Whether a quick run includes it.
    pub(crate) quick: bool,
}

/// The study's dimensions on a machine of so many CPUs, the contender first.
pub(crate) fn dimensions(study: &Study, cpus: usize) -> Vec<Dimension> {
    let contenders = study.contender.iter().map(|contender| ResolvedLevel {
        name: contender.name.get_ref().clone(),
        quick: true,
        ..ResolvedLevel::default()
    });
    let mut dimensions = vec![Dimension {
        name: CONTENDER.to_owned(),
        title: CONTENDER.to_owned(),
        levels: contenders.collect(),
    }];
    for factor in &study.factor {
        let quick = |name: &str| match &factor.quick {
            Some(names) => names.iter().any(|known| known.get_ref() == name),
            None => true,
        };
        let plain = factor.names.iter().map(|name| named(name.get_ref()));
        let mut levels: Vec<ResolvedLevel> =
            plain.chain(factor.levels.iter().map(resolve)).collect();
        if factor.scale.is_some() {
            levels = scale(cpus);
        }
        for level in &mut levels {
            level.quick = quick(&level.name) || factor.scale.is_some();
        }
        dimensions.push(Dimension {
            name: factor.name.get_ref().clone(),
            title: factor.title.clone(),
            levels,
        });
    }
    dimensions
}

fn named(name: &str) -> ResolvedLevel {
    ResolvedLevel {
        name: name.to_owned(),
        ..ResolvedLevel::default()
    }
}

fn resolve(level: &Level) -> ResolvedLevel {
    ResolvedLevel {
        name: level.name.get_ref().clone(),
        set: level.set.clone(),
        arguments: level.arguments.clone(),
        drive: level.drive.clone(),
        sysctl: level.sysctl.clone(),
        interface: level.interface.clone(),
        quick: false,
    }
}

/// 1, 2, 4 ... and the number itself.
fn scale(cpus: usize) -> Vec<ResolvedLevel> {
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |count| Some(count * 2))
        .take_while(|count| *count < cpus)
        .collect();
    counts.push(cpus);
    counts
        .into_iter()
        .map(|count| named(&count.to_string()))
        .collect()
}

/// The cases that a run leaves out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// Only the levels of a quick run.
    pub(crate) quick: bool,
    /// Levels asked for by `--only`, by dimension.
    pub(crate) only: BTreeMap<String, Vec<String>>,
}

/// All cases of a study, neighbours differing in the contender first.
pub(crate) fn cases(study: &Study, dimensions: &[Dimension], choice: &Choice) -> Vec<Case> {
    let mut cases = vec![Case { at: Vec::new() }];
    // Factors are the outer loops and contenders the inner one: compared cases run close together.
    for dimension in dimensions.iter().skip(1).chain(dimensions.first()) {
        let wanted = |level: &&ResolvedLevel| {
            let asked = choice.only.get(&dimension.name);
            match asked {
                Some(names) => names.contains(&level.name),
                None => !choice.quick || level.quick,
            }
        };
        let levels: Vec<&ResolvedLevel> = dimension.levels.iter().filter(wanted).collect();
        cases = cases
            .into_iter()
            .flat_map(|case| {
                let extended = |level: &&ResolvedLevel| {
                    let mut at = case.at.clone();
                    at.push((dimension.name.clone(), level.name.clone()));
                    Case { at }
                };
                levels.iter().map(extended).collect::<Vec<_>>()
            })
            .collect();
    }
    for case in &mut cases {
        if let Some(contender) = case.at.pop() {
            case.at.insert(0, contender);
        }
    }
    let without: Vec<BTreeMap<String, String>> = study
        .without
        .iter()
        .map(|without| plain(&without.at))
        .collect();
    cases.retain(|case| !without.iter().any(|selector| case.is_at(selector)));
    let is_meant = |case: &Case| match study.contender(case) {
        Some(contender) => case.is_within(&contender.only),
        None => true,
    };
    cases.retain(is_meant);
    cases
}

/// The load of a case: that of one of its levels, else the study's; and the words that its levels
/// have for the driver.
pub(crate) fn drive<'a>(
    study: &'a Study,
    dimensions: &'a [Dimension],
    case: &Case,
) -> Option<(&'a Drive, Vec<String>)> {
    let level = |dimension: &'a Dimension| {
        let name = case.level(&dimension.name)?;
        dimension.levels.iter().find(|level| level.name == name)
    };
    let levels: Vec<&ResolvedLevel> = dimensions.iter().filter_map(level).collect();
    let of_study = study.drive.as_ref().map(Spanned::get_ref);
    let own = levels.iter().find_map(|level| level.drive.as_ref());
    let words = levels.iter().flat_map(|level| level.arguments.clone());
    Some((own.or(of_study)?, words.collect()))
}

/// A selector without its places.
pub(crate) fn plain(selector: &Selector) -> BTreeMap<String, String> {
    let plain = |(name, level): (&toml::Spanned<String>, &toml::Spanned<String>)| {
        (name.get_ref().clone(), level.get_ref().clone())
    };
    selector.iter().map(plain).collect()
}

/// The order of a round: seeded groups (cases that differ in the contender only), each forwards in
/// even rounds and backwards in odd ones.
pub(crate) fn order(cases: &[Case], round: u32, seed: u64) -> Vec<usize> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<&[(String, String)], usize> = HashMap::new();
    for (index, case) in cases.iter().enumerate() {
        let key = case.at.get(1..).unwrap_or_default();
        let group = *known.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(index);
    }
    // Two rounds share a shuffle: the second is the first's mirror.
    let mut random = fastrand::Rng::with_seed(seed.wrapping_add(u64::from(round / 2)));
    random.shuffle(&mut groups);
    for group in &mut groups {
        random.shuffle(group);
    }
    let mut order: Vec<usize> = groups.into_iter().flatten().collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests;
