//! A change of a machine, as findings ask for it and plans order it. It changes nothing itself.

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::journal::Kind;

/// What every file of ours begins with: by it people and `revert` know them.
pub(crate) const MARK: &str = "# Written by turnpike tune; `turnpike tune revert` removes it.\n";

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Change {
    /// A kernel setting.
    Setting { name: String, value: String },
    /// The CPUs that a receive queue is spread over.
    ReceiveMask {
        interface: String,
        queue: usize,
        mask: String,
    },
    /// The CPUs that an interrupt may go to.
    Interrupt {
        number: u32,
        name: String,
        cpus: String,
    },
    /// The limit of open files of a service of systemd.
    ServiceFiles { service: String, files: u64 },
}

impl Change {
    pub(crate) fn setting(name: &str, value: impl ToString) -> Change {
        Change::Setting {
            name: name.to_owned(),
            value: value.to_string(),
        }
    }

    /// What it does, in a line.
    pub(crate) fn text(&self) -> String {
        match self {
            Change::Setting { name, value } => format!("{name} = {value}"),
            Change::ReceiveMask {
                interface,
                queue,
                mask,
            } => format!("{interface}: rps_cpus of rx-{queue} = {mask}"),
            Change::Interrupt { number, name, cpus } => {
                format!("interrupt {number} ({name}) to CPU {cpus}")
            }
            Change::ServiceFiles { service, files } => {
                format!("LimitNOFILE={files} for {service}.service")
            }
        }
    }

    /// What it changes: two changes of the same target exclude each other.
    pub(crate) fn target(&self) -> String {
        self.file().1
    }

    /// The file that it writes, and what into it.
    pub(crate) fn file(&self) -> (Kind, String, String) {
        match self {
            Change::Setting { name, value } => {
                let path = format!("/proc/sys/{}", name.replace('.', "/"));
                (Kind::Kernel, path, value.clone())
            }
            Change::ReceiveMask {
                interface,
                queue,
                mask,
            } => {
                let path = format!("/sys/class/net/{interface}/queues/rx-{queue}/rps_cpus");
                (Kind::Kernel, path, mask.clone())
            }
            Change::Interrupt { number, cpus, .. } => {
                let path = format!("/proc/irq/{number}/smp_affinity_list");
                (Kind::Kernel, path, cpus.clone())
            }
            Change::ServiceFiles { service, files } => {
                let path = format!("/etc/systemd/system/{service}.service.d/50-turnpike-tune.conf");
                let text = format!("{MARK}[Service]\nLimitNOFILE={files}\n");
                (Kind::Disk, path, text)
            }
        }
    }

    /// Whether its words are names that can be part of a path: a plan may come from a file.
    pub(crate) fn is_sound(&self) -> bool {
        let plain = |word: &str| {
            let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-:@".contains(letter);
            !word.is_empty() && !word.contains("..") && word.chars().all(fits)
        };
        let value = |word: &str| {
            let fits = |letter: char| letter.is_ascii_alphanumeric() || " .,_-".contains(letter);
            !word.is_empty() && word.chars().all(fits)
        };
        match self {
            Change::Setting { name, value: text } => plain(name) && value(text),
            Change::ReceiveMask {
                interface, mask, ..
            } => plain(interface) && value(mask),
            Change::Interrupt { cpus, .. } => value(cpus),
            Change::ServiceFiles { service, .. } => plain(service),
        }
    }

    /// Why it cannot be made here; `None` where it can.
    pub(crate) fn obstacle(&self, facts: &Facts) -> Option<String> {
        let rights = facts.rights;
        if !self.is_sound() {
            return Some("it has characters that no such name has".to_owned());
        }
        if !rights.is_root {
            return Some("root is needed".to_owned());
        }
        match self {
            Change::Setting { name, .. } if rights.settings_read_only => Some(format!(
                "/proc/sys is read-only in this container; set {name} on the host or through the \
                 container's runtime"
            )),
            Change::Setting { name, .. } => {
                let missing = !facts.settings.contains_key(name);
                missing.then(|| format!("this kernel has no {name}"))
            }
            Change::ReceiveMask { .. } | Change::Interrupt { .. } if rights.is_container => {
                Some("interrupts and queues belong to the container's host".to_owned())
            }
            Change::ServiceFiles { .. } if rights.is_container => {
                Some("the container's runtime sets the limit".to_owned())
            }
            _ => None,
        }
    }
}
