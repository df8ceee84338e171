//! A configuration that was read, and checked by its rows: the same steps in the master, which
//! reads the disk, and in the serving process, which gets the texts.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use turnpike_conf::{ConfError, Errors, Loader, Mistakes, Scope, Tree, View};
use turnpike_plan::product::Product;

use crate::families;
use crate::paths::Paths;
use crate::settings::Settings;

/// A checked configuration.
#[derive(Debug)]
pub struct Configuration {
    /// Where its relative paths start.
    pub paths: Paths,
    /// The `-g` text.
    pub globals: Option<String>,
    /// What was written, with every file's bytes.
    pub tree: Tree,
    /// What of the main context concerns the process.
    pub settings: Settings,
    scope: Scope,
    files: Files,
}

/// Files that a configuration names and that are read while its plan is built: keys and
/// certificates. The serving process gets them with the texts, since it may not read them itself.
struct Files {
    loader: Box<dyn Loader>,
    read: RefCell<BTreeMap<PathBuf, Arc<[u8]>>>,
    /// The files that the server itself changes.
    changing: RefCell<BTreeSet<PathBuf>>,
}

impl Configuration {
    /// Reads the configuration through a loader, and checks it but for what is found wrong when its
    /// plan is built.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(
        loader: Box<dyn Loader>,
        paths: &Paths,
        globals: Option<&str>,
    ) -> Result<Configuration, Errors> {
        let (configuration, mistakes) = Configuration::examine(loader, paths, globals);
        mistakes.finish().map(|()| configuration)
    }

    /// What could be read of a configuration, and what is wrong with it so far.
    pub(crate) fn examine(
        loader: Box<dyn Loader>,
        paths: &Paths,
        globals: Option<&str>,
    ) -> (Configuration, Mistakes) {
        let registry = families::registry();
        let (tree, scope, mut mistakes) = registry.examine(&*loader, &paths.configuration, globals);
        let root = View::root(&scope);
        let mut errors = Vec::new();
        let settings = Settings::read(root, paths, &mut errors);
        // Where text could not be read, the section may be in it.
        if mistakes.is_empty() && lacks_sections(&tree, settings.product) {
            errors.push(ConfError::unplaced(
                "no \"events\" section in configuration",
            ));
        }
        mistakes.add(&tree, errors);
        let configuration = Configuration {
            paths: paths.clone(),
            globals: globals.map(str::to_owned),
            tree,
            settings,
            scope,
            files: Files {
                loader,
                read: RefCell::default(),
                changing: RefCell::default(),
            },
        };
        (configuration, mistakes)
    }

    /// The main context.
    pub fn root(&self) -> View<'_> {
        View::root(&self.scope)
    }

    /// The bytes of a file that the configuration names, by its full path.
    ///
    /// # Errors
    /// The file system's, or that the master sent no such file.
    pub fn file(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.read_once(path, |loader| loader.read(path))
    }

    /// As [`Configuration::file`], also from a FIFO, whose writer is waited for.
    ///
    /// # Errors
    /// As for [`Configuration::file`].
    pub fn file_or_fifo(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.read_once(path, |loader| loader.read_fifo(path))
    }

    /// As [`Configuration::file`], for a file that the server itself changes.
    ///
    /// # Errors
    /// As for [`Configuration::file`].
    pub fn changing_file(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        self.files.changing.borrow_mut().insert(path.to_path_buf());
        self.file(path)
    }

    /// The files whose changes are a reason to read the configuration again, each with its bytes
    /// shared.
    pub fn watched_files(&self) -> Vec<(PathBuf, Arc<[u8]>)> {
        let changing = self.files.changing.borrow();
        let mut files = self.shared_files();
        files.retain(|(path, _)| !changing.contains(path));
        files
    }

    fn read_once(
        &self,
        path: &Path,
        read: impl FnOnce(&dyn Loader) -> io::Result<Vec<u8>>,
    ) -> io::Result<Arc<[u8]>> {
        if let Some(bytes) = self.files.read.borrow().get(path) {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = read(&*self.files.loader)?.into();
        let mut read = self.files.read.borrow_mut();
        read.insert(path.to_path_buf(), Arc::clone(&bytes));
        Ok(bytes)
    }

    /// The files that were asked for, each with its bytes shared.
    fn shared_files(&self) -> Vec<(PathBuf, Arc<[u8]>)> {
        let read = self.files.read.borrow();
        let files = read.iter();
        files
            .map(|(path, bytes)| (path.clone(), Arc::clone(bytes)))
            .collect()
    }

    /// The files that were asked for, with their bytes.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = self.shared_files().into_iter();
        files.map(|(path, bytes)| (path, bytes.to_vec())).collect()
    }

    /// A path that the configuration names, under the prefix.
    pub fn under_prefix(&self, path: impl AsRef<Path>) -> PathBuf {
        self.paths.under_prefix(path)
    }
}

/// Whether a configuration lacks the sections without which it does not load: `events`, as in
/// nginx. Under its own name the server does without it where something else is served: a file
/// that was cut off or emptied by mistake is refused all the same.
fn lacks_sections(tree: &Tree, product: Product) -> bool {
    let has = |name: &str| tree.directives.iter().any(|one| one.name.text == name);
    let serves = has("http") || has("stream");
    !has("events") && (product == Product::Nginx || !serves)
}

/// Names only: the bytes may be a key's.
impl fmt::Debug for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.read.borrow().keys())
            .finish()
    }
}
