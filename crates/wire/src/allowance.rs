//! How often a peer may do what makes the server work and serves no request: a credit that comes
//! back over time, and a ratio of bytes. HTTP/2 and HTTP/3 have these limits in common.

/// Streams that end by a reset from either side: a client that leaves a page resets some hundreds
/// of requests at most. Our own resets count too, since a client can cause them (CVE-2023-44487,
/// CVE-2025-8671). A client that gives up answers it has begun to read has paid for that by their
/// bytes: half a DATA frame of the usual size, since many streams may share a small window.
/// Streams that were open for [`LONG_STREAM_MS`] do not count.
pub(crate) const RESETS: Allowance = Allowance::new(400, 40).earned(0, 4 * 1024);

/// From this age on, in milliseconds, the reset of a stream is not counted: few streams are open at
/// once, so no client gets many so old. A gateway with a time-out for each request resets that many
/// while its server is slow.
const LONG_STREAM_MS: u64 = 1_000;

/// Whether the reset of a stream that was opened then counts.
pub(crate) fn counts_reset(opened_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(opened_ms) < LONG_STREAM_MS
}

/// Frames that carry no data and end no stream, and those of unknown kinds: browsers send one of an
/// unknown kind behind each head and each DATA frame, so that servers learn to ignore them. A head
/// and DATA cost more, so each earns one.
pub(crate) const EMPTY: Allowance = Allowance::new(256, 16);

/// DATA frames of a client's stream of at most [`TINY_DATA_BYTES_MAX`] that do not end it. Each
/// costs as much as a large one, and the ratio of bytes allows any number of them. A client that
/// sends each byte as it is typed stays far below; a program that sends a body byte by byte may
/// send 16 KB at once. A stream with more is reset, and its connection serves others on.
pub(crate) const TINY_DATA_OF_STREAM: Allowance = Allowance::new(16_384, 2_048);

/// The same of all streams of a connection, those too that were reset: what two streams may send.
pub(crate) const TINY_DATA: Allowance = Allowance::new(32_768, 4_096);

/// The most bytes of a tiny DATA frame: whole messages of gRPC and masked frames of WebSockets have
/// at least five.
pub(crate) const TINY_DATA_BYTES_MAX: usize = 4;

// One stream cannot use up what all of them have.
const _: () = assert!(TINY_DATA_OF_STREAM.most < TINY_DATA.most);

/// PRIORITY and PRIORITY_UPDATE frames: browsers send one or two for each stream, so that each head
/// earns [`PRIORITIES_OF_HEAD`].
pub(crate) const PRIORITIES: Allowance = Allowance::new(1024, 256);
pub(crate) const PRIORITIES_OF_HEAD: u32 = 2;

/// The bytes that may come without serving a request, and their largest ratio to the bytes that do;
/// both values are nginx's.
const OVERHEAD_BYTES: u64 = 1024 * 1024;
const OVERHEAD_TIMES: u64 = 8;

/// The number of uses at once, and the number of uses that each second adds.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    pub(crate) most: u32,
    each_second: u32,
    /// The uses that a sent DATA frame earns, however short it is.
    each_frame: u32,
    /// The bytes of DATA that earn one use more; 0: none do.
    earning_bytes: u32,
}

impl Allowance {
    pub(crate) const fn new(most: u32, each_second: u32) -> Allowance {
        Allowance {
            most,
            each_second,
            each_frame: 0,
            earning_bytes: 0,
        }
    }

    pub(crate) const fn earned(self, each_frame: u32, earning_bytes: u32) -> Allowance {
        Allowance {
            each_frame,
            earning_bytes,
            ..self
        }
    }

    /// What a sent DATA frame of so many bytes earns.
    fn earned_thousandths(self, bytes: usize) -> i64 {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / THOUSANDTHS);
        let by_bytes = (bytes * THOUSANDTHS).checked_div(i64::from(self.earning_bytes));
        i64::from(self.each_frame) * THOUSANDTHS + by_bytes.unwrap_or(0)
    }
}

/// A thousandth of a use is what a millisecond adds to an allowance of one each second.
const THOUSANDTHS: i64 = 1000;

/// What is used of an allowance: less than nothing, where more was earned than used.
#[derive(Clone, Copy, Default)]
pub(crate) struct Credit {
    used_thousandths: i64,
    since_ms: u64,
}

impl Credit {
    /// Uses one; `false` if none is left.
    pub(crate) fn take(&mut self, allowance: Allowance, now_ms: u64) -> bool {
        let elapsed_ms = i64::try_from(now_ms.saturating_sub(self.since_ms)).unwrap_or(i64::MAX);
        let back = elapsed_ms.saturating_mul(i64::from(allowance.each_second));
        self.since_ms = now_ms;
        self.gain(back, 0);
        self.used_thousandths = self.used_thousandths.saturating_add(THOUSANDTHS);
        self.used_thousandths <= i64::from(allowance.most) * THOUSANDTHS
    }

    /// Sent DATA earns uses. At most as many as an allowance are kept for what the peer sends once
    /// it has received that: however much was sent, no more than twice as many come at once.
    pub(crate) fn earn(&mut self, allowance: Allowance, bytes: usize) {
        let earned = allowance.earned_thousandths(bytes);
        self.gain(earned, -i64::from(allowance.most) * THOUSANDTHS);
    }

    /// Something else that the peer did earns uses. No more of them are kept than of those that
    /// DATA earns.
    pub(crate) fn earn_uses(&mut self, allowance: Allowance, uses: u32) {
        let earned = i64::from(uses) * THOUSANDTHS;
        self.gain(earned, -i64::from(allowance.most) * THOUSANDTHS);
    }

    /// Takes uses back, down to `least`.
    fn gain(&mut self, thousandths: i64, least: i64) {
        let left = self.used_thousandths.saturating_sub(thousandths);
        self.used_thousandths = left.max(self.used_thousandths.min(least));
    }
}

/// The bytes of a connection, and those of them that serve requests.
#[derive(Default)]
pub(crate) struct Overhead {
    all_bytes: u64,
    useful_bytes: u64,
}

impl Overhead {
    /// Counts bytes, and those among them that serve a request. `false`: the others are too many.
    pub(crate) fn allows(&mut self, bytes: usize, useful_bytes: usize) -> bool {
        debug_assert!(useful_bytes <= bytes, "{useful_bytes} of {bytes} bytes");
        self.all_bytes += bytes as u64;
        self.useful_bytes += useful_bytes as u64;
        self.all_bytes / OVERHEAD_TIMES <= self.useful_bytes + OVERHEAD_BYTES
    }
}

#[cfg(test)]
mod tests {
    //! How an allowance is used and comes back.

    use super::{Allowance, Credit};

    #[test]
    fn an_allowance_comes_back_in_fractions() {
        let allowance = Allowance::new(10, 3);
        // The pause between uses in milliseconds, and how many of 1000 are allowed before one is
        // refused: of three each second, nine tenths come back in 300 milliseconds.
        let cases = [(0, 10), (111, 14), (300, 91), (333, 1000), (5000, 1000)];
        for (pause_ms, expected) in cases {
            let mut credit = Credit::default();
            let uses = (1..=1000_u64).map(|round| credit.take(allowance, round * pause_ms));
            let allowed = uses.take_while(|is_allowed| *is_allowed).count();
            assert_eq!(allowed, expected, "{pause_ms} ms apart");
        }
    }
}
