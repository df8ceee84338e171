//! Lists of content types that a directive is for: `gzip_types` and its like.

use turnpike_conf::View;

/// Content types, compared without their parameters and in any case.
pub(crate) struct Types {
    /// `None`: all.
    names: Option<Vec<Box<[u8]>>>,
}

impl Types {
    /// Reads the directives in force. Where there are none, `default` holds; its first type is
    /// meant whatever is named.
    pub(crate) fn read(view: View<'_>, name: &str, default: &[&str]) -> Self {
        let entries = view.nearest_all(name);
        let taken = if entries.is_empty() { default.len() } else { 1 };
        let mut names: Vec<Box<[u8]>> = default
            .iter()
            .take(taken)
            .map(|name| name.as_bytes().into())
            .collect();
        for word in entries.iter().flat_map(|entry| entry.arguments.iter()) {
            if word.text == "*" {
                return Self { names: None };
            }
            names.push(word.bytes().into());
        }
        Self { names: Some(names) }
    }

    /// Whether a value of Content-Type is one of them.
    pub(crate) fn has(&self, content_type: &[u8]) -> bool {
        let Some(names) = &self.names else {
            return true;
        };
        let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
        let kind = content_type[..end].trim_ascii_end();
        names.iter().any(|own| own.eq_ignore_ascii_case(kind))
    }
}
