//! The listing as an HTML page: under nginx's name in nginx's layout, which programs parse, else in
//! one of our own.

use std::io::Write as _;

use turnpike_wire::date::{self, MONTHS};
use turnpike_wire::target::{self, Escape};

use super::handler::{Item, Listing};
use crate::common::folder::EntryKind;
use crate::common::html;

/// Width of the column of names, in characters.
const NAME_WIDTH: usize = 50;

/// Characters of a name that is cut short: the rest of the column says so.
const CUT_NAME_WIDTH: usize = NAME_WIDTH - 3;

/// Largest size that is shown in bytes where sizes are rounded.
const PLAIN_BYTES_MAX: u64 = 9999;

/// What our own page has for browsers: the width of a phone, light or dark as the reader has it.
const META: &str = "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
    <meta name=\"color-scheme\" content=\"light dark\">\n";

/// The style of our own page. Names wrap where they must, dates and sizes never.
const STYLE: &str = "<style>\n\
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem; \
font: 1rem/1.5 system-ui, sans-serif; color: #1b2330; background: #fff }\n\
h1 { margin: 0 0 1rem; font-size: 1.25rem; font-weight: 600; overflow-wrap: anywhere }\n\
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }\n\
td { padding: .375rem 0; border-top: 1px solid #e3e7ec; vertical-align: top }\n\
td:first-child { overflow-wrap: anywhere }\n\
td + td { padding-left: 1rem; white-space: nowrap; text-align: right; color: #566173 }\n\
a { color: #0b57b0; text-decoration: none }\n\
a:hover, a:focus { text-decoration: underline }\n\
@media (max-width: 30rem) { td + td { padding-left: .5rem; font-size: .8125rem } }\n\
@media (prefers-color-scheme: dark) { body { color: #e8ebf0; background: #14181f } \
td { border-color: #2b323d } td + td { color: #9ba6b5 } a { color: #7fb4f5 } }\n\
</style>\n";

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// Appends the page for the folder `path`.
pub(super) fn write(listing: &Listing, path: &[u8], items: &[Item], out: &mut Vec<u8>) {
    if listing.own_style {
        write_own(listing, path, items, out);
        return;
    }
    if listing.frame.header.is_none() {
        begin_page(listing, path, out);
    }
    out.extend_from_slice(b"<pre><a href=\"../\">../</a>\r\n");
    let offset_s = if listing.local_time {
        local_offset_s()
    } else {
        0
    };
    for item in items {
        write_item(listing, item, offset_s, out);
    }
    out.extend_from_slice(b"</pre>");
    if listing.frame.footer.is_none() {
        out.extend_from_slice(b"<hr></body>\r\n</html>\r\n");
    }
}

fn begin_page(listing: &Listing, path: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<html>\r\n<head><title>Index of ");
    html::escape(path, out);
    out.extend_from_slice(b"</title>");
    link_style(listing, out);
    out.extend_from_slice(b"</head>\r\n<body>\r\n<h1>Index of ");
    html::escape(path, out);
    out.extend_from_slice(b"</h1><hr>");
}

/// The style sheet of `fancyindex_css_href`. `false`: there is none.
fn link_style(listing: &Listing, out: &mut Vec<u8>) -> bool {
    let Some(style) = &listing.frame.style else {
        return false;
    };
    out.extend_from_slice(b"<link rel=\"stylesheet\" href=\"");
    html::escape(style, out);
    out.extend_from_slice(b"\">");
    true
}

/// The page in our own style: a table, whose names are not cut.
fn write_own(listing: &Listing, path: &[u8], items: &[Item], out: &mut Vec<u8>) {
    if listing.frame.header.is_none() {
        out.extend_from_slice(b"<!DOCTYPE html>\n<html>\n<head>\n");
        if listing.names_charset {
            out.extend_from_slice(b"<meta charset=\"utf-8\">\n");
        }
        out.extend_from_slice(META.as_bytes());
        out.extend_from_slice(b"<title>Index of ");
        html::escape(path, out);
        out.extend_from_slice(b"</title>\n");
        if !link_style(listing, out) {
            out.extend_from_slice(STYLE.as_bytes());
        }
        out.extend_from_slice(b"</head>\n<body>\n<h1>Index of ");
        html::escape(path, out);
        out.extend_from_slice(b"</h1>\n");
    }
    out.extend_from_slice(b"<table>\n");
    out.extend_from_slice(b"<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    let offset_s = if listing.local_time {
        local_offset_s()
    } else {
        0
    };
    for item in items {
        write_row(listing, item, offset_s, out);
    }
    out.extend_from_slice(b"</table>\n");
    if listing.frame.footer.is_none() {
        out.extend_from_slice(b"</body>\n</html>\n");
    }
}

