//! Write locks on files and folders (RFC 4918 section 6), shared by all lanes and kept over a
//! reload. A lock is known by the path of its file, so that two locations of one file share it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a lock costs beyond its path, tokens, owner and client: nodes of the tree, its places among
/// the tokens and clients, and lengths, rounded up.
const LOCK_BYTES: usize = 192;

/// The part of a zone that one client may fill, as its divisor: others keep the rest. Its first
/// lock may be larger.
const CLIENT_SHARE: usize = 4;

/// Locks of a zone, by path.
pub(super) struct LockZone {
    locks: Mutex<Locks>,
    bytes_max: usize,
    timeout_ms: u64,
}

#[derive(Default)]
struct Locks {
    by_path: BTreeMap<Arc<[u8]>, Lock>,
    /// The path of each lock by its token, so that a token that a client has invented costs one
    /// look, however many locks there are.
    by_token: HashMap<Box<[u8]>, Arc<[u8]>>,
    bytes: usize,
    /// The bytes of each client's locks.
    by_client: HashMap<Vec<u8>, usize>,
}

/// A lock on a file or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    /// The name, a URI.
    pub(super) token: String,
    /// The path in URIs that it was asked for, unescaped.
    pub(super) root: Vec<u8>,
    /// Whether it holds for all that is below, too.
    pub(super) is_deep: bool,
    /// The holder, as XML.
    pub(super) owner: Vec<u8>,
    /// The client that asked for it.
    pub(super) client: Vec<u8>,
    /// When it ends, in monotonic milliseconds.
    pub(super) until_ms: u64,
}

/// Why there is no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoLock {
    /// Another one is in the way.
    Taken,
    /// The zone is full.
    Full,
    /// The client's share of the zone is full.
    Share,
}

/// What a request does to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A file gets another content.
    Content,
    /// A file or folder appears in its folder.
    Added,
    /// A file or folder goes, with all that is below it.
    Removed,
}

impl LockZone {
    pub(super) fn new(size_bytes: u64, timeout_ms: u64) -> Self {
        Self {
            locks: Mutex::default(),
            bytes_max: usize::try_from(size_bytes).unwrap_or(usize::MAX),
            timeout_ms,
        }
    }

    /// How long a lock holds, in milliseconds.
    pub(super) fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    /// Locks a path.
    pub(super) fn lock(
        &self,
        path: impl AsRef<Path>,
        lock: Lock,
        now_ms: u64,
    ) -> Result<(), NoLock> {
        let path = &key(path.as_ref());
        let mut locks = self.locks();
        let below = || lock.is_deep && locks.below(path, now_ms).next().is_some();
        if locks.above(path, now_ms).next().is_some() || below() {
            return Err(NoLock::Taken);
        }
        let bytes = cost(path, &lock);
        let share = self.bytes_max / CLIENT_SHARE;
        let is_over = |locks: &Locks| {
            let held = locks.by_client.get(&lock.client);
            held.is_some_and(|held| held + bytes > share)
        };
        if locks.bytes + bytes > self.bytes_max || is_over(&locks) {
            locks.forget_ended(now_ms);
        }
        if is_over(&locks) {
            return Err(NoLock::Share);
        }
        if locks.bytes + bytes > self.bytes_max {
            return Err(NoLock::Full);
        }
        locks.remove(path);
        locks.bytes += bytes;
        *locks.by_client.entry(lock.client.clone()).or_default() += bytes;
        let path: Arc<[u8]> = path.as_slice().into();
        let token = lock.token.as_bytes().into();
        locks.by_token.insert(token, Arc::clone(&path));
        locks.by_path.insert(path, lock);
        Ok(())
    }

    /// Has the lock that holds for a path and has one of these tokens hold on.
    pub(super) fn refresh(
        &self,
        path: impl AsRef<Path>,
        tokens: &[Vec<u8>],
        now_ms: u64,
    ) -> Option<Lock> {
        let path = &key(path.as_ref());
        let mut locks = self.locks();
        let found = locks.above(path, now_ms);
        let found = found.map(|(path, lock)| (path.to_vec(), lock));
        let has_token = |(_, lock): &(Vec<u8>, &Lock)| lock.is_named(tokens);
        let (path, _) = { found }.find(has_token)?;
        let lock = locks.by_path.get_mut(path.as_slice())?;
        lock.until_ms = now_ms.saturating_add(self.timeout_ms);
        Some(lock.clone())
    }

    /// Ends the lock that holds for a path and has this token.
    pub(super) fn unlock(&self, path: impl AsRef<Path>, token: &[u8], now_ms: u64) -> bool {
        let path = &key(path.as_ref());
        let mut locks = self.locks();
        let path = {
            let mut found = locks.above(path, now_ms);
            let found = found.find(|(_, lock)| lock.token.as_bytes() == token);
            found.map(|(path, _)| path.to_vec())
        };
        match path {
            Some(path) => locks.remove(&path),
            None => false,
        }
    }

    /// The locks that hold for a path.
    pub(super) fn of(&self, path: impl AsRef<Path>, now_ms: u64) -> Vec<Lock> {
        let path = &key(path.as_ref());
        let locks = self.locks();
        let of = locks.above(path, now_ms).map(|(_, lock)| lock.clone());
        of.collect()
    }

