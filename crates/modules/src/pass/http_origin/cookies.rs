//! `Set-Cookie` fields of responses: their domain, path and flags.

use turnpike_conf::{ConfError, View, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::{Builder, Pattern};
use turnpike_http::regex::Case;
use turnpike_http::variables::Template;

use super::rewrites::{Rewrites, entries, read_rewrites};

/// What becomes of the cookies that servers set.
#[derive(Default)]
pub(crate) struct CookieRewrites {
    domains: Rewrites,
    paths: Rewrites,
    flags: Vec<CookieFlags>,
}

/// A `proxy_cookie_flags` directive.
struct CookieFlags {
    cookie: Cookie,
    flags: Vec<Template>,
}

enum Cookie {
    Name(Template),
    Pattern(Pattern),
}

/// An attribute of a cookie: name, and value where it has one.
type Attribute = (Vec<u8>, Option<Vec<u8>>);

/// What the flags of a directive ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FlagChanges {
    secure: Option<bool>,
    http_only: Option<bool>,
    /// `Some(None)` removes it.
    same_site: Option<Option<&'static [u8]>>,
}

/// Reads `proxy_cookie_flags`.
fn read_flags(view: View<'_>, builder: &mut Builder<'_>) -> Result<Vec<CookieFlags>, ConfError> {
    let mut all = Vec::new();
    for entry in entries(view, "proxy_cookie_flags")? {
        let name = entry.argument(0);
        if entry.arguments.len() == 1 {
            if name == "off" {
                return Ok(Vec::new());
            }
            let message = format!("invalid parameter \"{name}\"");
            return Err(view.error(entry.span, message));
        }
        let cookie = match name.strip_prefix('~') {
            Some(pattern) => {
                let pattern = Pattern::compile(
                    pattern,
                    Case::Ignored,
                    &view.place(entry.span),
                    &mut builder.variables,
                )
                .map_err(|message| view.error(entry.span, message))?;
                Cookie::Pattern(pattern)
            }
            None => Cookie::Name(builder.template(view, entry, &bytes_of(name))?),
        };
        let mut flags = Vec::new();
        for word in entry.arguments.iter().skip(1) {
            let template = builder.template(view, entry, &word.bytes())?;
            if let Some(text) = template.constant()
                && !FlagChanges::default().add(text)
            {
                let message = format!("invalid parameter \"{}\"", word.text);
                return Err(view.error(entry.span, message));
            }
            flags.push(template);
        }
        all.push(CookieFlags { cookie, flags });
    }
    Ok(all)
}

impl CookieRewrites {
    /// Reads the directives in force.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(crate) fn read(view: View<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        Ok(Self {
            domains: read_rewrites(view, "proxy_cookie_domain", builder)?,
            paths: read_rewrites(view, "proxy_cookie_path", builder)?,
            flags: read_flags(view, builder)?,
        })
    }

    fn is_empty(&self) -> bool {
        self.domains.is_empty() && self.paths.is_empty() && self.flags.is_empty()
    }
}

/// Changes a `Set-Cookie` value as the location asks.
pub(super) fn rewrite(rewrites: &CookieRewrites, exchange: &Exchange, value: &mut Vec<u8>) {
    if rewrites.is_empty() {
        return;
    }
    let mut attributes = parse(value);
    let before = attributes.clone();
    // What has no equals sign sets no cookie.
    if attributes.first().is_none_or(|(_, value)| value.is_none()) {
        return;
    }
    for (name, value) in attributes.iter_mut().skip(1) {
        let Some(value) = value else { continue };
        if name.eq_ignore_ascii_case(b"domain") {
            rewrites.domains.apply(exchange, 0, value);
        } else if name.eq_ignore_ascii_case(b"path") {
            rewrites.paths.apply(exchange, 0, value);
        }
    }
    let name = attributes[0].0.clone();
    let flags = rewrites.flags.iter();
    if let Some(flags) = flags
        .into_iter()
        .find(|flags| flags.are_for(exchange, &name))
    {
        flags.wish(exchange).fulfil(&mut attributes);
    }
    if attributes == before {
        return;
    }
    value.clear();
    for (index, (name, own)) in attributes.iter().enumerate() {
        if index > 0 {
            value.extend_from_slice(b"; ");
        }
        value.extend_from_slice(name);
        if let Some(own) = own {
            value.push(b'=');
            value.extend_from_slice(own);
        }
    }
}

