//! `error_page`: what is answered instead of an error.

use turnpike_conf::{Complaint, ConfError, Entry, View};

use turnpike_plan::template::Template;
use turnpike_plan::variables::VariableTable;

/// One `error_page` directive.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    pub statuses: Vec<u16>,
    /// `=CODE`: the status to answer with; `=` alone takes the page's own.
    pub answer: PageStatus,
    /// Where the page is.
    pub target: ErrorTarget,
}

/// The status that an error page is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStatus {
    Error,
    Page,
    Status(u16),
}

/// Where an error page is.
#[derive(Clone, Debug)]
pub enum ErrorTarget {
    /// A path, or (when the value has no leading slash) a URL to redirect to.
    Path(Template),
    /// `@name`.
    Named(String),
}

impl ErrorPage {
    /// Reads every `error_page` in force, later ones last.
    pub(super) fn read_all<S>(
        view: View<'_>,
        variables: &mut VariableTable<S>,
    ) -> Result<Vec<Self>, ConfError> {
        view.nearest_all("error_page")
            .into_iter()
            .map(|entry| {
                Self::read(entry, variables).map_err(|message| view.error(entry.span, message))
            })
            .collect()
    }

    fn read<S>(entry: &Entry, variables: &mut VariableTable<S>) -> Result<Self, Complaint> {
        let words: Vec<&str> = entry
            .arguments
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        let (statuses, answer) = codes(&words)?;
        let Some(target) = entry.arguments.last() else {
            return Err("invalid number of arguments in \"error_page\" directive".into());
        };
        let target = match target.text.strip_prefix('@') {
            Some(_) => ErrorTarget::Named(target.text.clone()),
            None => ErrorTarget::Path(Template::compile(&target.bytes(), variables)?),
        };
        Ok(Self {
            statuses,
            answer,
            target,
        })
    }
}

/// The statuses before the page, and what it is answered with.
pub(super) fn codes(words: &[&str]) -> Result<(Vec<u16>, PageStatus), Complaint> {
    let codes = words.split_last().map_or(&[][..], |(_, codes)| codes);
    let (codes, answer) = match codes.split_last() {
        Some((last, rest)) if last.starts_with('=') && !rest.is_empty() => (rest, answer(last)?),
        _ => (codes, PageStatus::Error),
    };
    let statuses = codes
        .iter()
        .map(|word| status(word))
        .collect::<Result<_, _>>()?;
    Ok((statuses, answer))
}

fn answer(text: &str) -> Result<PageStatus, Complaint> {
    match &text[1..] {
        "" => Ok(PageStatus::Page),
        // A status has three digits: a number that has more is no answer, but no mistake either.
        code => match turnpike_conf::value::number(code) {
            Some(code) => Ok(PageStatus::Status(
                u16::try_from(code).unwrap_or(999).min(999),
            )),
            None => Err(format!("invalid value \"{text}\"").into()),
        },
    }
}

fn status(text: &str) -> Result<u16, Complaint> {
    let code: u16 = text
        .parse()
        .map_err(|_| format!("invalid value \"{text}\""))?;
    match code {
        499 => Err("value \"499\" must be between 300 and 599 and other than 499".into()),
        300..=599 => Ok(code),
        _ => Err(format!("value \"{text}\" must be between 300 and 599").into()),
    }
}
