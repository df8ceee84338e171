//! One peer: its configuration and its state.

pub(crate) mod picked;
pub(crate) mod times;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use md5::{Digest, Md5};
use turnpike_lane::counters::AnswerCounts;
use turnpike_lane::sys::process::{monotonic_ns, unix_ms};

use crate::address::Address;
use turnpike_wire::hex;

use times::{Times, Until};

/// The configuration of a peer, with nginx's defaults.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// The share of the requests.
    pub weight: u32,
    /// The limit of concurrent requests; 0 for none.
    pub max_conns: u32,
    /// The failures within `fail_timeout_ms` that disable it; 0 never does.
    pub max_fails: u32,
    /// The period in which failures are counted, and for which it is then disabled.
    pub fail_timeout_ms: u64,
    /// The time over which a recovered peer regains its weight; 0 for at once.
    pub slow_start_ms: u64,
    /// Whether it is used only if no primary can be.
    pub backup: bool,
    /// The configured mode.
    pub mode: Mode,
    /// The identity for sticky requests; by default the MD5 of the name in hexadecimal.
    pub route: Option<String>,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            weight: 1,
            max_conns: 0,
            max_fails: 1,
            fail_timeout_ms: 10_000,
            slow_start_ms: 0,
            backup: false,
            mode: Mode::Up,
            route: None,
        }
    }
}

impl Mode {
    /// The mode of a word in lists.
    pub fn named(text: &str) -> Option<Mode> {
        let mut all = [Mode::Up, Mode::Down, Mode::Draining].into_iter();
        all.find(|mode| mode.text() == text)
    }

    /// The word in lists.
    pub fn text(self) -> &'static str {
        match self {
            Mode::Up => "up",
            Mode::Down => "down",
            Mode::Draining => "draining",
        }
    }
}

/// Whether a peer takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The peer takes requests.
    Up,
    /// The peer takes no requests.
    Down,
    /// The peer takes only requests that are bound to it.
    Draining,
}

/// Why a peer counts as failed; nginx's conditions of `proxy_next_upstream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// The connection failed or broke.
    Error,
    /// The peer did not answer in time.
    Timeout,
    /// The response is malformed.
    InvalidHeader,
    /// The peer answered with a status that counts as a failure.
    Status(u16),
    /// An active check failed.
    HealthCheck,
}

impl FailReason {
    /// The words, in the order of [`FailReason::index`].
    pub const WORDS: [&'static str; 5] = [
        "error",
        "timeout",
        "invalid_header",
        "status",
        "health_check",
    ];

    /// The index in the words.
    pub fn index(self) -> usize {
        match self {
            FailReason::Error => 0,
            FailReason::Timeout => 1,
            FailReason::InvalidHeader => 2,
            FailReason::Status(_) => 3,
            FailReason::HealthCheck => 4,
        }
    }

    /// The reason and a time in Unix seconds, in a number that is never 0.
    fn at(self, unix_s: u64) -> u64 {
        let status = match self {
            FailReason::Status(status) => status,
            _ => 0,
        };
        unix_s << 24 | (self.index() as u64 + 1) << 16 | u64::from(status)
    }

    /// What [`FailReason::at`] has put into a number; `None`: nothing.
    fn of(number: u64) -> Option<(FailReason, u64)> {
        let reason = match number >> 16 & 0xff {
            1 => FailReason::Error,
            2 => FailReason::Timeout,
            3 => FailReason::InvalidHeader,
            4 => FailReason::Status(number as u16),
            5 => FailReason::HealthCheck,
            _ => return None,
        };
        Some((reason, number >> 24))
    }

    /// The word in logs and metrics.
    pub fn text(self) -> &'static str {
        Self::WORDS[self.index()]
    }

    /// The reason for people, with its status: `status 502`, `invalid header`.
    pub fn sentence(self) -> String {
        match self {
            FailReason::Status(status) => format!("status {status}"),
            reason => reason.text().replace('_', " "),
        }
    }
}

/// A peer of a group.
pub struct Peer {
    name: Arc<str>,
    server: String,
    sticky_id: String,
    address: Address,
    settings: PeerSettings,
    state: Arc<PeerState>,
}

