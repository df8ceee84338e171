//! Withdraws copies of files that change, as soon as the kernel tells of it. A file is watched from
//! the time on at which its copy would be published first; without a watch, a copy ends with the
//! second of its Date, as any other.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tokio::io::Interest;
use turnpike_express::OBJECTS_MAX;
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::inotify::{Change, ChangeQueue, Watch};
use turnpike_lane::sys::readiness;
use turnpike_plan::background::{Running, Service};

use crate::common::published_copies::Copies;

/// The most files that are watched: as many as can have copies.
pub(super) const FILES_MAX: usize = OBJECTS_MAX;

/// How long a file stays watched that is not published, in seconds: so long it makes no room for
/// others.
const UNUSED_S: u64 = 60;

/// The most folders and links on the way to a file that are watched, those next to it: far more
/// than usual paths have.
const WAYS_MAX: usize = 64;

/// The most links that a path leads through; the kernel follows no more.
const LINKS_MAX: usize = 40;

/// Reads of the queue in a row: the thread is shared.
const READS_MAX: usize = 64;

/// Whether a file is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// Watched since before it was opened.
    Yes,
    /// Watched from now on: the file may have changed since it was opened.
    FromNowOn,
    /// Watched by nobody: the kernel refuses, there is no room, or others are at the list of files
    /// now.
    No,
}

/// The watched files of a plan.
pub(super) struct FileWatch {
    copies: Arc<Copies>,
    log: ErrorLog,
    /// `None`: the kernel gives none.
    queue: Option<ChangeQueue>,
    files: SharedFiles,
    /// Whether the log says that some files are not watched.
    is_told: AtomicBool,
}

/// The watched files, which all lanes share. Lanes never wait for the lock: whoever holds it makes
/// system calls, some dozens for a file and thousands when the queue was full.
#[derive(Default)]
struct SharedFiles {
    locked: Mutex<Files>,
    count: AtomicUsize,
}

#[derive(Default)]
struct Files {
    /// The second in which room was made last: there is no more before the next one.
    made_room_s: u64,
    by_path: HashMap<Arc<[u8]>, WatchedFile>,
    /// The number of the file that was added last.
    number: u64,
    /// Several paths may lead to one file, and through one folder.
    by_watch: HashMap<Watch, HashSet<Arc<[u8]>>>,
}

struct WatchedFile {
    /// Tells it from one that was at its path before.
    number: u64,
    /// When it was published last, in Unix seconds.
    used_s: u64,
    /// The file's, and those of the folders and links on the way to it.
    watches: Vec<Watch>,
    /// The way was the same once all of it was watched. Otherwise the next publication begins anew.
    is_sure: bool,
}

impl FileWatch {
    /// Watches nothing yet. Where nothing can be watched, the log says so.
    pub(super) fn new(copies: Arc<Copies>, log: ErrorLog) -> Arc<FileWatch> {
        let queue = ChangeQueue::new();
        let watch = FileWatch {
            copies,
            log,
            files: SharedFiles::default(),
            is_told: AtomicBool::new(false),
            queue: None,
        };
        let queue = queue.map_err(|error| watch.tell("inotify_init1()", &error));
        Arc::new(FileWatch {
            queue: queue.ok(),
            ..watch
        })
    }

    /// Whether the file at a path is watched; watches it where it can.
    pub(super) fn watch(&self, path: &[u8], now_s: u64) -> Watched {
        let Some(queue) = &self.queue else {
            return Watched::No;
        };
        self.files
            .watch(queue, path, now_s)
            .unwrap_or_else(|error| {
                self.tell("inotify_add_watch()", &error);
                Watched::No
            })
    }

    /// How many files are watched.
    pub(super) fn count(&self) -> usize {
        self.files.count.load(Relaxed)
    }

    /// Takes what the kernel has to tell; whether there may be more.
    fn take(&self) -> io::Result<bool> {
        let Some(queue) = &self.queue else {
            return Ok(false);
        };
        queue.take(|change| match change {
            Change::File(watch) | Change::Unwatched(watch) => self.changed(queue, watch),
            Change::Overflow => self.all_changed(queue),
        })
    }

    /// The file at its path may be another one now: it is watched anew once it is published again.
    fn changed(&self, queue: &ChangeQueue, watch: Watch) {
        for path in self.files.forget_watched(queue, watch) {
            self.copies.withdraw_file(&path);
        }
    }

    fn all_changed(&self, queue: &ChangeQueue) {
        self.files.forget_all(queue);
        self.copies.withdraw_files();
    }

