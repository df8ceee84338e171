//! A study's server for somebody else's measurement: its factors are what can be set, its levels
//! how. Nothing is measured here.

use std::path::Path;

use crate::contender::{Running, Start};
use crate::files;
use crate::matrix::{self, CONTENDER, Case, Dimension};
use crate::placement::Placed;
use crate::session::values::{self, Place};
use crate::study::model::Contender;
use crate::study::{self, Loaded};
use crate::template::{self, Values};
use crate::topology::Topology;

/// The one contender of a study.
#[derive(Debug, Clone)]
pub struct Served {
    loaded: Loaded,
    dimensions: Vec<Dimension>,
}

/// Where a server is to run, and how.
#[derive(Debug, Clone)]
pub struct Spot<'a> {
    /// A folder that is new for each start.
    pub folder: &'a Path,
    /// A folder for files that are the same for all starts: they are written by the first one.
    pub constant: &'a Path,
    pub address: &'a str,
    pub port: u16,
    pub server_cpus: &'a [usize],
    pub driver_cpus: &'a [usize],
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Serving(Running);

impl Serving {
    /// Says whether it still runs.
    ///
    /// # Errors
    /// It has ended; the message has its output.
    pub fn check(&mut self) -> Result<(), String> {
        self.0.check().map_err(|error| error.to_string())
    }
}

impl Served {
    /// Reads a study that has one contender and factors that only set values.
    ///
    /// # Errors
    /// A mistake in the file, with FILE:LINE.
    pub fn load(file: &str) -> Result<Served, String> {
        Served::of(study::load(file).map_err(|error| error.to_string())?)
    }

    fn of(loaded: Loaded) -> Result<Served, String> {
        let wrong = |at: &toml::Spanned<String>, text: &str| {
            Err(loaded.source.mistake(at, text).to_string())
        };
        let study = &loaded.study;
        match study.contender.as_slice() {
            [contender] if contender.origin.is_none() => (),
            _ => {
                return wrong(
                    &study.name,
                    "the study needs one [[contender]], without an origin",
                );
            }
        }
        for factor in &study.factor {
            let sets = factor.levels.iter().all(|level| {
                let is_own = level.sysctl.is_empty() && level.interface.is_empty();
                is_own && level.arguments.is_empty() && level.drive.is_none()
            });
            if !sets || factor.scale.is_some() {
                return wrong(&factor.name, "the study needs levels that only set values");
            }
        }
        let dimensions = matrix::dimensions(study, 1);
        Ok(Served { loaded, dimensions })
    }

    /// The names of what can be set, each with the names of its levels.
    pub fn factors(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let factors = self.dimensions.iter().skip(1);
        factors.map(|dimension| {
            let levels = dimension.levels.iter().map(|level| level.name.as_str());
            (dimension.name.as_str(), levels.collect())
        })
    }

    /// Starts the server and waits until it is ready. `level` gives the level of each factor.
    ///
    /// # Errors
    /// The server's output.
    pub fn start(
        &self,
        spot: &Spot<'_>,
        topology: &Topology,
        level: impl Fn(&str) -> &'static str,
    ) -> Result<Serving, String> {
        let (contender, values) = self.filled(spot, level)?;
        self.write_constant(spot.constant)?;
        let running = Running::start(&Start {
            study: &self.loaded.study,
            contender,
            values: &values,
            folder: spot.folder,
            constant: spot.constant,
            placed: &Placed {
                server: spot.server_cpus.to_vec(),
                driver: spot.driver_cpus.to_vec(),
            },
            topology,
        });
        running.map(Serving).map_err(|error| error.to_string())
    }

    /// The server's configuration at these levels; empty where it has none.
    ///
    /// # Errors
    /// A value that is not there.
    pub fn configuration(
        &self,
        spot: &Spot<'_>,
        level: impl Fn(&str) -> &'static str,
    ) -> Result<String, String> {
        let (contender, values) = self.filled(spot, level)?;
        let name = contender.configuration.as_ref();
        let text = name.and_then(|name| self.loaded.study.configuration(name.get_ref()));
        let text = text.map_or("", |text| text.get_ref());
        template::fill(text, &values).map_err(|error| error.to_string())
    }

    fn write_constant(&self, folder: &Path) -> Result<(), String> {
        for (name, content) in &self.loaded.study.files {
            let path = folder.join(name.get_ref());
            if content.is_constant() && !path.exists() {
                files::write(&path, content, &Values::new())?;
            }
        }
        Ok(())
    }

    /// The contender with the values of its templates.
    fn filled(
        &self,
        spot: &Spot<'_>,
        level: impl Fn(&str) -> &'static str,
    ) -> Result<(&Contender, Values), String> {
        let study = &self.loaded.study;
        let contender = study.contender.first().ok_or("no [[contender]]")?;
        let mut at = vec![(CONTENDER.to_owned(), contender.name.get_ref().clone())];
        for dimension in self.dimensions.iter().skip(1) {
            at.push((dimension.name.clone(), level(&dimension.name).to_owned()));
        }
        let program = turnpike_host::program_beside("turnpike");
        let place = Place {
            folder: spot.folder.display().to_string(),
            address: spot.address.to_owned(),
            port: spot.port,
            server_cpus: spot.server_cpus.to_vec(),
            driver_cpus: spot.driver_cpus.to_vec(),
            turnpike: program.display().to_string(),
            ..Place::tried()
        };
        let values = values::of_case(study, &self.dimensions, &Case { at }, &place);
        Ok((contender, values.map_err(|error| error.to_string())?))
    }
}

#[cfg(test)]
mod tests;
