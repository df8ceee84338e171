//! One peer: what was configured, and how it is.

pub(crate) mod picked;
pub(crate) mod times;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};

use md5::{Digest, Md5};
use turnpike_lane::counters::AnswerCounts;
use turnpike_lane::sys::process::monotonic_ns;

use crate::address::Address;
use turnpike_wire::hex;

use times::{Times, Until};

/// What a peer's configuration says; nginx's defaults.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// Share of the requests.
    pub weight: u32,
    /// Requests at the same time; 0 is without limit.
    pub max_conns: u32,
    /// Failures within `fail_timeout_ms` that take it out; 0 never does.
    pub max_fails: u32,
    /// Within which failures are counted, and for how long it is out then.
    pub fail_timeout_ms: u64,
    /// Time over which a peer that has come back takes its weight up again; 0 at once.
    pub slow_start_ms: u64,
    /// Asked only when the others cannot be.
    pub backup: bool,
    /// As written: up, down or draining.
    pub mode: Mode,
    /// Identity for sticky requests; by default the MD5 of the name in hexadecimal.
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
    /// The word for it in lists.
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
    /// None.
    Down,
    /// Only those that are bound to it.
    Draining,
}

/// Why a peer is held to have failed; nginx's conditions of `proxy_next_upstream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// No connection, or it broke.
    Error,
    /// The peer did not answer in time.
    Timeout,
    /// What it answered cannot be understood.
    InvalidHeader,
    /// The peer answered with a status that counts as a failure.
    Status(u16),
    /// An active check found it ill.
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

    /// The place among the words.
    pub fn index(self) -> usize {
        match self {
            FailReason::Error => 0,
            FailReason::Timeout => 1,
            FailReason::InvalidHeader => 2,
            FailReason::Status(_) => 3,
            FailReason::HealthCheck => 4,
        }
    }

    /// The word for it in logs and metrics.
    pub fn text(self) -> &'static str {
        Self::WORDS[self.index()]
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

/// How a peer is: shared by all lanes, and by configurations that have the peer in common.
///
/// Counts are exact. Weights are changed under the lock of the group, but for the malus of a
/// failure, which may be lost to a choice made at the same moment.
pub struct PeerState {
    /// Number of the peer, unique in the process.
    pub(crate) id: u64,
    /// What smooth weighted round robin has it at, in hundredths of a weight.
    pub(crate) current_weight: AtomicI64,
    /// Weight less what failures took off.
    pub(crate) effective_weight: AtomicI64,
    /// Requests at the moment.
    pub(crate) active: AtomicU32,
    pub(crate) fails: AtomicU32,
    /// When it failed last, in monotonic milliseconds.
    pub(crate) accessed_ms: AtomicU64,
    /// When it was tried last, in monotonic milliseconds.
    pub(crate) checked_ms: AtomicU64,
    /// When it came back, for slow start; 0 when it was never away.
    pub(crate) recovered_ms: AtomicU64,
    /// Set by command: 0 as configured, else the mode's number.
    pub(crate) mode: AtomicU8,
    /// Set by command: 0 as configured.
    pub(crate) weight: AtomicU32,
    /// Active checks that find it ill, a bit each.
    ill: AtomicU64,
    /// Active checks that once found it well.
    checked: AtomicU64,
    /// How long it takes.
    pub(crate) times: Times,
    /// Requests ever.
    pub(crate) requests: AtomicU64,
    /// What it answered.
    pub(crate) answers: AnswerCounts,
    /// Failures ever.
    failures: [AtomicU64; FailReason::WORDS.len()],
}

