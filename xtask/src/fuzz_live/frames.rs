//! Changed connections of HTTP/2 clients: some requests as a client sends them, with their frames
//! in turns, and then up to four changes of frames or bytes.

use super::mutate::mutate;
use crate::http2_frames::{
    CONTINUATION, DATA, FLAG_END, FLAG_END_HEADERS, FLAG_PADDED, GOAWAY, HEAD_BYTES, HEADERS, PING,
    PREFACE, PRIORITY, PRIORITY_UPDATE, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
    write_frame,
};
use turnpike_testkit::random::Random;

/// Requests of a connection, and changes of one.
const REQUESTS_MAX: usize = 8;
const CHANGES_MAX: usize = 4;
/// Copies of a frame: more than any limit on frames without use allows at once.
const COPIES_MAX: usize = 3000;
/// A connection's bytes: changes upon changes would grow without end.
const BYTES_MAX: usize = 1 << 20;

/// A request: method, path, further fields, and the length of its body. `MARK` is the case's mark.
type Request = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    usize,
);

/// A request for each kind of location, and for what their handlers look at.
const REQUESTS: &[Request] = &[
    ("GET", "/static.txt", &[], 0),
    ("GET", "/static.txt", &[("range", "bytes=5-9,20-")], 0),
    ("GET", "/static.txt", &[("accept-encoding", "gzip")], 0),
    ("HEAD", "/large", &[], 0),
    ("GET", "/large", &[], 0),
    ("GET", "/large", &[("priority", "u=0, i")], 0),
    ("GET", "/slow/large", &[], 0),
    ("GET", "/list/", &[], 0),
    ("GET", "/return", &[("cookie", "a=1"), ("cookie", "b=2")], 0),
    ("POST", "/return", &[], 100_000),
    ("GET", "/deny", &[], 0),
    ("GET", "/proxy/MARK", &[], 0),
    ("GET", "/proxy/MARK", &[("te", "trailers")], 0),
    ("POST", "/proxy/MARK", &[], 70_000),
    ("PUT", "/unbuffered/MARK", &[], 70_000),
    ("POST", "/unbuffered/MARK", &[("content-length", "11")], 11),
    ("GET", "/cached/MARK", &[], 0),
    ("GET", "/cached/MARK", &[("if-none-match", "*")], 0),
    ("GET", "/cached/same", &[("cache-control", "no-cache")], 0),
    ("GET", "/limited/static.txt", &[], 0),
    (
        "POST",
        "/grpc/MARK",
        &[("content-type", "application/grpc"), ("te", "trailers")],
        5_000,
    ),
    ("PUT", "/put/MARK", &[("if-none-match", "*")], 3_000),
    ("DELETE", "/put/MARK", &[], 0),
    ("MOVE", "/put/MARK", &[("destination", "/put/moved")], 0),
    ("CONNECT", "/socket", &[(":protocol", "websocket")], 300),
    ("OPTIONS", "*", &[], 0),
];

/// Fields that a request must not have, or that decide how it is passed on.
const FIELDS: &[(&str, &str)] = &[
    (":method", "GET"),
    (":path", ""),
    (":path", "static.txt"),
    (":authority", "other.test"),
    (":scheme", "ftp"),
    (":status", "200"),
    (":protocol", "h2c"),
    ("host", "other.test"),
    ("Upper", "case"),
    ("", "no name"),
    ("a b", "c"),
    ("a", "b\r\nc: d"),
    ("a", "\0"),
    ("connection", "close"),
    ("transfer-encoding", "chunked"),
    ("upgrade", "h2c"),
    ("te", "gzip"),
    ("content-length", "5"),
    ("content-length", "99999999999999999999"),
    ("expect", "100-continue"),
    ("cookie", ""),
    ("x-large", "%LARGE%"),
];

/// Numbers in frames: windows, settings, errors.
const NUMBERS: &[u32] = &[
    0,
    1,
    16_383,
    16_384,
    65_535,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX,
];
/// Streams that a frame is moved to.
const STREAMS: &[u32] = &[0, 1, 2, 3, 5, 7, 101, (1 << 31) - 1, 1 << 31, u32::MAX];
/// Kinds of frames, with some that nobody knows.
const KINDS: &[u8] = &[
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
    10,
    12,
    PRIORITY_UPDATE,
    255,
];

