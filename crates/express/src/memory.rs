//! The memory that the program and the server share: answers, settings and counters. Lanes publish
//! answers by plain stores; nothing here makes a system call or waits.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use turnpike_lane::siphash::SipHash;
use turnpike_lane::sys::mapping::SharedWords;
use turnpike_lane::sys::process::monotonic_ns;

use crate::counters::{COUNTERS, CounterRow};
use crate::drops::{Drops, address_words};
use crate::layout::{self, ANSWER_BYTES_MAX, SLOT_BYTES, SLOT_WORDS, WAYS, settings};
use crate::proof::Counts;
use crate::samples::{Sample, SampleRing};
use crate::sources::{Derivation, SlotSources, Withdrawn};

/// The counters in their array, summed over all CPUs.
fn counts(counters: &SharedWords) -> impl Iterator<Item = (&'static CounterRow, u64)> + '_ {
    COUNTERS.iter().enumerate().map(|(number, row)| {
        let cpus = counters.words().chunks_exact(layout::COUNTERS_MAX);
        (row, cpus.map(|cpu| cpu[number].load(Relaxed)).sum())
    })
}

/// What tells whether the program's answers arrive, of its array of counters.
///
/// # Errors
/// Those of mmap(2).
pub(crate) fn read_proof(counters: BorrowedFd<'_>) -> io::Result<Counts> {
    let counters = SharedWords::map(counters, layout::CPUS_MAX * layout::COUNTERS_MAX)?;
    let mut found = Counts::default();
    for (row, count) in counts(&counters) {
        match row.name {
            "syn_answered" => found.answered += count,
            "acknowledgements" | "hits" | "fin_answered" | "handed_over" => {
                found.returned += count;
            }
            _ => {}
        }
    }
    Ok(found)
}

/// How many arrays the memory is made of.
pub(crate) const ARRAY_COUNT: usize = 5;

/// Two times at which answers get too old count as one within this: they are computed anew for each
/// request, from two clocks. Else each request would write the answer again, and what is just being
/// sent is dropped then.
const EXPIRES_ALIKE_NS: u64 = 2_000_000;

/// The memory, mapped.
#[derive(Debug)]
pub struct Memory {
    answers: SharedWords,
    settings: SharedWords,
    counters: SharedWords,
    drops: Drops,
    samples: SampleRing,
    slot_count: usize,
    /// What the answer of each slot was made from. Whoever changes a slot holds it, so that an
    /// answer is published either before a withdrawal or not at all.
    sources: Mutex<SlotSources>,
    /// How often something was withdrawn.
    withdrawals: AtomicU64,
    /// Answers that others took the place of while they could still be sent.
    evicted: AtomicU64,
}

/// Where clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    pub address: SocketAddr,
    /// Whether requests are answered there; clients may be dropped in any case.
    pub answers: bool,
}

/// What an answer is for.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The address that the client connected to.
    pub gate: SocketAddr,
    /// The value of Host, as written.
    pub host: &'a [u8],
    /// Path and query, as written.
    pub target: &'a [u8],
    /// Whether it is asked for with HEAD.
    pub is_head: bool,
}

/// An answer to be published.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Head and body, as they stand on the wire; it has `Connection: close`.
    pub bytes: &'a [u8],
    /// Until when it may be sent, in CLOCK_MONOTONIC nanoseconds.
    pub expires_ns: u64,
    /// The number of the configuration that it was made under: see [`Memory::begin`].
    pub generation: u64,
    /// Whether clients get it too that would keep the connection.
    pub closes_kept: bool,
    /// Whether only clients get it that accept no coding.
    pub is_uncoded: bool,
    /// What withdraws it before it is too old; `None`: the configuration alone.
    pub derivation: Option<Derivation>,
    /// One of so many requests that it answers is sampled, at most [`SAMPLED_ONE_IN_MAX`]; 0: none.
    pub sampled_one_in: u32,
    /// What a sample brings back of it.
    pub note: u64,
}

