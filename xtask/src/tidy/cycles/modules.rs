//! The modules of one crate and the paths by which they name each other, read from source text.
//!
//! A module is a file or an inline `mod x { .. }`: moving modules into one file changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::tidy::scanner::{Source, Token};

/// A crate, read from its root file on.
#[derive(Debug, Default)]
pub(super) struct Crate {
    /// The root is the first one.
    pub(super) modules: Vec<Module>,
}

/// One module.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Names from the crate's root on; the root has none.
    path: Vec<String>,
    pub(super) file: PathBuf,
    /// The modules that it names, and the first line that does.
    pub(super) edges: BTreeMap<usize, usize>,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Modules that a `use` line brings in, by the name that they have here.
    aliases: BTreeMap<String, usize>,
    named: Vec<Named>,
}

/// A path as it is written.
#[derive(Debug)]
struct Named {
    segments: Vec<String>,
    line: usize,
    from: Origin,
}

/// Where a path is written.
#[derive(Debug, Clone, PartialEq)]
enum Origin {
    /// In a type, an expression or a macro.
    Code,
    /// In a `use` line, which gives the last segment this name.
    Use { alias: String, is_exported: bool },
}

impl Module {
    /// The path in the form in which a `use` line writes it.
    pub(super) fn name(&self) -> String {
        let names = std::iter::once("crate").chain(self.path.iter().map(String::as_str));
        names.collect::<Vec<_>>().join("::")
    }
}

impl Crate {
    /// Reads the modules that `root` leads to; `read` returns the text of a file, if there is one.
    pub(super) fn read(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Crate {
        let mut found = Crate::default();
        if let Some(text) = read(root) {
            let folder = root.parent().unwrap_or(Path::new(""));
            found.add(None, Vec::new(), root.to_path_buf());
            found.walk_file(0, folder, &text, read);
        }
        found.learn_aliases();
        found.connect();
        found
    }

    fn add(&mut self, parent: Option<usize>, path: Vec<String>, file: PathBuf) -> usize {
        let index = self.modules.len();
        if let (Some(parent), Some(name)) = (parent, path.last()) {
            self.modules[parent].children.insert(name.clone(), index);
        }
        self.modules.push(Module {
            path,
            file,
            parent,
            ..Module::default()
        });
        index
    }

    /// Reads a file; the files of its children lie in `folder`.
    fn walk_file(
        &mut self,
        module: usize,
        folder: &Path,
        text: &str,
        read: &dyn Fn(&Path) -> Option<String>,
    ) {
        let source = Source::scan(text);
        let end = source.tokens.len();
        let walk = Walk {
            source: &source,
            read,
        };
        walk.tokens(self, module, folder, 0..end);
    }

    /// Finds the names that `use` lines give to modules. A name may depend on another, so this is
    /// repeated until nothing changes.
    fn learn_aliases(&mut self) {
        loop {
            let mut new = Vec::new();
            for (index, module) in self.modules.iter().enumerate() {
                for named in &module.named {
                    let Origin::Use { alias, .. } = &named.from else {
                        continue;
                    };
                    let target = self.resolve(index, &named.segments);
                    if let Some((target, true)) = target
                        && !module.aliases.contains_key(alias)
                        && !module.children.contains_key(alias)
                    {
                        new.push((index, alias.clone(), target));
                    }
                }
            }
            if new.is_empty() {
                return;
            }
            for (index, alias, target) in new {
                self.modules[index].aliases.insert(alias, target);
            }
        }
    }

    fn connect(&mut self) {
        for index in 0..self.modules.len() {
            for at in 0..self.modules[index].named.len() {
                let named = &self.modules[index].named[at];
                let Some((target, is_module)) = self.resolve(index, &named.segments) else {
                    continue;
                };
                // A private name for a module is an edge only if it is used.
                let is_idle = matches!(
                    named.from,
                    Origin::Use {
                        is_exported: false,
                        ..
                    }
                );
                if target == index || (is_module && is_idle) {
                    continue;
                }
                let line = named.line;
                let edge = self.modules[index].edges.entry(target).or_insert(line);
                *edge = line.min(*edge);
            }
        }
    }

    /// The module that a path leads to, and whether the path ends there. `None`: the path leads
    /// out of the crate, or names something else, such as a type.
    fn resolve(&self, from: usize, segments: &[String]) -> Option<(usize, bool)> {
        let (first, rest) = segments.split_first()?;
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.modules[from].parent?,
            name => self.inside(from, name)?,
        };
        for name in rest {
            match (name.as_str(), self.inside(at, name)) {
                ("self", _) => {}
                ("super", _) => at = self.modules[at].parent?,
                (_, Some(next)) => at = next,
                (_, None) => return Some((at, false)),
            }
        }
        Some((at, true))
    }

