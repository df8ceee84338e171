//! What binds: the cause decides which knobs are tried first. Pure.

use super::knobs::Knob;
use super::search::Run;

/// Knobs that move together, since one alone is cut by the other.
pub(super) type Group = &'static [Knob];

/// The listen queue: its length in the server and in the kernel.
const QUEUE: Group = &[Knob::Backlog, Knob::Somaxconn];
/// What the kernel does when a queue of half-open connections is full.
const COOKIES: Group = &[Knob::SynCookies];
/// The order where nothing special binds.
const COARSE: [Group; 5] = [
    &[Knob::Workers],
    &[Knob::AccessLog],
    &[Knob::OpenFileCache],
    &[Knob::AcceptMutex],
    COOKIES,
];
/// Fine tuning, once the coarse limits are gone.
const FINE: [Group; 8] = [
    &[Knob::MultiAccept],
    &[Knob::Deferred],
    &[Knob::Autocorking],
    &[Knob::PacketSteering],
    &[Knob::Napi],
    &[Knob::Addresses],
    &[Knob::Placement],
    &[Knob::BusyPoll],
];

/// The share of a CPU's time in soft interrupts from which they bind.
const SOFTIRQ_SHARE_MIN: f64 = 0.5;
/// The share of all CPUs' time that has to be idle for soft interrupts to have somewhere to go.
const SPARE_SHARE_MIN: f64 = 0.05;
/// The share of all CPUs' time from which idle CPUs say that something else is waited for.
const IDLE_SHARE_MIN: f64 = 0.25;

/// What limits the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cause {
    /// The kernel sent so many SYN cookies, as it does when the queue is full of connections that
    /// are half open.
    Cookies(u64),
    /// The listen queue overflowed so many times.
    Queue(u64),
    /// A CPU spent this share of its time in soft interrupts while others had time left.
    Softirq(f64),
    /// The load generator, which has a CPU of its own only once the workers are elsewhere.
    Client,
    /// CPUs were idle for this share of the time.
    Idle(f64),
    /// The CPUs' time.
    Cpu,
}

impl Cause {
    /// What a run shows.
    pub(super) fn of(run: &Run) -> Cause {
        let has_room = run.idle_share >= SPARE_SHARE_MIN;
        let is_uneven = run.softirq_share >= SOFTIRQ_SHARE_MIN && has_room;
        match run {
            run if run.cookies > Some(0) => Cause::Cookies(run.cookies.unwrap_or(0)),
            run if run.overflows > 0 => Cause::Queue(run.overflows),
            run if is_uneven => Cause::Softirq(run.softirq_share),
            run if run.client_limited => Cause::Client,
            run if run.idle_share >= IDLE_SHARE_MIN => Cause::Idle(run.idle_share),
            _ => Cause::Cpu,
        }
    }

    /// Whether another cause is the same but for its figures.
    pub(super) fn is_like(self, other: Cause) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// In words.
    pub(super) fn text(self) -> String {
        let percent = |share: f64| (share * 100.0).round();
        match self {
            Cause::Cookies(cookies) => {
                format!("the listen queue was full, and the kernel sent {cookies} SYN cookies")
            }
            Cause::Queue(overflows) => format!("the listen queue overflowed {overflows} times"),
            Cause::Softirq(share) => format!(
                "a CPU was in soft interrupts for {} % of the time, and others had time left",
                percent(share)
            ),
            Cause::Client => "no queue overflowed: the load generator".to_owned(),
            Cause::Idle(share) => format!(
                "no queue overflowed, and CPUs were idle for {} % of the time",
                percent(share)
            ),
            Cause::Cpu => "no queue overflowed: the CPUs".to_owned(),
        }
    }

    /// What is tried before all others.
    fn first(self) -> &'static [Group] {
        match self {
            Cause::Cookies(_) => &[COOKIES, QUEUE],
            Cause::Queue(_) => &[QUEUE],
            Cause::Softirq(_) => &[&[Knob::PacketSteering], &[Knob::Placement], &[Knob::Napi]],
            Cause::Client => &[&[Knob::Workers]],
            Cause::Idle(_) => &[&[Knob::Workers], &[Knob::AcceptMutex]],
            Cause::Cpu => &[],
        }
    }
}

/// All groups, in the order in which they are tried where nothing special binds.
pub(super) fn groups(has_all_knobs: bool) -> Vec<Group> {
    let fine: &[Group] = if has_all_knobs { &FINE } else { &[] };
    let coarse = COARSE.into_iter().chain(std::iter::once(QUEUE));
    coarse.chain(fine.iter().copied()).collect()
}

/// Why knobs cannot change anything while runs are like this one; `None` where they may. A long
/// queue is never answered by cookies, so that time spent on them would only find chance.
pub(super) fn without_effect(knobs: &[Knob], run: &Run) -> Option<&'static str> {
    (knobs == COOKIES && run.cookies == Some(0)).then_some("no SYN cookie was sent")
}

/// Takes out of what is left the group to be tried next.
pub(super) fn next(left: &mut Vec<Group>, cause: Cause) -> Option<Group> {
    let mut places = cause.first().iter();
    let place = places.find_map(|wanted| left.iter().position(|group| group == wanted));
    if left.is_empty() {
        None
    } else {
        Some(left.remove(place.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests;
