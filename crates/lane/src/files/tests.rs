//! Tests of the caches with files that change, disappear and are links.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use super::*;

/// A temporary folder for each test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lane-files-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> Vec<u8> {
        self.0.join(name).into_os_string().into_encoded_bytes()
    }

    fn write(&self, name: &str, content: &[u8]) -> Vec<u8> {
        // The file is renamed, so that the inode changes, as it does with editors and deployments.
        let draft = self.0.join("draft");
        fs::write(&draft, content).unwrap();
        fs::rename(draft, self.0.join(name)).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn rules(valid_ms: u64, uses_min: u32, keep_errors: bool) -> CacheRules {
    CacheRules {
        valid_ms,
        uses_min,
        keep_errors,
        symlinks: Symlinks::FOLLOWED,
    }
}

fn read(file: &OpenFile) -> Vec<u8> {
    let mut buffer = vec![0; file.metadata().size_bytes as usize];
    let count = file.read_at(&mut buffer, 0).unwrap();
    buffer.truncate(count);
    buffer
}

#[test]
fn files_and_directories_open_without_a_cache() {
    let folder = Folder::new();
    let path = folder.write("a", b"content");
    let file = open(&path, Symlinks::FOLLOWED).unwrap();
    assert_eq!((read(&file), file.content()), (b"content".to_vec(), None));
    let directory = open(&folder.path(""), Symlinks::FOLLOWED).unwrap();
    assert!(directory.metadata().is_directory() && directory.descriptor().is_none());
    assert!(directory.read_at(&mut [0], 0).is_err());
    assert_eq!(inspect(&path, Symlinks::FOLLOWED).unwrap().size_bytes, 7);

    let cases = [("absent", libc::ENOENT), ("a/below", libc::ENOTDIR)];
    for (name, errno) in cases {
        let path = folder.path(name);
        let opened = open(&path, Symlinks::FOLLOWED).unwrap_err();
        assert_eq!(
            opened,
            FileError {
                operation: Operation::Open,
                errno
            },
            "{name}"
        );
        let asked = inspect(&path, Symlinks::FOLLOWED).unwrap_err();
        assert_eq!(
            asked,
            FileError {
                operation: Operation::Stat,
                errno
            },
            "{name}"
        );
    }
}

#[test]
fn the_trusted_part_ends_at_a_slash() {
    let on = SymlinkRule::On;
    let cases: [(&[u8], &[u8], Symlinks); 7] = [
        (
            b"",
            b"/a/b",
            Symlinks {
                rule: on,
                trusted_bytes: 0,
            },
        ),
        (
            b"/a",
            b"/a/b",
            Symlinks {
                rule: on,
                trusted_bytes: 2,
            },
        ),
        (
            b"/a/",
            b"/a/b",
            Symlinks {
                rule: on,
                trusted_bytes: 2,
            },
        ),
        (
            b"/a",
            b"/ab",
            Symlinks {
                rule: on,
                trusted_bytes: 0,
            },
        ),
        (
            b"/x",
            b"/a/b",
            Symlinks {
                rule: on,
                trusted_bytes: 0,
            },
        ),
        (
            b"/a/b/c",
            b"/a/b",
            Symlinks {
                rule: on,
                trusted_bytes: 0,
            },
        ),
        (b"/a/b", b"/a/b", Symlinks::FOLLOWED),
    ];
    for (from, path, expected) in cases {
        let shown = String::from_utf8_lossy(from);
        assert_eq!(Symlinks::for_path(on, from, path), expected, "from={shown}");
    }
    assert_eq!(
        Symlinks::for_path(SymlinkRule::Off, b"/a", b"/a/b"),
        Symlinks::FOLLOWED
    );
}

#[test]
fn symbolic_links_are_followed_only_by_the_rule() {
    use SymlinkRule::{IfNotOwner, Off, On};
    let folder = Folder::new();
    fs::create_dir(folder.0.join("real")).unwrap();
    folder.write("real/file", b"x");
    symlink("real", folder.0.join("folder_link")).unwrap();
    symlink("file", folder.0.join("real/link")).unwrap();
    symlink("/etc/passwd", folder.0.join("real/foreign")).unwrap();
    let is_root = inspect(&folder.path(""), Symlinks::FOLLOWED)
        .unwrap()
        .user_id
        == 0;
    if is_root {
        std::os::unix::fs::lchown(folder.0.join("real/foreign"), Some(65534), None).unwrap();
    }
    let foreign = Err(libc::ELOOP);
    let cases: [(SymlinkRule, &str, &str, Result<(), i32>); 16] = [
        (Off, "", "real/link", Ok(())),
        (On, "", "real/file", Ok(())),
        (On, "", "real//file", Ok(())),
        (On, "", "real/link", Err(libc::ELOOP)),
        (On, "", "folder_link/file", Err(libc::ENOTDIR)),
        (On, "", "real/absent", Err(libc::ENOENT)),
        (On, "", "absent/file", Err(libc::ENOENT)),
        (On, "", "real/file/", Err(libc::ENOTDIR)),
        (On, "", "real/", Ok(())),
        (On, "folder_link", "folder_link/file", Ok(())),
        (On, "folder_link", "folder_link/link", Err(libc::ELOOP)),
        (On, "real/link", "real/link", Ok(())),
        (IfNotOwner, "", "real/link", Ok(())),
        (IfNotOwner, "", "folder_link/file", Ok(())),
        (IfNotOwner, "", "real/foreign", foreign),
        (IfNotOwner, "", "real/absent", Err(libc::ENOENT)),
    ];
    for (rule, from, name, expected) in cases {
        let from = if from.is_empty() {
            Vec::new()
        } else {
            folder.path(from)
        };
        let path = folder.path(name);
        let symlinks = Symlinks::for_path(rule, &from, &path);
        let result = open(&path, symlinks)
            .map(|_| ())
            .map_err(|error| error.errno);
        assert_eq!(result, expected, "{rule:?} {name}");
        let result = inspect(&path, symlinks)
            .map(|_| ())
            .map_err(|error| error.errno);
        assert_eq!(result, expected, "{rule:?} {name}, asked");
    }
}

#[test]
fn an_entry_is_trusted_until_its_time_is_over() {
    let folder = Folder::new();
    let path = folder.write("a", b"old");
    let mut cache = OpenFileCache::new(8, 100_000);
    let rules = rules(1000, 1, false);
    let first = cache.open(&path, &rules, 5000).unwrap();
    assert_eq!(first.content(), Some(&b"old"[..]));
    folder.write("a", b"newer");
    for (now_ms, expected) in [(5999, &b"old"[..]), (6000, b"newer"), (6999, b"newer")] {
        let file = cache.open(&path, &rules, now_ms).unwrap();
        assert_eq!(
            (file.content(), read(&file)),
            (Some(expected), expected.to_vec()),
            "{now_ms}"
        );
    }
    assert_eq!(read(&first), b"old", "a file in use stays as it was");
    assert_eq!((cache.len(), cache.content_bytes()), (1, 5));

    fs::remove_file(folder.0.join("a")).unwrap();
    assert!(cache.open(&path, &rules, 6999).is_ok());
    assert_eq!(
        cache.open(&path, &rules, 8000).unwrap_err().errno,
        libc::ENOENT
    );
    assert!(cache.is_empty() && cache.content_bytes() == 0);
}

#[test]
fn an_unchanged_file_stays_the_same_open_file() {
    let folder = Folder::new();
    let path = folder.write("a", b"same");
    let mut cache = OpenFileCache::new(8, 100_000);
    let rules = rules(10, 1, false);
    let first = cache.open(&path, &rules, 0).unwrap();
    let second = cache.open(&path, &rules, 50).unwrap();
    assert!(std::ptr::eq(&*first, &*second));
    // The file is rewritten in place: the inode is the same, size and times are not.
    fs::write(folder.0.join("a"), b"changed").unwrap();
    let third = cache.open(&path, &rules, 100).unwrap();
    assert_eq!(
        (third.content(), cache.content_bytes()),
        (Some(&b"changed"[..]), 7)
    );
}

#[test]
fn a_file_is_kept_open_from_its_nth_use_on() {
    let folder = Folder::new();
    let path = folder.write("a", b"x");
    let mut cache = OpenFileCache::new(8, 100_000);
    let rules = rules(1000, 3, false);
    for (now_ms, kept) in [(0, false), (1, false), (2, true), (3, true)] {
        let file = cache.open(&path, &rules, now_ms).unwrap();
        assert_eq!(file.content().is_some(), kept, "{now_ms}");
        let FileHandle::Shared(file) = file else {
            panic!("the cache lends")
        };
        assert_eq!(
            Rc::strong_count(&file),
            if kept { 2 } else { 1 },
            "{now_ms}"
        );
    }
    // While the file is in use, the next user shares it even before it is kept.
    let mut cache = OpenFileCache::new(8, 100_000);
    let (first, second) = (cache.open(&path, &rules, 0), cache.open(&path, &rules, 0));
    assert!(std::ptr::eq(&*first.unwrap(), &*second.unwrap()));
}

#[test]
fn failures_are_remembered_when_asked() {
    let folder = Folder::new();
    let path = folder.path("late");
    for (keep_errors, found_within_time) in [(true, false), (false, true)] {
        let _ = fs::remove_file(folder.0.join("late"));
        let mut cache = OpenFileCache::new(8, 100_000);
        let rules = rules(1000, 1, keep_errors);
        assert_eq!(
            cache.open(&path, &rules, 0).unwrap_err().errno,
            libc::ENOENT
        );
        assert_eq!(cache.len(), usize::from(keep_errors));
        folder.write("late", b"x");
        assert_eq!(cache.open(&path, &rules, 999).is_ok(), found_within_time);
        assert!(cache.open(&path, &rules, 1000).is_ok());
        // A removed file becomes a failure, once.
        fs::remove_file(folder.0.join("late")).unwrap();
        assert!(cache.open(&path, &rules, 3000).is_err());
        assert_eq!(cache.len(), usize::from(keep_errors));
    }
}

#[test]
fn another_rule_for_links_checks_again() {
    let folder = Folder::new();
    folder.write("a", b"x");
    symlink("a", folder.0.join("link")).unwrap();
    let path = folder.path("link");
    let mut cache = OpenFileCache::new(8, 100_000);
    let follow = rules(1000, 1, false);
    let refuse = CacheRules {
        symlinks: Symlinks {
            rule: SymlinkRule::On,
            trusted_bytes: 0,
        },
        ..follow
    };
    assert!(cache.open(&path, &follow, 0).is_ok());
    assert_eq!(
        cache.open(&path, &refuse, 0).unwrap_err().errno,
        libc::ELOOP
    );
    assert!(cache.open(&path, &follow, 0).is_ok());
}

#[test]
fn directories_files_and_failures_turn_into_each_other() {
    let folder = Folder::new();
    let path = folder.path("thing");
    let mut cache = OpenFileCache::new(8, 100_000);
    let rules = rules(1, 2, true);
    let mut now_ms = 0;
    for step in [
        "directory",
        "directory",
        "file",
        "file",
        "nothing",
        "directory",
        "file",
    ] {
        let thing = folder.0.join("thing");
        let _ = fs::remove_file(&thing);
        let _ = fs::remove_dir(&thing);
        match step {
            "directory" => fs::create_dir(&thing).unwrap(),
            "file" => fs::write(&thing, step).unwrap(),
            _ => {}
        }
        now_ms += 1;
        let result = cache.open(&path, &rules, now_ms);
        match (step, result) {
            ("directory", Ok(found)) => assert!(found.metadata().is_directory()),
            ("file", Ok(found)) => assert_eq!(read(&found), b"file"),
            ("nothing", Err(error)) => assert_eq!(error.errno, libc::ENOENT),
            (step, other) => panic!("{step}: {other:?}"),
        }
        assert_eq!(cache.len(), 1);
    }
}

#[test]
fn the_least_recently_used_goes_first() {
    let folder = Folder::new();
    let paths: Vec<_> = (0..4).map(|n| folder.write(&n.to_string(), b"x")).collect();
    let mut cache = OpenFileCache::new(3, 100);
    let rules = rules(1_000_000, 1, false);
    for (path, now_ms) in [(0, 0), (1, 1), (2, 2), (0, 3), (3, 4)] {
        cache.open(&paths[path], &rules, now_ms).unwrap();
    }
    let found: Vec<_> = paths.iter().map(|path| cache.contains(path)).collect();
    assert_eq!(
        found,
        [true, false, true, true],
        "1 was the least recently used"
    );
    // Path number 2 is inactive from 102 on; one use drops two entries at most.
    cache.open(&paths[3], &rules, 103).unwrap();
    let found: Vec<_> = paths.iter().map(|path| cache.contains(path)).collect();
    assert_eq!(found, [true, false, false, true]);
    cache.open(&paths[1], &rules, 1000).unwrap();
    assert_eq!((cache.len(), cache.content_bytes()), (1, 1));
}

#[test]
fn only_small_regular_files_are_held_in_memory() {
    let folder = Folder::new();
    let limit = CONTENT_BYTES_MAX as usize;
    let mut cache = OpenFileCache::new(8, 100_000);
    for (size, held) in [(0, true), (1, true), (limit, true), (limit + 1, false)] {
        let path = folder.write(&format!("size{size}"), &vec![7; size]);
        let file = cache.open(&path, &CacheRules::default(), 0).unwrap();
        assert_eq!(file.content().map(<[u8]>::len), held.then_some(size));
        assert_eq!(read(&file), vec![7; size]);
    }
    let device = cache.open(b"/dev/null", &CacheRules::default(), 0).unwrap();
    assert!(device.content().is_none() && !device.metadata().is_file());
}

#[test]
fn metadata_come_from_the_cache() {
    let folder = Folder::new();
    let mut cache = OpenFileCache::new(8, 60_000);
    let rules = rules(1_000, 1, true);
    let path = folder.write("a", b"content");
    let directory = folder.path("");
    let absent = folder.path("absent");

    assert_eq!(cache.inspect(&path, &rules, 0).unwrap().size_bytes, 7);
    assert!(!cache.contains(&path));
    assert!(cache.inspect(&directory, &rules, 0).unwrap().is_directory());
    assert!(cache.contains(&directory));
    assert!(cache.inspect(&absent, &rules, 0).is_err() && cache.contains(&absent));

    cache.open(&path, &rules, 0).unwrap();
    folder.write("a", b"longer content");
    folder.write("absent", b"here");
    let sizes = |cache: &mut OpenFileCache, now_ms| {
        let size = |metadata: Metadata| metadata.size_bytes;
        let file = cache.inspect(&path, &rules, now_ms).map(size).ok();
        (file, cache.inspect(&absent, &rules, now_ms).map(size).ok())
    };
    assert_eq!(sizes(&mut cache, 999), (Some(7), None));
    assert_eq!(sizes(&mut cache, 1_000), (Some(14), Some(4)));
}

/// The current time plus `later_ms`; after `SETTLED` every file has settled.
fn now(monotonic_ms: u64, later_ms: u64) -> Now {
    Now {
        monotonic_ms,
        unix_ms: crate::sys::process::unix_ms() + later_ms,
        batch: None,
    }
}

/// Long enough for every file of a test to have settled.
const SETTLED: u64 = 60_000;

/// Waits longer than a tick of the clock of file times.
fn wait_for_a_tick() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}

