//! What one thread counted: its figures, its errors by kind, its histograms.
//!
//! Written by one thread only and merged after the run; nothing here is shared while it runs.

use crate::histogram::Histogram;
use crate::series::Series;

/// Everything that can go wrong with a request, by who noticed what and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum ErrorKind {
    /// Refused: no process listens at the port.
    Refused,
    /// Reset before the request could be sent.
    ResetConnecting,
    /// No route, or the host does not answer.
    Unreachable,
    /// No source port is free towards the destination.
    NoPorts,
    /// The file limit, or the kernel's memory, allows no more sockets.
    NoFiles,
    /// The unix socket's queue is full.
    QueueFull,
    /// Any other failure to connect.
    Connect,
    /// The TLS handshake was refused by either side.
    Tls,
    /// Connecting or shaking hands took longer than the time-out.
    ConnectTimeout,
    /// Reset with the first request sent and before any byte of its answer: lost in the accept
    /// queue.
    ResetInQueue,
    /// Reset on a kept-alive connection, between answers or before any byte of the next one.
    ResetIdle,
    /// Closed on a kept-alive connection when a request was already on its way.
    ClosedIdle,
    /// Reset in the middle of an answer.
    ResetAnswering,
    /// Closed before the answer was whole.
    ClosedEarly,
    /// Bytes that are no HTTP answer.
    BadBytes,
    /// Sending failed for another reason than a reset.
    Send,
    /// The answer was not whole within the time-out.
    Timeout,
    /// A status above 399.
    BadStatus,
    /// Another status than `--expect-status`.
    UnexpectedStatus,
    /// Another body than `--expect-body`.
    UnexpectedBody,
}

/// wrk's five sums of errors, and what wrk does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// wrk's `connect`.
    Connect,
    /// wrk's `read`.
    Read,
    /// wrk's `write`.
    Write,
    /// wrk's `timeout`.
    Timeout,
    /// wrk's `Non-2xx or 3xx responses`.
    Status,
    /// An answer that failed a check wrk does not have.
    Check,
}

impl ErrorKind {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [ErrorKind; 20] = [
        ErrorKind::Refused,
        ErrorKind::ResetConnecting,
        ErrorKind::Unreachable,
        ErrorKind::NoPorts,
        ErrorKind::NoFiles,
        ErrorKind::QueueFull,
        ErrorKind::Connect,
        ErrorKind::Tls,
        ErrorKind::ConnectTimeout,
        ErrorKind::ResetInQueue,
        ErrorKind::ResetIdle,
        ErrorKind::ClosedIdle,
        ErrorKind::ResetAnswering,
        ErrorKind::ClosedEarly,
        ErrorKind::BadBytes,
        ErrorKind::Send,
        ErrorKind::Timeout,
        ErrorKind::BadStatus,
        ErrorKind::UnexpectedStatus,
        ErrorKind::UnexpectedBody,
    ];

    /// The name in text and JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ErrorKind::Refused => "refused",
            ErrorKind::ResetConnecting => "reset_connecting",
            ErrorKind::Unreachable => "unreachable",
            ErrorKind::NoPorts => "no_ports",
            ErrorKind::NoFiles => "no_files",
            ErrorKind::QueueFull => "queue_full",
            ErrorKind::Connect => "connect",
            ErrorKind::Tls => "tls",
            ErrorKind::ConnectTimeout => "connect_timeout",
            ErrorKind::ResetInQueue => "reset_in_queue",
            ErrorKind::ResetIdle => "reset_idle",
            ErrorKind::ClosedIdle => "closed_idle",
            ErrorKind::ResetAnswering => "reset_answering",
            ErrorKind::ClosedEarly => "closed_early",
            ErrorKind::BadBytes => "bad_bytes",
            ErrorKind::Send => "send",
            ErrorKind::Timeout => "timeout",
            ErrorKind::BadStatus => "bad_status",
            ErrorKind::UnexpectedStatus => "unexpected_status",
            ErrorKind::UnexpectedBody => "unexpected_body",
        }
    }

    /// Which of wrk's sums it belongs to.
    pub(crate) fn class(self) -> ErrorClass {
        use ErrorKind as Kind;
        match self {
            Kind::Refused
            | Kind::ResetConnecting
            | Kind::Unreachable
            | Kind::NoPorts
            | Kind::NoFiles
            | Kind::QueueFull
            | Kind::Connect
            | Kind::Tls => ErrorClass::Connect,
            Kind::ResetInQueue
            | Kind::ResetIdle
            | Kind::ClosedIdle
            | Kind::ResetAnswering
            | Kind::ClosedEarly
            | Kind::BadBytes => ErrorClass::Read,
            Kind::Send => ErrorClass::Write,
            Kind::ConnectTimeout | Kind::Timeout => ErrorClass::Timeout,
            Kind::BadStatus => ErrorClass::Status,
            Kind::UnexpectedStatus | Kind::UnexpectedBody => ErrorClass::Check,
        }
    }

    /// Whether the connection was never established.
    pub(crate) fn is_connecting(self) -> bool {
        self.class() == ErrorClass::Connect || self == ErrorKind::ConnectTimeout
    }
}

