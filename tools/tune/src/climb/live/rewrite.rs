//! The steps of a climb as changes of a configuration that is there: single directives are replaced
//! or added, and every other byte stays. Pure, but for the reading of the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use turnpike_conf::{Directive, FileId, Loader, Tree, parse};
use turnpike_host::DiskLoader;

use crate::climb::knobs::{Knob, Levels};

/// The listen queue that steps ask for, in the configuration and in the kernel.
pub(super) const QUEUE: u64 = 4096;

/// Parameters of `listen` that belong to the socket: all of an address stand in one `listen`.
const SOCKET_PARAMETERS: &[&str] = &[
    "accept_filter=",
    "backlog=",
    "bind",
    "deferred",
    "fastopen=",
    "ipv6only=",
    "rcvbuf=",
    "reuseport",
    "setfib=",
    "sndbuf=",
    "so_keepalive=",
];

/// A configuration as it was before the climb.
#[derive(Debug)]
pub(super) struct Original {
    tree: Tree,
}

/// Files by their paths, as opened.
pub(super) type Texts = BTreeMap<PathBuf, Vec<u8>>;

/// A change of a file: bytes `from` to `to` become the text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edit {
    file: u32,
    from: usize,
    to: usize,
    text: String,
}

impl Original {
    /// Reads a configuration with all that it includes.
    ///
    /// # Errors
    /// In nginx's words, with file and line.
    pub(super) fn read(file: &Path) -> Result<Original, String> {
        Original::with_loader(&DiskLoader, file)
    }

    fn with_loader(loader: &dyn Loader, file: &Path) -> Result<Original, String> {
        let tree = parse(loader, file, None).map_err(|errors| errors.to_string())?;
        Ok(Original { tree })
    }

    /// The files, as they were.
    pub(super) fn texts(&self) -> Texts {
        let sources = self.tree.sources.iter();
        let texts = sources.map(|source| (source.path.clone(), source.bytes.to_vec()));
        texts.collect()
    }

    /// The words of a directive of the main context, where it is there.
    pub(super) fn main(&self, name: &str) -> Option<&str> {
        let found = named(&self.tree.directives, name);
        found
            .last()?
            .arguments
            .first()
            .map(|word| word.text.as_str())
    }

    /// Where a client finds a server without TLS: the address of the first such `listen`.
    pub(super) fn address(&self) -> Option<String> {
        let mut listens = self.listens().into_iter();
        let listen = listens.find(|listen| !has(listen, &["ssl", "quic", "proxy_protocol"]));
        let Some(listen) = listen else {
            // A server without `listen` has port 80.
            let is_bare = self.servers().into_iter().any(|server| {
                let block = server.block.as_deref().unwrap_or_default();
                named(block, "listen").next().is_none()
            });
            return is_bare.then(|| "127.0.0.1:80".to_owned());
        };
        listen.arguments.first().map(|word| reachable(&word.text))
    }

    /// The files that differ with these levels. A level of 0 is what the configuration has.
    pub(super) fn with(&self, levels: Levels) -> Texts {
        let mut texts = Texts::new();
        let edits = self.edits(levels);
        // From the end to the beginning, so that places before an edit stay where they are.
        for edit in edits.iter().rev() {
            let Some(source) = self.tree.sources.file(FileId(edit.file)) else {
                continue;
            };
            let text = texts
                .entry(source.path.clone())
                .or_insert_with(|| source.bytes.to_vec());
            drop(text.splice(edit.from..edit.to, edit.text.bytes()));
        }
        texts
    }

    /// What is different with these levels, for people: a line for each changed line of a file.
    pub(super) fn lines(&self, levels: Levels) -> Vec<String> {
        let old = self.texts();
        let mut lines = Vec::new();
        for (path, text) in self.with(levels) {
            let text = String::from_utf8_lossy(&text).into_owned();
            let old = old.get(&path).map(|bytes| String::from_utf8_lossy(bytes));
            let old: BTreeSet<&str> = old.iter().flat_map(|text| text.lines()).collect();
            let new = text.lines().filter(|line| !old.contains(line));
            lines.extend(new.map(|line| format!("{}: {}", path.display(), line.trim())));
        }
        lines
    }

