//! Network interfaces, interrupts and soft interrupts: which CPU does the kernel's part of the
//! work.

use turnpike_host::{Interface, Interrupt, PacketWork};

use crate::change::Change;
use crate::facts::Facts;
use crate::row::{Row, Seen, WithChanges as _};

/// Packets below which shares say nothing.
const PACKETS_MIN: u64 = 2000;
/// The share of one CPU from which it does nearly all the work.
const SHARE_MAX: f64 = 0.8;
/// Squeezed runs among a thousand packets from which the budget is too small.
const SQUEEZED_PER_THOUSAND_MAX: f64 = 1.0;
/// Processors in one package above which spreading by software is left to experiments.
const RPS_CPUS_MAX: usize = 64;

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "softirq-one-cpu",
        title: "One CPU does all the soft interrupts",
        why: "Most of a short connection's work is the kernel's, in the soft interrupt of the CPU \
              that the card interrupts. When that CPU is full, the others wait for it, however \
              many workers there are.",
        source: "study S3 (interrupts over 12 CPUs and workers apart: 138247 to 184769); \
                 Documentation/networking/scaling.rst",
        fix: "A queue of the card for each CPU (ethtool -L), each with its interrupt on its CPU; \
              with one queue, RPS.",
        effect: "The rate grows with the CPUs that share the work.",
        find: one_cpu,
    },
    Row {
        id: "queues-without-rps",
        title: "A card has fewer queues than there are cores, and no RPS",
        why: "A queue is served by one CPU. With RPS that CPU hands packets on to others by the \
              hash of their connection, before TCP's work begins.",
        source: "Documentation/networking/scaling.rst (RPS); coreos/bugs 2135: all packets on \
            CPU 0",
        fix: "More queues where the card has them (ethtool -l and -L), else rps_cpus = all CPUs of \
              the card's memory node, and net.core.rps_sock_flow_entries = 32768.",
        effect: "Depends on the load: with short connections up to the number of CPUs, with little \
                 load a few microseconds more latency. Measure it with turnpike load.",
        find: without_rps,
    },
    Row {
        id: "interrupts-together",
        title: "Several queues interrupt the same CPU",
        why: "Queues are there to be served by different CPUs.",
        source: "study S3 (one interrupt queue per CPU); \
            Documentation/core-api/irq/irq-affinity.rst",
        fix: "Write one CPU for each interrupt to /proc/irq/N/smp_affinity_list, and stop \
              irqbalance, which would move them again.",
        effect: "Each queue has a CPU of its own.",
        find: together,
    },
    Row {
        id: "irqbalance-runs",
        title: "irqbalance moves interrupts",
        why: "It moves interrupts every ten seconds by its own estimate of the load and undoes \
            every placement by hand.",
        source: "haproxy issue 1194; redpanda pull request 27424; scylladb issue 4402",
        fix: "systemctl disable --now irqbalance, where interrupts are placed by hand; else leave \
              it.",
        effect: "A placement stays, and so do measurements.",
        find: irqbalance,
    },
    Row {
        id: "packets-dropped",
        title: "Packets were dropped between card and TCP",
        why: "A CPU's queue of received packets (netdev_max_backlog) was full: RPS and loopback \
              traffic go through it. A lost SYN costs a second.",
        source: "Documentation/admin-guide/sysctl/net.rst (netdev_max_backlog); studies S2 and S3",
        fix: "net.core.netdev_max_backlog = 10000, and more CPUs for the work.",
        effect: "Bursts wait instead of being dropped.",
        find: dropped,
    },
    Row {
        id: "packets-squeezed",
        title: "The budget of the receive soft interrupt runs out",
        why: "After netdev_budget packets, or two milliseconds, the soft interrupt stops with \
            packets left, and continues later.",
        source: "Documentation/admin-guide/sysctl/net.rst (netdev_budget)",
        fix: "net.core.netdev_budget = 600; and more CPUs for the work, since it is a sign of a \
              full one.",
        effect: "Slightly fewer and longer runs.",
        find: squeezed,
    },
    Row {
        id: "card-on-other-node",
        title: "The card is near to one memory node only",
        why: "Workers on the other processor read each packet over the link between processors.",
        source: "study S3 (interrupts on processor 0, workers on both: 218857)",
        fix: "Interrupts, and if they are enough also the workers, on the card's node.",
        effect: "S3 gained 3 to 15 % from the split of processors; measure it.",
        find: node,
    },
];

