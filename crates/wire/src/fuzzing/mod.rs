//! The bodies of the fuzz targets; the targets themselves only pass bytes in.
//!
//! Each body takes any input, must not panic, and compares two ways of reading the same bytes. A
//! plain test also runs the committed corpora.

use crate::certificate::{Certificate, RevocationList};
use crate::client_hello::{self, ja4};
use crate::dns::{self, AnswerError, Extension, Question};
use crate::encrypted_key::EncryptedKey;
use crate::fastcgi::{self, Part, RecordError, RecordReader};
use crate::h1::{
    BodyDecoder, BodyState, ChunkError, Framing, HeadError, HeadRules, HeadStep, InvalidFields,
    Known, LAST_CHUNK, Method, RequestHead, ResponseError, ResponseHead, Strictness, TargetForm,
    Version, parse_cgi_response, parse_request, parse_response, read_cgi_response,
    write_chunk_head,
};
use crate::memcached::{InvalidTrailer, Line, ValueReader};
use crate::message::{Head, StatusLine};
use crate::mp4;
use crate::ocsp;
use crate::pem::{Piece, Pieces};
use crate::proxy_protocol::{self as proxy, Transport};
use crate::ssi;
use crate::target::{Escape, Normal, escape, normalise};
use crate::{Span, date, host};

mod h2;
mod h3;
#[cfg(test)]
mod tests;

/// Longer ClientHellos are not read at each of their lengths: that takes quadratic time.
const CLIENT_HELLO_BYTES_MAX: usize = 4096;

/// Longer labels are cut where a line is taken in parts.
const PEM_LABEL_BYTES_MAX: usize = 200;

pub use h2::{h2_client, h2_connection, h2_frames, h2_hpack};
pub use h3::{h3_control, h3_request, qpack};

/// A request head parsed whole and in pieces. The first byte picks rules and the pieces' length.
pub fn h1_request(data: &[u8]) {
    let Some((&knob, text)) = data.split_first() else {
        return;
    };
    let rules = rules(knob);
    let mut whole = RequestHead::default();
    let result = parse_request(text, 0, &rules, &mut whole);
    let mut pieces = RequestHead::default();
    let piecewise = in_pieces(text, piece_len(knob), |part, scanned| {
        parse_request(part, scanned, &rules, &mut pieces)
    });
    match (result, piecewise) {
        (Ok(HeadStep::Complete), Ok(HeadStep::Complete)) => {
            assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
            check_request(text, &whole);
        }
        (Err(error), Err(piecewise)) => {
            assert_eq!(error, piecewise);
            check_refusal(error, text, &whole);
        }
        (result, piecewise) => assert_eq!(result, piecewise),
    }
    check_path(text);
}

/// A response head parsed whole and in pieces. The first byte picks the request's method.
pub fn h1_response(data: &[u8]) {
    let Some((&knob, text)) = data.split_first() else {
        return;
    };
    let rules = rules(knob);
    let method = Method::ALL[usize::from(knob) % Method::ALL.len()];
    let mut whole = ResponseHead::default();
    let result = parse_response(text, 0, &rules, method, &mut whole);
    let mut pieces = ResponseHead::default();
    let piecewise: Result<HeadStep, ResponseError> =
        in_pieces(text, piece_len(knob), |part, scanned| {
            parse_response(part, scanned, &rules, method, &mut pieces)
        });
    assert_eq!(result, piecewise);
    if result == Ok(HeadStep::Complete) {
        assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
        assert!(whole.head_len <= text.len() && whole.head_len <= rules.head_bytes_max);
        assert!((100..1000).contains(&whole.status));
        let spans = whole
            .fields
            .iter()
            .flat_map(|field| [field.name, field.value]);
        check_spans(text, whole.head_len, spans.chain([whole.reason]));
    }
    if let Some(seconds) = date::parse(text) {
        assert_eq!(date::parse(&date::format(seconds)), Some(seconds));
    }
}