#[test]
fn content_is_kept_from_the_second_use_on_and_read_again_each_second() {
    let folder = Folder::new();
    let path = folder.write("a", b"content");
    let mut cache = ContentCache::new();
    let steps = [
        (0, false),
        (1, true),
        (1000, true),
        (1001, true),
        (3000, true),
    ];
    let mut files = Vec::new();
    for (now_ms, is_kept) in steps {
        let file = cache
            .open(&path, CONTENT_BYTES_MAX, now(now_ms, SETTLED))
            .unwrap();
        assert_eq!(
            (read(&file), file.content().is_some()),
            (b"content".to_vec(), is_kept)
        );
        assert_eq!(file.descriptor().is_none(), is_kept, "{now_ms}");
        files.push(file);
    }
    // The file is read again and unchanged, so it stays the same open file.
    assert!(std::ptr::eq(&*files[1], &*files[4]));
    assert!((7..1000).contains(&cache.total_bytes()));
}

#[test]
fn requests_that_came_together_share_what_one_of_them_has_found() {
    let folder = Folder::new();
    let path = folder.write("a", b"old");
    let mut cache = ContentCache::new();
    let mut found = |batch| {
        let now = Now {
            batch,
            ..now(0, SETTLED)
        };
        read(&cache.open(&path, CONTENT_BYTES_MAX, now).unwrap())
    };
    for batch in [None, None, Some(1), Some(1)] {
        assert_eq!(found(batch), b"old", "{batch:?}");
    }
    folder.write("a", b"newer");
    assert_eq!(found(Some(1)), b"old", "asked for before the change");
    assert_eq!(found(Some(2)), b"newer");
    folder.write("a", b"newest");
    assert_eq!(found(None), b"newest");
}

