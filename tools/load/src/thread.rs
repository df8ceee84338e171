//! What the connections of one thread share: clock, epoll set, buffers, figures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::Instant;

use nix::sys::epoll::{Epoll, EpollCreateFlags};

use crate::http1::{Answer, Http1};
use crate::http3::Dialling;
use crate::mix::Random;
use crate::multiplexed::Protocol;
use crate::plan::{Pacing, Plan};
use crate::tally::{ErrorKind, Failure, Tally};
use crate::tls::{QuicThread, TlsSession, TlsThread};

/// The receive buffer, shared by all connections of a thread: small answers come whole in one
/// call, and only its first pages are touched by them.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Nanoseconds since the run began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn new() -> Self {
        Clock {
            base: Instant::now(),
        }
    }

    /// The time.
    #[inline]
    pub(crate) fn now_ns(self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Learns whether sending right after connect(2) works, which saves waiting for an event: it
/// does where the handshake ends within the call, and costs a vain call elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Optimism {
    tries: u32,
    hits: u32,
}

/// Attempts before the experience counts.
const OPTIMISM_TRIES: u32 = 32;

impl Optimism {
    pub(crate) fn is_worth_it(&self) -> bool {
        self.tries < OPTIMISM_TRIES || self.hits > self.tries / 2
    }

    pub(crate) fn note(&mut self, hit: bool) {
        if self.tries < OPTIMISM_TRIES {
            self.tries += 1;
            self.hits += u32::from(hit);
        }
    }
}

/// Where a connection is to come from.
pub(crate) struct Source {
    /// The port is 0 unless it is to be bound explicitly.
    pub(crate) address: SocketAddr,
    /// The ports that the kernel may choose from.
    pub(crate) ports: Option<(u16, u16)>,
}

/// The ephemeral ports of one thread, one after the other: the next one is the one whose last
/// connection ended first, so that TIME_WAIT has had the most time, and the kernel need not search.
#[derive(Debug)]
pub(crate) struct PortWalk {
    first: u16,
    last: u16,
    next: u16,
}

impl PortWalk {
    /// The ports of thread `index`; `None` where the kernel chooses: connections are few or
    /// leave no TIME_WAIT, or sources were given.
    fn of(plan: &Plan, index: usize) -> Option<PortWalk> {
        let socket = &plan.socket;
        let is_short = plan
            .connreqs
            .mean()
            .is_some_and(|mean| mean <= SHORT_CONNREQS_MAX);
        let has_time_wait = plan.protocol != Protocol::Http3 && !socket.linger0;
        if !is_short || !has_time_wait || !socket.sources.is_empty() {
            return None;
        }
        let (first, last) = socket.ephemeral_ports;
        let count = u32::from(last.checked_sub(first)?) + 1;
        let threads = u32::try_from(plan.threads).ok()?;
        let share = count / threads;
        if share < PORTS_MIN {
            return None;
        }
        let start = u32::from(first) + share * u32::try_from(index).ok()?;
        let first = u16::try_from(start).ok()?;
        let last = u16::try_from(start + share - 1).ok()?;
        // Another run has left off somewhere: do not begin with what it used last.
        let turn = u32::try_from(plan.started_unix_s % u64::from(share)).unwrap_or(0);
        let next = u16::try_from(start + turn).unwrap_or(first);
        Some(PortWalk { first, last, next })
    }

    /// The next port.
    pub(crate) fn next(&mut self) -> u16 {
        let port = self.next;
        self.next = match port {
            port if port >= self.last => self.first,
            port => port + 1,
        };
        port
    }
}

/// Most requests on a connection for which ports are walked: with more, there are few connections.
const SHORT_CONNREQS_MAX: f64 = 4.0;

/// Ports that a thread needs for a walk to be worth it.
const PORTS_MIN: u32 = 1024;

/// The state of one thread beside its connections.
pub(crate) struct Thread<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) clock: Clock,
    pub(crate) epoll: Epoll,
    pub(crate) scratch: Vec<u8>,
    pub(crate) http: Http1,
    pub(crate) tally: Tally,
    pub(crate) random: Random,
    pub(crate) optimism: Optimism,
    pub(crate) timeout_ns: u64,
    /// Requests meant to start before this are warm-up.
    pub(crate) measure_from_ns: u64,
    /// Requests this thread may still start.
    pub(crate) quota: u64,
    /// When no request is started any more.
    pub(crate) end_ns: u64,
    /// The slot at hand.
    pub(crate) current: u32,
    /// Source ports in turn, where connections are short and the kernel would have to search.
    pub(crate) ports: Option<PortWalk>,
    /// When connections of HTTP/3 have something to do: times in nanoseconds, and slots.
    pub(crate) timers: BinaryHeap<Reverse<(u64, u32)>>,
    tls: Option<TlsThread>,
    quic: Option<QuicThread>,
    index: usize,
    sources_used: u64,
}