    /// Whether a request that shows these tokens may change a path so.
    pub(super) fn allows(
        &self,
        path: impl AsRef<Path>,
        change: Change,
        tokens: &[Vec<u8>],
        now_ms: u64,
    ) -> bool {
        let path = &key(path.as_ref());
        let locks = self.locks();
        let is_shown = |(_, lock): (&[u8], &Lock)| lock.is_named(tokens);
        if !locks.above(path, now_ms).all(is_shown) {
            return false;
        }
        let in_folder = || match (change, parent(path)) {
            (Change::Added | Change::Removed, Some(folder)) => locks.at(folder, now_ms),
            _ => None,
        };
        let below_is_shown = || match change {
            Change::Removed => locks.below(path, now_ms).all(is_shown),
            Change::Content | Change::Added => true,
        };
        in_folder().is_none_or(|lock| lock.is_named(tokens)) && below_is_shown()
    }

    /// Whether a lock of this name is held: on a path, on a folder that it is in, or on what is
    /// below it.
    pub(super) fn is_held(&self, token: &[u8], path: impl AsRef<Path>, now_ms: u64) -> bool {
        let path = &key(path.as_ref());
        let locks = self.locks();
        let Some(locked) = locks.by_token.get(token) else {
            return false;
        };
        locks.at(locked, now_ms).is_some() && (is_in(path, locked) || is_in(locked, path))
    }

    /// Drops the locks of what has gone.
    pub(super) fn removed(&self, path: impl AsRef<Path>) {
        let path = &key(path.as_ref());
        let mut locks = self.locks();
        let below: Vec<Vec<u8>> = locks
            .below(path, 0)
            .map(|(path, _)| path.to_vec())
            .collect();
        for path in below {
            locks.remove(&path);
        }
        locks.remove(path);
    }

    fn locks(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lock {
    fn is_named(&self, tokens: &[Vec<u8>]) -> bool {
        tokens.iter().any(|token| token == self.token.as_bytes())
    }
}

impl Locks {
    /// The lock of this very path.
    fn at(&self, path: &[u8], now_ms: u64) -> Option<&Lock> {
        self.by_path.get(path).filter(|lock| lock.until_ms > now_ms)
    }

    /// The locks that hold for a path: its own, and deep ones of the folders that it is in.
    fn above<'a>(
        &'a self,
        path: &'a [u8],
        now_ms: u64,
    ) -> impl Iterator<Item = (&'a [u8], &'a Lock)> {
        let folders = std::iter::successors(Some(path), |path| parent(path));
        folders.filter_map(move |folder| {
            let lock = self.at(folder, now_ms)?;
            (lock.is_deep || folder.len() == path.len()).then_some((folder, lock))
        })
    }

    /// The locks of what is below a path.
    fn below<'a>(
        &'a self,
        path: &[u8],
        now_ms: u64,
    ) -> impl Iterator<Item = (&'a [u8], &'a Lock)> + use<'a> {
        let prefix = [path, b"/"].concat();
        let from = Bound::Excluded(prefix.as_slice());
        let after = self.by_path.range::<[u8], _>((from, Bound::Unbounded));
        let below = after.take_while(move |(path, _)| path.starts_with(&prefix));
        let held = below.filter(move |(_, lock)| lock.until_ms > now_ms);
        held.map(|(path, lock)| (&**path, lock))
    }

    fn remove(&mut self, path: &[u8]) -> bool {
        let Some((path, lock)) = self.by_path.remove_entry(path) else {
            return false;
        };
        let bytes = cost(&path, &lock);
        self.bytes -= bytes;
        give_back(&mut self.by_client, &lock.client, bytes);
        self.by_token.remove(lock.token.as_bytes());
        true
    }

    fn forget_ended(&mut self, now_ms: u64) {
        let (bytes, by_token) = (&mut self.bytes, &mut self.by_token);
        let by_client = &mut self.by_client;
        self.by_path.retain(|path, lock| {
            let holds = lock.until_ms > now_ms;
            if !holds {
                let cost = cost(path, lock);
                *bytes -= cost;
                give_back(by_client, &lock.client, cost);
                by_token.remove(lock.token.as_bytes());
            }
            holds
        });
    }
}

fn give_back(by_client: &mut HashMap<Vec<u8>, usize>, client: &[u8], bytes: usize) {
    if let Some(held) = by_client.get_mut(client) {
        *held = held.saturating_sub(bytes);
        if *held == 0 {
            by_client.remove(client);
        }
    }
}

fn cost(path: &[u8], lock: &Lock) -> usize {
    path.len()
        + lock.root.len()
        + 2 * lock.token.len()
        + lock.owner.len()
        + lock.client.len()
        + LOCK_BYTES
}

/// The name of a file among the locks. `/a//b` and `/a/./b` are `/a/b` for the system, so they have
/// to be one for locks, too.
fn key(path: &Path) -> Vec<u8> {
    let plain: PathBuf = path.components().collect();
    plain.into_os_string().into_vec()
}

/// Whether a path is a folder or below it.
fn is_in(path: &[u8], folder: &[u8]) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The folder that a path is in.
fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = memchr::memrchr(b'/', path)?;
    (slash > 0).then(|| &path[..slash])
}