/// Gives peers their numbers.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Peer {
    /// A peer: `server` is what the configuration calls it, `state` may be one from before.
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

    /// The same, to be kept.
    pub fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// What the configuration calls it.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// What was configured.
    pub fn settings(&self) -> &PeerSettings {
        &self.settings
    }

    /// How it is.
    pub fn state(&self) -> &Arc<PeerState> {
        &self.state
    }

    /// Whether it takes requests: as commanded, else as configured.
    pub fn mode(&self) -> Mode {
        self.state.mode_override().unwrap_or(self.settings.mode)
    }

    /// Says whether it takes requests, whatever is configured; `None` as configured.
    pub fn command_mode(&self, mode: Option<Mode>) {
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

    /// Gives it another weight; 0 is that of the configuration. The group must be told
    /// ([`crate::Group::refresh`]).
    pub fn command_weight(&self, weight: u32) {
        self.state.weight.store(weight, Ordering::Relaxed);
        let effective = self.weight();
        let state = &self.state.effective_weight;
        state.store(effective, Ordering::Relaxed);
    }

    /// Whether requests may be sent to it at the moment.
    pub fn is_taking(&self) -> bool {
        self.is_available(monotonic_ns() / 1_000_000)
    }

    /// One word for whether it takes requests and, if not, why: `up`, `draining`, `down`,
    /// `unhealthy` (by active checks), `failed` (`max_fails` within `fail_timeout`) or `full`
    /// (`max_conns`).
    pub fn condition(&self) -> &'static str {
        match self.mode() {
            Mode::Up if self.is_taking() => "up",
            Mode::Up if !self.state.is_healthy() => "unhealthy",
            Mode::Up if !self.has_room() => "full",
            Mode::Up => "failed",
            mode => mode.text(),
        }
    }

    /// The weight: as commanded, else as configured.
    pub fn weight(&self) -> i64 {
        match self.state.weight.load(Ordering::Relaxed) {
            0 => i64::from(self.settings.weight),
            weight => i64::from(weight),
        }
    }

    /// Whether it may be asked now, whatever its mode.
    pub(crate) fn is_able(&self, now_ms: u64) -> bool {
        let (settings, state) = (&self.settings, &*self.state);
        let failed = settings.max_fails > 0
            && state.fails.load(Ordering::Relaxed) >= settings.max_fails
            && self.is_recent(state.checked_ms.load(Ordering::Relaxed), now_ms);
        !failed && self.has_room() && state.is_healthy()
    }

    /// Whether a moment is within `fail_timeout`. The rest of the same second always is, as in
    /// nginx, which counts in seconds: so `fail_timeout=0` has its effect.
    fn is_recent(&self, then_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(then_ms) <= self.settings.fail_timeout_ms
            || now_ms / 1000 == then_ms / 1000
    }

    /// Whether it may be asked now.
    pub(crate) fn is_available(&self, now_ms: u64) -> bool {
        self.mode() == Mode::Up && self.is_able(now_ms)
    }

    /// Whether another request is within its limit.
    pub(crate) fn has_room(&self) -> bool {
        let most = self.settings.max_conns;
        most == 0 || self.state.active.load(Ordering::Relaxed) < most
    }

    /// Counts a failure. `true`: that took it out.
    pub(crate) fn failed(&self, now_ms: u64) -> bool {
        let (settings, state) = (&self.settings, &*self.state);
        let fails = state.fails.fetch_add(1, Ordering::Relaxed) + 1;
        state.accessed_ms.store(now_ms, Ordering::Relaxed);
        state.checked_ms.store(now_ms, Ordering::Relaxed);
        if settings.max_fails == 0 {
            return false;
        }
        let malus = self.weight() / i64::from(settings.max_fails);
        let weight = state.effective_weight.load(Ordering::Relaxed);
        let weight = (weight - malus).max(0);
        state.effective_weight.store(weight, Ordering::Relaxed);
        fails >= settings.max_fails
    }

    /// Forgets failures, where the peer was tried since the last one.
    pub(crate) fn answered(&self, now_ms: u64) {
        let state = &*self.state;
        let (accessed, checked) = (&state.accessed_ms, &state.checked_ms);
        if accessed.load(Ordering::Relaxed) >= checked.load(Ordering::Relaxed) {
            return;
        }
        let fails = state.fails.swap(0, Ordering::Relaxed);
        if fails > 0 && fails >= self.settings.max_fails {
            state.recovered(now_ms);
        }
    }
}

/// What the methods of choosing ask and note.
impl Peer {
    /// Current weights are in hundredths, so that a slow start has steps to take even at weight 1.
    pub(crate) const WEIGHT_UNIT: i64 = 100;

    /// By how much a choice raises the peer; its weight recovers by one each time.
    pub(crate) fn raise(&self, now_ms: u64) -> i64 {
        let effective = &self.state.effective_weight;
        let weight = self.weight();
        let raise = effective.load(Ordering::Relaxed).min(weight);
        effective.store((raise + 1).min(weight), Ordering::Relaxed);
        raise * self.share(now_ms)
    }

    /// How much of its weight it has, in hundredths: less than all while it starts slowly.
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

