//! How families get at files: through the location's open-file cache where it has one, else from
//! the lane's memory where the file is unchanged, and under the location's rule for symbolic links.
//! It answers no request.

mod settings;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;

use turnpike_conf::{ConfError, Entry, View};
use turnpike_http::exchange::Exchange;
use turnpike_http::lane::{LaneSlot, LaneState};
use turnpike_http::plan::Builder;
use turnpike_http::{Quoted, phase::Verdict};
use turnpike_lane::files::{
    self, CONTENT_BYTES_MAX, CacheRules, ContentCache, FileError, FileHandle, Now, OpenFileCache,
    SymlinkRule, Symlinks,
};
use turnpike_lane::log::{Errno, Level};
use turnpike_lane::sys::file::{Metadata, is_null_device};

use settings::{OpenFileCacheSettings, SymlinkSettings};

pub(crate) use settings::check_open_file_cache;

/// Largest file whose content is kept in memory where it may be compressed: what is compressed
/// anew for each request costs far more than the memory.
const COMPRESSED_CONTENT_BYTES_MAX: u64 = 512 * 1024;

/// Largest file whose content is kept in memory where sendfile(2) may not send it: it would be read
/// for each request.
const READ_CONTENT_BYTES_MAX: u64 = 1024 * 1024;

/// Access to the files of one location.
#[derive(Clone)]
pub(crate) struct Files {
    source: Source,
    symlinks: SymlinkSettings,
    /// Whether responses have an entity tag made from the file (`etag`).
    has_tags: bool,
}

/// Where open files come from.
#[derive(Clone)]
enum Source {
    /// Every request asks the file system (`open_file_cache off`). Content of so many bytes is kept
    /// in memory.
    Asked(LaneSlot<Contents>, u64),
    /// A request trusts what is known for a time (`open_file_cache`).
    Trusted(LaneSlot<Cache>, OpenFileCacheSettings),
}

/// A lane's cache for one `open_file_cache` directive.
pub(crate) struct Cache(RefCell<OpenFileCache>);

impl LaneState for Cache {}

/// A lane's content of files that no such directive is for.
pub(crate) struct Contents(RefCell<ContentCache>);

impl LaneState for Contents {}

impl Contents {
    /// Opens a file that is read whole, or takes its content from memory: of a hot and settled file
    /// of up to `bytes_max`, for one system call. The null device is an empty file.
    ///
    /// # Errors
    /// Those of open(2); `EISDIR` for a directory, and `InvalidInput` for any other file that is
    /// not regular.
    pub(crate) fn open_regular(
        &self,
        exchange: &Exchange,
        path: &[u8],
        bytes_max: u64,
    ) -> io::Result<FileHandle> {
        let clock = &exchange.lane.clock;
        let now = Now {
            monotonic_ms: clock.now_ms(),
            unix_ms: clock.unix_ms(),
            batch: exchange.lane.progress.batch(),
        };
        let file = self.0.borrow_mut().open(path, bytes_max, now)?;
        match file.metadata() {
            metadata if metadata.is_file() => Ok(file),
            metadata if metadata.is_directory() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
            _ if file.descriptor().is_some_and(is_null_device) => Ok(file),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            )),
        }
    }
}

/// The caches made so far, by the directive that asks for them: locations that inherit it share.
#[derive(Default)]
struct Caches {
    by_directive: HashMap<*const Entry, LaneSlot<Cache>>,
    contents: Option<LaneSlot<Contents>>,
}

