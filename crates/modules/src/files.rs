//! How families get at files: through the location's open-file cache where it has one, and under
//! its rule for symbolic links. It answers no request.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use turnpike_conf::{Entry, View};
use turnpike_http::exchange::Exchange;
use turnpike_http::lane::{LaneSlot, LaneState};
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::settings::{OpenFileCacheSettings, Symlinks as SymlinkSettings};
use turnpike_http::{Quoted, phase::Verdict};
use turnpike_lane::files::{
    self, CacheRules, FileError, FileHandle, OpenFileCache, SymlinkRule, Symlinks,
};
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::file::Metadata;

/// Access to the files of one location.
#[derive(Clone)]
pub(crate) struct Files {
    cache: Option<(LaneSlot<Cache>, OpenFileCacheSettings)>,
}

/// A lane's cache for one `open_file_cache` directive.
struct Cache(RefCell<OpenFileCache>);

impl LaneState for Cache {}

/// The caches made so far, by the directive that asks for them: locations that inherit it share.
#[derive(Default)]
struct Caches(HashMap<*const Entry, LaneSlot<Cache>>);

impl Files {
    /// What the directives in force in a location say.
    pub(crate) fn of(view: View<'_>, builder: &mut Builder<'_>, draft: &LocationDraft) -> Self {
        let settings = draft.settings.open_file_cache.clone();
        let directive = view.nearest("open_file_cache");
        let (Some(settings), Some(directive)) = (settings, directive) else {
            return Self { cache: None };
        };
        let directive: *const Entry = directive;
        if let Some(&slot) = builder.store::<Caches>().0.get(&directive) {
            let cache = Some((slot, settings));
            return Self { cache };
        }
        let (entries_max, inactive_ms) = (settings.entries_max, settings.inactive_ms);
        let slot = builder
            .lane_state(move || Cache(RefCell::new(OpenFileCache::new(entries_max, inactive_ms))));
        builder.store::<Caches>().0.insert(directive, slot);
        Self {
            cache: Some((slot, settings)),
        }
    }

    /// Opens a file, or takes it from the cache. A hot one costs no system call.
    ///
    /// # Errors
    /// The call that failed, and why.
    pub(crate) fn open(&self, exchange: &Exchange, path: &[u8]) -> Result<FileHandle, FileError> {
        let symlinks = symlinks(exchange, path);
        match &self.cache {
            None => files::open(path, symlinks).map(FileHandle::Owned),
            Some((slot, settings)) => {
                let rules = rules(settings, symlinks);
                let mut cache = exchange.plan.state(slot).0.borrow_mut();
                cache.open(path, &rules, exchange.lane.clock.now_ms())
            }
        }
    }

    /// Asks about a path without opening it.
    ///
    /// # Errors
    /// The call that failed, and why.
    pub(crate) fn inspect(&self, exchange: &Exchange, path: &[u8]) -> Result<Metadata, FileError> {
        let symlinks = symlinks(exchange, path);
        match &self.cache {
            None => files::inspect(path, symlinks),
            Some((slot, settings)) => {
                let rules = rules(settings, symlinks);
                let mut cache = exchange.plan.state(slot).0.borrow_mut();
                cache.inspect(path, &rules, exchange.lane.clock.now_ms())
            }
        }
    }
}

/// Calls `work` with the file or folder that the request's path stands for, in a buffer that later
/// requests use again.
pub(crate) fn with_file_path(
    exchange: &mut Exchange,
    work: impl FnOnce(&mut Exchange, &mut Vec<u8>) -> Verdict,
) -> Verdict {
    let mut path = std::mem::take(&mut exchange.scratch);
    path.clear();
    exchange.file_path(&mut path);
    let verdict = work(exchange, &mut path);
    exchange.scratch = path;
    verdict
}

/// Whether an error says that there is no such file.
pub(crate) fn is_absence(errno: i32) -> bool {
    matches!(errno, libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG)
}

/// Whether an error says that a symbolic link was refused.
pub(crate) fn is_refused_link(errno: i32) -> bool {
    matches!(errno, libc::ELOOP | libc::EMLINK)
}

/// The system's words for an error number, as nginx writes them.
pub(crate) fn in_words(errno: i32) -> String {
    Errno(&io::Error::from_raw_os_error(errno)).to_string()
}

/// Writes what failed, on which path, and why.
pub(crate) fn log_failure(exchange: &Exchange, level: Level, path: &[u8], error: FileError) {
    let call = error.operation.name();
    let (path, words) = (Quoted(path), in_words(error.errno));
    exchange.log(level, format_args!("{call} \"{path}\" failed {words}"));
}

fn rules(settings: &OpenFileCacheSettings, symlinks: Symlinks) -> CacheRules {
    CacheRules {
        valid_ms: settings.valid_ms,
        uses_min: settings.uses_min,
        keep_errors: settings.errors,
        symlinks,
    }
}

fn symlinks(exchange: &Exchange, path: &[u8]) -> Symlinks {
    let (rule, from) = match &exchange.location().settings.symlinks {
        SymlinkSettings::Allowed => return Symlinks::FOLLOWED,
        SymlinkSettings::Refused(from) => (SymlinkRule::On, from),
        SymlinkSettings::RefusedUnlessOwner(from) => (SymlinkRule::IfNotOwner, from),
    };
    match from {
        None => Symlinks::for_path(rule, b"", path),
        Some(from) => match from.constant() {
            Some(from) => Symlinks::for_path(rule, from, path),
            None => Symlinks::for_path(rule, &from.value(exchange), path),
        },
    }
}
