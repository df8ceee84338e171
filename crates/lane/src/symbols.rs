//! The names of functions by their addresses, from the symbol table of this program's file. That of
//! a package has none of its own: it has a file with nothing but the table in a section.
//!
//! The table is read in pieces and not kept. Debug information would also give lines, but would
//! cost a hundred megabytes for the life of the process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::sys::stack::{self, Place};

#[cfg(test)]
mod tests;

/// This program, even if its file has been replaced since.
const PROGRAM: &str = "/proc/self/exe";

/// The bytes read at a time: many symbols, and little memory.
const PIECE_BYTES: usize = 64 * 1024 / SYMBOL_BYTES * SYMBOL_BYTES;

/// Largest table that is read: ten times that of a build with every symbol.
const TABLE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Longest name that is read, before its demangling.
const NAME_BYTES_MAX: usize = 1024;

/// Most sections that are read; a program has about forty.
const SECTIONS_MAX: u16 = 256;

// ELF-64: the sizes of records, and the numbers of the needed types.
const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const SYMBOL_TABLE: u32 = 2;
const FUNCTION: u8 = 2;

/// The section of a stripped program that holds an ELF file with its symbol table.
const KEPT_SECTION: &[u8] = b".turnpike_symbols\0";

/// A function of the program.
#[derive(Clone, Copy)]
struct Symbol {
    start: u64,
    name: u64,
}

/// The table of symbols, and the offset of their names.
struct Table {
    offset: u64,
    bytes: u64,
    names: u64,
}

/// The text for each of these return addresses: the name of its function, or of its library with
/// the distance from the library's start, or the address itself. Reads the program's file, and may
/// take a tenth of a second.
pub fn describe(addresses: &[usize]) -> Vec<String> {
    let places: Vec<Place> = addresses.iter().map(|at| stack::place(*at)).collect();
    let own: Vec<u64> = places.iter().filter_map(own_offset).collect();
    // If the file cannot be read or has no table, the text is the number.
    let names = File::open(PROGRAM).and_then(|file| find(&file, &own));
    let mut names = names.unwrap_or_default().into_iter();
    let mut named = |place: &Place| match place {
        Place::Program { offset } => match names.next().flatten() {
            Some(name) => name,
            None => format!("turnpike+{offset:#x}"),
        },
        Place::Library {
            function: Some(name),
            ..
        } => readable(name),
        Place::Library { file, offset, .. } => {
            let file = file.rsplit('/').next().unwrap_or_default();
            format!("{file}+{offset:#x}")
        }
        Place::Unknown { address } => format!("{address:#x}"),
    };
    places.iter().map(&mut named).collect()
}

fn own_offset(place: &Place) -> Option<u64> {
    match place {
        Place::Program { offset } => Some(*offset as u64),
        _ => None,
    }
}

/// The names of the functions that contain these offsets.
fn find(file: &File, offsets: &[u64]) -> io::Result<Vec<Option<String>>> {
    let Some(table) = whole_table(file)? else {
        return Ok(Vec::new());
    };
    let mut found: Vec<Option<Symbol>> = vec![None; offsets.len()];
    let mut piece = vec![0; PIECE_BYTES];
    let end = table.offset + table.bytes.min(TABLE_BYTES_MAX);
    let mut at = table.offset;
    while at < end {
        let length = PIECE_BYTES.min((end - at) as usize);
        file.read_exact_at(&mut piece[..length], at)?;
        for symbol in piece[..length].as_chunks::<SYMBOL_BYTES>().0 {
            note(symbol, offsets, &mut found);
        }
        at += length as u64;
    }
    let name = |symbol: Symbol| name_at(file, table.names + symbol.name);
    Ok(found
        .into_iter()
        .map(|symbol| symbol.and_then(name))
        .collect())
}

