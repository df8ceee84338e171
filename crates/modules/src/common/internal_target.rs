//! Targets within the server: where internal redirects and parts of responses lead. There is no way
//! to read one without a choice whether its path is checked, so that no directive forgets that a
//! client may have a say in it. (`error_page` belongs to the core, and reads its own unchecked.)

use std::borrow::Cow;

use turnpike_http::Quoted;
use turnpike_http::engine::Walk;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_lane::log::Level;

use crate::common::safe_path::safe_path;

/// Where a request goes within the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InternalTarget<'t> {
    /// The name of a location, with its `@`.
    Named(&'t [u8]),
    /// A path, and the query where the text has a question mark.
    Path {
        path: Cow<'t, [u8]>,
        query: Option<&'t [u8]>,
    },
}

impl<'t> InternalTarget<'t> {
    /// The target as it is written: its path is not checked, and escapes in it stay. It is for
    /// texts of the configuration, as nginx has them, whose variables usually hold a path that was
    /// checked (`try_files ... $uri.html`). One with a value that a client chooses (`$arg_path`)
    /// may lead above the root, with us as with nginx.
    pub(crate) fn parse_as_written(text: &'t [u8]) -> Self {
        if text.first() == Some(&b'@') {
            return Self::Named(text);
        }
        let (path, query) = match memchr::memchr(b'?', text) {
            Some(mark) => (&text[..mark], Some(&text[mark + 1..])),
            None => (text, None),
        };
        Self::Path {
            path: Cow::Borrowed(path),
            query,
        }
    }

    /// The target that an application names, or values of the request: its escapes are decoded.
    /// `None`, and a line in the log: the path does not begin with a slash, or could lead above
    /// the root.
    pub(crate) fn parse_untrusted(exchange: &Exchange, text: &'t [u8]) -> Option<Self> {
        let target = match Self::parse_as_written(text) {
            Self::Path { path, query } => safe_path(&path)
                .filter(|path| path.starts_with(b"/"))
                .map(|path| Self::Path {
                    path: Cow::Owned(path),
                    query,
                }),
            named @ Self::Named(_) => Some(named),
        };
        if target.is_none() {
            let text = Quoted(text);
            exchange.log(
                Level::Error,
                format_args!("unsafe URI \"{text}\" was detected"),
            );
        }
        target
    }

    /// Sends the request there.
    pub(crate) fn redirect(self, walk: &mut Walk) -> Verdict {
        match self {
            Self::Named(name) => Verdict::Named(String::from_utf8_lossy(name).into_owned()),
            Self::Path { path, query } => {
                walk.redirect_to(&path, query.unwrap_or_default());
                Verdict::Redirect
            }
        }
    }
}
