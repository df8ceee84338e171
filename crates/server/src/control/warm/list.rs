//! The URLs of a list: one a line, or those of a sitemap (sitemaps.org, protocol 0.9).

use std::collections::HashSet;
use std::io::Read as _;

use turnpike_lane::log::Errno;

/// The longest list in bytes: twice what one sitemap may have.
const LIST_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// A URL of a list, which has a scheme and a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Url {
    text: String,
    port: u16,
}

impl Url {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The port that it names, or that of its scheme.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    fn parse(text: &str) -> Option<Url> {
        let (scheme, rest) = text.split_once("://")?;
        let default = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        // An IPv6 address has colons of its own.
        let after_host = authority
            .rsplit_once(']')
            .map_or(authority, |(_, rest)| rest);
        let port = match after_host.rsplit_once(':') {
            None => default,
            Some((_, port)) => port.parse().ok()?,
        };
        // A fragment is for the client alone.
        let whole = text.split('#').next()?;
        (!authority.is_empty()).then(|| Url {
            text: whole.to_owned(),
            port,
        })
    }
}

/// Reads the list of a file, or of standard input (`-`); each URL counts once.
///
/// # Errors
/// What is wrong with it, for people.
pub(super) fn read(file: &str) -> Result<Vec<Url>, String> {
    let failed = |error: std::io::Error| format!("\"{file}\": {}", Errno(&error));
    let mut bytes = Vec::new();
    if file == "-" {
        let input = std::io::stdin().lock();
        let read = input.take(LIST_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(failed)?;
    } else {
        let input = std::fs::File::open(file).map_err(failed)?;
        let read = input.take(LIST_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(failed)?;
    }
    if bytes.len() as u64 > LIST_BYTES_MAX {
        return Err(format!("\"{file}\" has more than 100 MB: split it"));
    }
    parse(file, &bytes)
}

/// The URLs of a list with that name.
///
/// # Errors
/// What is wrong with it, for people.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Url>, String> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(format!(
            "\"{file}\" is compressed: gunzip -c FILE | turnpike cache warm -"
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| format!("\"{file}\" is not text"))?;
    let text = text.trim_start_matches('\u{feff}');
    let urls = if text.trim_start().starts_with('<') {
        of_sitemap(file, text)?
    } else {
        of_lines(file, text)?
    };
    if urls.is_empty() {
        return Err(format!("\"{file}\" names no URL"));
    }
    let mut seen = HashSet::new();
    Ok(urls
        .into_iter()
        .filter(|url| seen.insert(url.clone()))
        .collect())
}

fn of_lines(file: &str, text: &str) -> Result<Vec<Url>, String> {
    let lines = text.lines().zip(1..).filter_map(|(line, number)| {
        let word = line.split_whitespace().next()?;
        (!word.starts_with('#')).then_some((word, number))
    });
    let urls = lines.map(|(word, number)| {
        Url::parse(word).ok_or_else(|| {
            format!("{file}:{number}: \"{word}\" does not begin with http://HOST or https://HOST")
        })
    });
    urls.collect()
}

/// The URLs between `<loc>` and `</loc>`.
fn of_sitemap(file: &str, text: &str) -> Result<Vec<Url>, String> {
    if text.contains("<sitemapindex") {
        return Err(format!(
            "\"{file}\" is an index of sitemaps: warm with each sitemap that it names"
        ));
    }
    let places = text.split("<loc>").skip(1);
    let urls = places.map(|rest| {
        let place = rest.split("</loc>").next().unwrap_or_default();
        let place = unescaped(place.trim());
        Url::parse(&place).ok_or_else(|| {
            format!("{file}: \"{place}\" does not begin with http://HOST or https://HOST")
        })
    });
    urls.collect()
}

/// A text of XML without its entities: sitemaps escape these five.
fn unescaped(text: &str) -> String {
    // The ampersand comes last: what it makes is no entity.
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}
