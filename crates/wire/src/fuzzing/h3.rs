//! Fuzz bodies of HTTP/3: streams of requests and of connections, and field sections.

use crate::field_section::{RequestReader, ResponseReader};
use crate::h3::{
    Connection, ConnectionRules, ControlEvent, RequestEvent, RequestStream, ResponseEvent,
    ResponseStream, UnidirectionalStream,
};
use crate::qpack::{Decoder, Encoder, FieldSink, Indexing};

/// Names and values.
#[derive(Default, Debug, PartialEq, Eq)]
struct Collected(Vec<(Vec<u8>, Vec<u8>)>);

impl FieldSink for Collected {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.0.push((name.to_ascii_lowercase(), value.to_vec()));
    }
}

/// A field section is decoded, encoded and decoded again.
pub fn qpack(data: &[u8]) {
    let (mut decoder, mut fields) = (Decoder::default(), Collected::default());
    if decoder.decode(data, &mut fields).is_err() {
        return;
    }
    for indexing in [Indexing::Never, Indexing::No, Indexing::WhenRepeated] {
        let (mut encoder, mut section) = (Encoder::default(), Vec::new());
        encoder.begin(&mut section);
        for (name, value) in &fields.0 {
            encoder.field(name, value, indexing, &mut section);
        }
        let mut again = Collected::default();
        assert_eq!(decoder.decode(&section, &mut again), Ok(()));
        assert_eq!(again, fields);
    }
}

/// The stream of a request, read by a server and by a client, whose bytes come at once and in
/// pieces. The first byte chooses their length.
pub fn h3_request(data: &[u8]) {
    let Some((&knob, bytes)) = data.split_first() else {
        return;
    };
    let piece = usize::from(knob) + 1;
    assert_eq!(serve(bytes, piece), serve(bytes, usize::MAX));
    assert_eq!(hear(bytes, piece), hear(bytes, usize::MAX));
}

/// The pieces of a stream, and whether each is the last. Its end is known behind its last byte.
fn pieces(bytes: &[u8], piece: usize) -> impl Iterator<Item = (&[u8], bool)> {
    let pieces = bytes.chunks(piece.min(bytes.len().max(1)));
    let pieces = pieces.map(|piece| (piece, false));
    pieces.chain(std::iter::once((&[][..], true)))
}

/// The events of a request, and its body.
fn serve(bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    let mut connection = Connection::server(ConnectionRules::default());
    let (mut stream, mut reader) = (RequestStream::default(), RequestReader::default());
    let (mut events, mut body) = (Vec::new(), Vec::new());
    for (mut input, ends) in pieces(bytes, piece) {
        loop {
            match connection.receive_request(&mut stream, &mut input, ends, &mut reader, 0) {
                Ok(RequestEvent::More) => break,
                Ok(RequestEvent::Data(data)) => body.extend_from_slice(data),
                Ok(event) => {
                    if let RequestEvent::Head { fault: None, .. } = event {
                        assert!(reader.head.path().starts_with(b"/"));
                    }
                    events.push(format!("{event:?} {:?}", reader.head));
                }
                Err(error) => {
                    events.push(format!("{error:?}"));
                    return (events, body);
                }
            }
        }
        assert!(input.is_empty());
    }
    (events, body)
}

/// The events of a response, and its body.
fn hear(bytes: &[u8], piece: usize) -> (Vec<String>, Vec<u8>) {
    let mut connection = Connection::client(ConnectionRules::default());
    let (mut stream, mut reader) = (ResponseStream::new(false), ResponseReader::default());
    let (mut events, mut body) = (Vec::new(), Vec::new());
    for (mut input, ends) in pieces(bytes, piece) {
        loop {
            match connection.receive_response(&mut stream, &mut input, ends, &mut reader, 0) {
                Ok(ResponseEvent::More) => break,
                Ok(ResponseEvent::Data(data)) => body.extend_from_slice(data),
                Ok(event) => {
                    if event == ResponseEvent::Head {
                        assert!(reader.head.status >= 100);
                    }
                    events.push(format!("{event:?} {:?}", reader.head));
                }
                Err(error) => {
                    events.push(format!("{error:?}"));
                    return (events, body);
                }
            }
        }
    }
    (events, body)
}

/// A stream that only the peer writes, at a server and at a client, whose bytes come at once and in
/// pieces. The first byte chooses their length.
pub fn h3_control(data: &[u8]) {
    let Some((&knob, bytes)) = data.split_first() else {
        return;
    };
    for end in [Connection::server, Connection::client] {
        let whole = listen(end(ConnectionRules::default()), bytes, usize::MAX);
        let piece = usize::from(knob) + 1;
        assert_eq!(listen(end(ConnectionRules::default()), bytes, piece), whole);
    }
}

/// The events of such a stream.
fn listen(mut connection: Connection, bytes: &[u8], piece: usize) -> Vec<String> {
    let (mut stream, mut events) = (UnidirectionalStream::default(), Vec::new());
    for (mut input, _) in pieces(bytes, piece) {
        loop {
            match connection.receive_unidirectional(&mut stream, &mut input, 0) {
                Ok(ControlEvent::More) => break,
                Ok(event) => events.push(format!("{event:?} {:?}", connection.peer())),
                Err(error) => {
                    events.push(format!("{error:?}"));
                    return events;
                }
            }
        }
    }
    events.push(format!("{:?}", connection.end_unidirectional(&stream)));
    events
}
