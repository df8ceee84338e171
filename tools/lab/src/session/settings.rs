//! Settings of the kernel and of the server's interface that a study or a level changes, restored
//! when they are dropped.

use std::collections::BTreeMap;

use crate::error::LabError;
use crate::topology::Topology;

/// Settings with their values, in the order in which they are made: an interface's `gro` comes
/// before `threaded`, which needs it, as it does in the alphabet.
#[derive(Debug, Default)]
pub(super) struct Settings(BTreeMap<Setting, String>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Setting {
    /// By its name, as sysctl(8) has it.
    Sysctl(String),
    /// Of the server's end of the veth pair.
    Interface(String),
}

impl Settings {
    /// The settings of a whole study.
    pub(super) fn of_sysctl(sysctl: &BTreeMap<String, String>) -> Settings {
        let mut settings = Settings::default();
        settings.add(sysctl, &BTreeMap::new());
        settings
    }

    /// Adds those of a level; they replace others of the same name.
    pub(super) fn add(
        &mut self,
        sysctl: &BTreeMap<String, String>,
        interface: &BTreeMap<String, String>,
    ) {
        let of = |(name, value): (&String, &String)| (Setting::Sysctl(name.clone()), value.clone());
        self.0.extend(sysctl.iter().map(of));
        let of =
            |(name, value): (&String, &String)| (Setting::Interface(name.clone()), value.clone());
        self.0.extend(interface.iter().map(of));
    }
}

impl Setting {
    /// The setting's value now.
    fn read(&self, topology: &Topology) -> Result<String, String> {
        match self {
            Setting::Sysctl(name) => topology.setting(&path(name)).map_err(|e| e.to_string()),
            Setting::Interface(name) => topology.interface(name),
        }
    }

    fn write(&self, topology: &Topology, value: &str) -> Result<(), String> {
        match self {
            Setting::Sysctl(name) => {
                let written = topology.change(&path(name), value);
                written.map_err(|error| error.to_string())
            }
            Setting::Interface(name) => topology.change_interface(name, value),
        }
    }

    /// As a message names it.
    fn label(&self) -> String {
        match self {
            Setting::Sysctl(name) => format!("sysctl {name}"),
            Setting::Interface(name) => format!("interface {name}"),
        }
    }
}

/// The path under /proc/sys.
fn path(name: &str) -> String {
    name.replace('.', "/")
}

/// Old values; written back when dropped, the last first.
#[derive(Debug)]
pub(super) struct Changed<'a> {
    topology: &'a Topology,
    old: Vec<(Setting, String)>,
}

impl<'a> Changed<'a> {
    /// Makes settings.
    ///
    /// # Errors
    /// The setting that this machine does not have or does not let us change; those before it are
    /// put back.
    pub(super) fn make(
        settings: &Settings,
        topology: &'a Topology,
    ) -> Result<Changed<'a>, LabError> {
        let mut changed = Changed {
            topology,
            old: Vec::new(),
        };
        for (setting, value) in &settings.0 {
            changed.set(setting, value)?;
        }
        Ok(changed)
    }

    /// Makes the settings that can be made; the others are reported.
    pub(super) fn where_possible(
        settings: &Settings,
        topology: &'a Topology,
    ) -> (Changed<'a>, Vec<String>) {
        let mut changed = Changed {
            topology,
            old: Vec::new(),
        };
        let made = settings
            .0
            .iter()
            .map(|(setting, value)| changed.set(setting, value));
        let notes = made
            .filter_map(Result::err)
            .map(|error| format!("not set: {error}"))
            .collect();
        (changed, notes)
    }

    fn set(&mut self, setting: &Setting, value: &str) -> Result<(), LabError> {
        let wrong = |text: String| LabError::File {
            name: format!("{}={value}", setting.label()),
            text,
        };
        let old = setting.read(self.topology).map_err(wrong)?;
        if old != value {
            setting.write(self.topology, value).map_err(wrong)?;
            self.old.push((setting.clone(), old));
        }
        Ok(())
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        for (setting, old) in self.old.iter().rev() {
            if let Err(error) = setting.write(self.topology, old) {
                let label = setting.label();
                eprintln!("turnpike lab: cannot restore {label}: {error}; its old value is {old}");
            }
        }
    }
}