    /// Says once why files are not watched.
    fn tell(&self, call: &str, error: &io::Error) {
        if !self.is_told.swap(true, Relaxed) {
            let message = format_args!(
                "the express lane cannot watch files, {call} failed {}; after a change, the old \
                 file is sent for up to a second",
                Errno(error)
            );
            self.log.event(Level::Warn, message);
        }
    }
}

impl SharedFiles {
    /// Watches the file at a path where it can be, and does not wait for the list of files.
    fn watch(&self, queue: &ChangeQueue, path: &[u8], now_s: u64) -> io::Result<Watched> {
        let Some(mut files) = self.try_lock() else {
            return Ok(Watched::No);
        };
        if let Some(file) = files.by_path.get_mut(path).filter(|file| file.is_sure) {
            file.used_s = now_s;
            return Ok(Watched::Yes);
        }
        files.forget(queue, path);
        if files.by_path.len() >= FILES_MAX {
            files.make_room(queue, now_s);
            self.note_count(&files);
        }
        if files.by_path.len() >= FILES_MAX {
            return Ok(Watched::No);
        }
        drop(files);
        // Looking along a path may wait for a file server: nobody has to wait for that too.
        let way_of = || ResolvedPath::of(Path::new(OsStr::from_bytes(path)));
        let way = way_of();
        let Some(mut files) = self.try_lock() else {
            return Ok(Watched::No);
        };
        // Another lane may have been faster, but no watch was there when the file was opened.
        if files.by_path.contains_key(path) {
            return Ok(Watched::FromNowOn);
        }
        let added = files.add(queue, path, &way, now_s);
        self.note_count(&files);
        let number = added?;
        drop(files);
        // A link that was replaced before it was watched is watched with the folders of the old.
        if way_of() == way
            && let Some(mut files) = self.try_lock()
        {
            files.make_sure(path, number);
        }
        Ok(Watched::FromNowOn)
    }

    /// Forgets the files that a watch is about, and returns their paths.
    fn forget_watched(&self, queue: &ChangeQueue, watch: Watch) -> HashSet<Arc<[u8]>> {
        let mut files = self.lock();
        let paths = files.by_watch.get(&watch).cloned().unwrap_or_default();
        for path in &paths {
            files.forget(queue, path);
        }
        self.note_count(&files);
        paths
    }

    fn forget_all(&self, queue: &ChangeQueue) {
        let mut files = self.lock();
        files.forget_unused(queue, u64::MAX);
        self.note_count(&files);
    }