/// A chunked body decoded whole and in pieces, and any bytes encoded and decoded again.
pub fn h1_chunked(data: &[u8]) {
    let Some((&knob, body)) = data.split_first() else {
        return;
    };
    let piece = piece_len(knob);
    let (whole, pieces) = (decode(body, usize::MAX), decode(body, piece));
    assert_eq!(whole, pieces);
    let lenient = decode_under(Strictness::Nginx, body, piece);
    assert_eq!(decode_under(Strictness::Nginx, body, usize::MAX), lenient);
    if let Ok((_, Some(_))) = whole {
        assert_eq!(whole, lenient); // nginx takes what the RFC takes, and reads the same
    }
    let mut encoded = Vec::new();
    for part in body.chunks(piece) {
        write_chunk_head(&mut encoded, part.len() as u64);
        encoded.extend_from_slice(part);
        encoded.extend_from_slice(b"\r\n");
    }
    encoded.extend_from_slice(LAST_CHUNK);
    encoded.extend_from_slice(b"next");
    let (decoded, left) = decode(&encoded, piece).unwrap_or_default();
    assert!(decoded == body && left == Some(4));
}

/// The start of a TLS connection, read complete and cut short: a result or a refusal must not
/// change when more bytes follow.
pub fn client_hello(data: &[u8]) {
    let whole = client_hello::read(data);
    let mut settled = None;
    for end in 0..=data.len().min(CLIENT_HELLO_BYTES_MAX) {
        let found = client_hello::read(&data[..end]);
        match &settled {
            None if found != Ok(None) => settled = Some(found),
            None => {}
            Some(before) => assert_eq!(&found, before),
        }
    }
    if data.len() <= CLIENT_HELLO_BYTES_MAX {
        assert_eq!(settled.unwrap_or(Ok(None)), whole);
    }
}

/// The fingerprint of a TLS client: it is of fixed length and printable, is there once the hello is
/// complete and not before, and what follows the hello does not change it.
pub fn ja4(data: &[u8]) {
    let Some(offers) = ja4::Offers::read(data) else {
        return;
    };
    let text = offers.fingerprint(|list| [list.len() as u8; ja4::SHA256_BYTES]);
    assert!(text.iter().chain(&offers.raw()).all(u8::is_ascii_graphic));
    assert_eq!(text[..10], offers.raw()[..10]);
    let longer = [data, b"\x17\x03\x03"].concat();
    assert_eq!(ja4::Offers::read(&longer).as_ref(), Some(&offers));
    for end in [data.len() / 4, data.len() / 2, data.len().saturating_sub(1)] {
        let cut = ja4::Offers::read(&data[..end]);
        assert!(cut.is_none() || cut.as_ref() == Some(&offers));
    }
}

/// A PROXY protocol header, parsed complete and cut short, then written and parsed again.
pub fn proxy_protocol(data: &[u8]) {
    let Ok(Some(header)) = proxy::parse(data) else {
        return;
    };
    assert!(header.len <= data.len() && header.len <= proxy::V2_BYTES_MAX);
    assert!(header.tlvs.end() <= header.len);
    assert_eq!(proxy::parse(&data[..header.len]), Ok(Some(header)));
    for end in 0..header.len {
        assert_eq!(proxy::parse(&data[..end]), Ok(None));
    }
    let tlvs = header.tlvs.of(data);
    for name in ["alpn", "ssl", "ssl_cn", "0xff"] {
        let _ = proxy::find_named_tlv(tlvs, name);
    }
    let ends = header
        .addresses
        .map(|addresses| (addresses.source, addresses.destination));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    proxy::write_v1(&mut first, ends);
    let written = proxy::write_v2(&mut second, ends, Transport::Stream, &[], None);
    assert!(written.is_ok());
    let canonical = ends.map(|(from, to)| (from.ip().to_canonical(), to.ip().to_canonical()));
    for text in [first, second] {
        let again = proxy::parse(&text)
            .ok()
            .flatten()
            .and_then(|header| header.addresses);
        let again = again.map(|both| (both.source.ip(), both.destination.ip()));
        let again = again.map(|(from, to)| (from.to_canonical(), to.to_canonical()));
        assert_eq!(again, canonical);
    }
}

