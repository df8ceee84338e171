//! A configuration that was read and checked whole: the same steps in the master, which reads the
//! disk, and in the serving process, which gets the texts.

use std::path::{Path, PathBuf};

use turnpike_conf::{ConfError, DiskLoader, Errors, Loader, MemoryLoader, Scope, Tree, View};

use crate::embedded;
use crate::families;
use crate::paths::Paths;
use crate::settings::Settings;

/// A checked configuration.
#[derive(Debug)]
pub struct Configuration {
    /// Where its relative paths start.
    pub paths: Paths,
    /// The `-g` text.
    pub globals: Option<String>,
    /// What was written, with every file's bytes.
    pub tree: Tree,
    /// What of the main context concerns the process.
    pub settings: Settings,
    scope: Scope,
}

impl Configuration {
    /// Reads and checks the configuration from the disk (or the built-in one).
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(paths: &Paths, globals: Option<&str>) -> Result<Configuration, Errors> {
        if paths.embedded {
            let text = (paths.configuration.clone(), embedded::CONFIGURATION);
            let loader: MemoryLoader = [text].into_iter().collect();
            return Configuration::load(&loader, paths, globals);
        }
        Configuration::load(&DiskLoader, paths, globals)
    }

    /// Reads and checks the configuration through a loader.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(
        loader: &dyn Loader,
        paths: &Paths,
        globals: Option<&str>,
    ) -> Result<Configuration, Errors> {
        let registry = families::registry();
        let (tree, scope) = registry.load(loader, &paths.configuration, globals)?;
        let root = View::root(&scope);
        let mut errors = Vec::new();
        let settings = Settings::read(root, paths, &mut errors);
        if root.own("events").is_none() {
            let message = "no \"events\" section in configuration".to_owned();
            errors.push(ConfError {
                message,
                place: None,
            });
        }
        if !errors.is_empty() {
            return Err(Errors(errors));
        }
        let globals = globals.map(str::to_owned);
        let paths = paths.clone();
        let configuration = Configuration {
            paths,
            globals,
            tree,
            settings,
            scope,
        };
        families::serving_plan().check(&configuration)?;
        Ok(configuration)
    }

    /// The main context.
    pub fn root(&self) -> View<'_> {
        View::root(&self.scope)
    }

    /// A path that the configuration names, under the prefix.
    pub fn under_prefix(&self, path: impl AsRef<Path>) -> PathBuf {
        self.paths.under_prefix(path)
    }
}