/// Errors by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Errors([u64; ErrorKind::ALL.len()]);

impl Errors {
    /// Counts one.
    pub(crate) fn count(&mut self, kind: ErrorKind) {
        if let Some(cell) = self.0.get_mut(kind as usize) {
            *cell += 1;
        }
    }

    /// How many there were of a kind.
    pub(crate) fn of(&self, kind: ErrorKind) -> u64 {
        self.0.get(kind as usize).copied().unwrap_or(0)
    }

    /// How many there were of one of wrk's sums.
    pub(crate) fn of_class(&self, class: ErrorClass) -> u64 {
        let kinds = ErrorKind::ALL.iter().filter(|kind| kind.class() == class);
        kinds.map(|kind| self.of(*kind)).sum()
    }

    /// All of them.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds another thread's.
    pub(crate) fn merge(&mut self, other: &Errors) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// Statuses are counted one by one up to this one.
const STATUS_MAX: usize = 600;

/// Failures that a thread keeps one by one; those beyond are only counted.
const FAILURES_KEPT_MAX: usize = 100_000;

/// Bytes that are kept of data that is no HTTP: enough to recognise a protocol, and a line of text.
const BAD_BYTES_KEPT_MAX: usize = 64;

/// One request that went wrong, or several that were sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// When it was (meant to be) begun, in nanoseconds since the run began.
    pub(crate) begun_ns: u64,
    /// When it was seen to fail.
    pub(crate) ended_ns: u64,
}

/// Everything one thread counted.
#[derive(Clone)]
pub(crate) struct Tally {
    /// Requests started, warm-up included.
    pub(crate) issued: u64,
    /// Requests answered, outside the warm-up.
    pub(crate) completed: u64,
    /// Requests answered whose start lay in the warm-up.
    pub(crate) warmup: u64,
    /// Requests that ended in an error of the connection; answers with a bad status or body are
    /// counted as completed.
    pub(crate) failed: u64,
    /// Requests without an answer when the run was broken off.
    pub(crate) abandoned: u64,
    /// Arrivals of an open loop for which no connection was free until the very end.
    pub(crate) unsent: u64,
    /// Bytes received, outside the warm-up.
    pub(crate) bytes: u64,
    /// Connections established.
    pub(crate) connections: u64,
    /// TLS handshakes that resumed a session.
    pub(crate) resumed: u64,
    /// Connections whose requests the server has taken before their handshake was done (0-RTT).
    pub(crate) early_data: u64,
    /// Kept-alive connections the server closed while nothing was under way.
    pub(crate) closed_between: u64,
    /// Nanoseconds spent awake for an answer that was to come at once.
    pub(crate) awake_ns: u64,
    /// When the last answer came, in nanoseconds since the run began.
    pub(crate) last_answer_ns: u64,
    /// Errors by kind.
    pub(crate) errors: Errors,
    /// The beginning of the first data that was no HTTP.
    pub(crate) bad_bytes: Option<Vec<u8>>,
    /// The errors of requests one by one.
    pub(crate) failures: Vec<Failure>,
    /// Answers by status.
    pub(crate) statuses: Vec<u64>,
    /// Nanoseconds from the (intended) start of a request to its last byte.
    pub(crate) latency: Histogram,
    /// Nanoseconds to establish a connection.
    pub(crate) connect: Histogram,
    /// Nanoseconds of TLS handshakes.
    pub(crate) tls: Histogram,
    /// Nanoseconds from sending a request to the first byte of its answer.
    pub(crate) first_byte: Histogram,
    /// Nanoseconds from sending a request to the last byte of its answer.
    pub(crate) last_byte: Histogram,
    /// Nanoseconds that requests were started late although a connection was free.
    pub(crate) lag: Histogram,
    /// Requests per second, sampled as wrk does.
    pub(crate) rates: Histogram,
    /// Answers, errors and latency over time.
    pub(crate) series: Series,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            issued: 0,
            completed: 0,
            warmup: 0,
            failed: 0,
            abandoned: 0,
            unsent: 0,
            bytes: 0,
            connections: 0,
            resumed: 0,
            early_data: 0,
            closed_between: 0,
            awake_ns: 0,
            last_answer_ns: 0,
            errors: Errors::default(),
            bad_bytes: None,
            failures: Vec::new(),
            statuses: vec![0; STATUS_MAX],
            latency: Histogram::default(),
            connect: Histogram::default(),
            tls: Histogram::default(),
            first_byte: Histogram::default(),
            last_byte: Histogram::default(),
            lag: Histogram::default(),
            rates: Histogram::default(),
            series: Series::default(),
        }
    }
}

