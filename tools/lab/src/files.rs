//! The files that contenders serve or include, made from a few words in the study: many bytes, text
//! for compressors, or lines that differ in their number.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::process;
use crate::template::{self, TemplateError, Values};

/// The largest file: more would no longer fit the page cache of a small machine.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 30;

/// The most lines of a file: servers are asked for up to a million entries.
pub(crate) const LINES_MAX: u64 = 1_000_000;

/// The number of different words in a text; a compressor sees about as many repeats as in prose.
const VOCABULARY_WORDS: usize = 600;

/// The names in a line that only its number fills in.
const LINE_NAMES: [&str; 3] = ["line", "line_high", "line_low"];

/// The seed of texts: they are the same on every machine.
const SEED: u64 = 0x7475_726e;

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a file is a number of bytes, { words_bytes = N }, { lines = N, text = \"...\" }, \
                 or { command = [...] }"
)]
pub(crate) enum FileContent {
    /// This many bytes.
    Bytes(u64),
    /// Made-up words, for compressors.
    Words { words_bytes: u64 },
    /// A template once for each number.
    Lines { lines: u64, text: String },
    /// Written by a command, in which `{file}` is its path.
    Command { command: Vec<String> },
}

impl FileContent {
    /// Whether it is the same for each contender and run.
    pub(crate) fn is_constant(&self) -> bool {
        match self {
            FileContent::Lines { text, .. } => {
                template::names(text).all(|(_, name)| LINE_NAMES.contains(&name))
            }
            _ => true,
        }
    }
}

/// Puts a file into a contender's folder. A constant one is a link to a file of the folder
/// `constant`, which was written before the first run: servers treat files that have just changed
/// with more care than those that people serve.
///
/// # Errors
/// The message, with the file's path.
pub(crate) fn place(
    folder: &Path,
    constant: &Path,
    name: &str,
    content: &FileContent,
    values: &Values,
) -> Result<(), String> {
    let path = folder.join(name);
    if !content.is_constant() {
        return write(&path, content, values);
    }
    let made = match path.parent() {
        Some(parent) => std::fs::create_dir_all(parent),
        None => Ok(()),
    };
    made.and_then(|()| std::os::unix::fs::symlink(constant.join(name), &path))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file.
///
/// # Errors
/// The message, with the file's path.
pub(crate) fn write(path: &Path, content: &FileContent, values: &Values) -> Result<(), String> {
    let wrong = |error: String| format!("{}: {error}", path.display());
    let made = match path.parent() {
        Some(parent) => std::fs::create_dir_all(parent),
        None => Ok(()),
    };
    made.map_err(|error| wrong(error.to_string()))?;
    let bytes = match content {
        FileContent::Command { command } => return run(command, path).map_err(wrong),
        FileContent::Bytes(bytes) => {
            let bytes = usize::try_from(*bytes).unwrap_or(usize::MAX);
            b"turnpike ".iter().copied().cycle().take(bytes).collect()
        }
        FileContent::Words { words_bytes } => words(*words_bytes).into_bytes(),
        FileContent::Lines { lines, text } => repeated(*lines, text, values)
            .map_err(|error| wrong(error.to_string()))?
            .into_bytes(),
    };
    std::fs::write(path, bytes).map_err(|error| wrong(error.to_string()))
}

/// Has a command write a file.
fn run(command: &[String], path: &Path) -> Result<(), String> {
    let file = path.display().to_string();
    let words: Vec<String> = command
        .iter()
        .map(|word| word.replace("{file}", &file))
        .collect();
    let Some((name, arguments)) = words.split_first() else {
        return Err("the command is empty".to_owned());
    };
    let program = process::find(name).ok_or_else(|| format!("\"{name}\" is not installed"))?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("\"{name}\" does not start: {error}"))?;
    let has_file = output.status.success() && path.exists();
    if has_file {
        Ok(())
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("\"{name}\" wrote no file: {}", stderr.trim()))
    }
}

/// The template once for each number from 1 to `lines`. `{line}` is the number, `{line_high}` and
/// `{line_low}` are its two bytes, for addresses.
pub(crate) fn repeated(lines: u64, text: &str, values: &Values) -> Result<String, TemplateError> {
    let mut values = values.clone();
    for name in LINE_NAMES {
        // Filled with themselves first, so that everything else is filled in only once.
        values.insert(name.to_owned(), format!("{{{name}}}"));
    }
    let line = template::fill(text, &values)?;
    let mut filled = String::new();
    for number in 1..=lines {
        let numbered = line
            .replace("{line}", &number.to_string())
            .replace("{line_high}", &(number / 256).to_string())
            .replace("{line_low}", &(number % 256).to_string());
        let _ = writeln!(filled, "{numbered}"); // a string takes everything
    }
    Ok(filled)
}

/// Made-up words of this many bytes together, the first ones of the vocabulary more often than the
/// last, as in a language.
fn words(bytes: u64) -> String {
    let mut state = SEED;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    const LETTERS: &[u8] = b"eeeeeeetttttaaaaooooiiinnnssshhhrrrdddllcuummwffggyyppbvk";
    let mut vocabulary = Vec::with_capacity(VOCABULARY_WORDS);
    for _ in 0..VOCABULARY_WORDS {
        let length = 2 + below(5) + below(5);
        let letters = (0..length).map(|_| char::from(LETTERS[below(LETTERS.len())]));
        vocabulary.push(letters.collect::<String>());
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut text = String::with_capacity(bytes);
    while text.len() < bytes {
        let most = 1 + below(VOCABULARY_WORDS);
        text.push_str(&vocabulary[below(most)]);
        text.push(if below(12) == 0 { '\n' } else { ' ' });
    }
    text.truncate(bytes);
    text
}

#[cfg(test)]
mod tests;
