//! What one configuration publishes: its answers are known by a number, so that none of another
//! configuration is sent.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::memory::{Answer, Gate, Key, Memory, Published};
use crate::samples::Sample;
use crate::sources::Withdrawn;

/// The memory, as one configuration has it.
#[derive(Debug)]
pub struct Publisher {
    memory: Arc<Memory>,
    /// 0 while the configuration is not in force.
    generation: AtomicU64,
    /// Whether answers may be published.
    answers: AtomicBool,
}

impl Publisher {
    /// A publisher of a configuration that is not in force yet.
    pub fn new(memory: Arc<Memory>) -> Arc<Publisher> {
        Arc::new(Publisher {
            memory,
            generation: AtomicU64::new(0),
            answers: AtomicBool::new(false),
        })
    }

    /// The configuration has locations whose answers may be published.
    pub fn expect_answers(&self) {
        self.answers.store(true, Relaxed);
    }

    /// The configuration comes into force, or does so again: see [`Memory::begin`].
    pub fn begin(&self, gates: &[Gate]) {
        let answers = self.answers.load(Relaxed);
        let generation = self.memory.begin(gates, answers);
        self.generation.store(generation, Relaxed);
    }

    /// The configuration is in force no more: nothing is answered, unless another one has begun.
    pub fn end(&self) {
        self.memory.end(self.generation.load(Relaxed));
    }

    /// Publishes an answer; its generation is filled in.
    pub fn publish(&self, key: Key<'_>, answer: Answer<'_>) -> Published {
        let generation = self.generation.load(Relaxed);
        self.memory.publish(
            key,
            Answer {
                generation,
                ..answer
            },
        )
    }

    /// How often something was withdrawn, for [`crate::Derivation`]: to be read before what an
    /// answer is made from.
    pub fn withdrawals(&self) -> u64 {
        self.memory.withdrawals()
    }

    /// Withdraws answers by what they were made from, which has changed. When this returns, none of
    /// them is sent any more. May wait for a lane that publishes, some microseconds.
    pub fn withdraw(&self, withdrawn: Withdrawn<'_>) {
        self.memory.withdraw(withdrawn);
    }

    /// Drops what comes from an address until that time, while the configuration is in force: see
    /// [`Memory::drop_client`].
    pub fn drop_client(&self, address: IpAddr, until_ns: u64) {
        let generation = self.generation.load(Relaxed);
        self.memory.drop_client(generation, address, until_ns);
    }

    /// Takes at most so many samples of the configuration's answers, while it is in force. It does
    /// not wait: where another lane takes some, there are none for this one.
    pub fn take_samples(&self, count_max: usize, take: &mut dyn FnMut(Sample<'_>)) {
        let generation = self.generation.load(Relaxed);
        self.memory.take_samples(generation, count_max, take);
    }

    /// Has SYN segments answered, or left to the kernel, while the configuration is in force.
    pub fn answer_syn(&self, answers: bool) {
        let generation = self.generation.load(Relaxed);
        self.memory.answer_syn(generation, answers);
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}
