//! The answers of origins, as a seed decides them, whatever protocol they are written in.

/// The marking of an answer's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Length,
    Chunked,
    Close,
    /// An origin that switches protocols, and what it sends has no end but that of the connection.
    Tunnel,
}

/// The kind of an origin's failure in the middle of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    Close,
    Reset,
    Stall,
}

/// An origin's answer to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) length: usize,
    pub(crate) ending: Ending,
    pub(crate) delay_ms: u64,
    pub(crate) has_interim: bool,
    pub(crate) piece_bytes: usize,
    pub(crate) piece_pause_ms: u64,
    /// The failure after this many bytes; none if the answer is shorter.
    pub(crate) fails: Option<(usize, Failing)>,
    pub(crate) says_close: bool,
    /// The idle time for which it keeps a connection.
    pub(crate) idle_ms: u64,
    /// The lifetime for storing, in seconds.
    pub(crate) fresh_s: Option<u64>,
    /// What the origin does against its protocol.
    pub(crate) disorder: Option<Disorder>,
    /// The most bytes of a record, where the protocol has records.
    pub(crate) record_bytes: usize,
    /// Whether records for the error log stand between them.
    pub(crate) has_messages: bool,
    /// Whether the end of the stream has a record of its own.
    pub(crate) ends_stream: bool,
}

/// The ways in which an origin breaks its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disorder {
    /// A field that no buffer of the configurations holds.
    BigField,
    /// A head without an end.
    EndlessHead,
    /// A part that the protocol does not have; its kind, and its place in percent of the answer.
    Wrong { kind: usize, percent: usize },
    /// Bytes behind the answer's end.
    Surplus,
}
