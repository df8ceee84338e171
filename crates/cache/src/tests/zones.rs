//! Tests of zones: lookup, eviction, purges, loading, and broken files.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use turnpike_wire::message::{Head, Version};

use crate::disk::{self, Closing, DiskSettings, Pace};
use crate::fetch::{FetchOutcome, TurnAnswer};
use crate::freshness::{Staleness, Timing};
use crate::manager::Manager;
use crate::purge::{PurgeKind, Target};
use crate::stored::{StoredBody, Variant};
use crate::vary::Selection;
use crate::why::WhyNotStored;
use crate::zone::{NewResponse, Zone};

pub(super) const NOW_MS: u64 = 1_800_000_000_000;
pub(super) const MEGABYTE: u64 = 1024 * 1024;

fn no_fields(_: &[u8], _: &mut Vec<u8>) -> bool {
    false
}

fn timing() -> Timing {
    Timing {
        received_ms: NOW_MS,
        initial_age_ms: 0,
        fresh_until_ms: NOW_MS + 60_000,
        while_revalidating_ms: 0,
        if_error_ms: 0,
        staleness: Staleness::Allowed,
    }
}

pub(super) fn entry(zone: &Zone, key: &str, fields: &[(&str, &str)]) -> NewResponse {
    NewResponse {
        key: key.as_bytes().into(),
        host: b"example.com"[..].into(),
        head: Head::of(200, fields),
        selection: Selection::default(),
        for_head: false,
        status_only: false,
        timing: timing(),
        purge_sequence: zone.purge_sequence(),
    }
}

pub(super) fn find(zone: &Zone, key: &str) -> Option<Arc<Variant>> {
    zone.find(key.as_bytes(), false, &no_fields, NOW_MS)
}

pub(super) fn store(zone: &Zone, key: &str, fields: &[(&str, &str)], body: &[u8]) {
    let entry = entry(zone, key, fields);
    if zone.as_disk().is_some() {
        let mut writer = zone.writer(&entry).unwrap();
        writer.write(body).unwrap();
        zone.store_file(entry, writer).unwrap();
    } else {
        zone.store_memory(entry, body.into()).unwrap();
    }
}

/// A folder that is removed with the test.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Folder {
        static NUMBERS: AtomicU32 = AtomicU32::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnpike-cache-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn disk_zone(folder: &Folder) -> Arc<Zone> {
    disk_zone_with(folder, None)
}

fn disk_zone_with(folder: &Folder, temporary: Option<&Folder>) -> Arc<Zone> {
    let settings = disk_settings(folder, temporary);
    Arc::new(Zone::disk("z", MEGABYTE, settings))
}

pub(super) fn disk_settings(folder: &Folder, temporary: Option<&Folder>) -> DiskSettings {
    let pace = Pace {
        files: 100,
        threshold_ms: 200,
        sleep_ms: 0,
    };
    DiskSettings {
        folder: folder.0.clone(),
        levels: vec![1, 2],
        temporary_folder: temporary.map(|temporary| temporary.0.clone()),
        bytes_max: u64::MAX,
        free_bytes_min: 0,
        inactive_s: 600,
        manager: pace,
        loader: pace,
        closing: Closing {
            bytes_min: u64::MAX,
            close: drop,
        },
    }
}

/// Starts a thread that manages the zone's folder while the zone exists.
pub(super) fn manage(zone: &Arc<Zone>) {
    let mut manager = Manager::of(zone).unwrap();
    Manager::announce(zone);
    let zone = Arc::downgrade(zone);
    thread::spawn(move || {
        while let Some(pause) = zone.upgrade().map(|zone| manager.step(&zone)) {
            thread::sleep(pause);
        }
    });
}

pub(super) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("timed out waiting for {what}");
}

#[test]
fn variants_of_a_key_are_separate_and_purged_together() {
    let zone = Zone::memory("z", MEGABYTE);
    for language in ["de", "en"] {
        let field = |_: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(language.as_bytes());
            true
        };
        let mut entry = entry(&zone, "/a", &[("Vary", "Accept-Language")]);
        entry.selection = Selection::of(&entry.head, &field).unwrap();
        zone.store_memory(entry, language.as_bytes().into())
            .unwrap();
        let found = zone.find(b"/a", false, &field, NOW_MS).unwrap();
        assert!(matches!(&found.body, StoredBody::Memory(body) if **body == *language.as_bytes()));
    }
    assert!(find(&zone, "/a").is_none());
    let purged = zone.purge(&Target::Key(b"/a".to_vec()), PurgeKind::Hard, NOW_MS);
    assert_eq!((purged.keys, purged.responses), (1, 2));
    assert_eq!(zone.contents().keys, 0);
}