    fn inside(&self, module: usize, name: &str) -> Option<usize> {
        let module = &self.modules[module];
        let found = module.children.get(name).or(module.aliases.get(name));
        found.copied()
    }
}

/// The walk over one file.
struct Walk<'a> {
    source: &'a Source,
    read: &'a dyn Fn(&Path) -> Option<String>,
}

impl Walk<'_> {
    /// Reads the tokens of one module.
    fn tokens(
        &self,
        found: &mut Crate,
        module: usize,
        folder: &Path,
        range: std::ops::Range<usize>,
    ) {
        let mut at = range.start;
        while at < range.end {
            at = if self.is_for_tests(at) {
                self.end_of_item(at)
            } else if let Some(name) = self.declared(at) {
                self.module(found, module, folder, at, name)
            } else if self.source.word(at) == Some("use") && !self.source.is_mark(at + 1, '<') {
                self.use_line(found, module, at)
            } else {
                self.path(found, module, at)
            };
        }
    }

    /// Whether `#[cfg(test)]` starts here.
    fn is_for_tests(&self, at: usize) -> bool {
        let source = self.source;
        source.is_mark(at, '#')
            && source.is_mark(at + 1, '[')
            && source.word(at + 2) == Some("cfg")
            && source.is_mark(at + 3, '(')
            && source.word(at + 4) == Some("test")
            && source.is_mark(at + 5, ')')
    }

    /// The index after the item, statement or field whose attributes start at `at`.
    fn end_of_item(&self, at: usize) -> usize {
        let mut at = at;
        while self.source.is_mark(at, '#') {
            at = self.behind_brackets(at + 1);
        }
        let mut round = 0usize;
        while at < self.source.tokens.len() {
            match &self.source.tokens[at].token {
                Token::Mark('(' | '[') => round += 1,
                Token::Mark(')' | ']') if round > 0 => round -= 1,
                Token::Mark('{') if round == 0 => return self.behind_brackets(at),
                Token::Mark(';' | ',') if round == 0 => return at + 1,
                Token::Mark('}' | ')' | ']') => return at,
                _ => {}
            }
            at += 1;
        }
        at
    }

    /// The index after the bracket that closes the one at `at`, of any kind.
    fn behind_brackets(&self, at: usize) -> usize {
        let mut depth = 0usize;
        for (index, placed) in self.source.tokens.iter().enumerate().skip(at) {
            match placed.token {
                Token::Mark('(' | '[' | '{') => depth += 1,
                Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return index + 1;
            }
        }
        self.source.tokens.len()
    }

    /// The name of the module that is declared here.
    fn declared(&self, at: usize) -> Option<&str> {
        let name = self.source.word(at + 1)?;
        let is_body = self.source.is_mark(at + 2, ';') || self.source.is_mark(at + 2, '{');
        (self.source.word(at) == Some("mod") && is_body).then_some(name)
    }

    /// Reads a module that is declared at `at`, and returns the index after it.
    fn module(
        &self,
        found: &mut Crate,
        parent: usize,
        folder: &Path,
        at: usize,
        name: &str,
    ) -> usize {
        let mut path = found.modules[parent].path.clone();
        path.push(name.to_owned());
        let inner = folder.join(name);
        if self.source.is_mark(at + 2, '{') {
            let end = self.behind_brackets(at + 2);
            let file = found.modules[parent].file.clone();
            let module = found.add(Some(parent), path, file);
            self.tokens(found, module, &inner, at + 3..end.saturating_sub(1));
            return end;
        }
        let files = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
        let text = files
            .iter()
            .find_map(|file| Some((file, (self.read)(file)?)));
        if let Some((file, text)) = text {
            let module = found.add(Some(parent), path, file.clone());
            found.walk_file(module, &inner, &text, self.read);
        }
        at + 3
    }

    /// Reads a `use` line and returns the index after it.
    fn use_line(&self, found: &mut Crate, module: usize, at: usize) -> usize {
        let before = at.checked_sub(1);
        let is_exported = before.is_some_and(|before| {
            self.source.word(before) == Some("pub") || self.source.is_mark(before, ')')
        });
        let mut tree = UseTree {
            walk: self,
            line: self.source.tokens[at].line,
            is_exported,
            named: Vec::new(),
        };
        let end = tree.branch(at + 1, &[]);
        found.modules[module].named.append(&mut tree.named);
        end + 1
    }

    /// Reads a path of at least two segments, if one starts here, and returns the index after it.
    fn path(&self, found: &mut Crate, module: usize, at: usize) -> usize {
        let source = self.source;
        let Some(first) = source.word(at) else {
            return at + 1;
        };
        let mut segments = vec![first.to_owned()];
        let mut end = at + 1;
        while let (true, Some(next)) = (self.is_colons(end), source.word(end + 2)) {
            segments.push(next.to_owned());
            end += 3;
        }
        let goes_on = at >= 2 && self.is_colons(at - 2);
        let is_visibility = at >= 1 && source.word(at - 1) == Some("in");
        // `crate::name!` is a macro that the whole crate has, wherever it is written.
        let is_macro = segments.len() == 2 && first == "crate" && source.is_mark(end, '!');
        if segments.len() > 1 && !goes_on && !is_visibility && !is_macro {
            found.modules[module].named.push(Named {
                segments,
                line: source.tokens[at].line,
                from: Origin::Code,
            });
        }
        end
    }

    fn is_colons(&self, at: usize) -> bool {
        self.source.is_mark(at, ':') && self.source.is_mark(at + 1, ':')
    }
}

