//! Files that lose their names: large ones are left to whoever closes them without a wait.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;

use super::zones::{Folder, disk_settings, entry, store};
use crate::disk::Closing;
use crate::purge::{PurgeKind, Target};
use crate::zone::Zone;

const LARGE_BYTES: usize = 10_000;

thread_local! {
    /// The files without a name that this thread has left to others.
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

fn leave(file: File) {
    assert_eq!(file.metadata().unwrap().nlink(), 0, "it has a name");
    LEFT.set(LEFT.get() + 1);
}

#[test]
fn large_files_are_not_closed_by_those_who_remove_them() {
    let folder = Folder::new();
    let settings = crate::disk::DiskSettings {
        closing: Closing {
            bytes_min: LARGE_BYTES as u64,
            close: leave,
        },
        ..disk_settings(&folder, None)
    };
    let zone = Zone::disk("z", 1 << 20, settings);
    let body = vec![b'x'; LARGE_BYTES];
    for body in [&body[..], b"small"] {
        for key in ["/replaced", "/purged", "/discarded"] {
            store(&zone, key, &[], body);
        }
        let before = LEFT.get();
        let is_large = body.len() == LARGE_BYTES;
        store(&zone, "/replaced", &[], b"another");
        assert_eq!(LEFT.get() - before, usize::from(is_large));
        zone.purge(&Target::Key(b"/purged".to_vec()), PurgeKind::Hard, 0);
        assert_eq!(LEFT.get() - before, 2 * usize::from(is_large));
        let discarded = super::zones::find(&zone, "/discarded").unwrap();
        zone.discard(b"/discarded", &discarded);
        assert_eq!(LEFT.get() - before, 3 * usize::from(is_large));
        let mut unfinished = zone.writer(&entry(&zone, "/unfinished", &[])).unwrap();
        unfinished.write(body).unwrap();
        drop(unfinished);
        assert_eq!(LEFT.get() - before, 4 * usize::from(is_large));
    }
}
