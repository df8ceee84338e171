//! A configuration with everything that the master has opened for it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::sync::Arc;

use turnpike_conf::Errors;
use turnpike_lane::affinity::CpuSet;
use turnpike_lane::log::{Errno, ErrorLog, Form, Level, LogFile, LogSet, Sink, Target};

use super::failure::StartFailure;
use super::gates::{GateSet, NotOpened, Opening};
use super::kept::MEMORIES;
use super::{folders, trial, watch};
use crate::channel::{Bundle, Extra, Log};
use crate::checked::Checked;
use crate::configuration::Configuration;
use crate::error_output;
use crate::needs::Needs;
use crate::paths::Paths;
use crate::sandbox::Sandbox;
use crate::settings::Settings;
use turnpike_plan::product::Product;

/// What is in force, or about to be.
#[derive(Debug)]
pub(super) struct LoadedConfiguration {
    pub(super) configuration: Configuration,
    pub(super) needs: Needs,
    pub(super) logs: LogSet,
    pub(super) log: ErrorLog,
    pub(super) gates: GateSet,
}

/// Why a site could not be opened. Everything about it has been logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoadError {
    /// The configuration, a log file or a folder.
    Files,
    /// A listening socket.
    Gate(NotOpened),
}

impl LoadedConfiguration {
    /// Reads the configuration and opens what it needs; what is open already is shared.
    pub(super) fn open(
        paths: &Paths,
        globals: Option<&str>,
        old_logs: &LogSet,
        old_gates: &GateSet,
        log: &ErrorLog,
    ) -> Result<LoadedConfiguration, LoadError> {
        let checked = logged_as(paths, globals, log).ok_or(LoadError::Files)?;
        LoadedConfiguration::of(checked, old_logs, old_gates, log)
    }

    /// The same configuration with its files as they are on the disk now.
    pub(super) fn reread(&self, log: &ErrorLog) -> Result<LoadedConfiguration, LoadError> {
        let configuration = &self.configuration;
        let loader = watch::rereading(configuration);
        let globals = configuration.globals.as_deref();
        let checked = Checked::read_through(loader, &configuration.paths, globals);
        let product = configuration.settings.product;
        let checked = logged(checked, product, log).ok_or(LoadError::Files)?;
        LoadedConfiguration::of(checked, &self.logs, &self.gates, log)
    }

    /// Opens what a configuration needs that was read already.
    pub(super) fn of(
        checked: Checked,
        old_logs: &LogSet,
        old_gates: &GateSet,
        log: &ErrorLog,
    ) -> Result<LoadedConfiguration, LoadError> {
        let logs = open_logs(&checked, old_logs, log).ok_or(LoadError::Files)?;
        let made = folders::make(&checked).err();
        let failures = made
            .into_iter()
            .chain(trial::replaced_file_failures(&checked));
        let failures: Vec<StartFailure> = failures.collect();
        for failure in &failures {
            failure.log(log, checked.configuration.settings.product);
        }
        if !failures.is_empty() {
            return Err(LoadError::Files);
        }
        for sentence in folders::unreachable(&checked) {
            log.event(Level::Warn, format_args!("{sentence}"));
        }
        let Checked {
            configuration,
            needs,
        } = checked;
        let listens = needs.listens.clone();
        let settings = &configuration.settings;
        let homes = settings.process.homes();
        let opening = Opening {
            // The built-in configuration is for a person who waits for the answer.
            is_patient: !configuration.paths.embedded,
            ..opening(settings, &homes, log)
        };
        let mut gates = old_gates
            .extend(listens, opening)
            .map_err(LoadError::Gate)?;
        gates.place_express(needs.express.as_ref(), log);
        let log = ErrorLog::from_specs(&configuration.settings.error_logs, &logs);
        Ok(LoadedConfiguration {
            configuration,
            needs,
            logs,
            log,
            gates,
        })
    }

    /// Whether a serving process of this configuration can take `new` up: what it has given up it
    /// does not get back, nor does a sandbox get another folder.
    pub(super) fn can_become(&self, new: &LoadedConfiguration) -> bool {
        let settings = |loaded: &LoadedConfiguration| loaded.configuration.settings.process.clone();
        let (own, new_settings) = (settings(self), settings(new));
        let (own_needs, new_needs) = (&self.needs, &new.needs);
        own.can_become(&new_settings)
            && own_needs.capabilities == new_needs.capabilities
            && (own.sandbox == Sandbox::Off || own_needs.folders == new_needs.folders)
    }

