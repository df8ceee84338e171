//! What a configuration of nginx or turnpike says about connections.
//!
//! The file is read with the language's own parser and by nginx's defaults. Nothing else of it is
//! kept.

use std::path::Path;

use serde::{Deserialize, Serialize};
use turnpike_conf::{Directive, Tree, parse};
use turnpike_host::DiskLoader;

/// The backlog of a `listen` without the parameter, as nginx has it on Linux.
const BACKLOG: u32 = 511;
/// nginx's default of `worker_connections`.
const WORKER_CONNECTIONS: u64 = 512;

/// What a server is told about connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Configuration {
    /// `worker_processes`: a number, or `auto`.
    pub(crate) workers: Word,
    /// `worker_cpu_affinity`, empty where it is not there.
    pub(crate) affinity: Word,
    pub(crate) connections: Word,
    pub(crate) open_files: Word,
    /// Whether `accept_mutex` is on.
    pub(crate) accept_mutex: bool,
    pub(crate) accept_mutex_at: String,
    pub(crate) multi_accept: bool,
    pub(crate) open_file_cache: bool,
    /// Places of `root` and `alias`: files are served.
    pub(crate) roots: Vec<String>,
    /// Places of `proxy_pass` and its like, and of `keepalive` in groups of servers.
    pub(crate) proxies: Vec<String>,
    pub(crate) keepalives: Vec<String>,
    pub(crate) listens: Vec<Listen>,
    pub(crate) access_logs: Vec<AccessLog>,
    pub(crate) error_logs: Vec<String>,
}

/// The value of a directive, and where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// `FILE:LINE`; empty where the directive is not there and the text is the default.
    pub(crate) place: String,
}

/// A `listen`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Listen {
    pub(crate) address: String,
    pub(crate) backlog: u32,
    pub(crate) reuseport: bool,
    pub(crate) place: String,
}

/// An `access_log` that writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AccessLog {
    pub(crate) path: String,
    pub(crate) buffered: bool,
    pub(crate) place: String,
}

impl Word {
    /// The value as a number.
    pub(crate) fn number(&self) -> Option<u64> {
        self.text.parse().ok()
    }

    /// Whether the configuration has it.
    pub(crate) fn is_written(&self) -> bool {
        !self.place.is_empty()
    }
}

/// Reads a configuration with all that it includes.
///
/// # Errors
/// In nginx's words, with file and line.
pub(crate) fn read(file: &Path) -> Result<Configuration, String> {
    let tree = parse(&DiskLoader, file, None).map_err(|errors| errors.to_string())?;
    let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let word = |text: &str| Word {
        text: text.to_owned(),
        place: String::new(),
    };
    let mut configuration = Configuration {
        workers: word("1"),
        connections: word(&WORKER_CONNECTIONS.to_string()),
        ..Configuration::default()
    };
    let reader = Reader {
        tree: &tree,
        folder: &folder,
    };
    reader.block(&tree.directives, "", &mut configuration);
    Ok(configuration)
}

struct Reader<'a> {
    tree: &'a Tree,
    folder: &'a Path,
}

impl Reader<'_> {
    fn block(&self, directives: &[Directive], context: &str, into: &mut Configuration) {
        for directive in directives {
            self.directive(directive, context, into);
            if let Some(block) = &directive.block {
                self.block(block, &directive.name.text, into);
            }
        }
    }

    fn directive(&self, directive: &Directive, context: &str, into: &mut Configuration) {
        let arguments = directive.arguments.iter().map(|word| word.text.as_str());
        let arguments: Vec<&str> = arguments.collect();
        let first = arguments.first().copied().unwrap_or_default();
        let place = self.place(directive);
        let word = || Word {
            text: arguments.join(" "),
            place: place.clone(),
        };
        match directive.name.text.as_str() {
            "worker_processes" => into.workers = word(),
            "worker_cpu_affinity" => into.affinity = word(),
            "worker_connections" => into.connections = word(),
            "worker_rlimit_nofile" => into.open_files = word(),
            "accept_mutex" => {
                into.accept_mutex = first == "on";
                into.accept_mutex_at = place;
            }
            "multi_accept" => into.multi_accept = first == "on",
            "open_file_cache" => into.open_file_cache |= first != "off",
            "root" | "alias" => into.roots.push(place),
            "proxy_pass" | "fastcgi_pass" | "uwsgi_pass" | "scgi_pass" | "grpc_pass" => {
                into.proxies.push(place);
            }
            "keepalive" if context == "upstream" => into.keepalives.push(place),
            "listen" if context == "server" => into.listens.extend(listen(&arguments, place)),
            "access_log" => into.access_logs.extend(self.access_log(&arguments, place)),
            "error_log" => into.error_logs.extend(self.path(first)),
            _ => {}
        }
    }

    fn access_log(&self, arguments: &[&str], place: String) -> Option<AccessLog> {
        let path = self
            .path(arguments.first()?)
            .filter(|_| arguments != ["off"])?;
        let buffered = arguments.iter().any(|word| {
            word.starts_with("buffer=") || word.starts_with("gzip") || word.starts_with("flush=")
        });
        Some(AccessLog {
            path,
            buffered,
            place,
        })
    }

    /// The path of a log; `None` for what is no file, or has variables.
    fn path(&self, word: &str) -> Option<String> {
        let is_file = !word.is_empty() && !word.contains([':', '$']) && word != "stderr";
        let path = self.folder.join(word);
        (is_file && path != Path::new("/dev/null")).then(|| path.display().to_string())
    }

    fn place(&self, directive: &Directive) -> String {
        let error = self.tree.error(directive.name.span, "");
        let text = error.to_string();
        text.rsplit_once(" in ")
            .map_or(text.clone(), |(_, place)| place.to_owned())
    }
}

fn listen(arguments: &[&str], place: String) -> Option<Listen> {
    let address = arguments.first()?.to_string();
    let has = |name: &str| arguments.contains(&name);
    if address.starts_with("unix:") || has("udp") || has("quic") {
        return None;
    }
    let backlog = arguments
        .iter()
        .find_map(|word| word.strip_prefix("backlog="));
    Some(Listen {
        backlog: backlog
            .and_then(|word| word.parse().ok())
            .unwrap_or(BACKLOG),
        reuseport: arguments.iter().any(|word| word.starts_with("reuseport")),
        address,
        place,
    })
}
