//! Withdraws copies of files that change, as soon as the kernel tells of it. A file is watched from
//! the time on at which its copy would be published first; without a watch, a copy ends with the
//! second of its Date, as any other.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::Interest;
use turnpike_express::OBJECTS_MAX;
use turnpike_lane::log::{Errno, ErrorLog, Level};
use turnpike_lane::sys::inotify::{Change, ChangeQueue, Watch};
use turnpike_lane::sys::readiness;
use turnpike_plan::background::{Running, Service};

use crate::copies::Copies;

/// The most files that are watched: as many as can have copies.
pub(super) const FILES_MAX: usize = OBJECTS_MAX;

/// How long a file stays watched that is not published, in seconds: so long it makes no room for
/// others.
const UNUSED_S: u64 = 60;

/// Reads of the queue in a row: the thread is shared.
const READS_MAX: usize = 64;

/// Whether a file is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// Watched since before it was opened.
    Yes,
    /// Watched from now on: the file may have changed since it was opened.
    FromNowOn,
    /// Watched by nobody: the kernel refuses, or there is no room.
    No,
}

/// The watched files of a plan.
pub(super) struct FileWatch {
    copies: Arc<Copies>,
    log: ErrorLog,
    /// `None`: the kernel gives none.
    queue: Option<ChangeQueue>,
    files: Mutex<Files>,
    /// Whether the log says that some files are not watched.
    is_told: AtomicBool,
}

#[derive(Default)]
struct Files {
    /// When each was published last, in Unix seconds.
    used_s: HashMap<Box<[u8]>, u64>,
    /// Several paths may lead to one file.
    by_watch: HashMap<Watch, Vec<Box<[u8]>>>,
}

impl FileWatch {
    /// Watches nothing yet. Where nothing can be watched, the log says so.
    pub(super) fn new(copies: Arc<Copies>, log: ErrorLog) -> Arc<FileWatch> {
        let queue = ChangeQueue::new();
        let watch = FileWatch {
            copies,
            log,
            files: Mutex::default(),
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
        let mut files = self.files();
        if let Some(used_s) = files.used_s.get_mut(path) {
            *used_s = now_s;
            return Watched::Yes;
        }
        if files.used_s.len() >= FILES_MAX {
            files.forget_unused(queue, now_s);
        }
        if files.used_s.len() >= FILES_MAX {
            return Watched::No;
        }
        match queue.watch(path) {
            Ok(watch) => {
                files.used_s.insert(path.into(), now_s);
                files.by_watch.entry(watch).or_default().push(path.into());
                Watched::FromNowOn
            }
            Err(error) => {
                drop(files);
                self.tell("inotify_add_watch()", &error);
                Watched::No
            }
        }
    }

    /// How many files are watched.
    pub(super) fn count(&self) -> usize {
        self.files().used_s.len()
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
        let mut files = self.files();
        let Some(paths) = files.by_watch.remove(&watch) else {
            return;
        };
        for path in &paths {
            files.used_s.remove(path);
        }
        // The kernel may have taken it away.
        let _ = queue.unwatch(watch);
        drop(files);
        for path in &paths {
            self.copies.withdraw_file(path);
        }
    }

    fn all_changed(&self, queue: &ChangeQueue) {
        self.files().forget_unused(queue, u64::MAX);
        self.copies.withdraw_files();
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says once why files are not watched.
    fn tell(&self, call: &str, error: &io::Error) {
        if !self.is_told.swap(true, Relaxed) {
            let message = format_args!(
                "the express lane cannot watch files, {call} failed {}; a changed file is sent \
                 for up to a second",
                Errno(error)
            );
            self.log.event(Level::Warn, message);
        }
    }
}

impl Files {
    fn forget_unused(&mut self, queue: &ChangeQueue, now_s: u64) {
        let is_used = |used_s: u64| now_s.saturating_sub(used_s) < UNUSED_S;
        self.used_s.retain(|_, used_s| is_used(*used_s));
        let known = &self.used_s;
        self.by_watch.retain(|watch, paths| {
            paths.retain(|path| known.contains_key(path));
            if paths.is_empty() {
                // The kernel may have taken it away.
                let _ = queue.unwatch(*watch);
            }
            !paths.is_empty()
        });
    }
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
    use super::*;

    #[test]
    fn files_that_are_not_published_make_room() {
        let queue = ChangeQueue::new().unwrap();
        let folder = std::env::temp_dir();
        let path = folder.to_string_lossy().into_owned().into_bytes();
        let watch = queue.watch(&path).unwrap();
        let mut files = Files::default();
        for (name, used_s) in [(&b"/old"[..], 100), (b"/new", 150)] {
            files.used_s.insert(name.into(), used_s);
            files.by_watch.entry(watch).or_default().push(name.into());
        }
        for (now_s, left) in [(159, 2), (160, 1), (209, 1), (210, 0)] {
            files.forget_unused(&queue, now_s);
            assert_eq!(files.used_s.len(), left, "{now_s}");
            assert_eq!(files.by_watch.is_empty(), left == 0, "{now_s}");
        }
        // The watch was taken away.
        assert!(queue.unwatch(watch).is_err());
    }
}
