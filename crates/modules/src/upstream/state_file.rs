//! `state`: the file with the servers of a group that commands change.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use turnpike_lane::log::Errno;
use turnpike_upstream::{Balancer, Mode};

use super::changes::{Changes, Given};

/// Characters that would end or change a line of the file.
const SPECIAL: &[char] = &[';', '{', '}', '#', '"', '\'', '\\', '$'];

/// The file of a group.
#[derive(Debug)]
pub(super) struct StateFile {
    pub(super) path: PathBuf,
    /// The servers that it had when the configuration was read.
    pub(super) servers: Vec<Given>,
    pub(super) balancer: Balancer,
    pub(super) default_port: u16,
}

impl StateFile {
    /// Reads what the file has: `server` lines as in the configuration. Names are looked up, which
    /// blocks.
    ///
    /// # Errors
    /// What is wrong with it, without the configuration's place.
    pub(super) fn parse(
        path: &Path,
        bytes: &[u8],
        balancer: Balancer,
        default_port: u16,
    ) -> Result<Vec<Given>, String> {
        let wrong = |what: &str| format!("{what} in state file \"{}\"", path.display());
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("invalid text"))?;
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default());
        let text: Vec<&str> = lines.collect();
        let text = text.join(" ");
        let (lines, rest) = text.rsplit_once(';').unwrap_or(("", &text));
        if !rest.trim().is_empty() {
            return Err(wrong("unexpected end of file, expecting \";\""));
        }
        let lines = lines
            .split(';')
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let read = |line: &str| {
            let server = line.strip_prefix("server ").map(str::trim_start);
            let server = server.ok_or_else(|| wrong(&format!("unknown directive \"{line}\"")))?;
            Given::read(server, balancer, default_port)
                .map_err(|message| wrong(&message.to_string()))
        };
        lines.map(read).collect()
    }

    /// The servers that the file has now.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(&self) -> Result<Vec<Given>, String> {
        let path = &self.path;
        match fs::read(path) {
            Ok(bytes) => Self::parse(path, &bytes, self.balancer, self.default_port),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(format!(
                "open() \"{}\" failed {}",
                path.display(),
                Errno(&error)
            )),
        }
    }

    /// Writes what commands have left: another file takes the place of the one before.
    ///
    /// # Errors
    /// Why it could not be written; the one before is there still.
    pub(super) fn write(&self, changes: &Changes) -> Result<(), String> {
        let given = changes.added.iter();
        let mut lines = given.flat_map(|given| [given.server.as_str(), given.parameters.as_str()]);
        if let Some(line) = lines.find(|line| line.contains(SPECIAL)) {
            return Err(format!("\"{line}\" cannot be written to a state file"));
        }
        let text: String = changes
            .added
            .iter()
            .map(|given| line(given, changes))
            .collect();
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let failed = |call: &str, path: &Path, error: &io::Error| {
            format!("{call} \"{}\" failed {}", path.display(), Errno(error))
        };
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_data()
        });
        written.map_err(|error| failed("write()", &beside, &error))?;
        fs::rename(&beside, &self.path).map_err(|error| failed("rename()", &self.path, &error))
    }
}

/// A server as a line of the file. A mode or weight that was commanded for it is written where it
/// holds for all its addresses; otherwise each has a line.
fn line(given: &Given, changes: &Changes) -> String {
    let names: Vec<String> = given.addresses.iter().map(ToString::to_string).collect();
    let commanded = |name: &String| (changes.modes.get(name), changes.weights.get(name));
    let is_same = names
        .windows(2)
        .all(|pair| commanded(&pair[0]) == commanded(&pair[1]));
    let names = match (is_same, names.first()) {
        (true, Some(first)) => vec![(&given.server, first)],
        _ => names.iter().map(|name| (name, name)).collect(),
    };
    let line = |(server, name): (&String, &String)| {
        let (mode, weight) = commanded(name);
        let mut words = vec!["server".to_owned(), server.clone()];
        let configured = given
            .parameters
            .split_whitespace()
            .filter(|word| match *word {
                "down" | "drain" => mode.is_none(),
                word => weight.is_none() || !word.starts_with("weight="),
            });
        words.extend(configured.map(str::to_owned));
        words.extend(weight.map(|weight| format!("weight={weight}")));
        match mode {
            Some(Mode::Down) => words.push("down".to_owned()),
            Some(Mode::Draining) => words.push("drain".to_owned()),
            Some(Mode::Up) | None => {}
        }
        words.join(" ") + ";\n"
    };
    names.into_iter().map(line).collect()
}

/// The servers of a state file as changes: they are all that the group has.
pub(super) fn changes(servers: Vec<Given>) -> Changes {
    Changes {
        replaces: true,
        added: servers,
        ..Changes::default()
    }
}