fn parse(value: &[u8]) -> Vec<Attribute> {
    let trimmed = |text: &[u8]| {
        let start = text.iter().position(|byte| *byte != b' ');
        let end = text.iter().rposition(|byte| *byte != b' ');
        match (start, end) {
            (Some(start), Some(end)) => text[start..=end].to_vec(),
            _ => Vec::new(),
        }
    };
    value
        .split(|byte| *byte == b';')
        .map(|part| match memchr::memchr(b'=', part) {
            Some(equals) => (trimmed(&part[..equals]), Some(trimmed(&part[equals + 1..]))),
            None => (trimmed(part), None),
        })
        .collect()
}

impl CookieFlags {
    fn are_for(&self, exchange: &Exchange, name: &[u8]) -> bool {
        match &self.cookie {
            // Without a verdict the exchange is answered with 500.
            Cookie::Pattern(pattern) => pattern.matches(exchange, name).unwrap_or(false),
            Cookie::Name(template) => template.value(exchange).eq_ignore_ascii_case(name),
        }
    }

    fn wish(&self, exchange: &Exchange) -> FlagChanges {
        let mut wish = FlagChanges::default();
        for flag in &self.flags {
            // What a variable brings that is no flag asks for nothing.
            let _ = wish.add(&flag.value(exchange));
        }
        wish
    }
}

impl FlagChanges {
    /// Adds a flag. `false`: there is none of that name.
    fn add(&mut self, flag: &[u8]) -> bool {
        match flag.to_ascii_lowercase().as_slice() {
            b"secure" => self.secure = Some(true),
            b"nosecure" => self.secure = self.secure.or(Some(false)),
            b"httponly" => self.http_only = Some(true),
            b"nohttponly" => self.http_only = self.http_only.or(Some(false)),
            b"samesite=strict" => self.same_site = Some(Some(b"Strict")),
            b"samesite=lax" => self.same_site = Some(Some(b"Lax")),
            b"samesite=none" => self.same_site = Some(Some(b"None")),
            b"nosamesite" => self.same_site = self.same_site.or(Some(None)),
            _ => return false,
        }
        true
    }

    fn fulfil(self, attributes: &mut Vec<Attribute>) {
        set(
            attributes,
            b"Secure",
            self.secure.map(|on| on.then_some(None)),
        );
        set(
            attributes,
            b"HttpOnly",
            self.http_only.map(|on| on.then_some(None)),
        );
        let same_site = self
            .same_site
            .map(|value| value.map(|value| Some(value.to_vec())));
        set(attributes, b"SameSite", same_site);
    }
}

/// `None` leaves the attribute as it is, `Some(None)` takes it away, otherwise it gets the value.
fn set(attributes: &mut Vec<Attribute>, name: &[u8], wish: Option<Option<Option<Vec<u8>>>>) {
    let is_it = |(own, _): &Attribute| own.eq_ignore_ascii_case(name);
    let Some(wish) = wish else { return };
    let cookie = attributes.remove(0);
    match wish {
        None => attributes.retain(|one| !is_it(one)),
        Some(value) => match attributes.iter_mut().find(|one| is_it(one)) {
            Some((own, old)) => {
                let same = match (&*old, &value) {
                    (_, None) => true,
                    (Some(old), Some(new)) => old.eq_ignore_ascii_case(new),
                    (None, Some(_)) => false,
                };
                if !same {
                    *own = name.to_vec();
                    *old = value;
                }
            }
            None => attributes.push((name.to_vec(), value)),
        },
    }
    attributes.insert(0, cookie);
}