/// The client's bytes of a case, as frames and what is left of them.
pub(super) fn of_case(mark: &str, random: &mut Random) -> Vec<u8> {
    let mut frames = conversation(mark, random);
    if !random.once_in(10) {
        for _ in 0..=random.index(CHANGES_MAX) {
            change(&mut frames, random);
        }
    }
    let mut bytes = frames.concat();
    if random.once_in(5) {
        // Texts of HTTP/1 are of little use here; bytes are changed and repeated all the same.
        bytes = mutate(
            &bytes,
            &[PREFACE, b"\0\0\0", b"\xff"],
            &["GET / HTTP/1.1\n\n"],
            random,
        );
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

/// A connection that keeps to the rules.
fn conversation(mark: &str, random: &mut Random) -> Vec<Vec<u8>> {
    let mut waiting: Vec<Vec<Vec<u8>>> = (0..=random.index(REQUESTS_MAX))
        .map(|number| request(number as u32 * 2 + 1, mark, random))
        .collect();
    waiting.iter_mut().for_each(|frames| frames.reverse());
    let mut setting = vec![0, 4];
    let window = random.pick(&[0, 1, 65_535, 1 << 20, 1 << 30]);
    setting.extend(u32::to_be_bytes(window));
    let mut frames = vec![PREFACE.to_vec(), frame(SETTINGS, 0, 0, &setting)];
    if !random.once_in(3) {
        frames.push(frame(WINDOW_UPDATE, 0, 0, &[0x3f, 0, 0, 0]));
    }
    // The first frames of requests are in the order of their streams; the rest takes turns.
    let mut begun = 0;
    while waiting.iter().any(|frames| !frames.is_empty()) {
        let is_next = begun < waiting.len() && random.once_in(2);
        let place = if is_next || begun == 0 {
            begun
        } else {
            random.index(begun)
        };
        begun = begun.max(place + 1);
        // A block of fields is not divided.
        while let Some(next) = waiting[place].pop() {
            let is_open =
                matches!(next[3], HEADERS | CONTINUATION) && next[4] & FLAG_END_HEADERS == 0;
            frames.push(next);
            if !is_open {
                break;
            }
        }
        if random.once_in(8) {
            frames.push(control(place as u32 * 2 + 1, random));
        }
    }
    frames
}

/// The frames of a request.
fn request(stream: u32, mark: &str, random: &mut Random) -> Vec<Vec<u8>> {
    let (method, path, fields, body) = random.pick(REQUESTS);
    let mut list = vec![(":method", method.to_owned())];
    if method != "CONNECT" || !fields.is_empty() {
        list.push((":path", path.replace("MARK", mark)));
        list.push((":scheme", "http".to_owned()));
    }
    list.push((":authority", "a.test".to_owned()));
    list.extend(
        fields
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    if random.once_in(6) {
        let (name, value) = random.pick(FIELDS);
        let at = random.index(list.len() + 1);
        list.insert(at, (name, value.replace("%LARGE%", &"x".repeat(20_000))));
    }
    let mut block = Vec::new();
    for (name, value) in &list {
        literal(&mut block, name, value.as_bytes(), random);
    }
    let end = if body == 0 { FLAG_END } else { 0 };
    let mut frames = headers(stream, &block, end, random);
    let mut left = body;
    while left > 0 {
        let length = left.min(1 + random.index(16_384));
        left -= length;
        let has_trailers = left == 0 && random.once_in(6);
        let end = if left == 0 && !has_trailers {
            FLAG_END
        } else {
            0
        };
        frames.push(data(stream, length, end, random));
        if has_trailers {
            let mut block = Vec::new();
            literal(&mut block, "x-trailer", b"last", random);
            frames.extend(headers(stream, &block, FLAG_END, random));
        }
    }
    frames
}

/// A block of fields, in one frame or in several.
fn headers(stream: u32, block: &[u8], flags: u8, random: &mut Random) -> Vec<Vec<u8>> {
    if block.len() <= 16_384 && !random.once_in(6) {
        return vec![frame(HEADERS, flags | FLAG_END_HEADERS, stream, block)];
    }
    let size = (block.len() / 3 + 1).min(16_384);
    let parts: Vec<&[u8]> = block.chunks(size).collect();
    let last = parts.len() - 1;
    let frames = parts.iter().enumerate().map(|(number, part)| {
        let end = if number == last { FLAG_END_HEADERS } else { 0 };
        match number {
            0 => frame(HEADERS, flags | end, stream, part),
            _ => frame(CONTINUATION, end, stream, part),
        }
    });
    frames.collect()
}

fn data(stream: u32, length: usize, flags: u8, random: &mut Random) -> Vec<u8> {
    if length > 200 || !random.once_in(4) {
        return frame(DATA, flags, stream, &vec![b'd'; length]);
    }
    let padding = random.index(50);
    let mut payload = vec![padding as u8];
    payload.extend(vec![b'd'; length]);
    payload.extend(vec![0; padding]);
    frame(DATA, flags | FLAG_PADDED, stream, &payload)
}

/// A frame of control that a client may send at any time.
fn control(stream: u32, random: &mut Random) -> Vec<u8> {
    match random.index(6) {
        0 => frame(PING, 0, 0, b"pingpong"),
        1 => frame(WINDOW_UPDATE, 0, stream, &100_000_u32.to_be_bytes()),
        2 => frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 16]),
        3 => frame(
            PRIORITY_UPDATE,
            0,
            0,
            &[&stream.to_be_bytes()[..], b"u=1"].concat(),
        ),
        4 => frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()),
        _ => frame(SETTINGS, FLAG_END, 0, &[]),
    }
}

