//! The words that a server was started with, read as the server reads them: a letter within a
//! value is no option.

/// The words of a master process are read no further.
const BYTES_MAX: usize = 64 * 1024;
/// The options that have a value, of nginx and of turnpike.
const WITH_VALUE: &str = "cegps";
/// The one whose value ends with a semicolon.
const DIRECTIVES: char = 'g';
/// The options that have none.
const WITHOUT_VALUE: &str = "?hvVtTq";

/// The words of a process.
#[derive(Debug)]
pub(super) struct Words {
    /// What is behind the program's name.
    words: Vec<String>,
    /// Whether the server has put a title in the place of its words: there, a value may be several
    /// of them, as its blanks cannot be told from those between words.
    is_title: bool,
}

impl Words {
    /// The words of a process; none where it is gone.
    pub(super) fn of(process: u32) -> Words {
        let bytes = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        Words::read(&bytes)
    }

    fn read(bytes: &[u8]) -> Words {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MAX)]).into_owned();
        let text = text.trim_end_matches('\0');
        let is_title = !text.contains('\0');
        let words = text.split(if is_title { ' ' } else { '\0' });
        Words {
            words: words.skip(1).map(ToOwned::to_owned).collect(),
            is_title,
        }
    }

    /// The value of an option with one letter, the last one as for the server.
    pub(super) fn option(&self, letter: char) -> Option<String> {
        let mut rest = self.words.as_slice();
        let mut found = None;
        while let Some((word, behind)) = rest.split_first() {
            rest = behind;
            let Some((name, attached)) = option_with_value(word) else {
                continue;
            };
            let count = self.count_of_value(name, attached, rest);
            let (more, behind) = rest.split_at(count);
            rest = behind;
            let attached = Some(attached).filter(|value| !value.is_empty());
            let value: Vec<&str> = attached
                .into_iter()
                .chain(more.iter().map(String::as_str))
                .collect();
            if name == letter && !value.is_empty() {
                found = Some(value.join(" "));
            }
        }
        found
    }

    /// How many words behind an option belong to its value.
    fn count_of_value(&self, name: char, attached: &str, rest: &[String]) -> usize {
        let least = usize::from(attached.is_empty());
        if !self.is_title {
            return least.min(rest.len());
        }
        let mut before = attached;
        for (count, word) in rest.iter().enumerate() {
            let may_end = name != DIRECTIVES || before.ends_with(';');
            if count >= least && may_end && word.starts_with('-') {
                return count;
            }
            before = word;
        }
        rest.len()
    }

    /// What the process calls itself.
    pub(super) fn title(&self) -> String {
        self.words.join(" ")
    }
}

/// The option of a word that has a value, and what of it is in the word itself.
fn option_with_value(word: &str) -> Option<(char, &str)> {
    let letters = word.strip_prefix('-')?;
    let (at, letter) = letters
        .char_indices()
        .find(|(_, letter)| !WITHOUT_VALUE.contains(*letter))?;
    let is_option = WITH_VALUE.contains(letter);
    is_option.then(|| (letter, &letters[at + letter.len_utf8()..]))
}

#[cfg(test)]
mod tests;