/// The state of a peer: shared by all lanes, and by successive configurations with the peer.
///
/// Counts are exact. Weights are changed under the lock of the group, except the reduction after a
/// failure, which a concurrent choice may overwrite.
pub struct PeerState {
    /// Number of the peer, unique in the process.
    pub(crate) id: u64,
    /// The current weight in smooth weighted round robin, in hundredths.
    pub(crate) current_weight: AtomicI64,
    /// The weight less the reductions after failures.
    pub(crate) effective_weight: AtomicI64,
    /// The current number of requests.
    pub(crate) active: AtomicU32,
    pub(crate) fails: AtomicU32,
    /// The time of its last failure, in monotonic milliseconds.
    pub(crate) failed_ms: AtomicU64,
    /// The time of its last try, in monotonic milliseconds.
    pub(crate) tried_ms: AtomicU64,
    /// The time of its recovery, for slow start; 0 if it has never failed.
    pub(crate) recovered_ms: AtomicU64,
    /// The commanded mode: 0 for the configured one, otherwise the mode's number.
    pub(crate) mode: AtomicU8,
    /// The commanded weight: 0 for the configured one.
    pub(crate) weight: AtomicU32,
    /// The active checks that fail, a bit each.
    failed_checks: AtomicU64,
    /// The active checks that have passed once.
    passed_checks: AtomicU64,
    /// The response times.
    pub(crate) times: Times,
    /// The total of requests.
    pub(crate) requests: AtomicU64,
    /// The counts of its responses.
    pub(crate) answers: AnswerCounts,
    /// The totals of failures.
    failures: [AtomicU64; FailReason::WORDS.len()],
    /// The last failure and its time, as of [`FailReason::at`]; 0: none.
    last_failure: AtomicU64,
}

/// The source of peers' numbers.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Peer {
    /// A peer: `server` is its name in the configuration, `state` may be an earlier one.
    pub fn new(
        server: &str,
        address: Address,
        settings: PeerSettings,
        state: Arc<PeerState>,
    ) -> Peer {
        let name = address.to_string();
        let sticky_id = match &settings.route {
            Some(route) => route.clone(),
            None => hex::text(&Md5::digest(name.as_bytes())),
        };
        Peer {
            name: name.into(),
            sticky_id,
            server: server.to_owned(),
            address,
            settings,
            state,
        }
    }

    /// The address as text (`$upstream_addr`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same text, shared.
    pub fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// The name in the configuration.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The configuration.
    pub fn settings(&self) -> &PeerSettings {
        &self.settings
    }

    /// The state.
    pub fn state(&self) -> &Arc<PeerState> {
        &self.state
    }

    /// The mode: the commanded one, or else the configured one.
    pub fn mode(&self) -> Mode {
        self.state.mode_override().unwrap_or(self.settings.mode)
    }

    /// Commands a mode; `None` for the configured one.
    pub(crate) fn command_mode(&self, mode: Option<Mode>) {
        let was_up = self.mode() == Mode::Up;
        let number = match mode {
            None => 0,
            Some(Mode::Up) => 1,
            Some(Mode::Down) => 2,
            Some(Mode::Draining) => 3,
        };
        self.state.mode.store(number, Ordering::Relaxed);
        if !was_up && self.mode() == Mode::Up {
            self.state.recover(monotonic_ns() / 1_000_000);
        }
    }

    /// Commands a weight; 0 for the configured one.
    pub(crate) fn command_weight(&self, weight: u32) {
        if self.state.weight.swap(weight, Ordering::Relaxed) == weight {
            return;
        }
        let effective = self.weight();
        let state = &self.state.effective_weight;
        state.store(effective, Ordering::Relaxed);
    }

    /// Clears its failures.
    pub fn recover(&self) {
        self.state.recover(monotonic_ns() / 1_000_000);
    }

    /// Whether it takes new requests at the moment.
    pub fn is_available_now(&self) -> bool {
        self.is_available(monotonic_ns() / 1_000_000)
    }

    /// One word for its condition: `up`, `draining`, `down`, `unhealthy` (by active checks),
    /// `failed` (`max_fails` within `fail_timeout`) or `full` (`max_conns`).
    pub fn condition(&self) -> &'static str {
        match self.mode() {
            Mode::Up if self.is_available_now() => "up",
            Mode::Up if !self.state.is_healthy() => "unhealthy",
            Mode::Up if !self.has_room() => "full",
            Mode::Up => "failed",
            mode => mode.text(),
        }
    }

    /// The weight: the commanded one, or else the configured one.
    pub fn weight(&self) -> i64 {
        match self.state.weight.load(Ordering::Relaxed) {
            0 => i64::from(self.settings.weight),
            weight => i64::from(weight),
        }
    }

    /// Whether it can serve requests, whatever its mode.
    fn can_serve(&self, now_ms: u64) -> bool {
        let (settings, state) = (&self.settings, &*self.state);
        let failed = settings.max_fails > 0
            && state.fails.load(Ordering::Relaxed) >= settings.max_fails
            && self.is_recent(state.tried_ms.load(Ordering::Relaxed), now_ms);
        !failed && self.has_room() && state.is_healthy()
    }

    /// Whether a time is within `fail_timeout`. The rest of the same second always counts, as in
    /// nginx, which counts in seconds: so `fail_timeout=0` has an effect.
    fn is_recent(&self, then_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(then_ms) <= self.settings.fail_timeout_ms
            || now_ms / 1000 == then_ms / 1000
    }

    /// Whether it takes new requests.
    pub(crate) fn is_available(&self, now_ms: u64) -> bool {
        self.mode() == Mode::Up && self.can_serve(now_ms)
    }

    /// Whether another request is within its limit.
    pub(crate) fn has_room(&self) -> bool {
        let most = self.settings.max_conns;
        most == 0 || self.state.active.load(Ordering::Relaxed) < most
    }

    /// Counts a failure. `true`: the peer is now disabled.
    pub(crate) fn failed(&self, now_ms: u64) -> bool {
        let (settings, state) = (&self.settings, &*self.state);
        let fails = state.fails.fetch_add(1, Ordering::Relaxed) + 1;
        state.failed_ms.store(now_ms, Ordering::Relaxed);
        state.tried_ms.store(now_ms, Ordering::Relaxed);
        if settings.max_fails == 0 {
            return false;
        }
        let malus = self.weight() / i64::from(settings.max_fails);
        let weight = state.effective_weight.load(Ordering::Relaxed);
        let weight = (weight - malus).max(0);
        state.effective_weight.store(weight, Ordering::Relaxed);
        fails >= settings.max_fails
    }

    /// Resets the failures, if the peer was tried since the last one.
    pub(crate) fn answered(&self, now_ms: u64) {
        let state = &*self.state;
        let (failed, tried) = (&state.failed_ms, &state.tried_ms);
        if failed.load(Ordering::Relaxed) >= tried.load(Ordering::Relaxed) {
            return;
        }
        let fails = state.fails.swap(0, Ordering::Relaxed);
        if fails > 0 && fails >= self.settings.max_fails {
            state.recovered(now_ms);
        }
    }
}

