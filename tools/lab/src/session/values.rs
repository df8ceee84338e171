//! The values for the templates of a case: the lab's own, then the study's, the contender's and the
//! levels', each overriding the ones before.

use std::path::Path;

use crate::matrix::{Case, Dimension};
use crate::study::Study;
use crate::study::model::Origin;
use crate::template::{self, TemplateError, Values};

/// The place of a run.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) folder: String,
    pub(crate) address: String,
    pub(crate) port: u16,
    pub(crate) origin_port: u16,
    pub(crate) server_cpus: Vec<usize>,
    pub(crate) driver_cpus: Vec<usize>,
    /// Our own program, which is a contender and the driver too.
    pub(crate) turnpike: String,
    pub(crate) round: u32,
    pub(crate) seed: u64,
}

impl Place {
    /// One that serves to try templates.
    pub(crate) fn tried() -> Place {
        Place {
            folder: "/tmp".to_owned(),
            address: "127.0.0.1".to_owned(),
            port: 1,
            origin_port: 2,
            server_cpus: vec![0],
            driver_cpus: vec![0],
            turnpike: "turnpike".to_owned(),
            round: 0,
            seed: 0,
        }
    }
}

/// The values of a case.
///
/// # Errors
/// A value names one that is not there.
pub(crate) fn of_case(
    study: &Study,
    dimensions: &[Dimension],
    case: &Case,
    place: &Place,
) -> Result<Values, TemplateError> {
    let mut values = own(place);
    values.extend(study.set.clone());
    if let Some(contender) = study.contender(case) {
        values.extend(contender.set.clone());
        values.insert("contender".to_owned(), contender.name.get_ref().clone());
    }
    for dimension in dimensions.iter().skip(1) {
        let Some(name) = case.level(&dimension.name) else {
            continue;
        };
        values.insert(dimension.name.clone(), name.to_owned());
        let level = dimension.levels.iter().find(|level| level.name == name);
        if let Some(level) = level {
            values.extend(level.set.clone());
        }
    }
    template::resolve(&values)
}

/// The values of the server behind a contender: its port is the contender's `origin_port`.
///
/// # Errors
/// A value names one that is not there.
pub(crate) fn of_origin(values: &Values, origin: &Origin) -> Result<Values, TemplateError> {
    let mut values = values.clone();
    if let Some(port) = values.get("origin_port").cloned() {
        values.insert("port".to_owned(), port);
    }
    if let Some(folder) = values.get("origin_folder").cloned() {
        let file = Path::new(&folder).join("server.conf");
        values.insert("configuration".to_owned(), file.display().to_string());
        values.insert("folder".to_owned(), folder);
    }
    values.extend(origin.set.clone());
    template::resolve(&values)
}

fn own(place: &Place) -> Values {
    let list = |cpus: &[usize]| {
        let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        cpus.join(",")
    };
    let pairs = [
        ("folder", place.folder.clone()),
        ("origin_folder", format!("{}/origin", place.folder)),
        ("configuration", format!("{}/server.conf", place.folder)),
        ("address", place.address.clone()),
        ("port", place.port.to_string()),
        ("origin_port", place.origin_port.to_string()),
        ("server_cpus", list(&place.server_cpus)),
        ("server_cpu_count", place.server_cpus.len().to_string()),
        ("driver_cpus", list(&place.driver_cpus)),
        ("driver_cpu_count", place.driver_cpus.len().to_string()),
        ("turnpike", place.turnpike.clone()),
        ("round", place.round.to_string()),
        ("seed", place.seed.to_string()),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