/// Changes one of the frames, their order or their number.
fn change(frames: &mut Vec<Vec<u8>>, random: &mut Random) {
    let at = random.index(frames.len());
    let other = random.index(frames.len());
    match random.index(12) {
        0 => frames.insert(other, frames[at].clone()),
        1 => drop(frames.remove(at)),
        2 => frames.swap(at, other),
        3 => set(&mut frames[at], 3, &[random.pick(KINDS)]),
        4 => set(&mut frames[at], 4, &[(random.number() & 0xff) as u8]),
        5 => set(&mut frames[at], 5, &random.pick(STREAMS).to_be_bytes()),
        6 => set(&mut frames[at], 0, &random.pick(NUMBERS).to_be_bytes()[1..]),
        7 => {
            let kept = random.index(frames[at].len() + 1);
            cut(&mut frames[at], kept);
        }
        8 => {
            let place = random.index(frames[at].len());
            set(&mut frames[at], place, &[(random.number() & 0xff) as u8]);
        }
        9 | 10 => frames.insert(at, odd(random)),
        _ => {
            let copies = random.index(COPIES_MAX);
            let flood = frames[at].repeat(copies.min(BYTES_MAX / frames[at].len().max(1)));
            frames.insert(at, flood);
        }
    }
    if frames.is_empty() {
        frames.push(PREFACE.to_vec());
    }
}

/// A frame that no client has a reason to send.
fn odd(random: &mut Random) -> Vec<u8> {
    let number = random.pick(NUMBERS).to_be_bytes();
    let stream = random.pick(STREAMS);
    match random.index(6) {
        0 => {
            let setting = [&[0, random.index(10) as u8][..], &number].concat();
            frame(SETTINGS, 0, 0, &setting)
        }
        1 => frame(WINDOW_UPDATE, 0, stream, &number),
        2 => frame(RST_STREAM, 0, stream, &number),
        3 => frame(GOAWAY, 0, 0, &[number, number].concat()),
        4 => {
            let length = random.index(40);
            let payload: Vec<u8> = (0..length).map(|_| random.number() as u8).collect();
            frame(HEADERS, FLAG_END | FLAG_END_HEADERS, stream, &payload)
        }
        _ => {
            let payload = vec![0; random.index(100)];
            frame(random.pick(KINDS), random.number() as u8, stream, &payload)
        }
    }
}

/// Writes over bytes of a frame, as far as it has them.
fn set(frame: &mut [u8], at: usize, bytes: &[u8]) {
    for (old, new) in frame.iter_mut().skip(at).zip(bytes) {
        *old = *new;
    }
}

/// Cuts a frame; its length says so, where it still has one.
fn cut(frame: &mut Vec<u8>, length: usize) {
    frame.truncate(length);
    if let Some(payload) = length.checked_sub(HEAD_BYTES) {
        set(frame, 0, &(payload as u32).to_be_bytes()[1..]);
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_frame(&mut bytes, kind, flags, stream, payload);
    bytes
}

/// Appends a field as a literal (RFC 7541 section 6.2), with or without an entry in the table.
fn literal(block: &mut Vec<u8>, name: &str, value: &[u8], random: &mut Random) {
    block.push(random.pick(&[0x00, 0x10, 0x40]));
    for text in [name.as_bytes(), value] {
        match text.len() {
            short @ 0..127 => block.push(short as u8),
            long => {
                block.push(127);
                let mut rest = long - 127;
                while rest >= 128 {
                    block.push((rest % 128) as u8 | 128);
                    rest /= 128;
                }
                block.push(rest as u8);
            }
        }
        block.extend(text);
    }
}

#[cfg(test)]
mod tests;
