//! Replacing the beginning of a value: `proxy_redirect`, `proxy_cookie_domain`,
//! `proxy_cookie_path`.

use turnpike_conf::{Complaint, ConfError, Entry, View, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::{Builder, Pattern};
use turnpike_http::regex::{Case, Regex};
use turnpike_http::variables::Template;

/// Replacements, of which the first that fits is made.
#[derive(Default)]
pub(crate) struct Rewrites(Vec<Rewrite>);

struct Rewrite {
    sought: Sought,
    replacement: Template,
}

enum Sought {
    /// At the beginning.
    Prefix(Template),
    /// The whole value, but for a dot before it; case aside.
    Domain(Template),
    /// Anywhere; the whole value is replaced.
    Pattern(Pattern),
}

/// The directives of this name in force. `off` stands alone, as in nginx.
///
/// # Errors
/// A directive beside `off`.
pub(super) fn entries<'a>(view: View<'a>, name: &str) -> Result<Vec<&'a Entry>, ConfError> {
    let entries = view.nearest_all(name);
    let is_off = |entry: &&Entry| entry.arguments.len() == 1 && entry.argument(0) == "off";
    let mut before = false;
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 && (before || is_off(entry)) {
            let message = format!("\"{name}\" directive is duplicate");
            return Err(view.error(entry.span, message));
        }
        before |= is_off(entry);
    }
    Ok(entries)
}

/// Reads `proxy_cookie_domain` or `proxy_cookie_path`.
pub(super) fn read_rewrites(
    view: View<'_>,
    name: &str,
    builder: &mut Builder<'_>,
) -> Result<Rewrites, ConfError> {
    let mut rewrites = Rewrites::default();
    for entry in entries(view, name)? {
        match entry.arguments.len() {
            1 if entry.argument(0) == "off" => return Ok(Rewrites::default()),
            2 => rewrites.0.push(Rewrite::read(view, entry, builder)?),
            _ => {
                let message = format!("invalid parameter \"{}\"", entry.argument(0));
                return Err(view.error(entry.span, message));
            }
        }
    }
    Ok(rewrites)
}

impl Rewrites {
    /// Reads `proxy_redirect`; `usual` is what `default` stands for.
    pub(crate) fn redirects(
        view: View<'_>,
        usual: Option<(Vec<u8>, Vec<u8>)>,
        builder: &mut Builder<'_>,
    ) -> Result<Self, ConfError> {
        let entries = entries(view, "proxy_redirect")?;
        let mut rewrites = Self::default();
        if entries.is_empty() {
            rewrites.0 = Rewrite::usual(usual.clone()).into_iter().collect();
        }
        for entry in entries {
            let refused = |message: Complaint| Err(view.error(entry.span, message));
            match (entry.arguments.len(), entry.argument(0)) {
                (1, "off") => return Ok(Self::default()),
                (1, "default") => match Rewrite::usual(usual.clone()) {
                    Some(rewrite) => rewrites.0.push(rewrite),
                    None => {
                        return refused(
                            "\"proxy_redirect default\" cannot be used with \"proxy_pass\" \
                             directive with variables"
                                .to_owned()
                                .into(),
                        );
                    }
                },
                (1, other) => return refused(format!("invalid parameter \"{other}\"").into()),
                _ => rewrites.0.push(Rewrite::read(view, entry, builder)?),
            }
        }
        Ok(rewrites)
    }

    /// Whether there is nothing to replace.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces in what stands behind the first `kept` bytes of `value`.
    pub(super) fn apply(&self, exchange: &Exchange, kept: usize, value: &mut Vec<u8>) {
        for rewrite in &self.0 {
            if let Some((start, end)) = rewrite.sought.find(exchange, value, kept) {
                let replacement = rewrite.replacement.value(exchange);
                value.splice(start..end, replacement);
                return;
            }
        }
    }
}

impl Rewrite {
    fn usual(usual: Option<(Vec<u8>, Vec<u8>)>) -> Option<Self> {
        let (sought, replacement) = usual?;
        // `proxy_pass` with a dollar sign is evaluated; that in a location's name is no variable.
        Some(Self {
            sought: Sought::Prefix(Template::literal(&sought)),
            replacement: Template::literal(&replacement),
        })
    }

    fn read(view: View<'_>, entry: &Entry, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let text = entry.argument(0);
        let sought = if let Some(pattern) = text.strip_prefix('~') {
            let (pattern, case) = match pattern.strip_prefix('*') {
                Some(pattern) => (pattern, Case::Ignored),
                None if entry.row.name == "proxy_cookie_domain" => (pattern, Case::Ignored),
                None => (pattern, Case::Sensitive),
            };
            let pattern = Pattern::compile(
                pattern,
                case,
                &view.place(entry.span),
                &mut builder.variables,
            )
            .map_err(|message| view.error(entry.span, message))?;
            Sought::Pattern(pattern)
        } else if entry.row.name == "proxy_cookie_domain" {
            let text = text.strip_prefix('.').unwrap_or(text);
            Sought::Domain(builder.template(view, entry, &bytes_of(text))?)
        } else {
            Sought::Prefix(builder.template(view, entry, &bytes_of(text))?)
        };
        let replacement = entry.argument(1);
        let replacement = match entry.row.name {
            "proxy_cookie_domain" => replacement.strip_prefix('.').unwrap_or(replacement),
            _ => replacement,
        };
        Ok(Self {
            sought,
            replacement: builder.template(view, entry, &bytes_of(replacement))?,
        })
    }
}

impl Sought {
    /// Where what is to be replaced stands.
    fn find(&self, exchange: &Exchange, value: &[u8], kept: usize) -> Option<(usize, usize)> {
        let subject = value.get(kept..)?;
        match self {
            Self::Prefix(template) => {
                let found = with_value(template, exchange, |text| subject.starts_with(text));
                found.map(|length| (kept, kept + length))
            }
            Self::Domain(template) => {
                let dot = usize::from(subject.first() == Some(&b'.'));
                let bare = &subject[dot..];
                let same = |text: &[u8]| bare.eq_ignore_ascii_case(text);
                with_value(template, exchange, same).map(|_| (kept + dot, value.len()))
            }
            // Without a verdict the exchange is answered with 500.
            Self::Pattern(pattern) => pattern
                .matches(exchange, subject)
                .unwrap_or(false)
                .then_some((kept, value.len())),
        }
    }
}

/// The length of the template's value, where that is what is looked for.
fn with_value(
    template: &Template,
    exchange: &Exchange,
    fits: impl Fn(&[u8]) -> bool,
) -> Option<usize> {
    match template.constant() {
        Some(text) => fits(text).then_some(text.len()),
        None => {
            let text = template.value(exchange);
            fits(&text).then_some(text.len())
        }
    }
}

/// `off | default`, or two words of which the first may be a pattern.
pub(crate) fn check(name: &str, words: &[&str]) -> Result<(), Complaint> {
    match words {
        ["off"] => Ok(()),
        ["default"] if name == "proxy_redirect" => Ok(()),
        [sought, _] => match sought.strip_prefix('~') {
            None => Ok(()),
            Some(pattern) => {
                let pattern = pattern.strip_prefix('*').unwrap_or(pattern);
                Regex::check(pattern, Case::Ignored)?;
                Ok(())
            }
        },
        _ => {
            let first = words.first().copied().unwrap_or_default();
            Err(format!("invalid parameter \"{first}\"").into())
        }
    }
}