/// The state that balancing methods use.
impl Peer {
    /// Current weights are in hundredths, so that a slow start has steps even at weight 1.
    pub(crate) const WEIGHT_UNIT: i64 = 100;

    /// The increase of the current weight in a choice; the effective weight recovers by one each
    /// time.
    pub(crate) fn raise(&self, now_ms: u64) -> i64 {
        let effective = &self.state.effective_weight;
        let weight = self.weight();
        let raise = effective.load(Ordering::Relaxed).min(weight);
        effective.store((raise + 1).min(weight), Ordering::Relaxed);
        raise * self.share(now_ms)
    }

    /// The current share of its weight, in hundredths: reduced during a slow start.
    pub(crate) fn share(&self, now_ms: u64) -> i64 {
        let recovered_ms = self.state.recovered_ms.load(Ordering::Relaxed);
        let whole_ms = self.settings.slow_start_ms;
        if recovered_ms == 0 || whole_ms == 0 {
            return Self::WEIGHT_UNIT;
        }
        let elapsed_ms = now_ms.saturating_sub(recovered_ms);
        if elapsed_ms >= whole_ms {
            self.state.recovered_ms.store(0, Ordering::Relaxed);
            return Self::WEIGHT_UNIT;
        }
        let share = i64::try_from(elapsed_ms * 100 / whole_ms);
        share
            .unwrap_or(Self::WEIGHT_UNIT)
            .clamp(1, Self::WEIGHT_UNIT)
    }

    /// Records a try: a successful answer to it resets the failures.
    pub(crate) fn was_chosen(&self, now_ms: u64) {
        let tried = &self.state.tried_ms;
        if !self.is_recent(tried.load(Ordering::Relaxed), now_ms) {
            tried.store(now_ms, Ordering::Relaxed);
        }
    }

    /// The expected time for its requests and one more, in milliseconds.
    pub(crate) fn estimated_ms(&self, until: Until, now_ms: u64) -> u64 {
        let tried_ms = self.state.tried_ms.load(Ordering::Relaxed);
        let since_ms = now_ms.saturating_sub(tried_ms);
        let timeout_ms = self.settings.fail_timeout_ms;
        // A slow peer that was not used for long gets another chance: its time counts half after
        // each period, to the nearest.
        let period_ms = timeout_ms + 1000;
        let halvings = if since_ms > timeout_ms {
            (since_ms + period_ms / 2) / period_ms
        } else {
            0
        };
        let active = u64::from(self.state.active());
        self.state.times.estimate_ms(until, halvings) * (1 + active)
    }

    /// Whether it takes a request that is bound to it.
    pub(crate) fn accepts_bound(&self, now_ms: u64) -> bool {
        self.mode() != Mode::Down && self.can_serve(now_ms)
    }

