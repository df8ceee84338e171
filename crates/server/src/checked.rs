//! A configuration that was checked whole: its plan was built once, opening nothing, and thrown
//! away. The master and whoever looks at a configuration read it so; a serving process is sent
//! what passed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnpike_conf::{Errors, Loader, MemoryLoader};
use turnpike_host::DiskLoader;

use crate::configuration::Configuration;
use crate::hints;
use crate::needs::Needs;
use crate::paths::{Given, Paths};
use crate::{embedded, lanes, zone_memory};
use turnpike_plan::product::Product;

/// A checked configuration.
#[derive(Debug)]
pub struct Checked {
    pub configuration: Configuration,
    /// What is to be opened for it.
    pub needs: Needs,
}

impl Checked {
    /// Reads and checks the configuration from the disk (or the built-in one).
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(paths: &Paths, globals: Option<&str>) -> Result<Checked, Errors> {
        let mut checked = Checked::read_through(disk(paths), paths, globals)?;
        let zones = &checked.needs.zone_bytes;
        let warning = zone_memory::warning(zones, zone_memory::limit_bytes());
        checked.needs.warnings.extend(warning);
        if checked.configuration.settings.product == Product::Turnpike {
            let missing = hints::of_files(&checked.configuration);
            checked.needs.warnings.extend(missing);
        }
        checked.hide_values();
        Ok(checked)
    }

    /// Takes the values of environment variables out of warnings.
    fn hide_values(&mut self) {
        let Configuration { tree, settings, .. } = &mut self.configuration;
        for warning in settings.warnings.iter_mut().chain(&mut self.needs.warnings) {
            tree.hide_values(warning);
        }
    }

    /// As [`Checked::read`], from what a loader has.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read_through(
        loader: Box<dyn Loader>,
        paths: &Paths,
        globals: Option<&str>,
    ) -> Result<Checked, Errors> {
        let (configuration, mut mistakes) = Configuration::examine(loader, paths, globals);
        let mut needs = match lanes::needs(&configuration) {
            Ok(needs) => needs,
            Err(errors) => {
                mistakes.add(&configuration.tree, errors.0);
                Needs::default()
            }
        };
        if let Err(errors) = mistakes.finish() {
            return Err(hints::add(errors, &configuration));
        }
        if configuration.settings.product == Product::Turnpike {
            needs.warnings.extend(hints::of_letters(&configuration));
        }
        Ok(Checked {
            configuration,
            needs,
        })
    }

    /// Reads from the disk what can be read of a configuration, and what is wrong with it so far.
    pub fn read_in_part(
        paths: &Paths,
        globals: Option<&str>,
    ) -> (Configuration, Result<(), Errors>) {
        let (configuration, mistakes) = Configuration::examine(disk(paths), paths, globals);
        let read = mistakes.finish();
        let read = read.map_err(|errors| hints::add(errors, &configuration));
        (configuration, read)
    }
}

/// Texts that are in no file, and the disk for everything else.
struct GivenLoader(Arc<Given>);

impl Loader for GivenLoader {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.0.files.get(path) {
            Some(text) => Ok(text.clone()),
            None => DiskLoader.read(path),
        }
    }

    fn read_fifo(&self, path: &Path) -> io::Result<Vec<u8>> {
        DiskLoader.read_fifo(path)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        if self.0.files.contains_key(pattern) {
            Ok(vec![pattern.to_path_buf()])
        } else {
            DiskLoader.glob(pattern)
        }
    }

    fn environment(&self, name: &str) -> Option<Vec<u8>> {
        DiskLoader.environment(name)
    }
}

/// The disk, the text that was given, or that of the built-in configuration.
fn disk(paths: &Paths) -> Box<dyn Loader> {
    if let Some(given) = &paths.given {
        return Box::new(GivenLoader(Arc::clone(given)));
    }
    if !paths.embedded {
        return Box::new(DiskLoader);
    }
    let text = (paths.configuration.clone(), embedded::CONFIGURATION);
    Box::new([text].into_iter().collect::<MemoryLoader>())
}