#[test]
fn content_that_could_change_unseen_is_not_kept() {
    let folder = Folder::new();
    let fresh = folder.write("fresh", b"x");
    let large = folder.write("large", &vec![7; CONTENT_BYTES_MAX as usize + 1]);
    let cases: [(&[u8], u64); 5] = [
        (&fresh, 0),
        (&large, SETTLED),
        (&folder.path(""), SETTLED),
        (b"/dev/null", SETTLED),
        (b"/proc/self/status", SETTLED),
    ];
    for (path, later_ms) in cases {
        let mut cache = ContentCache::new();
        for _ in 0..3 {
            let file = cache
                .open(path, CONTENT_BYTES_MAX, now(0, later_ms))
                .unwrap();
            assert!(
                file.content().is_none(),
                "{}",
                String::from_utf8_lossy(path)
            );
        }
        assert_eq!(cache.total_bytes(), 0);
    }
}

/// A change of a cached file.
type Change = fn(&Folder);

/// The result of the next use.
type Found = Result<&'static [u8], i32>;

const CHANGES: &[(&str, Change, Found)] = &[
    ("nothing", |_| {}, Ok(b"old")),
    (
        "rewritten in place",
        |folder| fs::write(folder.0.join("a"), b"new").unwrap(),
        Ok(b"new"),
    ),
    (
        "replaced",
        |folder| drop(folder.write("a", b"new")),
        Ok(b"new"),
    ),
    (
        "the times set back",
        |folder| {
            let file = fs::File::options()
                .write(true)
                .open(folder.0.join("a"))
                .unwrap();
            let modified = file.metadata().unwrap().modified().unwrap();
            std::io::Write::write_all(&mut &file, b"new").unwrap();
            file.set_modified(modified).unwrap();
        },
        Ok(b"new"),
    ),
    (
        "gone",
        |folder| fs::remove_file(folder.0.join("a")).unwrap(),
        Err(libc::ENOENT),
    ),
    (
        "a link to another",
        |folder| {
            fs::rename(folder.0.join("a"), folder.0.join("b")).unwrap();
            folder.write("c", b"other");
            symlink("c", folder.0.join("a")).unwrap();
        },
        Ok(b"other"),
    ),
    (
        "a link in a loop",
        |folder| {
            fs::remove_file(folder.0.join("a")).unwrap();
            symlink("a", folder.0.join("a")).unwrap();
        },
        Err(libc::ELOOP),
    ),
];

