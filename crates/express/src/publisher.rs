//! What one configuration publishes: its answers are known by a number, so that none of another
//! configuration is sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::memory::{Answer, Key, Memory, Published};

/// The memory, as one configuration has it.
#[derive(Debug)]
pub struct Publisher {
    memory: Arc<Memory>,
    /// 0 while the configuration is not in force.
    generation: AtomicU64,
}

impl Publisher {
    /// A publisher of a configuration that is not in force yet.
    pub fn new(memory: Arc<Memory>) -> Arc<Publisher> {
        Arc::new(Publisher {
            memory,
            generation: AtomicU64::new(0),
        })
    }

    /// The configuration comes into force, or does so again: see [`Memory::begin`].
    pub fn begin(&self, gates: &[SocketAddr]) {
        self.generation.store(self.memory.begin(gates), Relaxed);
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

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}