    /// Stays in force after all, `given_up` being given up. Returns whether the serving process
    /// must be told of sockets that are left of it.
    pub(super) fn reinstate(&mut self, given_up: LoadedConfiguration) -> bool {
        let settings = &self.configuration.settings;
        let homes = settings.process.homes();
        let opening = opening(settings, &homes, &self.log);
        self.gates.reinstate(given_up.gates, opening)
    }

    /// Has the kernel choose among the sockets as this configuration wants it, after another
    /// master had it choose by its own.
    pub(super) fn open_again(&mut self) {
        let settings = &self.configuration.settings;
        let homes = settings.process.homes();
        let opening = opening(settings, &homes, &self.log);
        self.gates.open_again(opening);
    }

    /// Puts the steering program in charge where another master's was before: see
    /// [`GateSet::steer_again`].
    pub(super) fn steer_again(&mut self) -> (bool, bool) {
        let settings = &self.configuration.settings;
        let homes = settings.process.homes();
        let opening = opening(settings, &homes, &self.log);
        self.gates.steer_again(opening)
    }

    /// Lets go of all sockets, for good. The serving process has copies of its own, and serves
    /// what waits there.
    pub(super) fn let_gates_go(&mut self) {
        let none = GateSet::default();
        self.gates.stop_listening_except(&none);
        self.gates.unlink_except(&none, &self.log);
        self.gates = none;
    }

    /// What a serving process needs to serve it.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(super) fn bundle(&self, generation: u64) -> io::Result<Bundle> {
        let sources = self.configuration.tree.texts();
        let account = self.configuration.settings.process.account.as_ref();
        let mut extras = self.gates.extras()?;
        for memory in MEMORIES {
            extras.extend(memory.copy()?.map(|descriptor| Extra {
                name: memory.name.to_owned(),
                descriptor,
            }));
        }
        Ok(Bundle {
            generation,
            paths: Paths {
                user: account.map(|account| account.name.clone()),
                ..self.configuration.paths.clone()
            },
            globals: self.configuration.globals.clone(),
            rights: self.needs.rights(),
            sources: sources.chain(self.configuration.files()).collect(),
            listening_sockets: self.gates.listening_sockets()?,
            logs: log_copies(&self.logs)?,
            extras,
        })
    }

    /// Opens every log file anew and gives the new descriptors. A file that cannot be opened
    /// stays what it was.
    ///
    /// # Errors
    /// Those of `dup(2)`.
    pub(super) fn reopen_logs(&self) -> io::Result<Vec<Log>> {
        for file in self.logs.files() {
            if let Err(error) = file.reopen() {
                let failure = StartFailure::of("open()", file.path(), &error);
                failure.log(&self.log, self.configuration.settings.product);
                continue;
            }
            self.give_to_account(file);
        }
        log_copies(&self.logs)
    }

    /// Leads the master's standard error to its log.
    pub(super) fn lead_stderr(&self) {
        error_output::lead_to_log(&self.configuration, &self.logs, &self.log);
    }

    /// A reopened file belongs to who writes it, as nginx has it.
    fn give_to_account(&self, file: &LogFile) {
        let Some(account) = &self.configuration.settings.process.account else {
            return;
        };
        let path = file.path();
        let owner = fs::metadata(path).map(|metadata| metadata.uid());
        if !owner.is_ok_and(|owner| owner != account.user) {
            return;
        }
        if let Err(error) = chown(path, Some(account.user), None) {
            let (path, user) = (path.display(), account.user);
            let message = format_args!("chown(\"{path}\", {user}) failed {}", Errno(&error));
            self.log.event(Level::Emerg, message);
        }
    }
}

/// How listening sockets are opened for lanes as these settings have them.
fn opening<'a>(settings: &Settings, homes: &'a [CpuSet], log: &'a ErrorLog) -> Opening<'a> {
    Opening {
        lanes: settings.process.lanes,
        homes,
        log,
        is_patient: false,
        product: settings.product,
    }
}