#[test]
fn every_change_is_seen_at_the_next_use() {
    for (name, change, expected) in CHANGES {
        let folder = Folder::new();
        let path = folder.write("a", b"old");
        let mut cache = ContentCache::new();
        for _ in 0..3 {
            assert_eq!(
                read(
                    &cache
                        .open(&path, CONTENT_BYTES_MAX, now(0, SETTLED))
                        .unwrap()
                ),
                b"old"
            );
        }
        wait_for_a_tick();
        change(&folder);
        let found = cache
            .open(&path, CONTENT_BYTES_MAX, now(0, SETTLED))
            .map(|file| read(&file));
        let found = found.map_err(|error| (error.operation, error.errno));
        let expected = expected
            .map(<[u8]>::to_vec)
            .map_err(|errno| (Operation::Open, errno));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn all_content_together_has_a_limit() {
    let folder = Folder::new();
    let mut cache = ContentCache::new();
    let count = 2 * content::TOTAL_BYTES_MAX / CONTENT_BYTES_MAX;
    let content = vec![7; CONTENT_BYTES_MAX as usize];
    for number in 0..count {
        let path = folder.write(&number.to_string(), &content);
        for _ in 0..2 {
            assert_eq!(
                read(
                    &cache
                        .open(&path, CONTENT_BYTES_MAX, now(0, SETTLED))
                        .unwrap()
                ),
                content
            );
        }
    }
    let total_bytes = cache.total_bytes();
    assert!(total_bytes <= content::TOTAL_BYTES_MAX, "{total_bytes}");
    assert!(total_bytes > content::TOTAL_BYTES_MAX / 2, "{total_bytes}");
}