    fn edits(&self, levels: Levels) -> BTreeSet<Edit> {
        let mut edits = BTreeSet::new();
        if levels.level(Knob::Workers) == 2 {
            self.set_main("worker_cpu_affinity", &mut edits);
            self.set_main("worker_processes", &mut edits);
        }
        let events = [
            (Knob::AcceptMutex, "accept_mutex", "off"),
            (Knob::MultiAccept, "multi_accept", "on"),
        ];
        let events = events.iter().filter(|(knob, ..)| levels.level(*knob) == 1);
        let events: Vec<_> = events.map(|(_, name, value)| (*name, *value)).collect();
        self.set_events(&events, &mut edits);
        if levels.level(Knob::OpenFileCache) == 1 {
            self.set("http", "open_file_cache", "max=1000", &mut edits);
        }
        if levels.level(Knob::AccessLog) == 1 {
            self.buffer_logs(&mut edits);
        }
        let deferred = levels.level(Knob::Deferred) == 1;
        let backlog = levels.level(Knob::Backlog) == 1;
        for listen in self.sockets() {
            if backlog {
                self.lengthen(listen, &mut edits);
            }
            if deferred && !has(listen, &["deferred"]) {
                edits.insert(before_end(listen, " deferred"));
            }
        }
        edits
    }

    /// Lets the server choose the number and the CPUs of its workers.
    fn set_main(&self, name: &str, edits: &mut BTreeSet<Edit>) {
        let wanted = format!("{name} auto;");
        match named(&self.tree.directives, name).last() {
            Some(directive) => edits.extend(replaced(directive, "auto", wanted)),
            None => drop(edits.insert(self.at_start(wanted + "\n"))),
        }
    }

    /// Text before the first directive of the main file.
    fn at_start(&self, text: String) -> Edit {
        let main = self.tree.sources.file(FileId(0));
        let bytes = main.map(|source| &*source.bytes).unwrap_or_default();
        let from = if bytes.starts_with(b"\xEF\xBB\xBF") {
            3
        } else {
            0
        };
        Edit {
            file: 0,
            from,
            to: from,
            text,
        }
    }

    /// Sets directives of `events`, which a file need not have.
    fn set_events(&self, wanted: &[(&str, &str)], edits: &mut BTreeSet<Edit>) {
        let has_block = named(&self.tree.directives, "events").next().is_some();
        if has_block {
            for (name, value) in wanted {
                self.set("events", name, value, edits);
            }
        } else if !wanted.is_empty() {
            let lines = wanted.iter();
            let lines = lines.map(|(name, value)| format!("    {name} {value};\n"));
            let lines: String = lines.collect();
            edits.insert(self.at_start(format!("events {{\n{lines}}}\n")));
        }
    }

    /// Sets a directive of a block, where the block is there.
    fn set(&self, block: &str, name: &str, value: &str, edits: &mut BTreeSet<Edit>) {
        let Some(block) = named(&self.tree.directives, block).next() else {
            return;
        };
        let inner = block.block.as_deref().unwrap_or_default();
        match named(inner, name).last() {
            Some(directive) => {
                edits.extend(replaced(directive, value, format!("{name} {value};")));
            }
            None => {
                let at = block.bytes.end as usize;
                edits.insert(Edit {
                    file: block.name.span.file.0,
                    from: at,
                    to: at,
                    text: format!("\n    {name} {value};"),
                });
            }
        }
    }

    /// Gives every log of requests that writes line by line a buffer.
    fn buffer_logs(&self, edits: &mut BTreeSet<Edit>) {
        let mut left: Vec<&Directive> = named(&self.tree.directives, "http").collect();
        while let Some(directive) = left.pop() {
            left.extend(directive.block.iter().flatten());
            if directive.name.text == "access_log" && writes_lines(directive) {
                // The parameters follow a format.
                let format = match directive.arguments.len() {
                    1 => " combined",
                    _ => "",
                };
                let text = format!("{format} buffer=64k flush=1s");
                edits.insert(before_end(directive, &text));
            }
        }
    }

    /// Lengthens a listen queue, but never shortens it.
    fn lengthen(&self, listen: &Directive, edits: &mut BTreeSet<Edit>) {
        let words = listen.arguments.iter();
        let mut words = words.filter_map(|word| word.text.strip_prefix("backlog="));
        let Some(given) = words.next() else {
            edits.insert(before_end(listen, &format!(" backlog={QUEUE}")));
            return;
        };
        if given.parse().is_ok_and(|length: u64| length >= QUEUE) {
            return;
        }
        let (from, to) = (listen.bytes.start as usize, listen.bytes.end as usize);
        let source = self.tree.sources.file(listen.name.span.file);
        let bytes = source.and_then(|source| source.bytes.get(from..to));
        let text = String::from_utf8_lossy(bytes.unwrap_or_default());
        let old = format!("backlog={given}");
        if let Some(at) = text.find(&old) {
            edits.insert(Edit {
                file: listen.name.span.file.0,
                from: from + at,
                to: from + at + old.len(),
                text: format!("backlog={QUEUE}"),
            });
        }
    }