/// Interfaces with a device behind them; loopback and tunnels have none.
pub(crate) fn cards(facts: &Facts) -> impl Iterator<Item = &Interface> {
    facts
        .interfaces
        .iter()
        .filter(|card| card.driver.is_some() && card.receive_queues > 0)
}

/// The interrupts of a card's queues; its configuration has one of its own.
pub(crate) fn queue_interrupts<'a>(facts: &'a Facts, card: &Interface) -> Vec<&'a Interrupt> {
    let of_card = |interrupt: &&Interrupt| {
        let numbered = card.interrupts.contains(&interrupt.number);
        let named = interrupt.name.starts_with(&format!("{}-", card.name));
        numbered || named
    };
    let is_queue = |interrupt: &&Interrupt| {
        let name = interrupt.name.to_lowercase();
        let other = [
            "config", "control", "async", "misc", "event", "output", "tx",
        ];
        name.contains("rx") || (name.contains('-') && !other.iter().any(|word| name.contains(word)))
    };
    facts
        .interrupts
        .iter()
        .filter(of_card)
        .filter(is_queue)
        .collect()
}

/// The CPU with the largest share of the work, and its share.
fn busiest(work: &[PacketWork]) -> Option<(usize, f64, u64)> {
    let sum: u64 = work.iter().map(|cpu| cpu.packets).sum();
    let most = work.iter().max_by_key(|cpu| cpu.packets)?;
    (sum >= PACKETS_MIN).then(|| (most.cpu, most.packets as f64 / sum as f64, sum))
}

fn one_cpu(facts: &Facts) -> Option<Seen> {
    if facts.packet_work.len() < 2 {
        return None;
    }
    let now = busiest(&facts.sample.packet_work);
    let (cpu, share, packets, when) = match now {
        Some((cpu, share, packets)) => (
            cpu,
            share,
            packets,
            format!("in {} s", facts.sample.seconds),
        ),
        None => {
            let (cpu, share, packets) = busiest(&facts.packet_work)?;
            (cpu, share, packets, "since the start".to_owned())
        }
    };
    if share < SHARE_MAX {
        return None;
    }
    let times = facts.sample.cpu_times.iter().find(|times| times.cpu == cpu);
    let softirq =
        times.map(|times| times.softirq_us as f64 / 1e6 / facts.sample.seconds.max(0.001));
    let evidence = format!(
        "CPU {cpu} took {:.0} % of {packets} packets {when}",
        share * 100.0
    );
    let evidence = match softirq.filter(|_| now.is_some()) {
        Some(share) => format!(
            "{evidence}; soft interrupts used {:.0} % of it",
            share * 100.0
        ),
        None => evidence,
    };
    match (now.is_some(), softirq.is_some_and(|share| share > 0.5)) {
        (true, true) => Seen::problem(evidence),
        (true, false) => Seen::warning(evidence),
        (false, _) => Seen::note(evidence),
    }
    .with(spread(facts))
}

fn without_rps(facts: &Facts) -> Option<Seen> {
    let cpus = facts.processor.cpus.len();
    let card = cards(facts).find(|card| is_unspread(facts, card))?;
    Seen::note(format!(
        "{} ({}): {} receive queues, {cpus} CPUs, rps_cpus {}",
        card.name,
        card.driver.as_deref().unwrap_or("unknown"),
        card.receive_queues,
        card.receive_masks.first().map_or("0", String::as_str)
    ))
    .with(spread(facts))
}

/// Whether a card has fewer queues than there are cores, and nothing spreads them.
fn is_unspread(facts: &Facts, card: &Interface) -> bool {
    let cores = facts.processor.cpus.len() / facts.processor.threads_per_core();
    let is_zero = |mask: &String| mask.chars().all(|digit| digit == '0' || digit == ',');
    card.receive_queues < cores && card.receive_masks.iter().all(is_zero)
}

