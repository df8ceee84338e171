//! The lines of a file, of a compressed one, or of standard input.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// The longest line in bytes that is looked at. A request line has at most 8 KiB by default; the
/// rest of a longer line is skipped.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// The first bytes of a file that gzip made.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Calls `take` with each line and its number, from 1.
///
/// # Errors
/// What the system or the decoder says, with the file's name.
pub(crate) fn for_each_line(file: &OsStr, take: impl FnMut(u64, &[u8])) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", Path::new(file).display());
    let input: Box<dyn Read> = if file == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(file).map_err(failed)?)
    };
    let mut input = BufReader::with_capacity(1 << 16, input);
    let start = input.fill_buf().map_err(failed)?;
    if start.starts_with(&GZIP) {
        lines(BufReader::new(MultiGzDecoder::new(input)), take)
    } else {
        lines(input, take)
    }
    .map_err(failed)
}

fn lines(mut input: impl BufRead, mut take: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let mut bounded = input.by_ref().take(LINE_BYTES_MAX);
        if bounded.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else {
            input.skip_until(b'\n')?;
        }
        take(number, &line);
    }
}
