//! Bytes of messages: numbers of eight bytes, and byte strings with their length before them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// A message that does not decode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

impl From<Malformed> for io::Error {
    fn from(_: Malformed) -> io::Error {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "malformed message between processes",
        )
    }
}

/// Builds a message.
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(kind: u8) -> Encoder {
        Encoder { bytes: vec![kind] }
    }

    pub(super) fn with_number(mut self, number: u64) -> Encoder {
        self.number(number);
        self
    }

    pub(super) fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_ne_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn path(&mut self, path: &Path) {
        self.bytes(path.as_os_str().as_bytes());
    }

    /// A value that may be missing, as a list of none or one.
    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl Fn(&mut Encoder, &T)) {
        self.list(value.as_slice(), write);
    }

    pub(super) fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Encoder, &T)) {
        self.number(items.len() as u64);
        for item in items {
            write(self, item);
        }
    }
}

/// Takes a message apart.
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes }
    }

    /// Everything must have been taken.
    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let (number, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(u64::from_ne_bytes(*number))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Malformed)
    }

    pub(super) fn path(&mut self) -> Result<PathBuf, Malformed> {
        Ok(PathBuf::from(OsString::from_vec(self.bytes()?.to_vec())))
    }

    pub(super) fn option<T>(
        &mut self,
        read: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        let mut items = self.list(read)?;
        let item = items.pop();
        if items.is_empty() {
            Ok(item)
        } else {
            Err(Malformed)
        }
    }

    /// A list; its length is bounded by the bytes there are, since every item takes some.
    pub(super) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.number()?;
        if count > self.rest.len() as u64 {
            return Err(Malformed);
        }
        (0..count).map(|_| read(self)).collect()
    }
}