    /// Notes that it is tried: what it answers now decides whether its failures are forgotten.
    pub(crate) fn was_chosen(&self, now_ms: u64) {
        let checked = &self.state.checked_ms;
        if !self.is_recent(checked.load(Ordering::Relaxed), now_ms) {
            checked.store(now_ms, Ordering::Relaxed);
        }
    }

    /// When it should be done with what it has and one request more, in milliseconds.
    pub(crate) fn estimated_ms(&self, until: Until, now_ms: u64) -> u64 {
        let checked_ms = self.state.checked_ms.load(Ordering::Relaxed);
        let since_ms = now_ms.saturating_sub(checked_ms);
        let timeout_ms = self.settings.fail_timeout_ms;
        // A slow peer that was left alone for long gets its chances.
        let halvings = match since_ms > timeout_ms {
            true => since_ms / (timeout_ms + 1000),
            false => 0,
        };
        let active = u64::from(self.state.active());
        self.state.times.estimate_ms(until, halvings) * (1 + active)
    }

    /// Whether it takes a request that is bound to it.
    pub(crate) fn takes_bound(&self, now_ms: u64) -> bool {
        self.mode() != Mode::Down && self.is_able(now_ms)
    }

    /// The identity for sticky requests.
    pub fn sticky_id(&self) -> &str {
        &self.sticky_id
    }
}

impl PeerState {
    /// The state of a peer that was never asked.
    pub fn new(weight: u32) -> Arc<PeerState> {
        Arc::new(PeerState {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            current_weight: AtomicI64::new(0),
            effective_weight: AtomicI64::new(i64::from(weight)),
            active: AtomicU32::new(0),
            fails: AtomicU32::new(0),
            accessed_ms: AtomicU64::new(0),
            checked_ms: AtomicU64::new(0),
            recovered_ms: AtomicU64::new(0),
            mode: AtomicU8::new(0),
            weight: AtomicU32::new(0),
            ill: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            times: Times::default(),
            requests: AtomicU64::new(0),
            answers: AnswerCounts::default(),
            failures: Default::default(),
        })
    }

    /// Number of the peer, unique in the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Requests at the moment.
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// Requests ever.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// What it has answered so far.
    pub fn answers(&self) -> &AnswerCounts {
        &self.answers
    }

    /// Failures ever.
    pub fn failures(&self) -> u64 {
        self.failures_by_reason().iter().sum()
    }

    /// The same by reason, in the order of [`FailReason::WORDS`].
    pub fn failures_by_reason(&self) -> [u64; FailReason::WORDS.len()] {
        self.failures
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts a failure, whether or not it is held against the peer.
    pub(crate) fn count_failure(&self, reason: FailReason) {
        self.failures[reason.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Average time until a response's head, in milliseconds; 0 before the first.
    pub fn header_ms(&self) -> u64 {
        self.times.header_ms()
    }

    /// Average time until a response's end, in milliseconds; 0 before the first.
    pub fn response_ms(&self) -> u64 {
        self.times.response_ms()
    }

    /// Failures that count at the moment.
    pub fn fails(&self) -> u32 {
        self.fails.load(Ordering::Relaxed)
    }

    /// Whether active checks find it well, or there are none.
    pub fn is_healthy(&self) -> bool {
        self.ill.load(Ordering::Relaxed) == 0
    }

    /// Whether a check finds it ill.
    pub(crate) fn is_ill(&self, check: u32) -> bool {
        self.ill.load(Ordering::Relaxed) & bit(check) != 0
    }

    pub(crate) fn set_ill(&self, check: u32, ill: bool) {
        match ill {
            true => self.ill.fetch_or(bit(check), Ordering::Relaxed),
            false => self.ill.fetch_and(!bit(check), Ordering::Relaxed),
        };
    }

    /// Whether a check has found it well before.
    pub(crate) fn was_checked(&self, check: u32) -> bool {
        self.checked.load(Ordering::Relaxed) & bit(check) != 0
    }

    pub(crate) fn checked_well(&self, check: u32) {
        self.checked.fetch_or(bit(check), Ordering::Relaxed);
    }

    /// Forgets what checks found that there are no more: only so many are left.
    pub(crate) fn keep_checks(&self, count: u32) {
        let kept = match count {
            64.. => u64::MAX,
            count => (1 << count) - 1,
        };
        self.ill.fetch_and(kept, Ordering::Relaxed);
        self.checked.fetch_and(kept, Ordering::Relaxed);
    }

    /// Takes the peer back: its failures are forgotten, and its weight grows again.
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