/// A DNS answer read complete and cut short: a cut answer must give no other result.
pub fn dns_answer(data: &[u8]) {
    const NAME: &str = "example.net";
    let id = u16::from_be_bytes(*data.first_chunk().unwrap_or(&[0, 0]));
    for question in [Question::A, Question::Aaaa, Question::Srv] {
        let Ok(answer) = dns::parse_answer(data, id, NAME, question) else {
            continue;
        };
        let alias = answer.alias.as_deref().unwrap_or_default();
        assert!(alias.len() <= 2 * dns::NAME_BYTES_MAX * 2);
        assert!(answer.addresses.is_empty() || answer.services.is_empty());
        for end in 0..data.len() {
            if let Ok(part) = dns::parse_answer(&data[..end], id, NAME, question) {
                assert_eq!(part, answer);
            }
        }
        for extension in [Extension::Edns0, Extension::None] {
            let mut asked = Vec::new();
            if dns::write_question(id, alias, question, extension, &mut asked).is_ok() {
                let unrelated = dns::parse_answer(&asked, id, alias, question);
                assert_eq!(unrelated, Err(AnswerError::Unrelated)); // a question is no answer
            }
        }
    }
}

/// A FastCGI response read at once and in pieces. Its output and the raw bytes are read as CGI
/// heads, since these may begin with a status line. Then the bytes are written as the body of a
/// request and read back. The first byte chooses the length of the pieces.
pub fn fastcgi_response(data: &[u8]) {
    let Some((&knob, records)) = data.split_first() else {
        return;
    };
    let (whole, pieces) = (
        read_records(records, usize::MAX),
        read_records(records, piece_len(knob)),
    );
    assert_eq!(whole, pieces);
    check_cgi_head(knob, StatusLine::Optional, records.to_vec());
    let stdout = whole.map_or(records.to_vec(), |read| read.stdout);
    check_cgi_head(knob, StatusLine::Absent, stdout);
    let mut written = Vec::new();
    fastcgi::write_stdin(records, &mut written);
    for header in record_headers(&written) {
        written[header + 1] = 6; // what a server writes to stdin, an application writes to stdout
    }
    let read = read_records(&written, piece_len(knob)).unwrap_or_default();
    assert_eq!(read.stdout, records);
}

/// The head of a CGI answer, parsed whole and in pieces, and copied out of what has come. The first
/// byte chooses the rules, the pieces' length, the method, and whether a status line may come
/// first.
pub fn cgi_head(data: &[u8]) {
    let Some((&knob, text)) = data.split_first() else {
        return;
    };
    let rules = rules(knob);
    let method = Method::ALL[usize::from(knob) % Method::ALL.len()];
    let line = match knob & 0x40 {
        0 => StatusLine::Absent,
        _ => StatusLine::Optional,
    };
    let (mut whole, mut head) = (ResponseHead::default(), Head::default());
    let result = read_cgi_response(text, 0, &rules, line, method, &mut whole, &mut head);
    let mut pieces = ResponseHead::default();
    let piecewise = in_pieces(text, piece_len(knob), |part, scanned| {
        parse_cgi_response(part, scanned, &rules, line, method, &mut pieces)
    });
    assert_eq!(result, piecewise);
    if result != Ok(HeadStep::Complete) {
        return;
    }
    assert_eq!(
        format!("{:?}", whole.delivery()),
        format!("{:?}", pieces.delivery())
    );
    assert_eq!(whole.head_len, pieces.head_len);
    assert_eq!(head.status, pieces.status);
    assert!(head.fields.iter().count() <= rules.fields_max);
    for (name, value) in head.fields.iter() {
        assert!(!name.is_empty() && !name.contains(&b'\n') && !value.contains(&b'\n'));
    }
}