impl<'p> Thread<'p> {
    /// The state of thread `index`; to be made in the thread itself.
    ///
    /// # Errors
    /// When there can be no epoll set.
    pub(crate) fn new(plan: &'p Plan, index: usize) -> nix::Result<Thread<'p>> {
        let seed = plan
            .seed
            .wrapping_mul(0x2545_f491_4f6c_dd1d)
            .wrapping_add(index as u64);
        Ok(Thread {
            plan,
            clock: Clock::new(),
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            scratch: vec![0; SCRATCH_BYTES],
            http: Http1::new(),
            tally: Tally::default(),
            random: Random::new(seed),
            optimism: Optimism::default(),
            timeout_ns: u64::try_from(plan.timeout.as_nanos()).unwrap_or(u64::MAX / 4),
            measure_from_ns: u64::try_from(plan.warmup.as_nanos()).unwrap_or(u64::MAX),
            quota: u64::MAX,
            end_ns: u64::MAX,
            current: 0,
            ports: PortWalk::of(plan, index),
            timers: BinaryHeap::new(),
            tls: plan.tls.as_ref().map(|tls| tls.thread()),
            quic: plan.tls.as_ref().and_then(|tls| tls.quic_thread()),
            index,
            sources_used: 0,
        })
    }

    /// A TLS session for a new connection.
    pub(crate) fn tls_session(&self, endpoint: usize, resume: bool) -> Option<TlsSession> {
        self.plan
            .tls
            .as_ref()?
            .connect(self.tls.as_ref()?, endpoint, resume)
    }

    /// What a new connection of HTTP/3 is begun with.
    pub(crate) fn dial(&mut self, endpoint: usize) -> Option<Dialling> {
        let tls = self.plan.tls.as_ref()?;
        let resumes = self.random.unit() < tls.resume_share;
        let is_early = resumes && self.random.unit() < tls.early_share;
        let remote = self
            .plan
            .targets
            .endpoints
            .get(endpoint)?
            .address
            .as_socket()?;
        tls.dial(self.quic.as_ref()?, endpoint, remote, (resumes, is_early))
    }

    /// Whether an endpoint is reached by TCP.
    pub(crate) fn is_tcp(&self, endpoint: u32) -> bool {
        self.plan
            .targets
            .endpoints
            .get(endpoint as usize)
            .is_some_and(|endpoint| endpoint.tcp)
    }

    /// The source of the next connection, where sources are given: ranges take turns, and threads
    /// go through the addresses in steps so that each has its own.
    ///
    /// The kernel chooses ports of the ephemeral range only; others are taken one by one.
    pub(crate) fn next_source(&mut self) -> Option<Source> {
        let ranges = &self.plan.socket.sources;
        let turn = self.sources_used;
        let range = ranges.get(usize::try_from(turn % ranges.len().max(1) as u64).unwrap_or(0))?;
        self.sources_used += 1;
        let within = turn / ranges.len() as u64;
        let index = within * self.plan.threads as u64 + self.index as u64;
        let mut address = range.address(index);
        let ports = range.thread_ports(self.index, self.plan.threads);
        let (lowest, highest) = self.plan.socket.ephemeral_ports;
        match ports {
            Some((first, last)) if first < lowest || last > highest => {
                let width = u64::from(last - first) + 1;
                let step = index / u64::try_from(range.count()).unwrap_or(u64::MAX);
                address.set_port(first + u16::try_from(step % width).unwrap_or(0));
                Some(Source {
                    address,
                    ports: None,
                })
            }
            _ => Some(Source { address, ports }),
        }
    }

    /// Takes the start of another request out of the quota; `false`: none is left, or it is late.
    pub(crate) fn take_quota(&mut self, now_ns: u64) -> bool {
        if self.quota == 0 || now_ns >= self.end_ns {
            return false;
        }
        self.quota -= 1;
        self.tally.issued += 1;
        true
    }

    /// Takes starts back: the server has not looked at the requests.
    pub(crate) fn take_back(&mut self, count: u64) {
        self.quota = self.quota.saturating_add(count);
        self.tally.issued -= count;
    }

    /// Counts an answer and judges it.
    #[inline]
    pub(crate) fn count_answer(
        &mut self,
        answer: Answer,
        now_ns: u64,
        intended_ns: u64,
        sent_ns: u64,
    ) {
        let tally = &mut self.tally;
        tally.last_answer_ns = now_ns;
        if intended_ns < self.measure_from_ns {
            tally.warmup += 1;
            return;
        }
        tally.completed += 1;
        let begun_ns = match self.plan.pacing {
            Pacing::Closed => sent_ns,
            Pacing::Requests(..) | Pacing::Connections(..) => {
                tally.last_byte.record(now_ns.saturating_sub(sent_ns));
                intended_ns
            }
        };
        let latency_ns = now_ns.saturating_sub(begun_ns);
        tally.latency.record(latency_ns);
        let at_ns = now_ns.saturating_sub(self.measure_from_ns);
        tally.series.answered(at_ns, latency_ns);
        tally.count_status(answer.status);
        let mut fail = |kind| {
            tally.series.failed(at_ns);
            tally.fail(Failure {
                kind,
                begun_ns: intended_ns,
                ended_ns: now_ns,
            });
        };
        match self.plan.expect_status {
            Some(expected) if expected != answer.status => fail(ErrorKind::UnexpectedStatus),
            None if answer.status > 399 => fail(ErrorKind::BadStatus),
            _ => {}
        }
        if !answer.body_matches {
            fail(ErrorKind::UnexpectedBody);
        }
    }
}