impl Tally {
    /// Counts an answer by its status; 0 is none.
    pub(crate) fn count_status(&mut self, status: u16) {
        let cell = self.statuses.get_mut(usize::from(status));
        if let Some(cell) = cell.filter(|_| status > 0) {
            *cell += 1;
        }
    }

    /// Keeps the beginning of data that is no HTTP, if it is the first.
    pub(crate) fn keep_bad_bytes(&mut self, data: &[u8]) {
        let sample = &data[..data.len().min(BAD_BYTES_KEPT_MAX)];
        self.bad_bytes.get_or_insert_with(|| sample.to_vec());
    }

    /// Counts an error of a request.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.errors.count(failure.kind);
        if self.failures.len() < FAILURES_KEPT_MAX {
            self.failures.push(failure);
        }
    }

    /// Adds another thread's figures.
    pub(crate) fn merge(&mut self, other: &Tally) {
        self.issued += other.issued;
        self.completed += other.completed;
        self.warmup += other.warmup;
        self.failed += other.failed;
        self.abandoned += other.abandoned;
        self.unsent += other.unsent;
        self.bytes += other.bytes;
        self.connections += other.connections;
        self.resumed += other.resumed;
        self.early_data += other.early_data;
        self.closed_between += other.closed_between;
        self.awake_ns += other.awake_ns;
        self.last_answer_ns = self.last_answer_ns.max(other.last_answer_ns);
        self.errors.merge(&other.errors);
        if self.bad_bytes.is_none() {
            self.bad_bytes.clone_from(&other.bad_bytes);
        }
        self.failures.extend_from_slice(&other.failures);
        for (mine, theirs) in self.statuses.iter_mut().zip(&other.statuses) {
            *mine += theirs;
        }
        self.latency.merge(&other.latency);
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        self.first_byte.merge(&other.first_byte);
        self.last_byte.merge(&other.last_byte);
        self.lag.merge(&other.lag);
        self.rates.merge(&other.rates);
        self.series.merge(&other.series);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_and_named_once() {
        for (index, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            let same = ErrorKind::ALL
                .iter()
                .filter(|other| other.name() == kind.name());
            assert_eq!(same.count(), 1, "{}", kind.name());
        }
    }

    #[test]
    fn sums_follow_the_classes() {
        let mut errors = Errors::default();
        errors.count(ErrorKind::Refused);
        errors.count(ErrorKind::NoPorts);
        errors.count(ErrorKind::ResetIdle);
        assert_eq!(errors.of_class(ErrorClass::Connect), 2);
        assert_eq!(errors.of_class(ErrorClass::Read), 1);
        assert_eq!(errors.total(), 3);
    }
}
