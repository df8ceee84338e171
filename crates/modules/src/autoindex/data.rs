//! The listing as JSON, JSONP and XML.

use std::io::Write as _;

use turnpike_wire::date;

use super::handler::Item;
use crate::common::folder::EntryKind;
use crate::common::html;

/// Appends the entries as a JSON array.
pub(super) fn write_json(items: &[Item], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"\r\n{ \"name\":\"");
        escape_json(&item.name, out);
        let kind = kind_name(item.kind);
        out.extend_from_slice(b"\", \"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\", \"mtime\":\"");
        out.extend_from_slice(&date::format(item.modified_s));
        out.push(b'"');
        if item.kind == EntryKind::File {
            // Writing into memory cannot fail.
            let _ = write!(out, ", \"size\":{}", item.size_bytes);
        }
        out.extend_from_slice(b" }");
    }
    out.extend_from_slice(b"\r\n]");
}

/// Appends a call of the function `callback` with the JSON array.
pub(super) fn write_jsonp(callback: &[u8], items: &[Item], out: &mut Vec<u8>) {
    out.extend_from_slice(b"/* callback */\r\n");
    out.extend_from_slice(callback);
    out.push(b'(');
    write_json(items, out);
    out.extend_from_slice(b");");
}

/// Appends the entries as an XML document.
pub(super) fn write_xml(items: &[Item], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<?xml version=\"1.0\"?>\r\n<list>\r\n");
    for item in items {
        let kind = kind_name(item.kind);
        let time = date::civil(item.modified_s);
        let (year, month, day) = (time.year, time.month, time.day);
        let (hour, minute, second) = (time.hour, time.minute, time.second);
        // Writing into memory cannot fail.
        let _ = write!(
            out,
            "<{kind} mtime=\"{year:4}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\""
        );
        if item.kind == EntryKind::File {
            let _ = write!(out, " size=\"{}\"", item.size_bytes);
        }
        out.push(b'>');
        html::escape(&item.name, out);
        let _ = write!(out, "</{kind}>\r\n");
    }
    out.extend_from_slice(b"</list>\r\n");
}

fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Folder => "directory",
        EntryKind::Other => "other",
    }
}

fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        let short = match byte {
            b'\\' | b'"' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            0..=0x1f => {
                let _ = write!(out, "\\u{byte:04X}");
                continue;
            }
            byte => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
}