/// A configuration that was read, if it could be, with whose name it gives the server, and the log
/// of that name until its own logs are open.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) checked: Option<Checked>,
    pub(super) product: Product,
    pub(super) log: ErrorLog,
}

/// Reads the configuration and logs what is wrong with it.
pub(super) fn read(paths: &Paths, globals: Option<&str>, log: &ErrorLog) -> Reading {
    let checked = Checked::read(paths, globals);
    let settings = match &checked {
        Ok(checked) => checked.configuration.settings.clone(),
        // The lines that give the name and the log may be right.
        Err(_) => Checked::read_in_part(paths, globals).0.settings,
    };
    let product = settings.product;
    let log = json_log(paths, &settings).unwrap_or_else(|| log.named(product.name()));
    Reading {
        checked: logged(checked, product, &log),
        product,
        log,
    }
}

/// Reads the configuration of a server that runs, and logs there what is wrong with it.
fn logged_as(paths: &Paths, globals: Option<&str>, log: &ErrorLog) -> Option<Checked> {
    let checked = Checked::read(paths, globals);
    let product = match &checked {
        Ok(checked) => checked.configuration.settings.product,
        Err(_) => paths.product,
    };
    logged(checked, product, log)
}

/// The log before the configuration was read, where it is a file that the configuration wants lines
/// of JSON in.
fn json_log(paths: &Paths, settings: &Settings) -> Option<ErrorLog> {
    let path = paths.error_log.as_ref()?;
    let mut specs = settings.error_logs.iter();
    specs.find(|spec| spec.file() == Some(path) && spec.form == Form::Json)?;
    let file = LogFile::open(path).ok()?;
    let sink = Sink::Json(Box::new(Sink::File(Arc::new(file))));
    let target = Target::new(Level::Notice, sink);
    Some(ErrorLog::new(vec![target]).with_console(settings.product.name()))
}

/// Logs what is wrong with a configuration, or worth a warning. Under nginx's name a hint has a
/// line of its own: tools read nginx's.
fn logged(checked: Result<Checked, Errors>, product: Product, log: &ErrorLog) -> Option<Checked> {
    match checked {
        Ok(checked) => {
            let warnings = checked.configuration.settings.warnings.iter();
            for warning in warnings.chain(&checked.needs.warnings) {
                log.event(Level::Warn, format_args!("{warning}"));
            }
            Some(checked)
        }
        Err(errors) => {
            for error in &errors.0 {
                let hint = error.hint.trim_start_matches([',', ';', ' ']);
                if product == Product::Turnpike || hint.is_empty() {
                    log.event(Level::Emerg, format_args!("{error}"));
                    continue;
                }
                log.event(Level::Emerg, format_args!("{}", error.plain()));
                log.event(Level::Emerg, format_args!("{hint}"));
            }
            None
        }
    }
}

/// Opens the log files of a configuration, or takes them from `old`.
fn open_logs(checked: &Checked, old: &LogSet, log: &ErrorLog) -> Option<LogSet> {
    let configuration = &checked.configuration;
    let specs = configuration.settings.error_logs.iter();
    let own = specs.filter_map(|spec| spec.file().map(Path::to_path_buf));
    let others = checked.needs.log_files.iter().cloned();
    let mut logs = LogSet::new();
    let mut complete = true;
    let mut tried = HashSet::new();
    for path in own.chain(others) {
        if !tried.insert(path.clone()) {
            continue;
        }
        if let Some(file) = old.file(&path) {
            logs.insert(file);
            continue;
        }
        let open: fn(&Path) -> io::Result<LogFile> =
            if checked.needs.secret_log_files.contains(&path) {
                LogFile::open_secret
            } else {
                LogFile::open
            };
        match configuration.paths.open_with_folder(&path, open) {
            Ok(file) => logs.insert(Arc::new(file)),
            Err(error) => {
                let failure = StartFailure::of("open()", &path, &error);
                failure.log(log, configuration.settings.product);
                complete = false;
            }
        }
    }
    complete.then_some(logs)
}

fn log_copies(logs: &LogSet) -> io::Result<Vec<Log>> {
    let copy = |file: &Arc<LogFile>| {
        let descriptor = file.file().try_clone()?.into();
        Ok(Log {
            path: file.path().to_path_buf(),
            descriptor,
        })
    };
    logs.files().map(copy).collect()
}
