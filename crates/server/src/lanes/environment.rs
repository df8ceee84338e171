//! What a plan takes from the process: log files, error logs, shared zones.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnpike_conf::{ConfError, Entry};
use turnpike_express::{Memory, ProgramSettings, Publisher};
use turnpike_http::plan::Environment;
use turnpike_lane::log::{ErrorLog, LogFile, LogSet, Spec, SpecError};
use turnpike_lane::sys::mapping::SharedWords;
use turnpike_plan::environment::{Capability, Folder, FolderKind};
use turnpike_plan::held::HeldValues;
use turnpike_plan::product::Product;
use turnpike_plan::regex::Purpose;

use crate::configuration::Configuration;
use crate::needs::Needs;
use crate::sandbox::Sandbox;

/// State that all lanes share, by the key that says what it is. A zone that the next configuration
/// does not name is let go with the last plan that uses it.
pub(super) type Zones = HashMap<String, Arc<dyn Any + Send + Sync>>;

/// A process in which a plan is built.
pub(super) struct BuildContext<'a> {
    configuration: &'a Configuration,
    conf_folder: PathBuf,
    logs: Logs<'a>,
    /// Zones of the configuration before this one.
    zones_before: &'a mut Zones,
    zones: Zones,
    /// What the plans of this configuration share.
    shared: Zones,
    /// Memory that outlives the process.
    kept: Option<Arc<SharedWords>>,
    /// What commands have changed.
    held: Option<Arc<HeldValues>>,
    /// What the plan publishes in the express lane's memory, where that is there.
    publisher: Option<Arc<Publisher>>,
    needs: Needs,
    warned: HashSet<String>,
}

enum Logs<'a> {
    /// The master checks: nothing is opened or written.
    None,
    /// The serving process was handed these.
    Open {
        files: &'a LogSet,
        main: &'a ErrorLog,
    },
}

impl<'a> BuildContext<'a> {
    /// A site that opens nothing: for checking, and for finding out what is to be opened.
    pub(super) fn dry(configuration: &'a Configuration, zones: &'a mut Zones) -> Self {
        Self::new(configuration, Logs::None, zones)
    }

    /// The serving process.
    pub(super) fn serving(
        configuration: &'a Configuration,
        files: &'a LogSet,
        main: &'a ErrorLog,
        zones: &'a mut Zones,
        kept: Option<Arc<SharedWords>>,
        held: Option<Arc<HeldValues>>,
        express: Option<Arc<Memory>>,
    ) -> Self {
        let mut site = Self::new(configuration, Logs::Open { files, main }, zones);
        (site.kept, site.held) = (kept, held);
        site.publisher = express.map(Publisher::new);
        site
    }

    fn new(configuration: &'a Configuration, logs: Logs<'a>, zones_before: &'a mut Zones) -> Self {
        let file = &configuration.paths.configuration;
        let conf_folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let zones = Zones::new();
        Self {
            configuration,
            conf_folder,
            logs,
            zones_before,
            zones,
            shared: Zones::new(),
            kept: None,
            held: None,
            publisher: None,
            needs: Needs::default(),
            warned: HashSet::new(),
        }
    }

    /// What the plan asked for, and what it warned of; its addresses are for others to add.
    pub(super) fn into_findings(self) -> Needs {
        self.needs
    }

    /// What the plan publishes in the express lane; `None`: it wants none, or there is none.
    pub(super) fn publisher(&self) -> Option<Arc<Publisher>> {
        let is_wanted = self.needs.express.is_some();
        self.publisher.clone().filter(|_| is_wanted)
    }

    /// The zones that the plan uses take the place of those before.
    pub(super) fn keep_zones(self) {
        *self.zones_before = self.zones;
    }
}