/// RFC 9111 section 4.
#[test]
fn s4_the_most_recent_matching_response_is_used() {
    let zone = Zone::memory("z", MEGABYTE);
    let named = |value: &'static str| {
        move |name: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(value.as_bytes());
            name == b"x-a"
        }
    };
    let store_made = |fields: &[(&str, &str)], made_ms: u64, body: &[u8]| {
        let mut entry = entry(&zone, "/a", fields);
        entry.selection = Selection::of(&entry.head, &named("1")).unwrap();
        entry.timing.initial_age_ms = NOW_MS - made_ms;
        zone.store_memory(entry, body.into()).unwrap();
    };
    let is = |value: &'static str, expected: &[u8]| {
        let found = zone.find(b"/a", false, &named(value), NOW_MS).unwrap();
        matches!(&found.body, StoredBody::Memory(body) if **body == *expected)
    };
    store_made(&[("Vary", "X-A")], 5000, b"newer");
    store_made(&[], 4000, b"older, and stored later");
    assert!(is("1", b"newer"));
    assert!(is("2", b"older, and stored later"));
    store_made(&[], 6000, b"newest");
    assert!(is("1", b"newest"));
}

#[test]
fn purges_remove_exactly_their_targets() {
    let cases: &[(Target, &[&str])] = &[
        (Target::Key(b"/a/1".to_vec()), &["/a/1"]),
        (Target::Prefix(b"/a/".to_vec()), &["/a/1", "/a/2"]),
        (Target::Tag(b"red".to_vec()), &["/a/1", "/b/1"]),
        (Target::Tag(b"blue".to_vec()), &["/a/2"]),
        (Target::Tag(b"re".to_vec()), &[]),
        (
            Target::Host(b"EXAMPLE.com".to_vec()),
            &["/a/1", "/a/2", "/b/1"],
        ),
        (Target::Host(b"other".to_vec()), &[]),
        (Target::All, &["/a/1", "/a/2", "/b/1"]),
    ];
    for manner in [PurgeKind::Hard, PurgeKind::Soft] {
        for (target, gone) in cases {
            let zone = Zone::memory("z", MEGABYTE);
            store(&zone, "/a/1", &[("Surrogate-Key", "red green")], b"1");
            store(&zone, "/a/2", &[("Cache-Tag", "blue, green")], b"2");
            store(&zone, "/b/1", &[("Surrogate-Key", "red")], b"3");
            let purged = zone.purge(target, manner, NOW_MS);
            assert_eq!(purged.keys, gone.len() as u64, "{target:?}");
            for key in ["/a/1", "/a/2", "/b/1"] {
                let found = find(&zone, key);
                let fresh = found
                    .as_ref()
                    .is_some_and(|found| found.timing().is_fresh(NOW_MS));
                assert_eq!(fresh, !gone.contains(&key), "{target:?} {key}");
                assert!(
                    found.is_some() || manner == PurgeKind::Hard,
                    "soft ones stay"
                );
            }
        }
    }
}

#[test]
fn a_response_requested_before_a_purge_is_not_stored_after_it() {
    let zone = Zone::memory("z", MEGABYTE);
    let before = entry(&zone, "/a", &[]);
    let other = entry(&zone, "/b", &[]);
    zone.purge(&Target::Key(b"/a".to_vec()), PurgeKind::Soft, NOW_MS);
    let refused = zone.store_memory(before, b"old"[..].into()).err();
    assert_eq!(refused, Some(WhyNotStored::Purged));
    assert!(zone.store_memory(other, b"b"[..].into()).is_ok());
    store(&zone, "/a", &[], b"new");
    assert!(find(&zone, "/a").is_some());
}

