//! Spans and batches as OTLP has them (opentelemetry-proto 1.3, `trace.proto` and `common.proto`),
//! written in the encoding of Protocol Buffers.

use super::context::{SpanId, TraceContext};

/// The most bytes of a text in a span: a queue of spans has a limit in bytes so.
const TEXT_BYTES_MAX: usize = 4096;

/// The `SpanKind` of a request that a server answers.
const KIND_SERVER: u64 = 2;

/// The `StatusCode` of a request that failed.
const STATUS_ERROR: u64 = 2;

/// A message under construction.
#[derive(Default)]
pub(super) struct Message(pub(super) Vec<u8>);

/// The wire types that are used.
#[derive(Clone, Copy)]
enum Kind {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn key(&mut self, field: u64, kind: Kind) {
        self.varint(field << 3 | kind as u64);
    }

    /// An integer, or a member of an enumeration.
    fn number(&mut self, field: u64, number: u64) {
        self.key(field, Kind::Varint);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u64, number: u64) {
        self.key(field, Kind::Fixed64);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn fixed32(&mut self, field: u64, number: u32) {
        self.key(field, Kind::Fixed32);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, Kind::Bytes);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A text: what is no UTF-8 is replaced, since a receiver would refuse the whole batch.
    fn text(&mut self, field: u64, text: &[u8]) {
        let text = &text[..text.len().min(TEXT_BYTES_MAX)];
        self.bytes(field, String::from_utf8_lossy(text).as_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// An attribute: a `KeyValue`.
    pub(super) fn attribute(&mut self, field: u64, name: &str, value: Attribute<'_>) {
        self.message(field, |pair| {
            pair.text(1, name.as_bytes());
            pair.message(2, |any| match value {
                Attribute::Text(text) => any.text(1, text),
                Attribute::Number(number) => any.number(3, number),
                Attribute::Texts(text) => any.message(5, |array| {
                    array.message(1, |any| any.text(1, text));
                }),
            });
        });
    }
}

/// The value of an attribute.
#[derive(Clone, Copy)]
pub(super) enum Attribute<'a> {
    Text(&'a [u8]),
    Number(u64),
    /// An array with this text: the form of attributes for header fields.
    Texts(&'a [u8]),
}

/// When a span began and ended, in nanoseconds since 1970.
pub(super) struct Times {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

/// The field of a span's attributes.
pub(super) const SPAN_ATTRIBUTES: u64 = 9;

/// A `Span`; `add` writes its attributes.
pub(super) fn span(
    own: &TraceContext,
    parent: Option<SpanId>,
    name: &[u8],
    times: &Times,
    failed: bool,
    add: impl FnOnce(&mut Message),
) -> Vec<u8> {
    let mut span = Message::default();
    span.bytes(1, &own.trace);
    span.bytes(2, &own.span);
    if !own.state.is_empty() {
        span.text(3, &own.state);
    }
    if let Some(parent) = parent {
        span.bytes(4, &parent);
    }
    span.text(5, name);
    span.number(6, KIND_SERVER);
    span.fixed64(7, times.start_ns);
    span.fixed64(8, times.end_ns);
    add(&mut span);
    if failed {
        span.message(15, |status| status.number(3, STATUS_ERROR));
    }
    span.fixed32(16, u32::from(own.is_sampled));
    span.0
}

/// An `ExportTraceServiceRequest` with these spans of one resource.
pub(super) fn batch(resource: &[(String, String)], version: &str, spans: &[Vec<u8>]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |own| {
            for (name, value) in resource {
                own.attribute(1, name, Attribute::Text(value.as_bytes()));
            }
        });
        of_resource.message(2, |of_scope| {
            of_scope.message(1, |scope| {
                scope.text(1, b"turnpike");
                scope.text(2, version.as_bytes());
            });
            for span in spans {
                of_scope.bytes(2, span);
            }
        });
    });
    request.0
}