impl Files {
    /// What the directives in force in a location say.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn of(view: View<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        Ok(Self {
            source: Source::of(view, builder)?,
            symlinks: settings::symlinks(view, builder)?,
            has_tags: view.flag("etag"),
        })
    }

    /// Whether responses have an entity tag made from the file.
    pub(crate) fn have_tags(&self) -> bool {
        self.has_tags
    }

    /// Opens a file, or takes it from the cache. A hot one costs no system call with
    /// `open_file_cache`; without it, one where it is small.
    ///
    /// # Errors
    /// The call that failed, and why.
    pub(crate) fn open(&self, exchange: &Exchange, path: &[u8]) -> Result<FileHandle, FileError> {
        let symlinks = self.symlinks(exchange, path);
        let clock = &exchange.lane.clock;
        match &self.source {
            Source::Asked(slot, bytes_max) if symlinks.rule == SymlinkRule::Off => {
                let now = Now {
                    monotonic_ms: clock.now_ms(),
                    unix_ms: clock.unix_ms(),
                    batch: exchange.lane.progress.batch(),
                };
                exchange
                    .plan
                    .state(slot)
                    .0
                    .borrow_mut()
                    .open(path, *bytes_max, now)
            }
            Source::Asked(..) => files::open(path, symlinks).map(FileHandle::Owned),
            Source::Trusted(slot, settings) => {
                let rules = rules(settings, symlinks);
                let mut cache = exchange.plan.state(slot).0.borrow_mut();
                cache.open(path, &rules, clock.now_ms())
            }
        }
    }

    /// Asks about a path without opening it.
    ///
    /// # Errors
    /// The call that failed, and why.
    pub(crate) fn inspect(&self, exchange: &Exchange, path: &[u8]) -> Result<Metadata, FileError> {
        let symlinks = self.symlinks(exchange, path);
        match &self.source {
            Source::Asked(..) => files::inspect(path, symlinks),
            Source::Trusted(slot, settings) => {
                let rules = rules(settings, symlinks);
                let mut cache = exchange.plan.state(slot).0.borrow_mut();
                cache.inspect(path, &rules, exchange.lane.clock.now_ms())
            }
        }
    }

    /// Which symbolic links on the way to a path are refused.
    pub(crate) fn symlinks(&self, exchange: &Exchange, path: &[u8]) -> Symlinks {
        let (rule, from) = match &self.symlinks {
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
}

impl Source {
    fn of(view: View<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let settings = settings::open_file_cache(view)?;
        let directive = view.nearest("open_file_cache");
        let (Some(settings), Some(directive)) = (settings, directive) else {
            let bytes_max = match (view.flag("sendfile"), view.flag("gzip")) {
                (false, _) => READ_CONTENT_BYTES_MAX,
                (true, true) => COMPRESSED_CONTENT_BYTES_MAX,
                (true, false) => CONTENT_BYTES_MAX,
            };
            return Ok(Self::Asked(contents(builder), bytes_max));
        };
        let directive: *const Entry = directive;
        if let Some(&slot) = builder.store::<Caches>().by_directive.get(&directive) {
            return Ok(Self::Trusted(slot, settings));
        }
        let (entries_max, inactive_ms) = (settings.entries_max, settings.inactive_ms);
        let slot = builder
            .lane_state(move || Cache(RefCell::new(OpenFileCache::new(entries_max, inactive_ms))));
        let caches = builder.store::<Caches>();
        caches.by_directive.insert(directive, slot);
        Ok(Self::Trusted(slot, settings))
    }
}

/// The lane's contents, one for all locations.
pub(crate) fn contents(builder: &mut Builder<'_>) -> LaneSlot<Contents> {
    if let Some(slot) = builder.store::<Caches>().contents {
        return slot;
    }
    let slot = builder.lane_state(|| Contents(RefCell::new(ContentCache::new())));
    builder.store::<Caches>().contents = Some(slot);
    slot
}

/// The folder with a location's files, as `root` or `alias` name it, with a slash at its end.
pub(crate) fn folder_of(view: View<'_>) -> String {
    /// nginx's, where there is none.
    const ROOT_DEFAULT: &str = "html";
    let place = view.own("alias").or_else(|| view.nearest("root"));
    let folder = place.map_or(ROOT_DEFAULT, |place| place.argument(0));
    format!("{folder}/")
}

/// Calls `work` with the file or folder that the request's path stands for, in a buffer that later
/// requests use again.
pub(crate) fn with_file_path(
    exchange: &mut Exchange,
    work: impl FnOnce(&mut Exchange, &mut Vec<u8>) -> Verdict,
) -> Verdict {
    let mut path = exchange.lane.take_scratch();
    exchange.file_path(&mut path);
    let verdict = work(exchange, &mut path);
    exchange.lane.keep_scratch(path);
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
