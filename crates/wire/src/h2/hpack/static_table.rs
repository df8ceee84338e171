//! The static table (RFC 7541 appendix A).

/// Names and values; the first has index 1.
pub(super) const ENTRIES: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Longest name in the table, in bytes.
const NAME_BYTES_MAX: usize = 27;

/// Index of the first entry whose name has this many bytes or more, in [`BY_LENGTH`].
static STARTS: [u8; NAME_BYTES_MAX + 2] = starts();

/// Indexes of the entries, from 0, sorted by the lengths of their names.
static BY_LENGTH: [u8; ENTRIES.len()] = by_length();

const fn by_length() -> [u8; ENTRIES.len()] {
    let mut sorted = [0; ENTRIES.len()];
    let mut at = 0;
    let mut length = 0;
    while length <= NAME_BYTES_MAX {
        let mut entry = 0;
        while entry < ENTRIES.len() {
            if ENTRIES[entry].0.len() == length {
                sorted[at] = entry as u8;
                at += 1;
            }
            entry += 1;
        }
        length += 1;
    }
    sorted
}

const fn starts() -> [u8; NAME_BYTES_MAX + 2] {
    let mut starts = [0; NAME_BYTES_MAX + 2];
    let mut length = 0;
    while length < starts.len() {
        let mut entry = 0;
        while entry < ENTRIES.len() {
            if ENTRIES[entry].0.len() < length {
                starts[length] += 1;
            }
            entry += 1;
        }
        length += 1;
    }
    starts
}

/// The place of a field in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Field(usize),
    Name(usize),
}

/// The first entry with that field, or else with that name.
pub(super) fn find(name: &[u8], value: &[u8]) -> Option<Found> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let range = usize::from(STARTS[name.len()])..usize::from(STARTS[name.len() + 1]);
    let mut found = None;
    for entry in &BY_LENGTH[range] {
        let entry = usize::from(*entry);
        let (own_name, own_value) = ENTRIES[entry];
        if own_name != name {
            continue;
        }
        if own_value == value {
            return Some(Found::Field(entry + 1));
        }
        found = found.or(Some(Found::Name(entry + 1)));
    }
    found
}
