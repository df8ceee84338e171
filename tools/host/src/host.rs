//! The files of a machine, and what is read of single ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A machine whose files stand below a folder.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
}

impl Host {
    /// This machine.
    pub fn here() -> Host {
        Host::under("/")
    }

    /// The machine whose `/proc` and `/sys` stand below a folder.
    pub fn under(root: impl Into<PathBuf>) -> Host {
        Host { root: root.into() }
    }

    /// A kernel setting, by its path below `/proc/sys`, with single spaces between words.
    pub fn setting(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.path("proc/sys").join(path)).ok()?;
        Some(words(&text))
    }

    /// Of these settings those that this kernel has, by their names with dots.
    pub fn settings(&self, paths: &[&str]) -> BTreeMap<String, String> {
        let found = |path: &&str| Some((path.replace('/', "."), self.setting(path)?));
        paths.iter().filter_map(found).collect()
    }

    /// The first and the last port that the kernel chooses by itself; 0 where it does not tell.
    pub fn ephemeral_ports(&self) -> (u16, u16) {
        let ports = self.setting("net/ipv4/ip_local_port_range");
        let ports = ports.unwrap_or_default();
        let mut ports = ports.split(' ').map(|word| word.parse().unwrap_or(0));
        (ports.next().unwrap_or(0), ports.next().unwrap_or(0))
    }

    /// A limit of this process by its name in `/proc/self/limits`: the soft one, the hard one, and
    /// the unit where there is one.
    pub fn limit(&self, name: &str) -> Option<String> {
        let limits = self.text("proc/self/limits");
        let mut lines = limits.lines();
        lines.find_map(|line| line.strip_prefix(name)).map(words)
    }

    /// Processors and kernel in letters, digits and dashes: a part of a file's name. `cpus` is the
    /// number of CPUs that count.
    pub fn slug(&self, cpus: usize) -> String {
        let (model, version) = (self.processor().model, self.kernel().version().to_owned());
        let name = format!("{cpus}x{model}-linux-{version}").to_lowercase();
        let parts = name.split(|letter: char| !letter.is_ascii_alphanumeric());
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        parts.join("-")
    }

    /// Whether this is the machine that we run on, and no recorded tree.
    pub fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// A file's text; empty where it cannot be read.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_default()
    }

    /// A file's text with single spaces between words; empty where it cannot be read.
    pub(crate) fn line(&self, path: impl AsRef<Path>) -> String {
        words(&self.text(path))
    }

    /// A file's number.
    pub(crate) fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path).trim().parse().ok()
    }

    /// The names in a folder, sorted; none where it cannot be read.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path));
        let entries = entries.into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

/// A text with single spaces between its words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The numbers of a list such as `0-3,8`, as the kernel writes CPUs; what is no list has none.
pub fn list(text: &str) -> Vec<usize> {
    let mut numbers = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.parse(), last.parse::<usize>()) {
            numbers.extend(first..=last.min(CPUS_MAX));
        }
    }
    numbers
}

/// CPUs that are counted at most: what a kernel can be built for.
pub(crate) const CPUS_MAX: usize = 8192;
