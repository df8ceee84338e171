//! The trace context of a request: `traceparent` and `tracestate` (W3C Trace Context, level 1).

use turnpike_http::rooms::{Room, Rooms};
use turnpike_wire::hex;

/// The bytes of a `traceparent` of version 00.
const PARENT_BYTES: usize = 55;

/// The most bytes of `tracestate` that are passed on (section 3.3.1.5 asks for at least 512).
const STATE_BYTES_MAX: usize = 4096;

/// The number of a trace.
pub(super) type TraceId = [u8; 16];

/// The number of a span in its trace.
pub(super) type SpanId = [u8; 8];

/// A position in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TraceContext {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    pub(super) is_sampled: bool,
    /// What other systems have to say about the trace, as it came.
    pub(super) state: Box<[u8]>,
}

impl TraceContext {
    /// The context in fields of a request; `None` if there is none or it is malformed: then a new
    /// trace begins (section 2.3), and the state is left out with it.
    pub(super) fn parse(parent: &[u8], state: &[u8]) -> Option<TraceContext> {
        let (known, rest) = parent.split_at_checked(PARENT_BYTES)?;
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        if !known.iter().all(is_hex) || [2, 35, 52].iter().any(|at| known[*at] != b'-') {
            return None;
        }
        // A later version may have more fields; 255 is none.
        let version = hex::byte(&known[..2])?;
        let is_known = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let trace: TraceId = hex::bytes(&known[3..35])?.try_into().ok()?;
        let span: SpanId = hex::bytes(&known[36..52])?.try_into().ok()?;
        let flags = hex::byte(&known[53..])?;
        let is_valid = is_known && trace != [0; 16] && span != [0; 8];
        let kept = Some(state).filter(|state| state.len() <= STATE_BYTES_MAX);
        is_valid.then(|| TraceContext {
            trace,
            span,
            is_sampled: flags & 1 == 1,
            state: kept.unwrap_or_default().into(),
        })
    }

    /// A new span: in the parent's trace, or in a new one. `None` if the system has no random
    /// numbers.
    pub(super) fn begin(parent: Option<&TraceContext>) -> Option<TraceContext> {
        let mut trace = [0; 16];
        let mut span = [0; 8];
        aws_lc_rs::rand::fill(&mut span).ok()?;
        match parent {
            Some(parent) => trace = parent.trace,
            None => aws_lc_rs::rand::fill(&mut trace).ok()?,
        }
        // Zero is no number.
        trace[0] |= u8::from(trace == [0; 16]);
        span[0] |= u8::from(span == [0; 8]);
        Some(TraceContext {
            trace,
            span,
            is_sampled: false,
            state: parent
                .map(|parent| parent.state.clone())
                .unwrap_or_default(),
        })
    }

    /// The context as `traceparent` has it.
    pub(super) fn text(&self) -> String {
        format!(
            "00-{}-{}-0{}",
            hex::text(&self.trace),
            hex::text(&self.span),
            u8::from(self.is_sampled),
        )
    }
}

/// The trace of a request.
#[derive(Clone, Default)]
pub(super) struct Trace {
    /// The span of the request.
    pub(super) own: Option<TraceContext>,
    /// The span that asked for it.
    pub(super) parent: Option<TraceContext>,
}

impl Room for Trace {
    fn clear(&mut self) {
        *self = Trace::default();
    }

    /// A subrequest belongs to the span of its request.
    fn begin_subrequest(&self, rooms: &mut Rooms) {
        if self.own.is_some() {
            rooms.get_mut::<Self>().clone_from(self);
        }
    }
}
