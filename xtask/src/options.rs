//! Options of chores: `--name VALUE` and `--flag`, nothing that needs a library.

use std::str::FromStr;

/// The options that a chore was called with.
#[derive(Debug)]
pub(crate) struct Options {
    found: Vec<(String, Option<String>)>,
}

impl Options {
    /// Reads arguments; `valued` options take the next argument, `flags` take none.
    ///
    /// # Errors
    /// An argument that is neither, or a value that is missing.
    pub(crate) fn parse(
        arguments: &[String],
        valued: &[&str],
        flags: &[&str],
    ) -> Result<Options, String> {
        let mut found = Vec::new();
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = match name.as_str() {
                name if valued.contains(&name) => Some(
                    rest.next()
                        .ok_or_else(|| format!("{name} wants a value"))?
                        .clone(),
                ),
                name if flags.contains(&name) => None,
                name => {
                    let known = [valued, flags].concat().join(", ");
                    return Err(format!("no option is called \"{name}\"; there are {known}"));
                }
            };
            found.push((name.clone(), value));
        }
        Ok(Options { found })
    }

    /// Whether the flag was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.found.iter().any(|(name, _)| name == flag)
    }

    /// The option's text; the last one counts.
    pub(crate) fn text(&self, option: &str) -> Option<&str> {
        let last = self.found.iter().rev().find(|(name, _)| name == option);
        last.and_then(|(_, value)| value.as_deref())
    }

    /// The option's number, or the default.
    ///
    /// # Errors
    /// It is not a number.
    pub(crate) fn number<T: FromStr>(&self, option: &str, default: T) -> Result<T, String> {
        match self.text(option) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| format!("{option} wants a number: \"{text}\"")),
        }
    }
}

#[cfg(test)]
mod tests;
