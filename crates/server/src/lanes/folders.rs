//! The folders that lanes write to: those of temporary files and caches, which are the server's
//! own, and those of files whose names a request decides.

use std::path::{Path, PathBuf};

use turnpike_conf::{ConfError, Entry, Errors, View};

use crate::configuration::Configuration;
use crate::plan::{Folder, FolderKind};
use crate::sandbox::Sandbox;

/// Directives that name a folder for temporary files, and the folder below the prefix that is used
/// where they are not given.
const TEMPORARY: &[(&str, &str)] = &[
    ("client_body_temp_path", "client_body_temp"),
    ("proxy_temp_path", "proxy_temp"),
];

/// nginx's `root` where there is none.
const ROOT_DEFAULT: &str = "html";

/// Folders for temporary files, for caches, for logs and stored responses.
///
/// # Errors
/// With a sandbox: names of files that begin with a variable.
pub(super) fn of(configuration: &Configuration) -> Result<Vec<Folder>, Errors> {
    let mut search = Search {
        configuration,
        folders: Vec::new(),
        errors: Vec::new(),
    };
    let Some(http) = configuration.root().children("http").next() else {
        return Ok(search.folders);
    };
    search.look_in(http);
    for (directive, folder) in TEMPORARY {
        if http.own(directive).is_none() {
            search.add(Path::new(folder), FolderKind::Default);
        }
    }
    match search.errors.is_empty() {
        true => Ok(search.folders),
        false => Err(Errors(search.errors)),
    }
}

struct Search<'a> {
    configuration: &'a Configuration,
    folders: Vec<Folder>,
    errors: Vec<ConfError>,
}

impl Search<'_> {
    fn look_in(&mut self, view: View<'_>) {
        self.look_for_store(view);
        for entry in view.entries() {
            let name = entry.row.name;
            if is_cache(entry) || TEMPORARY.iter().any(|(temporary, _)| *temporary == name) {
                self.add(Path::new(entry.argument(0)), FolderKind::Named);
            }
            let path = entry.argument(0);
            if name == "access_log" && path.contains('$') && !path.starts_with("syslog:") {
                self.add_before_variables(view, entry, path);
            }
            if let Some(inner) = view.child(entry) {
                self.look_in(inner);
            }
        }
    }

    /// Stored responses: under the names of the files that they stand for, or under others.
    fn look_for_store(&mut self, view: View<'_>) {
        let Some(store) = view.nearest("proxy_store") else {
            return;
        };
        match store.argument(0) {
            "off" => {}
            "on" => {
                let place = view.own("alias").or_else(|| view.nearest("root"));
                let place = place.map_or(ROOT_DEFAULT, |place| place.argument(0));
                // It is the folder itself, not a file in it.
                self.add_before_variables(view, store, &format!("{place}/"));
            }
            path => self.add_before_variables(view, store, path),
        }
    }

    fn add(&mut self, path: &Path, kind: FolderKind) {
        let path = self.configuration.under_prefix(path);
        let folder = Folder { path, kind };
        if !self.folders.contains(&folder) {
            self.folders.push(folder);
        }
    }

    /// The folder in which all of a name is that has variables in it. A sandbox must know it before
    /// there is a request.
    fn add_before_variables(&mut self, view: View<'_>, entry: &Entry, path: &str) {
        match folder_before_variables(path) {
            Some(folder) => self.add(&folder, FolderKind::Foreign),
            None if self.configuration.settings.process.sandbox == Sandbox::Off => {}
            None => {
                let name = entry.row.name;
                let message = format!(
                    "\"{name} {path}\" cannot be written in a sandbox: give the files a folder \
                     whose name has no variables, or say \"sandbox off\""
                );
                self.errors.push(view.error(entry.span, message));
            }
        }
    }
}

fn is_cache(entry: &Entry) -> bool {
    let in_memory = |word: &turnpike_conf::Word| word.text == "memory";
    entry.row.name == "proxy_cache_path" && !entry.arguments.iter().skip(1).any(in_memory)
}

/// What stands before the first variable, up to its last slash; neither everything nor nothing.
fn folder_before_variables(path: &str) -> Option<PathBuf> {
    let fixed = path.split('$').next().unwrap_or_default();
    let (folder, _) = fixed.rsplit_once('/')?;
    let folder = folder.trim_end_matches('/');
    (!folder.is_empty()).then(|| PathBuf::from(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_name_is_what_no_request_can_change() {
        for (path, folder) in [
            ("logs/$host.log", Some("logs")),
            ("logs/a-$host/b.log", Some("logs")),
            ("/var/log/sites/$host/access.log", Some("/var/log/sites")),
            ("/data//", Some("/data")),
            ("/data/html/", Some("/data/html")),
            ("/$host/access.log", None),
            ("$host.log", None),
            ("${host}/access.log", None),
            ("/", None),
        ] {
            let found = folder_before_variables(path);
            assert_eq!(found.as_deref(), folder.map(Path::new), "{path}");
        }
    }
}