    /// The files, once nobody else is at them: not for lanes.
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Files>> {
        match self.locked.try_lock() {
            Ok(files) => Some(files),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn note_count(&self, files: &Files) {
        self.count.store(files.by_path.len(), Relaxed);
    }
}

impl Files {
    /// Forgets what was not published for a while. Looks through all of them once a second: in the
    /// same one, none is unused that was in use.
    fn make_room(&mut self, queue: &ChangeQueue, now_s: u64) {
        if self.made_room_s != now_s {
            self.made_room_s = now_s;
            self.forget_unused(queue, now_s);
        }
    }

    fn forget_unused(&mut self, queue: &ChangeQueue, now_s: u64) {
        let is_unused = |file: &WatchedFile| now_s.saturating_sub(file.used_s) >= UNUSED_S;
        let files = self.by_path.iter().filter(|(_, file)| is_unused(file));
        let unused: Vec<Arc<[u8]>> = files.map(|(path, _)| path.clone()).collect();
        for path in unused {
            self.forget(queue, &path);
        }
    }

    /// Watches the file at a path, and before it whatever else can give the path another file.
    /// Returns its number.
    fn add(
        &mut self,
        queue: &ChangeQueue,
        path: &[u8],
        way: &ResolvedPath,
        now_s: u64,
    ) -> io::Result<u64> {
        let mut watches = Vec::new();
        let mut note = |watch| watches.push(watch);
        let mut passed = way.passed.iter().map(|way| way.as_os_str().as_bytes());
        let added = passed
            .try_for_each(|way| queue.watch_way(way).map(&mut note))
            .and_then(|()| queue.watch(path).map(&mut note));
        let path: Arc<[u8]> = path.into();
        for watch in &watches {
            let paths = self.by_watch.entry(*watch).or_default();
            paths.insert(path.clone());
        }
        let used_s = now_s;
        self.number += 1;
        let number = self.number;
        let file = WatchedFile {
            number,
            used_s,
            watches,
            is_sure: false,
        };
        self.by_path.insert(path.clone(), file);
        if added.is_err() {
            self.forget(queue, &path);
        }
        added.map(|()| number)
    }

    /// Notes that a file's way was the same once it was watched. Another lane may have added
    /// another file at this path since: its way is not known yet.
    fn make_sure(&mut self, path: &[u8], number: u64) {
        let file = self.by_path.get_mut(path);
        if let Some(file) = file.filter(|file| file.number == number) {
            file.is_sure = true;
        }
    }

    /// Watches a file no more, nor what no other needs.
    fn forget(&mut self, queue: &ChangeQueue, path: &[u8]) {
        let file = self.by_path.remove(path);
        for watch in file.into_iter().flat_map(|file| file.watches) {
            let Some(paths) = self.by_watch.get_mut(&watch) else {
                continue;
            };
            paths.remove(path);
            if paths.is_empty() {
                self.by_watch.remove(&watch);
                // The kernel may have taken it away.
                let _ = queue.unwatch(watch);
            }
        }
    }
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
struct ResolvedPath {
    /// The folders and links on it but for the root, which nothing takes the place of: where
    /// another one takes the place of one of them, the path leads to another file.
    passed: Vec<PathBuf>,
    file: PathBuf,
}

impl ResolvedPath {
    /// Looks along a path, part by part: a link may lead to another.
    fn of(path: &Path) -> ResolvedPath {
        let mut passed = Vec::new();
        let mut file = PathBuf::new();
        let mut links = 0;
        let mut rest = parts(path);
        while let Some(part) = rest.pop() {
            match part.as_bytes() {
                b"." => continue,
                b".." => {
                    file.pop();
                    continue;
                }
                _ => file.push(part),
            }
            if links < LINKS_MAX
                && let Ok(target) = std::fs::read_link(&file)
            {
                links += 1;
                passed.push(file.clone());
                file.pop();
                rest.extend(parts(&target));
            } else if !rest.is_empty() && file.parent().is_some() && !passed.contains(&file) {
                passed.push(file.clone());
            }
        }
        passed.drain(..passed.len().saturating_sub(WAYS_MAX));
        ResolvedPath { passed, file }
    }
}

/// The parts of a path, the last one first. That of the root replaces what is before it.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev();
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

impl Service for FileWatch {
    fn run(self: Arc<Self>) -> Running {
        Box::pin(async move {
            let readable = self.queue.as_ref().map(ChangeQueue::readable);
            let Some(Ok(readable)) = readable else {
                return;
            };
            let Ok(readable) = readiness::register(readable, Interest::READABLE) else {
                return;
            };
            loop {
                let Ok(mut ready) = readable.readable().await else {
                    return;
                };
                let more = (0..READS_MAX).all(|_| self.take().unwrap_or(false));
                if !more {
                    ready.clear_ready();
                }
                tokio::task::yield_now().await;
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use turnpike_testkit::Folder;

    use super::*;

    #[test]
    fn files_that_are_not_published_make_room() {
        let queue = ChangeQueue::new().unwrap();
        let folder = Folder::create().unwrap();
        let add = |files: &mut Files, name: &str, used_s| {
            folder.write(name, "").unwrap();
            let path = folder.path().join(name);
            files.add(
                &queue,
                path.as_os_str().as_bytes(),
                &ResolvedPath::of(&path),
                used_s,
            )
        };
        let mut files = Files::default();
        add(&mut files, "a/old", 100).unwrap();
        add(&mut files, "a/new", 150).unwrap();
        let watch = *files.by_watch.keys().next().unwrap();
        for (now_s, left) in [(159, 2), (160, 1), (209, 1)] {
            files.make_room(&queue, now_s);
            assert_eq!(files.by_path.len(), left, "{now_s}");
        }
        // Once a second is enough.
        add(&mut files, "b/old", 100).unwrap();
        for (now_s, left) in [(209, 2), (210, 0)] {
            files.make_room(&queue, now_s);
            assert_eq!(files.by_path.len(), left, "{now_s}");
            assert_eq!(files.by_watch.is_empty(), left == 0, "{now_s}");
        }
        // The watches were taken away.
        assert!(queue.unwatch(watch).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_watched_leaves_nothing_behind() {
        let queue = ChangeQueue::new().unwrap();
        let folder = Folder::create().unwrap();
        let mut files = Files::default();
        let path = folder.path().join("none");
        let added = files.add(
            &queue,
            path.as_os_str().as_bytes(),
            &ResolvedPath::of(&path),
            1,
        );
        assert!(added.is_err());
        assert!(files.by_path.is_empty() && files.by_watch.is_empty());
    }

    #[test]
    fn a_file_is_made_sure_by_the_lane_that_added_it() {
        let queue = ChangeQueue::new().unwrap();
        let folder = Folder::create().unwrap();
        folder.write("page", "").unwrap();
        let path = folder.path().join("page");
        let (way, name) = (ResolvedPath::of(&path), path.as_os_str().as_bytes());
        let mut files = Files::default();
        let first = files.add(&queue, name, &way, 1).unwrap();
        files.forget(&queue, name);
        let second = files.add(&queue, name, &way, 1).unwrap();
        for (number, expected) in [(first, false), (second, true)] {
            files.make_sure(name, number);
            assert_eq!(files.by_path[name].is_sure, expected);
        }
    }

    #[test]
    fn lanes_do_not_wait_for_the_list_of_files() {
        let queue = ChangeQueue::new().unwrap();
        let folder = Folder::create().unwrap();
        folder.write("page", "").unwrap();
        let path = folder.path().join("page");
        let files = SharedFiles::default();
        let watch = || files.watch(&queue, path.as_os_str().as_bytes(), 1).unwrap();
        let steps = [
            (true, Watched::No, 0),
            (false, Watched::FromNowOn, 1),
            (false, Watched::Yes, 1),
            (true, Watched::No, 1),
        ];
        for (is_locked, expected, count) in steps {
            let held = is_locked.then(|| files.lock());
            let watched = watch();
            drop(held);
            assert_eq!((watched, files.count.load(Relaxed)), (expected, count));
        }
        let watches: Vec<Watch> = files.lock().by_watch.keys().copied().collect();
        for (watch, expected) in watches.into_iter().zip([1, 0]) {
            assert_eq!(files.forget_watched(&queue, watch).len(), expected);
            assert_eq!(files.count.load(Relaxed), 0);
        }
    }

    /// A page behind two links, of which one leads to the other.
    fn linked(folder: &Path) -> PathBuf {
        for name in ["releases/1", "releases/2"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let link = |target, name| symlink(target, folder.join(name)).unwrap();
        link("releases/1", "stable");
        link("stable", "current");
        link("./home.html", "releases/1/page");
        for name in ["home.html", "other.html"] {
            std::fs::write(folder.join("releases/1").join(name), "").unwrap();
        }
        folder.join("current/page")
    }

    #[test]
    fn each_folder_and_link_on_the_way_is_watched() {
        let cases = [
            ("current", true),
            ("stable", true),
            ("releases", true),
            ("releases/1", true),
            ("releases/1/page", true),
            ("releases/1/home.html", true),
            ("releases/2", false),
            // Attributes of what is in a folder change.
            ("releases/1/other.html", false),
        ];
        for (replaced, expected) in cases {
            let folder = Folder::create().unwrap();
            let path = linked(folder.path());
            let queue = ChangeQueue::new().unwrap();
            let files = SharedFiles::default();
            let watched = files.watch(&queue, path.as_os_str().as_bytes(), 1);
            assert_eq!(watched.unwrap(), Watched::FromNowOn);
            let name = |name: &str| folder.path().join(name);
            if replaced.ends_with("other.html") {
                std::fs::set_permissions(name(replaced), Permissions::from_mode(0o600)).unwrap();
            }
            std::fs::rename(name(replaced), name("old")).unwrap();
            let mut is_told = false;
            let forget = |change| {
                let Change::File(watch) = change else { return };
                is_told |= !files.forget_watched(&queue, watch).is_empty();
            };
            queue.take(forget).unwrap();
            assert_eq!(is_told, expected, "{replaced}");
        }
    }

    #[test]
    fn a_way_is_where_the_kernel_goes() {
        let folder = Folder::create().unwrap();
        let path = linked(folder.path());
        symlink("loop", folder.path().join("loop")).unwrap();
        for name in [
            "current/page",
            "current/../2/../1/page",
            "releases/1/home.html",
        ] {
            let path = folder.path().join(name);
            assert_eq!(
                ResolvedPath::of(&path).file,
                path.canonicalize().unwrap(),
                "{name}"
            );
        }
        assert_eq!(ResolvedPath::of(&path), ResolvedPath::of(&path));
        let passed = ResolvedPath::of(&folder.path().join("loop/page")).passed;
        assert!(passed.len() <= WAYS_MAX, "{}", passed.len());
    }
}