/// An answer of memcached taken whole and in pieces: what is left of it and what is said of it are
/// the same. Then the bytes are a value, which is left as it is. The first byte chooses the length
/// of the pieces.
pub fn memcached_value(data: &[u8]) {
    let Some((&knob, answer)) = data.split_first() else {
        return;
    };
    let whole = take_value(answer, usize::MAX);
    assert_eq!(whole, take_value(answer, piece_len(knob)));
    if let Ok((left, _)) = whole {
        assert!(answer.starts_with(&left));
    }
    let line = format!("VALUE key 0 {}\r\n", answer.len());
    let written = [line.as_bytes(), answer, b"\r\nEND\r\n"].concat();
    let (left, states) = take_value(&written, piece_len(knob)).unwrap_or_default();
    assert_eq!(left, written[..line.len() + answer.len()]);
    assert_eq!(states, [true; 3]);
    let parsed = Line::parse(line.trim_ascii_end().as_bytes());
    assert!(matches!(parsed, Line::Value { key: b"key", .. }));
}

/// What a reader of values leaves of an answer, and what it says then.
fn take_value(answer: &[u8], piece_len: usize) -> Result<(Vec<u8>, [bool; 3]), InvalidTrailer> {
    let (mut reader, mut bytes) = (ValueReader::new(), Vec::new());
    for piece in answer.chunks(piece_len) {
        let from = bytes.len();
        bytes.extend_from_slice(piece);
        reader.take(&mut bytes, from)?;
    }
    let states = [
        reader.has_ended(),
        reader.is_complete(),
        reader.is_reusable(),
    ];
    Ok((bytes, states))
}

/// A template of server-side includes, read at once and in pieces; its commands are written and
/// read again. The first byte chooses the length of the pieces.
pub fn ssi_template(data: &[u8]) {
    let Some((&knob, template)) = data.split_first() else {
        return;
    };
    let whole = read_template(template, usize::MAX);
    assert_eq!(whole, read_template(template, piece_len(knob)));
    for event in whole.1 {
        if let ssi::Event::Command(command) = event {
            let mut written = Vec::new();
            command.write(&mut written);
            let again = read_template(&written, piece_len(knob));
            assert_eq!(again, (Vec::new(), vec![ssi::Event::Command(command)]));
        }
    }
}

/// A part is cut out of an MP4 file; the first bytes say which part. The result is a film whose
/// index comes first, and the file has all its bytes.
pub fn mp4(data: &[u8]) {
    let Some((&[knob, start, length], file)) = data.split_first_chunk() else {
        return;
    };
    let wish = mp4::Excerpt {
        start_ms: u64::from(start) * 100,
        length_ms: (length > 0).then_some(u64::from(length) * 100),
        from_key_frame: knob & 1 == 1,
    };
    let Some((layout, part)) = cut_film(file, &wish) else {
        return;
    };
    assert!(part.samples.start < part.samples.end && part.samples.end <= layout.file_bytes);
    let samples = part.samples.start as usize..part.samples.end as usize;
    let film = [part.index.as_slice(), &file[samples]].concat();
    let (layout, _) = scan_film(&film).expect("what was written is a film");
    assert!(layout.index_is_first);
    assert_eq!(
        layout.samples.map(|samples| samples.end),
        Some(film.len() as u64)
    );
}

/// Where the atoms of a film are, and its index.
fn scan_film(file: &[u8]) -> Result<(mp4::Layout, Vec<u8>), mp4::Mp4Error> {
    let mut scan = mp4::Scan::new(file.len() as u64);
    while let Some(offset) = scan.wanted() {
        let head = &file[offset as usize..];
        scan.take(&head[..head.len().min(mp4::HEAD_BYTES_MAX)])?;
    }
    let layout = scan.layout().clone();
    let index = layout.index.clone().unwrap_or(0..0);
    Ok((
        layout,
        file[index.start as usize..index.end as usize].to_vec(),
    ))
}

fn cut_film(file: &[u8], wish: &mp4::Excerpt) -> Option<(mp4::Layout, mp4::Part)> {
    let (layout, index) = scan_film(file).ok()?;
    let kind = layout.kind.clone().unwrap_or(0..0);
    let kind = &file[kind.start as usize..kind.end as usize];
    let part = mp4::cut(kind, &index, &layout, wish).ok()?;
    Some((layout, part))
}