/// The names of one `use` line.
struct UseTree<'a> {
    walk: &'a Walk<'a>,
    line: usize,
    is_exported: bool,
    named: Vec<Named>,
}

impl UseTree<'_> {
    /// Reads `a::b::{c, d as e}` after `prefix`, and returns the index after it.
    fn branch(&mut self, at: usize, prefix: &[String]) -> usize {
        let source = self.walk.source;
        let mut at = at;
        let mut segments = prefix.to_vec();
        loop {
            if self.walk.is_colons(at) {
                // A leading `::` names another crate.
                if segments.is_empty() {
                    segments.push(String::new());
                }
                at += 2;
            } else if let Some(word) = source.word(at).filter(|word| *word != "as") {
                segments.push(word.to_owned());
                at += 1;
            } else if source.is_mark(at, '*') {
                segments.push("*".to_owned());
                at += 1;
            } else if source.is_mark(at, '{') {
                return self.list(at + 1, &segments);
            } else {
                break;
            }
        }
        if segments.last().is_some_and(|last| last == "self") && segments.len() > 1 {
            segments.pop();
        }
        let mut alias = segments.last().cloned().unwrap_or_default();
        if source.word(at) == Some("as") {
            alias = source.word(at + 1).unwrap_or_default().to_owned();
            at += 2;
        }
        self.named.push(Named {
            segments,
            line: self.line,
            from: Origin::Use {
                alias,
                is_exported: self.is_exported,
            },
        });
        at
    }

    /// Reads the branches between braces, and returns the index after them.
    fn list(&mut self, at: usize, prefix: &[String]) -> usize {
        let mut at = at;
        while at < self.walk.source.tokens.len() && !self.walk.source.is_mark(at, '}') {
            if self.walk.source.is_mark(at, ',') {
                at += 1;
                continue;
            }
            let next = self.branch(at, prefix);
            at = next.max(at + 1);
        }
        at + 1
    }
}