impl Environment for BuildContext<'_> {
    fn prefix(&self) -> &Path {
        &self.configuration.paths.prefix
    }

    fn default_place(&self, path: &str) -> PathBuf {
        let account = self.configuration.settings.process.account.as_ref();
        let user = account.map(|account| account.name.as_str());
        self.configuration.paths.default_place(path, user)
    }

    fn conf_folder(&self) -> &Path {
        &self.conf_folder
    }

    fn product(&self) -> Product {
        self.configuration.settings.product
    }

    fn purpose(&self) -> Purpose {
        match self.logs {
            Logs::None => Purpose::Check,
            Logs::Open { .. } => Purpose::Matches,
        }
    }

    fn log_file(&mut self, path: &Path) -> io::Result<Arc<LogFile>> {
        self.needs.log_files.push(path.to_path_buf());
        let found = match &self.logs {
            Logs::Open { files, .. } => files.file(path),
            Logs::None => None,
        };
        match found {
            Some(file) => Ok(file),
            // Nothing is written through it: it stands for the file while a plan is checked.
            None => Ok(Arc::new(LogFile::adopt(
                path,
                File::open("/dev/null")?.into(),
            ))),
        }
    }

    fn secret_log_file(&mut self, path: &Path) -> io::Result<Arc<LogFile>> {
        self.needs.secret_log_files.push(path.to_path_buf());
        self.log_file(path)
    }

    fn error_log(&mut self, entries: &[&Entry]) -> Result<ErrorLog, SpecError> {
        let prefix = &self.configuration.paths.prefix;
        let mut specs = Vec::new();
        for entry in entries {
            let words: Vec<&str> = entry
                .arguments
                .iter()
                .map(|word| word.text.as_str())
                .collect();
            let spec = Spec::parse(&words, prefix)?;
            self.needs
                .log_files
                .extend(spec.file().map(Path::to_path_buf));
            specs.push(spec);
        }
        match &self.logs {
            Logs::None => Ok(ErrorLog::none()),
            Logs::Open { main, .. } if specs.is_empty() => Ok((*main).clone()),
            Logs::Open { files, .. } => Ok(ErrorLog::from_specs(&specs, files)),
        }
    }

    fn warn(&mut self, warning: ConfError) {
        // A directive is read again for every block that inherits it.
        let warning = warning.to_string();
        if self.warned.insert(warning.clone()) {
            self.needs.warnings.push(warning);
        }
    }

    fn folder(&mut self, path: &Path, kind: FolderKind) {
        let path = match kind {
            FolderKind::Default => path.to_path_buf(),
            FolderKind::Named | FolderKind::Foreign => self.configuration.under_prefix(path),
        };
        self.needs.folders.insert(Folder { path, kind });
    }

    fn replaced_file(&mut self, path: &Path) {
        if let Some(folder) = path.parent() {
            self.folder(folder, FolderKind::Foreign);
        }
        self.needs.replaced_files.insert(path.to_path_buf());
    }

    fn capability(&mut self, capability: Capability) {
        self.needs.capabilities.insert(capability);
    }

    fn shared(
        &mut self,
        key: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        let shared = self.shared.entry(key.to_owned());
        shared.or_insert_with(make).clone()
    }

    fn zone_memory(&mut self, directive: &'static str, name: &str, bytes: u64) {
        let name = (name.to_owned(), directive);
        self.needs.zone_bytes.insert(name, bytes);
    }

    fn provide(&mut self, settings: &dyn Any) -> Option<Arc<dyn Any + Send + Sync>> {
        self.needs.express = Some(settings.downcast_ref::<ProgramSettings>()?.clone());
        Some(self.publisher.clone()?)
    }

    fn is_sandboxed(&self) -> bool {
        self.configuration.settings.process.sandbox != Sandbox::Off
    }

    fn file(&mut self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.configuration.file(path)
    }

    fn file_or_fifo(&mut self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.configuration.file_or_fifo(path)
    }

    fn changing_file(&mut self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.configuration.changing_file(path)
    }

    fn kept_words(&mut self) -> Option<Arc<SharedWords>> {
        self.kept.clone()
    }

    fn held_values(&mut self) -> Option<Arc<HeldValues>> {
        self.held.clone()
    }

    fn zone(
        &mut self,
        key: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        if let Some(zone) = self.zones.get(key) {
            return zone.clone();
        }
        let zone = self.zones_before.get(key).cloned().unwrap_or_else(make);
        self.zones.insert(key.to_owned(), zone.clone());
        zone
    }
}
