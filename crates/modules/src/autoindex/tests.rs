//! Tests of this family.

#![allow(clippy::unwrap_used)]

use super::handler::{Format, Frame, Item, Listing, sort};
use super::{data, page};
use crate::common::folder::EntryKind;

fn item(name: &[u8], kind: EntryKind, size_bytes: u64) -> Item {
    Item {
        name: name.to_vec(),
        kind,
        size_bytes,
        // Mon, 28 Sep 1970 12:05:09 GMT
        modified_s: 23_371_509,
    }
}

fn line(listing: &Listing, item: Item) -> String {
    let mut out = Vec::new();
    page::write(listing, b"/", &[item], &mut out);
    let text = String::from_utf8(out).unwrap();
    text.lines().nth(4).unwrap().to_owned()
}

fn listing(exact_size: bool, utf8: bool) -> Listing {
    Listing {
        format: Format::Html,
        local_time: false,
        frame: Frame::default(),
        exact_size,
        utf8,
        own_style: false,
        names_charset: false,
    }
}

#[test]
fn our_own_page_fits_a_phone_and_cuts_no_name() {
    let own = Listing {
        own_style: true,
        names_charset: true,
        ..listing(false, true)
    };
    let long = "n".repeat(60);
    let items = [
        item(b"d", EntryKind::Folder, 4096),
        item("<ünï>.txt".as_bytes(), EntryKind::File, 12),
        item(long.as_bytes(), EntryKind::File, 1536),
        item(b"large", EntryKind::File, 7 * 1024 * 1024 * 1024),
    ];
    let mut out = Vec::new();
    page::write(&own, b"/<x>/", &items, &mut out);
    let text = String::from_utf8(out).unwrap();
    let row = |name: &str, shown: &str, size: &str| {
        format!(
            "<tr><td><a href=\"{name}\">{shown}</a></td><td>1970-09-28 12:05</td>\
             <td>{size}</td></tr>\n"
        )
    };
    for part in [
        "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        "<title>Index of /&lt;x&gt;/</title>\n<style>\n",
        "@media (prefers-color-scheme: dark)",
        "<table>\n<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n",
        &row("d/", "d/", ""),
        &row("%3C%C3%BCn%C3%AF%3E.txt", "&lt;ünï&gt;.txt", "12 B"),
        &row(&long, &long, "1.5 KiB"),
        &row("large", "large", "7.0 GiB"),
        "</table>\n</body>\n</html>\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_page_has_the_layout_of_nginx() {
    let items = [
        item(b"d", EntryKind::Folder, 4096),
        item(b"a%", EntryKind::File, 12),
    ];
    let mut out = Vec::new();
    page::write(&listing(true, false), b"/<x>/", &items, &mut out);
    let expected = format!(
        "<html>\r\n<head><title>Index of /&lt;x&gt;/</title></head>\r\n<body>\r\n\
        <h1>Index of /&lt;x&gt;/</h1><hr><pre><a href=\"../\">../</a>\r\n\
        <a href=\"d/\">d/</a>{:48} 28-Sep-1970 12:05                   -\r\n\
        <a href=\"a%25\">a%</a>{:48} 28-Sep-1970 12:05                  12\r\n\
        </pre><hr></body>\r\n</html>\r\n",
        "", ""
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn sizes_are_rounded_where_asked() {
    let cases = [
        (0, "      0"),
        (9999, "   9999"),
        (10_000, "    10K"),
        (1024 * 1024 - 1, "  1024K"),
        (1024 * 1024, "     1M"),
        (1024 * 1024 * 3 / 2, "     2M"),
        (1024 * 1024 * 1024 * 7 + 5, "     7G"),
    ];
    for (size, expected) in cases {
        let text = line(&listing(false, false), item(b"a", EntryKind::File, size));
        assert!(text.ends_with(&format!(" 12:05 {expected}")), "{text}");
    }
    let text = line(&listing(false, false), item(b"a", EntryKind::Folder, 1));
    assert!(text.ends_with(" 12:05       -"), "{text}");
}

#[test]
fn long_names_are_cut_by_bytes_or_characters() {
    let name = |text: &str, utf8| {
        let line = line(
            &listing(true, utf8),
            item(text.as_bytes(), EntryKind::File, 1),
        );
        let start = line.find('>').unwrap() + 1;
        line[start..].to_owned()
    };
    let fifty = "0".repeat(50);
    assert!(name(&fifty, false).starts_with(&format!("{fifty}</a> 28")));
    let cut = format!("{}..&gt;</a> 28", "0".repeat(47));
    assert!(name(&format!("{fifty}0"), false).starts_with(&cut));
    let greater = format!("{}..&gt;</a> 28", "&gt;".repeat(47));
    assert!(name(&">".repeat(60), false).starts_with(&greater));
    let cyrillic = format!("{}..&gt;</a> 28", "\u{444}".repeat(47));
    assert!(name(&"\u{444}".repeat(51), true).starts_with(&cyrillic));
    let fits = format!("{}</a>{:10} 28", "\u{444}".repeat(40), "");
    assert!(name(&"\u{444}".repeat(40), true).starts_with(&fits));
}

#[test]
fn data_listings_are_those_of_nginx() {
    let items = [
        item(b"d&", EntryKind::Folder, 4096),
        item(b"a\"\x01\n", EntryKind::File, 12),
    ];
    let mut out = Vec::new();
    data::write_json(&items, &mut out);
    let json = "[\r\n{ \"name\":\"d&\", \"type\":\"directory\", \
        \"mtime\":\"Mon, 28 Sep 1970 12:05:09 GMT\" },\r\n\
        { \"name\":\"a\\\"\\u0001\\n\", \"type\":\"file\", \
        \"mtime\":\"Mon, 28 Sep 1970 12:05:09 GMT\", \"size\":12 }\r\n]";
    assert_eq!(String::from_utf8(out).unwrap(), json);
    let mut out = Vec::new();
    data::write_jsonp(b"f", &[], &mut out);
    assert_eq!(out, b"/* callback */\r\nf([\r\n]);");
    let mut out = Vec::new();
    data::write_xml(&items[..1], &mut out);
    let xml = "<?xml version=\"1.0\"?>\r\n<list>\r\n\
        <directory mtime=\"1970-09-28T12:05:09Z\">d&amp;</directory>\r\n</list>\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), xml);
}

#[test]
fn folders_come_first() {
    let mut items = [
        item(b"b", EntryKind::File, 0),
        item(b"a", EntryKind::Other, 0),
        item(b"z", EntryKind::Folder, 0),
    ];
    sort(&mut items);
    let names: Vec<_> = items.iter().map(|item| item.name.as_slice()).collect();
    assert_eq!(names, [b"z", b"a", b"b"]);
}
