//! The command line.

use std::ffi::{OsStr, OsString};

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) files: Vec<OsString>,
    /// How many lines a list has.
    pub(crate) top: usize,
    /// Whether the query belongs to a path.
    pub(crate) with_query: bool,
    /// The file of the page, if a page is wanted.
    pub(crate) page: Option<OsString>,
}

/// The most lines of a list: more is no first look.
const TOP_MAX: usize = 1000;

impl Options {
    /// Reads the arguments after the command's name.
    ///
    /// # Errors
    /// What is wrong, as a sentence without a full stop.
    pub(crate) fn read(arguments: &[OsString]) -> Result<Options, String> {
        let mut options = Options {
            files: Vec::new(),
            top: 10,
            with_query: false,
            page: None,
        };
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            match word.to_str() {
                Some("--query") => options.with_query = true,
                Some("--top") => options.top = top(rest.next())?,
                Some("--html") => {
                    let page = rest.next().ok_or("--html needs a file")?;
                    options.page = Some(page.clone());
                }
                Some("--") => options.files.extend(rest.by_ref().cloned()),
                Some(word) if word.starts_with('-') && word != "-" => {
                    return Err(format!("there is no option \"{word}\""));
                }
                _ => options.files.push(word.clone()),
            }
        }
        if options.files.is_empty() {
            Err("a FILE is missing (- is standard input)".to_owned())
        } else {
            Ok(options)
        }
    }
}

fn top(word: Option<&OsString>) -> Result<usize, String> {
    let number = word.and_then(|word| OsStr::to_str(word)?.parse().ok());
    let number = number.filter(|number| (1..=TOP_MAX).contains(number));
    number.ok_or_else(|| format!("--top needs a number from 1 to {TOP_MAX}"))
}