/// The least part of requests that can be sampled: the chance is a part of 2^24, and is right
/// within a hundredth up to here.
pub const SAMPLED_ONE_IN_MAX: u32 = 100_000;

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The program has it from now on.
    Yes,
    /// The program had it already.
    Already,
    /// The answer is too long, or its key is.
    TooLong,
    /// Another lane publishes.
    Busy,
    /// Something was withdrawn since the answer was made: it may be outdated.
    Withdrawn,
}

impl Memory {
    /// Maps the memory of a loaded program: its arrays, in the order of
    /// [`Program::arrays`](crate::Program::arrays).
    ///
    /// # Errors
    /// Those of mmap(2).
    pub(crate) fn map(arrays: [BorrowedFd<'_>; ARRAY_COUNT]) -> io::Result<Memory> {
        let [answers, settings, counters, drops, samples] = arrays;
        let settings = SharedWords::map(settings, settings::WORDS)?;
        let slot_count = settings.words()[settings::SLOT_MASK].load(Relaxed) as usize + 1;
        Ok(Memory {
            answers: SharedWords::map(answers, slot_count * SLOT_WORDS)?,
            settings,
            counters: SharedWords::map(counters, layout::CPUS_MAX * layout::COUNTERS_MAX)?,
            drops: Drops::map(drops)?,
            samples: SampleRing::map(samples)?,
            slot_count,
            sources: Mutex::new(SlotSources::new(slot_count)),
            withdrawals: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        })
    }

    /// Notes in the settings of a program that was just loaded how many slots it has.
    pub(crate) fn note_slots(settings: BorrowedFd<'_>, slot_count: usize) -> io::Result<()> {
        let settings = SharedWords::map(settings, settings::WORDS)?;
        settings.words()[settings::SLOT_MASK].store(slot_count as u64 - 1, SeqCst);
        Ok(())
    }

    /// Copies gates and keys to the settings of a program that takes this one's place: connections
    /// that have begun there are handed over by it. It answers nothing yet.
    pub(crate) fn copy_settings(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
        let from = SharedWords::map(from, settings::WORDS)?;
        let to = SharedWords::map(to, settings::WORDS)?;
        for (place, (old, new)) in from.words().iter().zip(to.words()).enumerate() {
            if (settings::COOKIE_KEY..settings::DROPS).contains(&place) {
                new.store(old.load(SeqCst), SeqCst);
            }
        }
        Ok(())
    }

    /// A configuration comes into force that has these gates: all that was published before is
    /// withdrawn, and nobody is dropped. Without `answers` nothing is answered from now on, but
    /// connections that have begun with a cookie are still handed over. Returns the number by
    /// which the configuration's own answers are known.
    pub fn begin(&self, gates: &[Gate], answers: bool) -> u64 {
        let words = self.settings.words();
        let generation = words[settings::GENERATION].load(Relaxed) + 1;
        words[settings::GENERATION].store(generation, SeqCst);
        words[settings::DROPS].store(0, SeqCst);
        self.drops.clear();
        self.make_keys();
        let gates = &gates[..gates.len().min(layout::GATES_MAX)];
        for (number, gate) in gates.iter().enumerate() {
            let silent = if gate.answers { 0 } else { layout::SILENT };
            self.set_port(number, u32::from(gate.address.port()) | silent);
            let address = match gate.address.ip() {
                address if address.is_unspecified() => [0; 2],
                address => address_words(address),
            };
            for (half, word) in address.into_iter().enumerate() {
                words[settings::ADDRESSES + number * 2 + half].store(word, Relaxed);
            }
        }
        words[settings::PORT_COUNT].store(gates.len() as u64, Release);
        let answers = u64::from(answers && gates.iter().any(|gate| gate.answers));
        words[settings::ANSWERS_REQUESTS].store(answers, Release);
        words[settings::ANSWERS_SYN].store(answers, Release);
        generation
    }

    /// Drops what comes from an address until that time, in CLOCK_MONOTONIC nanoseconds, if the
    /// configuration of this number is in force.
    pub fn drop_client(&self, generation: u64, address: IpAddr, until_ns: u64) {
        if self.generation() != generation {
            return; // refused by the rules of a configuration that is no more
        }
        let words = self.settings.words();
        let half = |number: usize| words[settings::DIGEST_KEY + number].load(Relaxed);
        let key = [half(0), half(1)];
        self.drops.add(key, address_words(address), until_ns);
        words[settings::DROPS].store(1, Release);
    }

    /// How many clients are dropped now.
    pub fn dropped_clients(&self) -> usize {
        self.drops.count(monotonic_ns())
    }

    /// Nothing is answered, and nobody dropped, from now on. Connections that have begun with a
    /// cookie are still handed over to the lanes.
    pub fn turn_off(&self) {
        let words = self.settings.words();
        words[settings::ANSWERS_SYN].store(0, SeqCst);
        words[settings::ANSWERS_REQUESTS].store(0, SeqCst);
        words[settings::GENERATION].fetch_add(1, SeqCst);
        words[settings::DROPS].store(0, SeqCst);
        self.drops.clear();
    }

    /// As [`Memory::turn_off`], unless another configuration has begun than that of this number.
    pub(crate) fn end(&self, generation: u64) {
        if self.generation() == generation {
            self.turn_off();
        }
    }

    /// The number of the configuration in force.
    pub(crate) fn generation(&self) -> u64 {
        self.settings.words()[settings::GENERATION].load(SeqCst)
    }

    /// Withdraws all that is published.
    pub fn withdraw_all(&self) {
        for slot in self.answers.words().chunks_exact(SLOT_WORDS) {
            slot[layout::EXPIRES].store(0, SeqCst);
        }
    }

    /// How often something was withdrawn. Read before what an answer is made from, the number tells
    /// whether that may have changed since.
    pub(crate) fn withdrawals(&self) -> u64 {
        self.withdrawals.load(SeqCst)
    }

    /// Withdraws answers by what they were made from, which has changed. None of them is sent for a
    /// request that comes after this. May wait for a lane that publishes.
    pub(crate) fn withdraw(&self, withdrawn: Withdrawn<'_>) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        self.withdrawals.fetch_add(1, SeqCst);
        while let Some(number) = sources.take(withdrawn) {
            self.slot(number)[layout::EXPIRES].store(0, SeqCst);
        }
    }

    /// Publishes an answer, in the place of another one where there is no room.
    pub fn publish(&self, key: Key<'_>, answer: Answer<'_>) -> Published {
        let too_long = key.host.len() > layout::HOST_BYTES_MAX
            || key.target.len() > layout::TARGET_BYTES_MAX
            || answer.bytes.len() > ANSWER_BYTES_MAX;
        if too_long || key.host.is_empty() || answer.bytes.is_empty() {
            return Published::TooLong;
        }
        let written = self.written(key, answer);
        let Some(mut sources) = self.try_lock() else {
            return Published::Busy;
        };
        let source = answer.derivation.map(|derivation| derivation.source);
        let is_outdated = |derivation: Derivation| derivation.withdrawals != self.withdrawals();
        if answer.derivation.is_some_and(is_outdated) {
            return Published::Withdrawn;
        }
        let number = self.place(written[layout::DIGEST], answer.generation);
        let slot = self.slot(number);
        if sources.of(number) == source && is_same(slot, &written) {
            return Published::Already;
        }
        let is_evicted = is_sent(slot, answer.generation, monotonic_ns())
            && slot[layout::DIGEST].load(Relaxed) != written[layout::DIGEST];
        if !write(slot, &written) {
            return Published::Busy;
        }
        sources.set(number, source);
        self.evicted.fetch_add(u64::from(is_evicted), Relaxed);
        Published::Yes
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, SlotSources>> {
        match self.sources.try_lock() {
            Ok(sources) => Some(sources),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// How many answers others took the place of while they could still be sent.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// The bytes of the table of answers, used or not.
    pub fn size_bytes(&self) -> u64 {
        self.slot_count as u64 * SLOT_BYTES
    }

    /// The program's counters, summed over all CPUs.
    pub fn counts(&self) -> impl Iterator<Item = (&'static CounterRow, u64)> + '_ {
        counts(&self.counters)
    }

    /// The counter of that name; 0 where there is none.
    pub fn count(&self, name: &str) -> u64 {
        let mut counts = self.counts();
        let found = counts.find(|(row, _)| row.name == name);
        found.map_or(0, |(_, count)| count)
    }

    /// Has SYN segments answered, or left to the kernel, if the configuration of this number is in
    /// force.
    pub(crate) fn answer_syn(&self, generation: u64, answers: bool) {
        if self.generation() == generation {
            let words = self.settings.words();
            words[settings::ANSWERS_SYN].store(u64::from(answers), Release);
        }
    }

    /// Takes at most so many samples of the configuration of this number, if that is in force.
    /// Those of others are left out. Where another lane takes some, nothing is done.
    pub(crate) fn take_samples(
        &self,
        generation: u64,
        count_max: usize,
        take: &mut dyn FnMut(Sample<'_>),
    ) {
        self.take_samples_at(monotonic_ns(), generation, count_max, take);
    }

    /// Takes samples as at that monotonic time.
    pub(crate) fn take_samples_at(
        &self,
        now_ns: u64,
        generation: u64,
        count_max: usize,
        take: &mut dyn FnMut(Sample<'_>),
    ) {
        if self.generation() == generation {
            self.samples.take(generation, count_max, now_ns, take);
        }
    }

    /// Moves the reader of samples, as another process might.
    #[cfg(test)]
    pub(crate) fn move_sample_reader(&self, bytes: u64) {
        self.samples.move_reader(bytes);
    }

    /// How many answers may be sent now.
    pub fn published(&self) -> usize {
        let generation = self.settings.words()[settings::GENERATION].load(Relaxed);
        let now_ns = monotonic_ns();
        let slots = self.answers.words().chunks_exact(SLOT_WORDS);
        slots
            .filter(|slot| is_sent(slot, generation, now_ns))
            .count()
    }

    /// The key of cookies.
    #[cfg(test)]
    pub(crate) fn cookie_key(&self) -> [u64; 2] {
        let words = self.settings.words();
        [0, 1].map(|half| words[settings::COOKIE_KEY + half].load(Relaxed))
    }

    /// Random keys, made once for a memory.
    fn make_keys(&self) {
        let words = self.settings.words();
        if words[settings::DIGEST_KEY].load(Relaxed) != 0 {
            return;
        }
        for key in [settings::COOKIE_KEY, settings::DIGEST_KEY] {
            for half in 0..2 {
                let mut bytes = [0; 8];
                if aws_lc_rs::rand::fill(&mut bytes).is_err() {
                    return;
                }
                words[key + half].store(u64::from_ne_bytes(bytes) | 1, Relaxed);
            }
        }
    }

    /// Two ports stand in a word.
    fn set_port(&self, number: usize, port: u32) {
        let word = &self.settings.words()[settings::PORTS + number / 2];
        let shift = number % 2 * 32;
        let others = word.load(Relaxed) & !(0xffff_ffff << shift);
        word.store(others | u64::from(port) << shift, Relaxed);
    }

    /// The words of a slot with this answer; the version is left out.
    fn written(&self, key: Key<'_>, answer: Answer<'_>) -> [u64; layout::WRITTEN_WORDS] {
        let mut words = [0; layout::WRITTEN_WORDS];
        put(&mut words[layout::HOST..layout::TARGET], key.host);
        put(&mut words[layout::TARGET..layout::BYTES], key.target);
        put(&mut words[layout::BYTES..], answer.bytes);
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(key.is_head, layout::TO_HEAD)
            | flag(answer.closes_kept, layout::CLOSES)
            | flag(answer.is_uncoded, layout::UNCODED)
            | chance(answer.sampled_one_in) << layout::CHANCE_SHIFT;
        let address = address_words(key.gate.ip());
        words[layout::EXPIRES] = answer.expires_ns;
        words[layout::GENERATION] = answer.generation;
        let lengths = [key.host, key.target, answer.bytes].map(|bytes| bytes.len() as u64);
        words[layout::KEY_BYTES] =
            lengths[0] | lengths[1] << 16 | lengths[2] << 32 | u64::from(key.gate.port()) << 48;
        words[layout::ANSWER] = u64::from(sum(answer.bytes)) | u64::from(flags) << 32;
        words[layout::ADDRESS..layout::NOTE].copy_from_slice(&address);
        words[layout::NOTE] = answer.note;
        words[layout::DIGEST] = self.digest(key, address, &words);
        words
    }

    /// The hash of a key, as `key_digest` in `bpf/answer.h` makes it.
    fn digest(&self, key: Key<'_>, address: [u64; 2], words: &[u64]) -> u64 {
        let settings = self.settings.words();
        let half = |number: usize| settings[settings::DIGEST_KEY + number].load(Relaxed);
        let mut hash = SipHash::new([half(0), half(1)]);
        hash.word(address[0]);
        hash.word(address[1]);
        hash.word(u64::from(key.gate.port()) << 32 | u64::from(key.is_head));
        let host = &words[layout::HOST..][..key.host.len().div_ceil(8)];
        let target = &words[layout::TARGET..][..key.target.len().div_ceil(8)];
        host.iter().chain(target).for_each(|word| hash.word(*word));
        hash.end(key.host.len() as u64).max(1)
    }

    /// The number of the slot for a key: the one that has it, else one that is free, else the one
    /// that is next to expire.
    fn place(&self, digest: u64, generation: u64) -> usize {
        let first = digest as usize & (self.slot_count - 1) & !(WAYS - 1);
        let rank = |number: &usize| {
            let slot = self.slot(*number);
            let has_key = slot[layout::DIGEST].load(Relaxed) == digest;
            let is_old = slot[layout::GENERATION].load(Relaxed) != generation;
            let expires_ns = slot[layout::EXPIRES].load(Relaxed);
            (!has_key, if is_old { 0 } else { expires_ns })
        };
        (first..first + WAYS).min_by_key(rank).unwrap_or(first)
    }

    fn slot(&self, number: usize) -> &[AtomicU64] {
        &self.answers.words()[number * SLOT_WORDS..][..SLOT_WORDS]
    }
}

/// Whether a slot has what is to be written, and until then.
fn is_same(slot: &[AtomicU64], written: &[u64]) -> bool {
    // The sum stands for the bytes here: a change of the bytes that keeps the sum is written when
    // the answer expires.
    let expires_ns = slot[layout::EXPIRES].load(Relaxed);
    let is_as_old = expires_ns.abs_diff(written[layout::EXPIRES]) < EXPIRES_ALIKE_NS;
    let words = [
        layout::DIGEST,
        layout::GENERATION,
        layout::KEY_BYTES,
        layout::ANSWER,
        layout::NOTE,
    ];
    let is_alike = |word: usize| slot[word].load(Relaxed) == written[word];
    is_as_old && words.into_iter().all(is_alike)
}

/// Whether the answer of a slot is of that configuration and not too old.
fn is_sent(slot: &[AtomicU64], generation: u64, now_ns: u64) -> bool {
    slot[layout::GENERATION].load(Relaxed) == generation
        && slot[layout::EXPIRES].load(Relaxed) > now_ns
}

/// Writes a slot under an odd version; `false`: another lane does.
fn write(slot: &[AtomicU64], written: &[u64]) -> bool {
    let version = slot[layout::VERSION].load(Acquire);
    let odd = version | 1;
    if version == odd
        || slot[layout::VERSION]
            .compare_exchange(version, odd, AcqRel, Relaxed)
            .is_err()
    {
        return false;
    }
    fence(SeqCst);
    for (word, value) in slot.iter().zip(written).skip(1) {
        word.store(*value, Relaxed);
    }
    slot[layout::HITS].store(0, Relaxed);
    slot[layout::VERSION].store(odd + 1, SeqCst);
    true
}

fn put(words: &mut [u64], bytes: &[u8]) {
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut whole = [0; 8];
        whole[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(whole);
    }
}

/// The chance of a sample as the program has it: one less than its part of
/// [`layout::CHANCES`]; 0 is none.
fn chance(sampled_one_in: u32) -> u32 {
    match sampled_one_in {
        0 => 0,
        one_in => layout::CHANCES / one_in.min(SAMPLED_ONE_IN_MAX) - 1,
    }
}

/// The ones' complement sum of a text, over words in network order (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2).map(|pair| {
        let second = pair.get(1).copied().unwrap_or_default();
        u32::from(u16::from_ne_bytes([pair[0], second]))
    });
    // At most 730 words of 16 bits.
    words.sum()
}
