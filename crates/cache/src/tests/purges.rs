//! Tests of many purges of single keys, as unsafe requests make them.

use std::sync::atomic::Ordering;

use super::zones::{
    Folder, MEGABYTE, NOW_MS, disk_zone, entry, files, find, manage, path_of, store, wait_for,
};
use crate::purge::{PurgeKind, Target, without_range};
use crate::vary::Selection;
use crate::zone::{NewResponse, Zone};

/// More purges of single keys than are remembered of other purges, of a few keys. The test's own
/// keys may share a place with one of them, but not many of them do.
fn purge_other_keys(zone: &Zone) {
    for number in 0..3000 {
        let key = format!("/other/{}", number % 10).into_bytes();
        zone.purge(&Target::Key(key), PurgeKind::Hard, NOW_MS);
    }
}

#[test]
fn purges_of_other_keys_prevent_no_store_and_remove_no_variant() {
    let zone = Zone::memory("z", MEGABYTE);
    let under_way: Vec<NewResponse> = (0..20)
        .map(|number| entry(&zone, &format!("/{number}"), &[]))
        .collect();
    let in_language = |language: &'static str| {
        move |_: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(language.as_bytes());
            true
        }
    };
    for language in ["de", "en"] {
        let mut entry = entry(&zone, "/a", &[("Vary", "Accept-Language")]);
        entry.selection = Selection::of(&entry.head, &in_language(language)).unwrap();
        zone.store_memory(entry, b"a"[..].into()).unwrap();
        purge_other_keys(&zone);
    }
    for language in ["de", "en"] {
        let field = in_language(language);
        assert!(
            zone.find(b"/a", false, &field, NOW_MS).is_some(),
            "{language}"
        );
    }
    let stored = under_way
        .into_iter()
        .filter_map(|entry| zone.store_memory(entry, b"x"[..].into()).ok());
    assert!(stored.count() >= 18);
}

#[test]
fn purges_of_other_keys_while_the_folder_is_loaded_remove_no_file() {
    let folder = Folder::new();
    let zone = disk_zone(&folder);
    for key in ["/a", "/b"] {
        store(&zone, key, &[], b"x");
    }
    let mut english = entry(&zone, "/b", &[("Vary", "Accept-Language")]);
    english.selection.push(b"accept-language", Some(b"en"));
    let writer = zone.writer(&english).unwrap();
    zone.store_file(english, writer).unwrap();
    let (a, b) = (path_of(&zone, "/a"), path_of(&zone, "/b"));
    drop(zone);
    let zone = disk_zone(&folder);
    purge_other_keys(&zone);
    zone.purge(&Target::Key(b"/b".to_vec()), PurgeKind::Hard, NOW_MS);
    // Another variant is requested and stored before the old ones are found.
    let mut german = entry(&zone, "/b", &[("Vary", "Accept-Language")]);
    german.selection.push(b"accept-language", Some(b"de"));
    let writer = zone.writer(&german).unwrap();
    zone.store_file(german, writer).unwrap();
    manage(&zone);
    let disk = zone.as_disk().unwrap();
    wait_for("the loader", || disk.loaded.load(Ordering::Acquire));
    assert!(a.exists() && find(&zone, "/a").is_some());
    assert!(!b.exists() && find(&zone, "/b").is_none());
    assert_eq!(zone.contents().keys, 2);
    assert_eq!(files(&folder), 2);
}

#[test]
fn files_are_stale_if_too_many_keys_are_purged_before_they_are_found() {
    let folder = Folder::new();
    let zone = disk_zone(&folder);
    store(&zone, "/a", &[], b"x");
    let path = path_of(&zone, "/a");
    drop(zone);
    let zone = disk_zone(&folder);
    for number in 0..=64 * 1024 {
        let key = format!("/other/{number}").into_bytes();
        zone.purge(&Target::Key(key), PurgeKind::Hard, NOW_MS);
    }
    zone.adopt(&path);
    assert!(!find(&zone, "/a").unwrap().timing().is_fresh(NOW_MS));
}

#[test]
fn slices_are_told_from_other_keys() {
    let zone = Zone::memory("z", MEGABYTE);
    let keys = [
        "/a",
        "/abytes=0-3",
        "/abytes=4-7",
        "/abytes=4-",
        "/abytes=4-7x",
        "/b",
        "/a2bytes=0-3",
    ];
    for key in keys {
        zone.store_memory(entry(&zone, key, &[]), b"a"[..].into())
            .unwrap();
    }
    assert_eq!(without_range(b"/abytes=0-3"), b"/a");
    assert_eq!(without_range(b"/abytes=0-3x"), b"/abytes=0-3x");
    let purged = zone.purge(&Target::Sliced(b"/a".to_vec()), PurgeKind::Hard, NOW_MS);
    assert_eq!(purged.keys, 3);
    let left: Vec<&str> = keys
        .into_iter()
        .filter(|key| zone.has_key(key.as_bytes()))
        .collect();
    assert_eq!(left, ["/abytes=4-", "/abytes=4-7x", "/b", "/a2bytes=0-3"]);
}
