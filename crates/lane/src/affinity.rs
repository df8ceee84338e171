//! The CPUs of a lane: nginx's `worker_cpu_affinity`, with masks of any length.
//!
//! The input is words and the output CPU sets; [`CpuSet::pin_this_thread`] does the pinning. This
//! module does not know the number of lanes.

use std::io;

use crate::sys::process::{self, CPUS_MAX};

#[cfg(test)]
mod tests;

/// A set of CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet {
    /// CPU `n` is bit `n % 64` of word `n / 64`; there are no empty words at the end.
    words: Vec<u64>,
}

impl CpuSet {
    /// The set of one CPU.
    pub fn of(cpu: usize) -> CpuSet {
        let mut set = CpuSet::default();
        set.add(cpu);
        set
    }

    /// The CPUs 0 to `count - 1`.
    pub fn first(count: usize) -> CpuSet {
        let mut set = CpuSet::default();
        (0..count.min(CPUS_MAX)).for_each(|cpu| set.add(cpu));
        set
    }

    /// The CPUs that the calling thread may run on: what a container or `taskset` allows.
    pub fn of_this_thread() -> io::Result<CpuSet> {
        Ok(CpuSet {
            words: process::thread_affinity()?,
        }
        .trimmed())
    }

    /// The CPUs of the process's first thread, which is never pinned to fewer than the process may
    /// use.
    pub fn of_main_thread() -> io::Result<CpuSet> {
        Ok(CpuSet {
            words: process::main_thread_affinity()?,
        }
        .trimmed())
    }

    /// Adds a CPU; one beyond [`CPUS_MAX`] is ignored, since no kernel has it.
    pub fn add(&mut self, cpu: usize) {
        if cpu >= CPUS_MAX {
            return;
        }
        if self.words.len() <= cpu / 64 {
            self.words.resize(cpu / 64 + 1, 0);
        }
        self.words[cpu / 64] |= 1 << (cpu % 64);
    }

    /// Whether it holds `cpu`.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words
            .get(cpu / 64)
            .is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The CPUs, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.words.len() * 64).filter(|cpu| self.contains(*cpu))
    }

    /// Pins the calling thread to these CPUs. `EINVAL` if none of them exists or is allowed.
    pub fn pin_this_thread(&self) -> io::Result<()> {
        process::set_thread_affinity(&self.words)
    }

    fn trimmed(mut self) -> CpuSet {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        self
    }
}

/// The value of `worker_cpu_affinity`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// Lane `n` gets the `n`th CPU of the set, in a cycle.
    Auto(CpuSet),
    /// Lane `n` gets the `n`th set; lanes after the end of the list get the last one.
    Masks(Vec<CpuSet>),
}

/// Why the arguments of `worker_cpu_affinity` are wrong; [`AffinityError::message`] gives nginx's
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AffinityError {
    /// More than one mask after `auto`, or no argument.
    ArgumentCount,
    /// A mask longer than [`CPUS_MAX`].
    TooManyCpus,
    /// Neither 0 nor 1.
    Character(char),
}

impl AffinityError {
    /// nginx's message, without file and line.
    pub fn message(self) -> String {
        match self {
            AffinityError::ArgumentCount => {
                "invalid number of arguments in \"worker_cpu_affinity\" directive".to_owned()
            }
            AffinityError::TooManyCpus => {
                format!("\"worker_cpu_affinity\" supports up to {CPUS_MAX} CPUs only")
            }
            AffinityError::Character(character) => {
                format!("invalid character \"{character}\" in \"worker_cpu_affinity\"")
            }
        }
    }
}

impl Affinity {
    /// Reads the directive's arguments: `auto`, `auto MASK` or masks. A mask is binary; its last
    /// digit is CPU 0. Plain `auto` uses `cpu_count` CPUs.
    pub fn parse(arguments: &[&str], cpu_count: usize) -> Result<Affinity, AffinityError> {
        match arguments {
            [] => Err(AffinityError::ArgumentCount),
            ["auto"] => Ok(Affinity::Auto(CpuSet::first(cpu_count))),
            ["auto", mask] => Ok(Affinity::Auto(parse_mask(mask)?)),
            ["auto", ..] => Err(AffinityError::ArgumentCount),
            masks => {
                let sets: Result<_, _> = masks.iter().map(|mask| parse_mask(mask)).collect();
                Ok(Affinity::Masks(sets?))
            }
        }
    }

    /// The CPUs of lane number `lane`; `None` if it is not pinned.
    pub fn lane(&self, lane: usize) -> Option<CpuSet> {
        match self {
            Affinity::Auto(set) => {
                let count = set.iter().count();
                let place = lane.checked_rem(count)?;
                set.iter().nth(place).map(CpuSet::of)
            }
            Affinity::Masks(sets) => sets.get(lane).or(sets.last()).cloned(),
        }
    }
}

fn parse_mask(mask: &str) -> Result<CpuSet, AffinityError> {
    let mut set = CpuSet::default();
    let digits = mask.chars().rev().filter(|character| *character != ' ');
    for (cpu, digit) in digits.enumerate() {
        match digit {
            _ if cpu >= CPUS_MAX => return Err(AffinityError::TooManyCpus),
            '0' => {}
            '1' => set.add(cpu),
            other => return Err(AffinityError::Character(other)),
        }
    }
    Ok(set)
}