/// The text of a template, and its commands and errors.
fn read_template(template: &[u8], piece_len: usize) -> (Vec<u8>, Vec<ssi::Event>) {
    let mut parser = ssi::Parser::new(usize::from(u8::MAX));
    let (mut text, mut events) = (Vec::new(), Vec::new());
    for piece in template.chunks(piece_len) {
        let mut at = 0;
        loop {
            let (taken, event) = parser.feed(&piece[at..], &mut text);
            at += taken;
            match event {
                ssi::Event::NeedsMore => break,
                event => events.push(event),
            }
        }
    }
    parser.finish(&mut text);
    (text, events)
}

/// The CGI head of a response, parsed whole and in pieces.
fn check_cgi_head(knob: u8, line: StatusLine, text: Vec<u8>) {
    let (rules, mut whole) = (rules(knob), ResponseHead::default());
    let result = parse_cgi_response(&text, 0, &rules, line, Method::Get, &mut whole);
    let mut pieces = ResponseHead::default();
    let piecewise = in_pieces(&text, piece_len(knob), |part, scanned| {
        parse_cgi_response(part, scanned, &rules, line, Method::Get, &mut pieces)
    });
    assert_eq!(result, piecewise);
    if result == Ok(HeadStep::Complete) {
        assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
        assert!(whole.status == 101 || (200..1000).contains(&whole.status));
        let fields = whole.fields.iter();
        let spans = fields.flat_map(|field| [field.name, field.value]);
        check_spans(&text, whole.head_len, spans.chain([whole.reason]));
    }
}

/// The content of the records of a FastCGI response.
#[derive(Debug, Default, PartialEq, Eq)]
struct Records {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    stdout_ends: usize,
    /// Bytes behind the end of the request, where it has ended.
    surplus: Option<usize>,
}

fn read_records(input: &[u8], piece: usize) -> Result<Records, RecordError> {
    let (mut reader, mut read, mut at) = (RecordReader::new(), Records::default(), 0);
    while at < input.len() && !reader.has_ended() {
        let window = &input[at..input.len().min(at.saturating_add(piece))];
        let (part, taken) = reader.step(window)?;
        assert!(taken > 0 && taken <= window.len());
        match part {
            Part::Stdout(text) => read.stdout.extend_from_slice(text.of(window)),
            Part::Stderr { text, .. } => read.stderr.extend_from_slice(text.of(window)),
            Part::StdoutEnd => read.stdout_ends += 1,
            Part::End => assert!(reader.has_ended()),
            Part::None => {}
        }
        at += taken;
    }
    assert!(read.stdout.len() + read.stderr.len() <= input.len());
    read.surplus = reader.has_ended().then(|| input.len() - at);
    Ok(read)
}

/// The offsets of the headers of well-formed records.
fn record_headers(records: &[u8]) -> Vec<usize> {
    let (mut headers, mut at) = (Vec::new(), 0);
    while let Some(&[_, _, _, _, high, low, padding, _]) =
        records.get(at..).and_then(<[u8]>::first_chunk)
    {
        headers.push(at);
        at += 8 + usize::from(u16::from_be_bytes([high, low])) + usize::from(padding);
    }
    headers
}

/// A PEM text: its pieces come in order, and a block is the same without what is around it.
pub fn pem(data: &[u8]) {
    let line_at = |at: usize| 1 + memchr::memchr_iter(b'\n', &data[..at]).count();
    let mut at = 0;
    for piece in Pieces::new(data) {
        match piece {
            Ok(Piece::Text(lines)) => {
                assert!(!lines.bytes.is_empty() && data[at..].starts_with(lines.bytes));
                assert_eq!(lines.line, line_at(at));
                at += lines.bytes.len();
            }
            Ok(Piece::Block(block)) => {
                assert_eq!(block.line, line_at(at));
                let body = block.body.bytes;
                at = body.as_ptr().addr() - data.as_ptr().addr() + body.len();
                if block.label.len() < PEM_LABEL_BYTES_MAX {
                    let alone = [b"-----BEGIN ", block.label, b"-----\n", body].concat();
                    let again = Pieces::new(&alone).next().and_then(Result::ok);
                    let Some(Piece::Block(again)) = again else {
                        panic!("a block is none without what is around it");
                    };
                    assert_eq!((again.header, again.data), (block.header, block.data));
                }
            }
            Err(error) => assert!((line_at(at)..=line_at(data.len())).contains(&error.line)),
        }
    }
}