/// Records a function for each of the offsets that it contains.
fn note(symbol: &[u8; SYMBOL_BYTES], offsets: &[u64], found: &mut [Option<Symbol>]) {
    if symbol[4] & 15 != FUNCTION {
        return;
    }
    let (start, size) = (number(symbol, 8, 8), number(symbol, 16, 8));
    for (offset, found) in offsets.iter().zip(found) {
        // A return address may already belong to the next function.
        let called_from = offset.saturating_sub(1);
        if (start..start.saturating_add(size)).contains(&called_from) {
            let name = number(symbol, 0, 4);
            *found = Some(Symbol { start, name })
                .filter(|new| {
                    // If several names have the same code, the first one counts.
                    found.is_none_or(|old| old.start < new.start)
                })
                .or(*found);
        }
    }
}

/// The program's table, or the one that was kept when it was stripped.
fn whole_table(file: &File) -> io::Result<Option<Table>> {
    let Some(sections) = Sections::of(file, 0)? else {
        return Ok(None);
    };
    if let Some(table) = sections.table()? {
        return Ok(Some(table));
    }
    let Some(kept) = sections.kept()? else {
        return Ok(None);
    };
    let kept = Sections::of(file, kept)?;
    kept.map_or(Ok(None), |sections| sections.table())
}

/// The sections of an ELF file, which begins at an offset of another file.
struct Sections<'a> {
    file: &'a File,
    start: u64,
    offset: u64,
    count: u64,
    /// The section with the names of sections.
    names: u64,
}

impl Sections<'_> {
    fn of(file: &File, start: u64) -> io::Result<Option<Sections<'_>>> {
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, start)?;
        // 64 bits, least significant byte first.
        if header[..6] != *b"\x7fELF\x02\x01" {
            return Ok(None);
        }
        Ok(Some(Sections {
            file,
            start,
            offset: start.saturating_add(number(&header, 0x28, 8)),
            count: number(&header, 0x3c, 2).min(u64::from(SECTIONS_MAX)),
            names: number(&header, 0x3e, 2),
        }))
    }

    fn section(&self, index: u64) -> io::Result<[u8; SECTION_BYTES]> {
        let mut section = [0; SECTION_BYTES];
        let at = self.offset.saturating_add(index * SECTION_BYTES as u64);
        self.file.read_exact_at(&mut section, at)?;
        Ok(section)
    }

    /// Where the content of a section begins.
    fn content(&self, section: &[u8; SECTION_BYTES]) -> u64 {
        self.start.saturating_add(number(section, 0x18, 8))
    }

    fn table(&self) -> io::Result<Option<Table>> {
        for index in 0..self.count {
            let table = self.section(index)?;
            if number(&table, 4, 4) == u64::from(SYMBOL_TABLE) {
                let names = self.section(number(&table, 0x28, 4))?;
                return Ok(Some(Table {
                    offset: self.content(&table),
                    bytes: number(&table, 0x20, 8),
                    names: self.content(&names),
                }));
            }
        }
        Ok(None)
    }

    /// The start of the file with the table that was kept.
    fn kept(&self) -> io::Result<Option<u64>> {
        let names = self.content(&self.section(self.names)?);
        for index in 0..self.count {
            let section = self.section(index)?;
            let mut name = [0; KEPT_SECTION.len()];
            let at = names.saturating_add(number(&section, 0, 4));
            // The last names of the file may be shorter.
            let is_kept = self.file.read_exact_at(&mut name, at).is_ok() && name == KEPT_SECTION;
            if is_kept {
                return Ok(Some(self.content(&section)));
            }
        }
        Ok(None)
    }
}

fn name_at(file: &File, offset: u64) -> Option<String> {
    let mut bytes = [0; NAME_BYTES_MAX];
    let count = file.read_at(&mut bytes, offset).ok()?;
    let end = bytes[..count].iter().position(|byte| *byte == 0)?;
    Some(readable(&String::from_utf8_lossy(&bytes[..end])))
}

/// The name without the compiler's additions.
fn readable(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// A number of the file: at most eight bytes, least significant first.
fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
    let bytes = bytes.get(at..at + count).unwrap_or_default();
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