    fn servers(&self) -> Vec<&Directive> {
        let blocks = named(&self.tree.directives, "http").filter_map(|http| http.block.as_deref());
        blocks.flat_map(|block| named(block, "server")).collect()
    }

    /// The `listen`s of TCP.
    fn listens(&self) -> Vec<&Directive> {
        let blocks = self.servers().into_iter();
        let blocks = blocks.filter_map(|server| server.block.as_deref());
        let listens = blocks.flat_map(|block| named(block, "listen"));
        let is_tcp = |listen: &&Directive| {
            let first = listen.arguments.first();
            let is_unix = first.is_none_or(|word| word.text.starts_with("unix:"));
            !is_unix && !has(listen, &["quic"])
        };
        listens.filter(is_tcp).collect()
    }

    /// For each address the `listen` that has the parameters of its socket.
    fn sockets(&self) -> Vec<&Directive> {
        let mut sockets: BTreeMap<&str, &Directive> = BTreeMap::new();
        for listen in self.listens() {
            let address = listen.arguments.first().map(|word| word.text.as_str());
            let address = address.unwrap_or_default();
            let has_parameters = has(listen, SOCKET_PARAMETERS);
            match sockets.get(address) {
                Some(known) if has(known, SOCKET_PARAMETERS) || !has_parameters => {}
                _ => {
                    sockets.insert(address, listen);
                }
            }
        }
        sockets.into_values().collect()
    }
}

fn named<'a, 'n>(
    directives: &'a [Directive],
    name: &'n str,
) -> impl DoubleEndedIterator<Item = &'a Directive> + use<'a, 'n> {
    let is_named = move |directive: &&Directive| directive.name.text == name;
    directives.iter().filter(is_named)
}

/// Whether a `listen` has one of these parameters; those that end with `=` have any value.
fn has(listen: &Directive, parameters: &[&str]) -> bool {
    let mut words = listen.arguments.iter().skip(1);
    words.any(|word| {
        parameters.iter().any(|name| {
            if name.ends_with('=') {
                word.text.starts_with(name)
            } else {
                word.text == *name || word.text.starts_with(&format!("{name}="))
            }
        })
    })
}

/// A directive in another form; none where it has this value already.
fn replaced(directive: &Directive, value: &str, text: String) -> Option<Edit> {
    let words = directive.arguments.iter().map(|word| word.text.as_str());
    let is_so = words.collect::<Vec<_>>() == [value];
    (!is_so).then_some(Edit {
        file: directive.name.span.file.0,
        from: directive.bytes.start as usize,
        to: directive.bytes.end as usize,
        text,
    })
}

/// More words before a directive's `;`.
fn before_end(directive: &Directive, text: &str) -> Edit {
    let at = (directive.bytes.end as usize).saturating_sub(1);
    Edit {
        file: directive.name.span.file.0,
        from: at,
        to: at,
        text: text.to_owned(),
    }
}

/// Whether an `access_log` writes each line to a file by itself.
fn writes_lines(log: &Directive) -> bool {
    let words = log.arguments.iter().map(|word| word.text.as_str());
    let words: Vec<&str> = words.collect();
    let is_file = |path: &&str| {
        let other = ["off", "stderr", "/dev/null", "/dev/stdout", "/dev/stderr"];
        !other.contains(path) && !path.contains(['$', ':'])
    };
    let buffers = ["buffer=", "gzip", "flush="];
    let is_buffered = |word: &str| buffers.iter().any(|name| word.starts_with(name));
    words.first().is_some_and(is_file) && !words.iter().skip(1).any(|word| is_buffered(word))
}

/// The address of a `listen` as a client on this machine names it.
fn reachable(listen: &str) -> String {
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match listen.rsplit_once(':') {
        _ if is_port(listen) => ("*", listen),
        Some((host, port)) if is_port(port) => (host, port),
        _ => (listen, "80"),
    };
    let host = match host {
        "*" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    format!("{host}:{port}")
}

#[cfg(test)]
mod tests;