/// A certificate, a revocation list and an encrypted key, read complete and cut short: a cut one is
/// refused.
pub fn certificate(data: &[u8]) {
    let certificate = Certificate::read(data);
    let list = RevocationList::read(data);
    for end in 0..data.len() {
        let part = Certificate::read(&data[..end]);
        assert!(part.is_none() || part == certificate);
        let part = RevocationList::read(&data[..end]);
        assert!(part.is_none() || part == list);
        let part = EncryptedKey::read(&data[..end]);
        assert!(part.is_none() || part == EncryptedKey::read(data));
    }
    if let Some(read) = certificate {
        for seconds in [read.not_before_s, read.not_after_s] {
            // A time with a four-digit year must survive the round trip.
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            assert_eq!(date::parse(&date::format(seconds)), Some(seconds));
        }
        let mut names = Vec::new();
        read.subject.write_rfc2253(&mut names);
        read.subject.write_oneline(&mut names);
        let (extensions, bytes) = (read.extensions, data.len());
        assert!(extensions.dns_names().chain(extensions.addresses()).count() <= bytes);
    }
    if let (Some(list), Some(certificate)) = (list, certificate) {
        let _ = list.revokes(certificate.serial);
    }
}

/// An OCSP response, read complete and cut short: a cut one is refused.
pub fn ocsp(data: &[u8]) {
    let response = ocsp::Response::read(data);
    for end in 0..data.len() {
        let part = ocsp::Response::read(&data[..end]);
        assert!(part.is_err() || part == response);
    }
    let Ok(response) = response else {
        return;
    };
    assert!(response.responses.len() + response.certificates.len() <= data.len());
    for id in response
        .responses
        .iter()
        .filter_map(|single| single.id.as_ref())
    {
        assert!(id.request().len() <= data.len() + 64);
    }
}

fn rules(knob: u8) -> HeadRules {
    let invalid_fields = if knob & 1 == 0 {
        InvalidFields::Ignore
    } else {
        InvalidFields::Keep
    };
    let small = knob & 4 != 0;
    HeadRules {
        line_bytes_max: if small { 64 } else { 8192 },
        head_bytes_max: if small { 256 } else { 33_792 },
        fields_max: if small { 4 } else { 1000 },
        invalid_fields,
        underscores: knob & 2 != 0,
        connect: knob & 8 != 0,
        http09: knob & 16 == 0,
        strictness: strictness(knob),
    }
}

fn strictness(knob: u8) -> Strictness {
    match knob.count_ones() % 2 {
        0 => Strictness::Rfc,
        _ => Strictness::Nginx,
    }
}

/// 1 to 16 bytes.
fn piece_len(knob: u8) -> usize {
    usize::from(knob >> 4) + 1
}

/// Calls `parse` with ever longer beginnings of `text` until it is done.
fn in_pieces<E>(
    text: &[u8],
    piece: usize,
    mut parse: impl FnMut(&[u8], usize) -> Result<HeadStep, E>,
) -> Result<HeadStep, E> {
    let (mut end, mut known) = (0, 0);
    loop {
        end = text.len().min(end + piece);
        match parse(&text[..end], known)? {
            HeadStep::Incomplete { scanned } if end < text.len() => {
                assert!(scanned <= end);
                known = scanned;
            }
            step => return Ok(step),
        }
    }
}

fn check_spans(text: &[u8], head_len: usize, spans: impl Iterator<Item = Span>) {
    for span in spans {
        assert!(span.start() <= span.end() && span.end() <= head_len);
        assert_eq!(span.of(text).len(), span.len());
        assert!(!span.of(text).contains(&b'\n'));
    }
}