#[test]
fn ten_thousand_keys_are_purged_by_one_tag_while_they_are_stored_again() {
    const KEYS: u32 = 10_000;
    let zone = Arc::new(Zone::memory("z", 256 * MEGABYTE));
    for number in 0..KEYS {
        store(
            &zone,
            &format!("/{number}"),
            &[("Cache-Tag", "all")],
            b"old",
        );
    }
    let stop = Arc::new(AtomicU32::new(0));
    let writers: Vec<_> = (0..4)
        .map(|thread| {
            let (zone, stop) = (zone.clone(), stop.clone());
            thread::spawn(move || {
                // Fetches that began before the purge and end at any time around it.
                let mut number = thread;
                let mut begun = Vec::new();
                while stop.load(Ordering::Relaxed) == 0 {
                    let key = format!("/{}", number % KEYS);
                    begun.push(entry(&zone, &key, &[("Cache-Tag", "all")]));
                    if begun.len() > 50 {
                        let entry = begun.remove(0);
                        let _ = zone.store_memory(entry, b"old"[..].into());
                    }
                    number += 4;
                }
                begun
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(20));
    stop.store(1, Ordering::Relaxed);
    let begun: Vec<NewResponse> = writers
        .into_iter()
        .flat_map(|one| one.join().unwrap())
        .collect();
    let purged = zone.purge(&Target::Tag(b"all".to_vec()), PurgeKind::Hard, NOW_MS);
    assert_eq!(purged.keys, u64::from(KEYS));
    for entry in begun {
        let refused = zone.store_memory(entry, b"old"[..].into()).err();
        assert_eq!(refused, Some(WhyNotStored::Purged));
    }
    assert_eq!(zone.contents().keys, 0);
}

#[test]
fn a_full_zone_evicts_and_a_scan_does_not_evict_used_keys() {
    let zone = Zone::memory("z", MEGABYTE);
    let body = [b'x'; 1000];
    for number in 0..100 {
        store(&zone, &format!("/hot/{number}"), &[], &body);
    }
    for round in 0..50 {
        for number in 0..100 {
            find(&zone, &format!("/hot/{number}"));
        }
        for number in 0..100 {
            store(&zone, &format!("/scan/{round}/{number}"), &[], &body);
        }
    }
    let kept = (0..100).filter(|number| find(&zone, &format!("/hot/{number}")).is_some());
    assert!(kept.count() >= 95, "a scan has evicted hot keys");
    let contents = zone.contents();
    assert!(contents.evicted > 0 && contents.filled_ppm <= 1_000_000);
    zone.check_invariants();
    assert!(contents.bytes >= body.len() as u64 && contents.bytes <= zone.bytes_max());
    let refused = zone
        .store_memory(entry(&zone, "/big", &[]), vec![0; 2 << 20].into())
        .err();
    assert_eq!(refused, Some(WhyNotStored::TooLarge));
    zone.purge(&Target::All, PurgeKind::Hard, 0);
    assert_eq!(zone.contents().bytes, 0);
}

#[test]
fn a_key_is_fetched_once_at_a_time() {
    let zone = Zone::memory("z", MEGABYTE);
    let fetches = zone.fetches();
    let TurnAnswer::Ours(turn) = fetches.ask(b"/a", 0, 5000) else {
        panic!("no other request has the turn");
    };
    let TurnAnswer::Theirs(fetch) = fetches.ask(b"/a", 4999, 5000) else {
        panic!("another request has the turn");
    };
    assert!(matches!(fetches.ask(b"/b", 0, 5000), TurnAnswer::Ours(_)));
    turn.end_fetch(FetchOutcome::Stored);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    assert_eq!(runtime.block_on(fetch.ended()), FetchOutcome::Stored);
    let TurnAnswer::Ours(first) = fetches.ask(b"/a", 0, 5000) else {
        panic!("it has landed");
    };
    let TurnAnswer::Ours(second) = fetches.ask(b"/a", 5000, 5000) else {
        panic!("it is too old");
    };
    drop(first);
    assert!(
        fetches.is_under_way(b"/a"),
        "the second is still in progress"
    );
    drop(second);
    assert!(!fetches.is_under_way(b"/a"));
}

/// Opens a stored file and checks it, as for serving it.
fn is_sound(variant: &Variant) -> bool {
    let StoredBody::File(file) = &variant.body else {
        panic!("it is in memory");
    };
    fs::File::open(file.path()).is_ok_and(|opened| file.check(&opened))
}

#[test]
fn files_are_found_again_after_a_restart_with_their_times() {
    let folder = Folder::new();
    let zone = disk_zone(&folder);
    store(
        &zone,
        "/a",
        &[("X-A", "1"), ("Cache-Tag", "t")],
        b"content of a",
    );
    store(&zone, "/b", &[], b"");
    store(&zone, "/soft", &[], b"s");
    zone.purge(&Target::Key(b"/soft".to_vec()), PurgeKind::Soft, NOW_MS - 1);
    drop(zone);
    let zone = disk_zone(&folder);
    assert!(find(&zone, "/a").is_none(), "nothing is known yet");
    zone.purge(&Target::Key(b"/b".to_vec()), PurgeKind::Hard, NOW_MS);
    manage(&zone);
    wait_for("the loader", || zone.contents().keys == 2);
    let found = find(&zone, "/a").unwrap();
    assert_eq!(found.head.value(b"x-a"), Some(&b"1"[..]));
    assert_eq!((found.length(), found.timing()), (12, timing()));
    assert!(is_sound(&found));
    let soft = find(&zone, "/soft").unwrap();
    assert!(
        !soft.timing().is_fresh(NOW_MS),
        "a soft purge outlives a restart"
    );
    assert!(find(&zone, "/b").is_none(), "purged before it was loaded");
    assert_eq!(
        zone.purge(&Target::Tag(b"t".to_vec()), PurgeKind::Hard, NOW_MS)
            .keys,
        1
    );
}

#[test]
fn the_manager_pauses_as_configured() {
    let folder = Folder::new();
    let mut settings = disk_settings(&folder, None);
    settings.loader.files = 1;
    settings.loader.threshold_ms = u64::MAX;
    settings.loader.sleep_ms = 7;
    let zone = Arc::new(Zone::disk("z", MEGABYTE, settings.clone()));
    for key in ["/a", "/b", "/c"] {
        store(&zone, key, &[], b"x");
    }
    drop(zone);
    let zone = Arc::new(Zone::disk("z", MEGABYTE, settings));
    let mut manager = Manager::of(&zone).unwrap();
    for keys in 1..=3 {
        assert_eq!(manager.step(&zone), Duration::from_millis(7));
        assert_eq!(zone.contents().keys, keys);
    }
    assert!(manager.step(&zone) > Duration::from_millis(7), "it rests");
    assert!(zone.as_disk().unwrap().loaded.load(Ordering::Acquire));
}

#[test]
fn files_that_were_cut_or_altered_are_not_sound() {
    type Damage = fn(&fs::File);
    let damages: &[(&str, Damage)] = &[
        ("cut", |file| file.set_len(130).unwrap()),
        ("emptied", |file| file.set_len(0).unwrap()),
        ("grown", |file| file.set_len(4096).unwrap()),
        ("header", |file| write_at(file, 20)),
        ("times", |file| write_at(file, 60)),
        ("content", |file| write_at(file, disk::HEADER_BYTES + 3)),
        ("description", |file| {
            write_at(file, disk::HEADER_BYTES + 25);
        }),
    ];
    for (name, damage) in damages {
        let folder = Folder::new();
        let zone = disk_zone(&folder);
        store(&zone, "/a", &[("X-A", "1")], b"content of a");
        let found = find(&zone, "/a").unwrap();
        assert!(is_sound(&found));
        let StoredBody::File(file) = &found.body else {
            panic!("it is in memory");
        };
        let opened = fs::OpenOptions::new()
            .write(true)
            .open(file.path())
            .unwrap();
        damage(&opened);
        let identity = disk::Identity::of_path(file.path()).unwrap();
        assert!(!file.is_sound(identity), "{name}: seen without reading");
        assert!(!is_sound(&found), "{name}");
        zone.discard(b"/a", &found);
        assert!(
            find(&zone, "/a").is_none() && !file.path().exists(),
            "{name}"
        );
    }
}

fn write_at(file: &fs::File, offset: u64) {
    std::os::unix::fs::FileExt::write_all_at(file, b"\xff\xfe", offset).unwrap();
}

#[test]
fn the_loader_leaves_files_of_other_programs_alone() {
    let folder = Folder::new();
    let zone = disk_zone(&folder);
    store(&zone, "/a", &[], b"a");
    let Some(StoredBody::File(file)) = find(&zone, "/a").map(|found| found.body.clone()) else {
        panic!("it is stored in a file");
    };
    let own = file.path().to_path_buf();
    let named = |digit: &str| own.with_file_name(digit.repeat(32));
    fs::write(named("a"), b"\x05\0\0\0 of another server").unwrap();
    fs::write(named("b"), b"TPCACHE1 but broken").unwrap();
    fs::write(named("c"), b"").unwrap();
    drop(zone);
    let zone = disk_zone(&folder);
    manage(&zone);
    wait_for("the loader", || {
        !named("b").exists() && !named("c").exists()
    });
    assert!(named("a").exists() && own.exists());
}

#[test]
fn the_loader_removes_complete_files_of_another_version() {
    for (version, stays) in [(b'1', false), (b'2', false), (b'3', true)] {
        let folder = Folder::new();
        let zone = disk_zone(&folder);
        store(&zone, "/a", &[("X-A", "1")], b"a");
        let Some(StoredBody::File(file)) = find(&zone, "/a").map(|found| found.body.clone()) else {
            panic!("it is stored in a file");
        };
        let path = file.path().to_path_buf();
        let opened = fs::OpenOptions::new().write(true).open(&path).unwrap();
        // Everything else, including the checksum, is unchanged.
        std::os::unix::fs::FileExt::write_all_at(&opened, &[version], 7).unwrap();
        drop(zone);
        let zone = disk_zone(&folder);
        zone.adopt(&path);
        assert_eq!(find(&zone, "/a").is_some(), stays, "{version}");
        assert_eq!(path.exists(), stays, "{version}");
    }
}

#[test]
fn a_head_comes_back_from_a_file_as_it_was_stored() {
    let folder = Folder::new();
    let zone = disk_zone(&folder);
    let mut new = entry(&zone, "/a", &[]);
    new.head = Head::response(404, b"Not Here");
    new.head.version = Version::Http10;
    new.head.fields.add(b"X-a", b"\"1\"");
    new.head.fields.add(b"x-A", b"");
    new.status_only = true;
    let expected = new.head.clone();
    let writer = zone.writer(&new).unwrap();
    zone.store_file(new, writer).unwrap();
    let Some(StoredBody::File(file)) = find(&zone, "/a").map(|found| found.body.clone()) else {
        panic!("it is stored in a file");
    };
    drop(zone);
    let zone = disk_zone(&folder);
    zone.adopt(file.path());
    let found = find(&zone, "/a").unwrap();
    assert_eq!(*found.head, expected);
    assert!(found.status_only);
}

#[test]
fn the_loader_removes_unfinished_files_of_ended_processes() {
    // Above any number that Linux gives (PID_MAX_LIMIT).
    let gone = 1 << 23;
    let own = std::process::id();
    let files = [
        (format!("{gone}.0000abcd.1.part"), false),
        // In a container a process may have the number of an earlier one.
        (format!("{own}.not this one.1.part"), false),
        ("1.0000abcd.1.part".to_owned(), true),
        (format!("{}.1.part", "a".repeat(32)), true),
        (format!("{gone}.txt"), true),
    ];
    let (folder, temporary) = (Folder::new(), Folder::new());
    for (name, _) in &files {
        fs::write(folder.0.join(name), b"half").unwrap();
        fs::write(temporary.0.join(name), b"half").unwrap();
    }
    let zone = disk_zone_with(&folder, Some(&temporary));
    let writer = zone.writer(&entry(&zone, "/being-written", &[])).unwrap();
    manage(&zone);
    let disk = zone.as_disk().unwrap();
    wait_for("the loader", || disk.loaded.load(Ordering::Acquire));
    for (name, stays) in &files {
        assert_eq!(folder.0.join(name).exists(), *stays, "{name}");
        assert_eq!(temporary.0.join(name).exists(), *stays, "{name}");
    }
    let count = |folder: &Folder| fs::read_dir(&folder.0).unwrap().count();
    assert_eq!((count(&folder), count(&temporary)), (3, 4));
    drop(writer);
    assert_eq!(count(&temporary), 3);
}

#[test]
fn a_304_replaces_the_head_in_the_file() {
    let folder = Folder::new();
    let zone = disk_zone(&folder);
    store(&zone, "/a", &[("X-A", "1")], b"content of a");
    let old = find(&zone, "/a").unwrap();
    let mut fresh = entry(&zone, "/a", &[("X-A", "a much longer value than it was")]);
    fresh.timing.fresh_until_ms += 1000;
    zone.freshen(&old, fresh).unwrap();
    assert!(is_sound(&find(&zone, "/a").unwrap()));
    drop(zone);
    let zone = disk_zone(&folder);
    manage(&zone);
    wait_for("the loader", || zone.contents().keys == 1);
    let found = find(&zone, "/a").unwrap();
    assert_eq!(found.timing().fresh_until_ms, NOW_MS + 61_000);
    assert_eq!(
        found.head.value(b"x-a"),
        Some(&b"a much longer value than it was"[..])
    );
    assert!(is_sound(&found));
}

#[test]
fn files_have_the_names_and_folders_that_nginx_gives_them() {
    let folder = Folder::new();
    let zone = disk_zone(&folder);
    store(&zone, "http://127.0.0.1:8081/t.html", &[], b"x");
    let name = "f3f218007977e125dbf91caf14778c5d";
    let found = find(&zone, "http://127.0.0.1:8081/t.html").unwrap();
    let StoredBody::File(file) = &found.body else {
        panic!("it is in memory");
    };
    let path = format!("{}/{}/{name}", &name[31..], &name[29..31]);
    assert_eq!(
        file.path().strip_prefix(&folder.0).unwrap().to_str(),
        Some(path.as_str())
    );
}

/// The number of files in the folders of a zone.
pub(super) fn files(folder: &Folder) -> usize {
    let entries = fs::read_dir(&folder.0).unwrap().flatten();
    let deeper = |entry: fs::DirEntry| fs::read_dir(entry.path()).unwrap().flatten();
    entries.flat_map(deeper).flat_map(deeper).count()
}

/// The path of the only variant of a key.
pub(super) fn path_of(zone: &Zone, key: &str) -> PathBuf {
    match &find(zone, key).unwrap().body {
        StoredBody::File(file) => file.path().to_path_buf(),
        StoredBody::Memory(_) => panic!("it is in memory"),
    }
}

#[test]
fn no_removal_hits_a_file_that_another_process_has_placed() {
    type Remove = fn(&Zone);
    let removals: &[(&str, Remove)] = &[
        ("unused", |zone| assert!(zone.forget(b"/a", u64::MAX))),
        ("broken", |zone| {
            zone.discard(b"/a", &find(zone, "/a").unwrap());
        }),
        ("purged", |zone| {
            zone.purge(&Target::Key(b"/a".to_vec()), PurgeKind::Hard, NOW_MS);
        }),
        ("made stale", |zone| {
            zone.purge(&Target::Key(b"/a".to_vec()), PurgeKind::Soft, NOW_MS);
        }),
    ];
    for (name, remove) in removals {
        let folder = Folder::new();
        let (old, new) = (disk_zone(&folder), disk_zone(&folder));
        store(&old, "/a", &[], b"old");
        store(&new, "/a", &[], b"new");
        let path = path_of(&new, "/a");
        remove(&old);
        assert!(path.exists(), "{name}");
        let found = find(&new, "/a").unwrap();
        assert!(
            is_sound(&found) && found.timing().is_fresh(NOW_MS),
            "{name}"
        );
        remove(&new);
        assert_eq!(path.exists(), *name == "made stale", "{name}");
    }
}

#[test]
fn an_evicted_key_that_is_stored_again_keeps_its_file() {
    let folder = Folder::new();
    let zone = Zone::disk("z", 128 * 64, disk_settings(&folder, None));
    let zone = Arc::new(zone);
    // Each thread evicts what the others store.
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let zone = zone.clone();
            thread::spawn(move || {
                for number in 0..400 {
                    store(
                        &zone,
                        &format!("/{}", (number * 7 + thread) % 80),
                        &[],
                        b"x",
                    );
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(zone.contents().evicted > 0);
    let kept: Vec<String> = (0..80).map(|number| format!("/{number}")).collect();
    let kept = kept.iter().filter(|key| find(&zone, key).is_some());
    let paths: Vec<PathBuf> = kept.map(|key| path_of(&zone, key)).collect();
    assert!(!paths.is_empty());
    assert!(paths.iter().all(|path| path.exists()));
    assert_eq!(files(&folder), paths.len());
}

#[test]
fn a_zone_that_was_left_keeps_the_files_of_the_next_one() {
    let folder = Folder::new();
    let old = Zone::disk("z", 128 * 64, disk_settings(&folder, None));
    store(&old, "/a", &[], b"a");
    let new = disk_zone(&folder);
    let disk = old.as_disk().unwrap();
    let path = disk.path(b"/a", &Selection::default(), false, None);
    new.adopt(&path);
    old.leave();
    for number in 0..200 {
        store(&old, &format!("/{number}"), &[], b"x");
    }
    assert!(old.contents().evicted > 0);
    assert!(!old.forget(b"/a", u64::MAX), "it is unused here only");
    assert_eq!(files(&folder), 201);
    assert!(is_sound(&find(&new, "/a").unwrap()));
    Manager::announce(&old);
    assert!(old.forget(b"/a", u64::MAX), "it was taken up again");
    assert!(!path.exists());
}

#[test]
fn a_304_about_what_is_no_longer_stored_changes_nothing() {
    let folder = Folder::new();
    for zone in [Arc::new(Zone::memory("z", MEGABYTE)), disk_zone(&folder)] {
        store(&zone, "/a", &[("ETag", "old")], b"the old content");
        let old = find(&zone, "/a").unwrap();
        let late = |tag| entry(&zone, "/a", &[("ETag", "old"), ("X-A", tag)]);
        zone.freshen(&old, late("1")).unwrap();
        // Two requests have asked about the same response.
        zone.freshen(&old, late("2")).unwrap();
        store(&zone, "/a", &[("ETag", "new")], b"new");
        let refused = zone.freshen(&old, late("3")).err();
        assert_eq!(refused, Some(WhyNotStored::Replaced));
        let found = find(&zone, "/a").unwrap();
        assert_eq!(found.head.value(b"etag"), Some(&b"new"[..]));
        assert_eq!(found.length(), 3);
        if let StoredBody::File(file) = &found.body {
            let opened = disk::open(file.path()).unwrap();
            let (description, _) = disk::read(&opened).unwrap();
            assert_eq!(description.head, *found.head);
            assert!(is_sound(&found));
        }
        let late = late("4");
        zone.forget(b"/a", u64::MAX);
        let refused = zone.freshen(&found, late).err();
        assert_eq!(refused, Some(WhyNotStored::Replaced));
        assert!(find(&zone, "/a").is_none());
    }
}

#[test]
fn bodies_on_their_way_take_no_more_memory_than_their_zone() {
    let zone = Zone::memory("z", MEGABYTE);
    let piece = vec![b'x'; 100_000];
    let mut bodies = Vec::new();
    let refused = loop {
        let Ok(mut body) = zone.begin_body(None) else {
            panic!("nothing is reserved for an unknown length");
        };
        if let Err(why) = body.push(&piece) {
            break why;
        }
        bodies.push(body);
    };
    assert_eq!((bodies.len(), refused), (10, WhyNotStored::ZoneBusy));
    let announced = zone.begin_body(Some(100_000)).err();
    assert_eq!(announced, Some(WhyNotStored::ZoneBusy));
    drop(bodies);
    // Alone, the largest that the zone can hold has room, whether its length is known or not.
    for length in [None, Some(MEGABYTE - 1)] {
        let mut body = zone.begin_body(length).unwrap();
        for piece in vec![b'y'; MEGABYTE as usize - 1].chunks(70_001) {
            body.push(piece).unwrap();
        }
        assert_eq!(body.bytes().len() as u64, MEGABYTE - 1);
        assert_eq!(body.push(b"y").err(), Some(WhyNotStored::TooLarge));
    }
    assert!(
        zone.begin_body(Some(MEGABYTE - 1)).is_ok(),
        "all is given back"
    );
}

#[test]
fn a_file_is_copied_beside_its_path_before_it_is_placed() {
    let (folder, temporary) = (Folder::new(), Folder::new());
    let zone = disk_zone_with(&folder, Some(&temporary));
    let new = entry(&zone, "/a", &[]);
    let mut writer = zone.writer(&new).unwrap();
    writer.write(b"content").unwrap();
    let path = folder.0.join("f");
    let names = |folder: &Folder| fs::read_dir(&folder.0).unwrap().count();
    assert_eq!((names(&folder), names(&temporary)), (0, 1));
    writer.copy_beside(&path).unwrap();
    assert_eq!(
        (names(&folder), names(&temporary), path.exists()),
        (1, 0, false)
    );
    writer.place(&path).unwrap();
    assert!(fs::read(&path).unwrap().ends_with(b"content"));
    let number = writer.number().unwrap();
    drop(writer);
    assert_eq!(names(&folder), 1);
    zone.as_disk().unwrap().remove(&path, number);
    assert_eq!(names(&folder), 0);
}