fn write_row(listing: &Listing, item: &Item, offset_s: i64, out: &mut Vec<u8>) {
    let slash: &[u8] = match item.kind {
        EntryKind::Folder => b"/",
        _ => b"",
    };
    out.extend_from_slice(b"<tr><td><a href=\"");
    target::escape(&item.name, Escape::Component, out);
    out.extend_from_slice(slash);
    out.extend_from_slice(b"\">");
    html::escape(&item.name, out);
    out.extend_from_slice(slash);
    let time = date::civil(item.modified_s.saturating_add(offset_s));
    let (year, month, day) = (time.year, time.month, time.day);
    let (hour, minute) = (time.hour, time.minute);
    // Writing into memory cannot fail.
    let _ = write!(
        out,
        "</a></td><td>{year}-{month:02}-{day:02} {hour:02}:{minute:02}</td><td>"
    );
    let _ = match (slash.is_empty(), listing.exact_size) {
        (false, _) => Ok(()),
        (true, true) => write!(out, "{} B", item.size_bytes),
        (true, false) => write_size(item.size_bytes, out),
    };
    out.extend_from_slice(b"</td></tr>\n");
}

/// A size with a unit, and one decimal place where it has few digits.
fn write_size(size_bytes: u64, out: &mut Vec<u8>) -> std::io::Result<()> {
    let (unit_bytes, unit) = match size_bytes {
        GIB.. => (GIB, "GiB"),
        MIB.. => (MIB, "MiB"),
        KIB.. => (KIB, "KiB"),
        bytes => return write!(out, "{bytes} B"),
    };
    let size = size_bytes as f64 / unit_bytes as f64;
    if size < 10.0 {
        write!(out, "{size:.1} {unit}")
    } else {
        write!(out, "{size:.0} {unit}")
    }
}

fn write_item(listing: &Listing, item: &Item, offset_s: i64, out: &mut Vec<u8>) {
    let is_folder = item.kind == EntryKind::Folder;
    out.extend_from_slice(b"<a href=\"");
    target::escape(&item.name, Escape::Component, out);
    if is_folder {
        out.push(b'/');
    }
    out.extend_from_slice(b"\">");
    let padding = write_name(&item.name, is_folder, listing.utf8, out);
    out.extend(std::iter::repeat_n(b' ', padding + 1));
    let time = date::civil(item.modified_s.saturating_add(offset_s));
    let month = MONTHS[usize::from(time.month).saturating_sub(1) % MONTHS.len()];
    let (day, year, hour, minute) = (time.day, time.year, time.hour, time.minute);
    // Writing into memory cannot fail.
    let _ = write!(out, "{day:02}-{month}-{year} {hour:02}:{minute:02} ");
    let _ = match (listing.exact_size, is_folder) {
        (true, true) => write!(out, "{:>19}", "-"),
        (true, false) => write!(out, "{:>19}", item.size_bytes),
        (false, true) => write!(out, "{:>7}", "-"),
        (false, false) => write_rounded(item.size_bytes, out),
    };
    out.extend_from_slice(b"\r\n");
}

/// Appends the name and the end of its link, and returns how many characters of the column are
/// left.
fn write_name(name: &[u8], is_folder: bool, utf8: bool, out: &mut Vec<u8>) -> usize {
    let text = std::str::from_utf8(name).ok().filter(|_| utf8);
    let width = text.map_or(name.len(), |text| text.chars().count());
    if width > NAME_WIDTH {
        let cut = match text {
            Some(text) => {
                let end = text.char_indices().nth(CUT_NAME_WIDTH);
                end.map_or(name.len(), |(end, _)| end)
            }
            None => CUT_NAME_WIDTH,
        };
        html::escape(&name[..cut], out);
        out.extend_from_slice(b"..&gt;</a>");
        return 0;
    }
    html::escape(name, out);
    let slash = is_folder && width < NAME_WIDTH;
    if slash {
        out.push(b'/');
    }
    out.extend_from_slice(b"</a>");
    NAME_WIDTH - width - usize::from(slash)
}

fn write_rounded(size_bytes: u64, out: &mut Vec<u8>) -> std::io::Result<()> {
    let (unit_bytes, unit) = match size_bytes {
        GIB.. => (GIB, 'G'),
        MIB.. => (MIB, 'M'),
        size if size > PLAIN_BYTES_MAX => (KIB, 'K'),
        size => return write!(out, "{size:>7}"),
    };
    let up = u64::from(size_bytes % unit_bytes >= unit_bytes / 2);
    write!(out, "{:>6}{unit}", size_bytes / unit_bytes + up)
}

/// What local time is ahead of UTC at present, in seconds. All entries are shown with it, whatever
/// held at their own time, as nginx does.
fn local_offset_s() -> i64 {
    let now = jiff::Timestamp::now();
    let offset = jiff::tz::TimeZone::system().to_offset(now);
    i64::from(offset.seconds())
}