fn check_request(text: &[u8], head: &RequestHead) {
    assert!(head.head_len <= text.len());
    let parts = [
        head.method_span,
        head.line,
        head.target,
        head.origin,
        head.path,
        head.protocol,
    ];
    let spans = head
        .fields
        .iter()
        .flat_map(|field| [field.name, field.value]);
    let ignored = head.ignored.iter().copied();
    let options = head.query.into_iter().chain(head.host);
    check_spans(
        text,
        head.head_len,
        spans.chain(ignored).chain(parts).chain(options),
    );
    assert_eq!(Method::of(head.method_span.of(text)), head.method);
    for field in &head.fields {
        assert_eq!(Known::of(field.name.of(text)), field.known);
        assert!(head.find_name(text, field.name.of(text)).is_some());
    }
    let asterisk = head.form == TargetForm::Asterisk;
    let first = if asterisk { b'*' } else { b'/' };
    assert_eq!(head.path.of(text).first(), Some(&first));
    if head.path_clean {
        let clean = normalise(head.path.of(text), true, &mut Vec::new());
        assert_eq!(clean, Ok(Normal::Clean));
    }
    check_path(head.path.of(text));
    if let Some(name) = head.host {
        assert!(host::validate(name.of(text)).is_ok_and(|host| host.len == name.len()));
    }
    let length = head.find(Known::ContentLength).is_some();
    match head.framing {
        Framing::Chunked => assert!(!length && head.version == Version::Http11),
        Framing::Length(_) => assert!(length),
        Framing::None => assert!(!length && head.find(Known::TransferEncoding).is_none()),
    }
}

fn check_refusal(error: HeadError, text: &[u8], head: &RequestHead) {
    assert!((400..600).contains(&error.status()));
    let mut log = Vec::new();
    error.write_log(text, head, &mut log);
    assert!(log.starts_with(error.reason().as_bytes()));
    assert!(head.line.end() <= text.len());
}

/// Escaping and normalising a normal form again must not change it, and it must be clean.
fn check_path(path: &[u8]) {
    // A request line holds no control bytes, and an escaped NUL has no normal form.
    if path.first() != Some(&b'/') || path.iter().any(u8::is_ascii_control) {
        return;
    }
    for merge_slashes in [true, false] {
        let mut normal = Vec::new();
        match normalise(path, merge_slashes, &mut normal) {
            Ok(Normal::Clean) => normal.extend_from_slice(path),
            Ok(Normal::Rewritten) => {}
            Err(_) => continue,
        }
        assert!(normal.len() <= path.len() && normal.first() == Some(&b'/'));
        let segments = || normal.split(|byte| *byte == b'/');
        assert!(!segments().any(|segment| segment == b"." || segment == b".."));
        assert!(!merge_slashes || !normal.windows(2).any(|pair| pair == b"//"));
        let (mut escaped, mut again) = (Vec::new(), Vec::new());
        escape(&normal, Escape::Path, &mut escaped);
        if normalise(&escaped, merge_slashes, &mut again) == Ok(Normal::Clean) {
            again = escaped;
        }
        assert_eq!(again, normal);
    }
}

/// The data and, if the body is whole, the count of bytes after it.
type Decoded = (Vec<u8>, Option<usize>);

fn decode(input: &[u8], piece: usize) -> Result<Decoded, ChunkError> {
    decode_under(Strictness::Rfc, input, piece)
}

fn decode_under(strictness: Strictness, input: &[u8], piece: usize) -> Result<Decoded, ChunkError> {
    let mut decoder = BodyDecoder::new(Framing::Chunked).under(strictness);
    let (mut data, mut at) = (Vec::new(), 0);
    while at < input.len() && !decoder.is_finished() {
        let window = &input[at..input.len().min(at.saturating_add(piece))];
        let event = decoder.feed(window)?;
        assert!(event.consumed > 0 && event.consumed <= window.len());
        assert!(event.data.end() <= event.consumed);
        assert_eq!(event.state == BodyState::Finished, decoder.is_finished());
        data.extend_from_slice(event.data.of(window));
        at += event.consumed;
    }
    assert!(data.len() <= input.len());
    Ok((data, decoder.is_finished().then(|| input.len() - at)))
}
