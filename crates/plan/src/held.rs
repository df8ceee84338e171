//! What commands have changed, in memory that outlives every process of the server.
//!
//! The master makes the memory and hands it to each serving process, and to the master of another
//! binary. So a change holds after a reload, a crash and an upgrade; a restart of the server begins
//! without changes. One process at a time may write: the one that has taken the memory last.
//!
//! The values are one JSON object by key. It is written beside the one in force, which one word
//! then replaces: a process that is killed meanwhile has changed nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use turnpike_lane::sys::mapping::SharedWords;
use turnpike_lane::sys::process::monotonic_ns;

use crate::control::{CommandError, Value};

/// Words of the memory: 1 MiB. Pages that nothing has touched take no memory.
pub const HELD_WORDS: usize = 1 << 17;
/// The process that is writing: its number, or 0.
const WRITER: usize = 0;
/// The process that may write: its number, or 0.
const OWNER: usize = 1;
/// The count of changes; odd ones are in the second half.
const COUNT: usize = 2;
/// The first word of the halves.
const HALVES: usize = 8;
/// Words of a half: its length in bytes, and the text.
const HALF_WORDS: usize = (HELD_WORDS - HALVES) / 2;
/// Longest text: a group of ten thousand servers.
const TEXT_BYTES_MAX: usize = (HALF_WORDS - 1) * 8;
/// The longest time that another process is waited for, which writes a state file meanwhile at
/// most. One that takes longer is dead.
const WRITER_WAIT: Duration = Duration::from_secs(5);
/// Between two looks at it.
const WRITER_LOOK: Duration = Duration::from_millis(1);

/// The values by key.
type Values = BTreeMap<String, Value>;

/// The memory, as one process has it.
#[derive(Debug)]
pub struct HeldValues {
    memory: SharedWords,
    /// The file number of the memory; 0: it is this process's.
    file: u64,
    /// The number of this process, unlike any other's.
    own: u64,
    /// Held by the thread that changes something.
    changing: Mutex<()>,
}

impl HeldValues {
    /// Maps the memory.
    ///
    /// # Errors
    /// Those of `mmap(2)`.
    pub fn map(memory: BorrowedFd<'_>) -> io::Result<HeldValues> {
        Ok(Self::of(
            SharedWords::map(memory, HELD_WORDS)?,
            file_number(memory),
        ))
    }

    /// Whether a descriptor is that of this memory.
    pub fn is_of(&self, memory: BorrowedFd<'_>) -> bool {
        self.file != 0 && self.file == file_number(memory)
    }

    /// Memory that ends with this process and is its own.
    ///
    /// # Errors
    /// Those of `mmap(2)`.
    pub fn private() -> io::Result<HeldValues> {
        let held = Self::of(SharedWords::anonymous(HELD_WORDS)?, 0);
        held.take();
        Ok(held)
    }

    fn of(memory: SharedWords, file: u64) -> HeldValues {
        HeldValues {
            memory,
            file,
            own: monotonic_ns().max(1),
            changing: Mutex::new(()),
        }
    }