    /// The identity for sticky requests.
    pub fn sticky_id(&self) -> &str {
        &self.sticky_id
    }
}

impl PeerState {
    /// The state of a new peer.
    pub fn new(weight: u32) -> Arc<PeerState> {
        Arc::new(PeerState {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            current_weight: AtomicI64::new(0),
            effective_weight: AtomicI64::new(i64::from(weight)),
            active: AtomicU32::new(0),
            fails: AtomicU32::new(0),
            failed_ms: AtomicU64::new(0),
            tried_ms: AtomicU64::new(0),
            recovered_ms: AtomicU64::new(0),
            mode: AtomicU8::new(0),
            weight: AtomicU32::new(0),
            failed_checks: AtomicU64::new(0),
            passed_checks: AtomicU64::new(0),
            times: Times::default(),
            requests: AtomicU64::new(0),
            answers: AnswerCounts::default(),
            failures: Default::default(),
            last_failure: AtomicU64::new(0),
        })
    }

    /// Number of the peer, unique in the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The current number of requests.
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// The total of requests.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// The counts of its responses.
    pub fn answers(&self) -> &AnswerCounts {
        &self.answers
    }

    /// The total of failures.
    pub fn failures(&self) -> u64 {
        self.failures_by_reason().iter().sum()
    }

    /// The same by reason, in the order of [`FailReason::WORDS`].
    pub fn failures_by_reason(&self) -> [u64; FailReason::WORDS.len()] {
        self.failures
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts a failure, whether or not it may disable the peer.
    pub(crate) fn count_failure(&self, reason: FailReason) {
        self.failures[reason.index()].fetch_add(1, Ordering::Relaxed);
        let number = reason.at(unix_ms() / 1000);
        self.last_failure.store(number, Ordering::Relaxed);
    }

    /// The last failure, and its time in Unix seconds; `None`: it has never failed.
    pub fn last_failure(&self) -> Option<(FailReason, u64)> {
        FailReason::of(self.last_failure.load(Ordering::Relaxed))
    }

    /// The average time to the head of a response, in milliseconds; 0 before the first.
    pub fn header_ms(&self) -> u64 {
        self.times.header_ms()
    }

    /// The average time to the end of a response, in milliseconds; 0 before the first.
    pub fn response_ms(&self) -> u64 {
        self.times.response_ms()
    }

    /// The failures that count now.
    pub fn fails(&self) -> u32 {
        self.fails.load(Ordering::Relaxed)
    }

    /// Whether all active checks pass, or there are none.
    pub fn is_healthy(&self) -> bool {
        self.failed_checks.load(Ordering::Relaxed) == 0
    }

    /// Whether a check fails.
    pub(crate) fn fails_check(&self, check: u32) -> bool {
        self.failed_checks.load(Ordering::Relaxed) & bit(check) != 0
    }

    /// Records whether a check fails.
    pub(crate) fn set_check_failed(&self, check: u32, has_failed: bool) {
        if has_failed {
            self.failed_checks.fetch_or(bit(check), Ordering::Relaxed)
        } else {
            self.failed_checks.fetch_and(!bit(check), Ordering::Relaxed)
        };
    }

    /// Whether a check has passed before.
    pub(crate) fn has_passed_check(&self, check: u32) -> bool {
        self.passed_checks.load(Ordering::Relaxed) & bit(check) != 0
    }

    /// Records that a check has passed.
    pub(crate) fn record_passed_check(&self, check: u32) {
        self.passed_checks.fetch_or(bit(check), Ordering::Relaxed);
    }

    /// Removes the results of checks beyond the first `count`.
    pub(crate) fn keep_checks(&self, count: u32) {
        let kept = match count {
            64.. => u64::MAX,
            count => (1 << count) - 1,
        };
        self.failed_checks.fetch_and(kept, Ordering::Relaxed);
        self.passed_checks.fetch_and(kept, Ordering::Relaxed);
    }

    /// Recovers the peer: its failures are reset, and its weight grows again.
    pub(crate) fn recover(&self, now_ms: u64) {
        self.fails.store(0, Ordering::Relaxed);
        self.recovered(now_ms);
    }

    pub(crate) fn recovered(&self, now_ms: u64) {
        self.recovered_ms.store(now_ms.max(1), Ordering::Relaxed);
    }

    fn mode_override(&self) -> Option<Mode> {
        match self.mode.load(Ordering::Relaxed) {
            1 => Some(Mode::Up),
            2 => Some(Mode::Down),
            3 => Some(Mode::Draining),
            _ => None,
        }
    }
}

fn bit(check: u32) -> u64 {
    1_u64.checked_shl(check).unwrap_or(0)
}
