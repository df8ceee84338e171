//! What PROPFIND says of a file, or of a folder and what is in it. Runs on a thread that may block.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::conditions::Conditions;
use super::failure::{Failure, quoted};
use super::locks::{Lock, LockZone};
use super::place::{self, Place};
use super::properties::{self, Resource};
use super::request_xml::PropertySelection;

/// Entries of a folder that are described: each costs a `stat(2)`.
const ENTRIES_MAX: usize = 20_000;

/// Most bytes of an answer, which is in memory as a whole. A client chooses how much is said of
/// every entry.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What is to be described.
pub(super) struct Listing {
    pub(super) place: Place,
    pub(super) conditions: Conditions,
    /// The path in URIs, unescaped.
    pub(super) path: Vec<u8>,
    /// Whether what is in a folder is described, too.
    pub(super) with_entries: bool,
    pub(super) asked: PropertySelection,
    pub(super) locks: Option<Arc<LockZone>>,
    pub(super) now_ms: u64,
}

impl Listing {
    /// The body of the answer.
    pub(super) fn run(mut self) -> Result<Vec<u8>, Failure> {
        let file = self.place.path.clone();
        let reached = self.place.reach(None, 404)?;
        self.list(&file).map_err(|mut failure| {
            reached.iter().for_each(|place| place.restore(&mut failure));
            failure
        })
    }

    /// `file` is the one that locks know.
    fn list(&self, file: &Path) -> Result<Vec<u8>, Failure> {
        let path = &self.place.path;
        let there = place::metadata(path, self.place.symlinks.rule);
        let there = there.map_err(|error| Failure::of("stat()", path, &error, 404))?;
        self.conditions.check(path)?;
        let mut path = self.path.clone();
        if there.is_dir() && path.last() != Some(&b'/') {
            path.push(b'/');
        }
        let mut out = properties::BEGIN.to_vec();
        out.extend_from_slice(b"<D:multistatus xmlns:D=\"DAV:\">\n");
        self.write(&path, file, &there, &mut out);
        if there.is_dir() && self.with_entries {
            self.write_entries(&path, file, &mut out)?;
        }
        out.extend_from_slice(b"</D:multistatus>\n");
        Ok(out)
    }

    fn write_entries(&self, folder: &[u8], file: &Path, out: &mut Vec<u8>) -> Result<(), Failure> {
        let own = &self.place.path;
        let entries = fs::read_dir(own);
        let entries = entries.map_err(|error| Failure::of("opendir()", own, &error, 404))?;
        for (index, entry) in entries.flatten().enumerate() {
            if index >= ENTRIES_MAX {
                let folder = quoted(own);
                let text = format!("\"{folder}\" has more than {ENTRIES_MAX} entries");
                return Err(Failure::new(507, text));
            }
            // What has gone meanwhile, leads nowhere or is a refused link, is not there.
            let Ok(metadata) = place::metadata(&entry.path(), self.place.inside) else {
                continue;
            };
            let end: &[u8] = if metadata.is_dir() { b"/" } else { b"" };
            let path = [folder, entry.file_name().as_bytes(), end].concat();
            self.write(&path, &file.join(entry.file_name()), &metadata, out);
            if out.len() > ANSWER_BYTES_MAX {
                let folder = quoted(own);
                let text =
                    format!("the answer for \"{folder}\" has more than {ANSWER_BYTES_MAX} bytes");
                return Err(Failure::new(507, text));
            }
        }
        Ok(())
    }

    fn write(&self, path: &[u8], file: &Path, metadata: &fs::Metadata, out: &mut Vec<u8>) {
        let locks = self.locks.as_ref();
        let held = locks.map(|locks| locks.of(file, self.now_ms));
        let resource = Resource {
            path,
            metadata,
            locks: held.as_deref().map(|locks: &[Lock]| locks),
            now_ms: self.now_ms,
        };
        properties::write_response(&resource, &self.asked, out);
    }
}