    /// Makes this process the one that may write; no other one can from now on.
    pub fn take(&self) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.locked(|| self.word(OWNER).store(self.own, Ordering::SeqCst));
    }

    /// The value under a key.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.values().remove(key)
    }

    /// Changes the value under a key to what `make` makes of it; `None` removes it.
    ///
    /// # Errors
    /// Those of `make`; another process may write, or there is no room. Nothing has changed then.
    pub fn change(
        &self,
        key: &str,
        make: impl FnOnce(Option<Value>) -> Result<Option<Value>, CommandError>,
    ) -> Result<(), CommandError> {
        self.change_all(|values| {
            match make(values.remove(key))? {
                Some(value) => values.insert(key.to_owned(), value),
                None => None,
            };
            Ok(())
        })
    }

    /// Removes the values under all other keys.
    pub fn retain(&self, is_wanted: impl Fn(&str) -> bool) {
        if self.values().keys().all(|key| is_wanted(key)) {
            return;
        }
        // Another process may write: then it does this.
        let _ = self.change_all(|values| {
            values.retain(|key, _| is_wanted(key));
            Ok(())
        });
    }

    /// All values as a text, for [`HeldValues::restore`].
    pub fn text(&self) -> String {
        serde_json::to_string(&self.values()).unwrap_or_default()
    }

    /// Puts values into memory that nobody uses yet.
    pub fn restore(&self, text: &str) {
        if let Ok(values) = serde_json::from_str::<Values>(text) {
            // They were in such memory before, and have room.
            let _ = self.locked(|| self.write(&values));
        }
    }

    fn change_all(
        &self,
        change: impl FnOnce(&mut Values) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.locked(|| {
            if self.word(OWNER).load(Ordering::SeqCst) != self.own {
                let message = "another serving process is taking over; try again";
                return Err(CommandError::Failed(message.to_owned()));
            }
            let mut values = self.values();
            change(&mut values)?;
            self.write(&values)
        })
    }

    /// Does something while no other process writes.
    fn locked<T>(&self, work: impl FnOnce() -> T) -> T {
        let (writer, until) = (self.word(WRITER), Instant::now() + WRITER_WAIT);
        while let Err(other) =
            writer.compare_exchange(0, self.own, Ordering::SeqCst, Ordering::SeqCst)
        {
            if Instant::now() < until {
                thread::sleep(WRITER_LOOK);
            } else if writer
                .compare_exchange(other, self.own, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
            {
                break;
            }
        }
        let done = work();
        writer.store(0, Ordering::SeqCst);
        done
    }

    fn values(&self) -> Values {
        let half = self.half(self.word(COUNT).load(Ordering::SeqCst));
        let Some((length, words)) = half.split_first() else {
            return Values::new();
        };
        let length = usize::try_from(length.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let length = length.min(TEXT_BYTES_MAX);
        let words = words.iter().take(length.div_ceil(8));
        let bytes = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let bytes: Vec<u8> = bytes.take(length).collect();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    fn write(&self, values: &Values) -> Result<(), CommandError> {
        let text = serde_json::to_vec(values).unwrap_or_default();
        if text.len() > TEXT_BYTES_MAX {
            let message = format!(
                "the servers that commands have changed take more than {TEXT_BYTES_MAX} bytes"
            );
            return Err(CommandError::Failed(message));
        }
        let next = self.word(COUNT).load(Ordering::SeqCst).wrapping_add(1);
        if let Some((length, words)) = self.half(next).split_first() {
            for (word, bytes) in words.iter().zip(text.chunks(8)) {
                let mut whole = [0; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                word.store(u64::from_le_bytes(whole), Ordering::Relaxed);
            }
            length.store(text.len() as u64, Ordering::Relaxed);
        }
        self.word(COUNT).store(next, Ordering::SeqCst);
        Ok(())
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        &self.memory.words()[index]
    }

    fn half(&self, count: u64) -> &[AtomicU64] {
        let from = match count % 2 {
            0 => HALVES,
            _ => HALVES + HALF_WORDS,
        };
        &self.memory.words()[from..from + HALF_WORDS]
    }
}

/// The number of a file of its kind; 0 for none.
fn file_number(file: BorrowedFd<'_>) -> u64 {
    let file = file.try_clone_to_owned().map(File::from);
    let metadata = file.and_then(|file| file.metadata());
    metadata.map_or(0, |metadata| metadata.ino())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::fd::AsFd as _;

    use super::*;
    use crate::control::json;

    #[test]
    fn the_process_that_took_the_memory_last_changes_it_for_all() {
        let memory = SharedWords::create(HELD_WORDS).unwrap();
        let [one, two] = [(), ()].map(|()| HeldValues::map(memory.as_fd()).unwrap());
        one.take();
        one.change("a", |before| {
            assert_eq!(before, None);
            Ok(Some(json!({ "x": 1 })))
        })
        .unwrap();
        assert_eq!(two.value("a"), Some(json!({ "x": 1 })));
        let refused = two.change("a", |_| panic!("it may not write"));
        let expected = "another serving process is taking over; try again";
        assert_eq!(refused.unwrap_err().to_string(), expected);
        two.take();
        two.change("b", |_| Ok(Some(json!(2)))).unwrap();
        assert!(one.change("a", |_| Ok(None)).is_err());
        two.retain(|key| key == "b");
        assert_eq!((one.value("a"), one.value("b")), (None, Some(json!(2))));
        let failed = two.change("b", |_| Err(CommandError::Invalid("no".to_owned())));
        assert_eq!(failed.unwrap_err().to_string(), "no");
        let long = "x".repeat(TEXT_BYTES_MAX);
        assert!(two.change("c", |_| Ok(Some(json!(long)))).is_err());
        assert_eq!(one.value("b"), Some(json!(2)));
        let third = HeldValues::private().unwrap();
        third.restore(&one.text());
        assert_eq!(third.value("b"), Some(json!(2)));
    }

    #[test]
    fn a_writer_that_was_killed_has_changed_nothing() {
        let memory = SharedWords::create(HELD_WORDS).unwrap();
        let [one, two] = [(), ()].map(|()| HeldValues::map(memory.as_fd()).unwrap());
        one.take();
        one.change("a", |_| Ok(Some(json!(1)))).unwrap();
        // It dies while it writes: the half beside that in force is spoilt, and its lock is left.
        one.half(2)[1].store(u64::MAX, Ordering::Relaxed);
        one.half(2)[0].store(8, Ordering::Relaxed);
        one.word(WRITER).store(one.own, Ordering::SeqCst);
        assert_eq!(two.value("a"), Some(json!(1)));
        one.word(WRITER).store(0, Ordering::SeqCst);
        two.take();
        two.change("a", |before| Ok(before.map(|_| json!(2))))
            .unwrap();
        assert_eq!(one.value("a"), Some(json!(2)));
    }
}
