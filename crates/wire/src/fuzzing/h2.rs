//! Fuzz bodies of HTTP/2: frames, header blocks, and complete connections from both ends.

use crate::h2::hpack::{Decoder, Encoder, FieldSink, Indexing, decode_huffman, encode_huffman};
use crate::h2::{
    ClientConnection, Connection, ConnectionRules, Event, Frame, FrameHeader, HEADER_BYTES,
    RequestReader, ResponseReader, ServerEvent,
};
use crate::message::HeadRules;

/// Frame headers are written as they were read; payloads of any kind are read.
pub fn h2_frames(data: &[u8]) {
    let mut rest = data;
    while let Some(header) = FrameHeader::parse(rest) {
        let mut written = Vec::new();
        header.write(&mut written);
        // The reserved bit is not kept.
        assert_eq!(FrameHeader::parse(&written), Some(header));
        let behind = &rest[HEADER_BYTES..];
        let length = behind.len().min(header.length as usize);
        if let Ok(Frame::Data { data, .. }) = Frame::parse(header, &behind[..length]) {
            assert!(data.len() <= length);
        }
        rest = &behind[length..];
    }
}

/// Names and values.
#[derive(Default, Debug, PartialEq, Eq)]
struct Collected(Vec<(Vec<u8>, Vec<u8>)>);

impl FieldSink for Collected {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.0.push((name.to_ascii_lowercase(), value.to_vec()));
    }
}

/// A header block is decoded, encoded and decoded again; a text is decoded by the Huffman code.
pub fn h2_hpack(data: &[u8]) {
    let mut text = Vec::new();
    if decode_huffman(data, &mut text).is_ok() {
        let mut encoded = Vec::new();
        encode_huffman(&text, &mut encoded);
        // The bits after the last symbol are ones in both.
        assert!(data.starts_with(&encoded) && data.len() == encoded.len());
    }
    let (mut decoder, mut fields) = (Decoder::new(4096), Collected::default());
    if decoder.decode(data, &mut fields).is_err() {
        return;
    }
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::new(4096));
    for round in 0..3u32 {
        encoder.allow_table(4096 >> round);
        let mut block = Vec::new();
        encoder.begin(&mut block);
        for (number, (name, value)) in fields.0.iter().enumerate() {
            let indexing = match number % 4 {
                0 => Indexing::Never,
                1 => Indexing::No,
                _ => Indexing::WhenRepeated,
            };
            encoder.field(name, value, indexing, &mut block);
        }
        let mut again = Collected::default();
        assert_eq!(decoder.decode(&block, &mut again), Ok(()));
        assert_eq!(again, fields);
    }
}

/// A connection whose bytes come at once and in pieces. The first byte chooses their length.
pub fn h2_connection(data: &[u8]) {
    let Some((&knob, bytes)) = data.split_first() else {
        return;
    };
    let whole = converse(bytes, usize::MAX);
    assert_eq!(converse(bytes, usize::from(knob) + 1), whole);
}

/// The events of a connection and its output, when every request is answered.
fn converse(bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    let mut connection = Connection::new(ConnectionRules {
        streams_max: 3,
        stream_window: 1000,
        head: HeadRules::default(),
    });
    let (mut reader, mut block) = (RequestReader::default(), Vec::new());
    let mut events = Vec::new();
    let (mut at, mut received) = (0, 0);
    while received < bytes.len() {
        received = received.saturating_add(piece).min(bytes.len());
        loop {
            let step = match connection.receive(&bytes[at..received], &mut reader, 0) {
                Ok(step) => step,
                Err(error) => {
                    events.push(format!("{error:?}"));
                    connection.fail(error);
                    return (events, std::mem::take(connection.output()));
                }
            };
            at += step.consumed;
            match step.event {
                Event::More => break,
                Event::Nothing => continue,
                _ => events.push(format!("{:?}", step.event)),
            }
            if let Event::Request { stream, fault, .. } = step.event {
                assert!(fault.is_some() || reader.head.path().starts_with(b"/"));
                connection.send_head(stream, false, &mut block, |encoder, block| {
                    encoder.field(b":status", b"200", Indexing::No, block);
                });
                let window = connection.window(stream);
                assert!(connection.send_data(stream, b"body", true, 3) <= window);
            }
            if let Event::Trailers { stream } = step.event {
                assert!(!reader.head.fields.is_empty());
                connection.send_data(stream, b"", true, 3);
            }
            if let Event::Data { stream, data, ends } = step.event {
                connection.grant(stream, data.len() as u32);
                if ends {
                    connection.send_data(stream, b"", true, 3);
                }
            }
        }
    }
    (events, std::mem::take(connection.output()))
}

/// A client that gets the server's bytes at once and in pieces. The first byte chooses their
/// length.
pub fn h2_client(data: &[u8]) {
    let Some((&knob, bytes)) = data.split_first() else {
        return;
    };
    let whole = hear(bytes, usize::MAX);
    assert_eq!(hear(bytes, usize::from(knob) + 1), whole);
}

/// A client's events and its output, with two requests in progress, one of which has a body.
fn hear(bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    let mut client = ClientConnection::new(HeadRules::default());
    let (mut reader, mut block) = (ResponseReader::default(), Vec::new());
    for ends in [true, false] {
        client.open(ends, false, &mut block, |encoder, block| {
            encoder.field(b":method", b"GET", Indexing::No, block);
        });
    }
    let mut events = Vec::new();
    let (mut at, mut received) = (0, 0);
    while received < bytes.len() {
        received = received.saturating_add(piece).min(bytes.len());
        loop {
            let step = match client.receive(&bytes[at..received], &mut reader, 0) {
                Ok(step) => step,
                Err(error) => {
                    events.push(error.upstream_reason());
                    client.fail(error);
                    return (events, std::mem::take(client.output()));
                }
            };
            at += step.consumed;
            match step.event {
                ServerEvent::More => break,
                ServerEvent::Nothing => continue,
                ServerEvent::Head { .. } => assert!(reader.head.status >= 100),
                ServerEvent::Sendable => {
                    let window = client.window(3);
                    assert!(client.send_data(3, b"body", false) <= window);
                }
                _ => {}
            }
            events.push(format!("{:?} {:?}", step.event, reader.head));
        }
    }
    (events, std::mem::take(client.output()))
}
