//! A configuration that was checked whole: its plan was built once, opening nothing, and thrown
//! away. The master and whoever looks at a configuration read it so; a serving process is sent
//! what passed.

use turnpike_conf::{DiskLoader, Errors, Loader, MemoryLoader};

use crate::configuration::Configuration;
use crate::families::advice;
use crate::needs::Needs;
use crate::paths::Paths;
use crate::{embedded, lanes, zone_memory};

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
        Ok(checked)
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
        let needs = match lanes::needs(&configuration) {
            Ok(needs) => needs,
            Err(errors) => {
                mistakes.add(&configuration.tree, errors.0);
                Needs::default()
            }
        };
        mistakes.finish().map_err(advised).map(|()| Checked {
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
        (configuration, mistakes.finish().map_err(advised))
    }
}

/// A sentence as a part of another one.
fn clause(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Says of directives that do not work here what to do instead.
fn advised(mut errors: Errors) -> Errors {
    for error in &mut errors.0 {
        let hint = hint(&error.message);
        error.message.push_str(&hint.unwrap_or_default());
    }
    errors
}

/// What a message about a refused directive goes on with, if there is advice.
fn hint(message: &str) -> Option<String> {
    let unknown = message.strip_prefix("unknown directive \"");
    if let Some(name) = unknown.and_then(|rest| rest.strip_suffix('"')) {
        let advice = advice::find(name)?;
        let (module, instead) = (advice.module, clause(advice.instead));
        return Some(format!(" of the module \"{module}\"; {instead}"));
    }
    let advice = advice::find(&refused(message)?)?;
    Some(format!(" ({}); {}", advice.module, clause(advice.instead)))
}

/// The directive that a message refuses, with the parameter if it refuses only that.
fn refused(message: &str) -> Option<String> {
    let known = message.strip_suffix(" is not supported yet")?;
    if let Some(parameter) = known.strip_prefix("the \"") {
        let (parameter, directive) = parameter.split_once("\" parameter of \"")?;
        return Some(format!("{} {parameter}", directive.strip_suffix('"')?));
    }
    let name = known.strip_prefix('"')?;
    name.strip_suffix("\" directive").map(str::to_owned)
}

/// The disk, or the text of the built-in configuration.
fn disk(paths: &Paths) -> Box<dyn Loader> {
    if !paths.embedded {
        return Box::new(DiskLoader);
    }
    let text = (paths.configuration.clone(), embedded::CONFIGURATION);
    Box::new([text].into_iter().collect::<MemoryLoader>())
}