/// RPS over the CPUs of the card's memory node, for cards with too few queues.
fn spread(facts: &Facts) -> Vec<Change> {
    let cpus = &facts.processor.cpus;
    let mut changes = Vec::new();
    for card in cards(facts).filter(|card| is_unspread(facts, card)) {
        let near = cpus
            .iter()
            .filter(|cpu| card.node.is_none_or(|node| node == cpu.node));
        let near: Vec<usize> = near.map(|cpu| cpu.number).collect();
        if near.iter().any(|cpu| *cpu >= RPS_CPUS_MAX) || near.is_empty() {
            continue;
        }
        let bits = near.iter().fold(0_u64, |bits, cpu| bits | 1 << cpu);
        changes.extend((0..card.receive_queues).map(|queue| Change::ReceiveMask {
            interface: card.name.clone(),
            queue,
            mask: mask(bits),
        }));
    }
    changes
}

/// A mask as the kernel writes it: groups of eight digits.
pub(crate) fn mask(bits: u64) -> String {
    match bits >> 32 {
        0 => format!("{bits:x}"),
        high => format!("{high:x},{:08x}", bits & 0xffff_ffff),
    }
}

fn together(facts: &Facts) -> Option<Seen> {
    let cpus = facts.processor.cpus.len();
    for card in cards(facts) {
        let interrupts = queue_interrupts(facts, card);
        let placed: Vec<usize> = interrupts
            .iter()
            .filter_map(|one| one.effective.first().copied())
            .collect();
        let mut distinct = placed.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let possible = interrupts.len().min(cpus);
        if interrupts.len() < 2 || placed.is_empty() || distinct.len() * 2 > possible {
            continue;
        }
        let numbers = facts.processor.cpus.iter().map(|cpu| cpu.number);
        let changes = interrupts
            .iter()
            .zip(numbers.cycle())
            .map(|(one, cpu)| Change::Interrupt {
                number: one.number,
                name: one.name.clone(),
                cpus: cpu.to_string(),
            });
        return Seen::warning(format!(
            "{}: {} queues interrupt {} of {cpus} CPUs",
            card.name,
            interrupts.len(),
            distinct.len()
        ))
        .with(changes.collect());
    }
    None
}

fn irqbalance(facts: &Facts) -> Option<Seen> {
    let program = facts.running("irqbalance").next()?;
    let queues: usize = cards(facts).map(|card| card.receive_queues).sum();
    Seen::note(format!(
        "irqbalance runs (process {}); the cards have {queues} receive queues",
        program.process
    ))
}

fn dropped(facts: &Facts) -> Option<Seen> {
    let count: u64 = facts.packet_work.iter().map(|cpu| cpu.dropped).sum();
    let name = "net.core.netdev_max_backlog";
    let limit = facts.number(name).filter(|_| count > 0)?;
    let changes = if limit < 10_000 {
        vec![Change::setting(name, 10_000)]
    } else {
        Vec::new()
    };
    Seen::problem(format!(
        "{count} packets since the start; {name} is {limit}"
    ))
    .with(changes)
}

fn squeezed(facts: &Facts) -> Option<Seen> {
    let count: u64 = facts.packet_work.iter().map(|cpu| cpu.squeezed).sum();
    let packets: u64 = facts.packet_work.iter().map(|cpu| cpu.packets).sum();
    let per_thousand = count as f64 * 1000.0 / packets.max(1) as f64;
    let name = "net.core.netdev_budget";
    let budget = facts.number(name)?;
    if packets < PACKETS_MIN || per_thousand < SQUEEZED_PER_THOUSAND_MAX || budget >= 600 {
        return None;
    }
    Seen::note(format!(
        "{count} times in {packets} packets; {name} is {budget}"
    ))
    .with(vec![Change::setting(name, 600)])
}

fn node(facts: &Facts) -> Option<Seen> {
    let nodes = facts.processor.nodes();
    let card = cards(facts).find(|card| card.node.is_some() && nodes > 1)?;
    Seen::note(format!(
        "{} is near to node {} of {nodes}",
        card.name,
        card.node.unwrap_or(0)
    ))
}
