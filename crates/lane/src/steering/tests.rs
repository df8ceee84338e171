//! Tests of the real program where the kernel permits it, and of the other levels everywhere.

#![allow(clippy::unwrap_used)]

use std::{
    net::{SocketAddr, TcpStream, UdpSocket},
    sync::Arc,
};

use turnpike_testkit::needs_root;

use super::*;
use crate::{
    flows::connection_id::{CONNECTION_ID_BYTES, ConnectionIds, Place, tests as connection_id},
    gate::{ListenAddress, ListenOptions, Reuseport},
    sys::process::monotonic_ns,
};

/// Gates of one address with the program attached.
struct Stage {
    board: Arc<LaneBoard>,
    pulses: Vec<LanePulse>,
    gates: Vec<Option<Gate>>,
    steering: Steering,
    address: SocketAddr,
}

fn open_gates(count: usize) -> Vec<Gate> {
    let options = ListenOptions {
        reuseport: Reuseport::Steer,
        ..ListenOptions::default()
    };
    let any = ListenAddress::Tcp("127.0.0.1:0".parse().unwrap());
    Gate::open_group(&any, &options, count, &mut Vec::new()).unwrap()
}

/// `None` if BPF is not permitted; the reason must then be that.
fn kernel_board() -> Option<KernelBoard> {
    match KernelBoard::create() {
        Ok(kernel) => Some(kernel),
        Err(reason) => {
            assert!(
                matches!(reason, Reason::NotPermitted | Reason::NotBuilt),
                "{reason}"
            );
            let test = std::thread::current();
            needs_root(test.name().unwrap_or("steering"), "CAP_BPF");
            None
        }
    }
}

impl Stage {
    /// `None` if BPF is not permitted.
    fn new(lanes: usize, homes: &[CpuSet], rules: SteerRules) -> Option<Stage> {
        let kernel = kernel_board()?;
        let gates = open_gates(lanes);
        let ListenAddress::Tcp(address) = *gates[0].address() else {
            unreachable!()
        };
        let board = LaneBoard::map(kernel.as_fd()).unwrap();
        let pulses = (0..lanes).map(|lane| board.pulse(lane).unwrap()).collect();
        let steering = Steering::begin(&gates, homes, Ok(&kernel), rules);
        assert_eq!(steering.level(), Level::Program, "{:?}", steering.reasons());
        let gates = gates.into_iter().map(Some).collect();
        Some(Stage {
            board,
            pulses,
            gates,
            steering,
            address,
        })
    }

    fn connect(&self, count: usize) -> Vec<TcpStream> {
        (0..count)
            .map(|_| TcpStream::connect(self.address).unwrap())
            .collect()
    }

    /// Accepts `total` connections, and returns the number at each gate.
    fn accept(&self, total: usize) -> Vec<usize> {
        let mut counts = vec![0; self.gates.len()];
        while counts.iter().sum::<usize>() < total {
            for (count, gate) in counts.iter_mut().zip(&self.gates) {
                while gate.as_ref().is_some_and(|gate| gate.accept().is_ok()) {
                    *count += 1;
                }
            }
            std::thread::yield_now();
        }
        counts
    }

    fn round(&self, count: usize) -> Vec<usize> {
        let _clients = self.connect(count);
        self.accept(count)
    }
}

/// Runs `action` on one CPU: packets that it sends over the loopback are received there.
fn on_cpu(cpu: usize, action: impl FnOnce()) {
    let before = CpuSet::of_this_thread().unwrap();
    CpuSet::of(cpu).pin_this_thread().unwrap();
    action();
    before.pin_this_thread().unwrap();
}

/// Rules under which a lane that has just published stays fresh for the whole test.
const PATIENT: SteerRules = SteerRules {
    stale_ns: 1_000_000_000_000,
    load_slack: LOAD_SLACK,
    is_quic: false,
};

#[test]
fn a_stale_lane_gets_nothing_while_another_is_fresh() {
    let Some(stage) = Stage::new(2, &[], PATIENT) else {
        return;
    };
    let now = monotonic_ns();
    let long_ago = now.saturating_sub(2 * PATIENT.stale_ns).max(1);
    let is_stale = now - long_ago >= PATIENT.stale_ns;
    for stale in [0, 1, 0] {
        stage.pulses[1 - stale].awake(now, 1000);
        if is_stale {
            stage.pulses[stale].awake(long_ago, 0);
        } else {
            stage.pulses[stale].gone();
        }
        let mut expected = vec![60, 60];
        expected[stale] = 0;
        assert_eq!(stage.round(60), expected, "lane {stale} is stale");
    }
}

#[test]
fn an_age_beyond_the_rule_is_stale() {
    let rules = SteerRules {
        stale_ns: 1,
        load_slack: 1 << 40,
        is_quic: false,
    };
    let Some(stage) = Stage::new(2, &[], rules) else {
        return;
    };
    for stale in [0, 1] {
        stage.pulses[stale].awake(1, 0);
        stage.pulses[1 - stale].asleep(1000);
        let mut expected = vec![40, 40];
        expected[stale] = 0;
        assert_eq!(
            stage.round(40),
            expected,
            "lane {stale} beat when the machine started"
        );
    }
}

#[test]
fn fresh_lanes_share_and_none_is_forgotten() {
    for lanes in [2, 3, 5] {
        let Some(stage) = Stage::new(lanes, &[], PATIENT) else {
            return;
        };
        stage
            .pulses
            .iter()
            .for_each(|pulse| pulse.awake(monotonic_ns(), 0));
        let counts = stage.round(100 * lanes);
        // Steered connections count as load until the lane publishes again, so the shares stay
        // close.
        assert!(
            counts.iter().all(|count| (60..=140).contains(count)),
            "{counts:?}"
        );
        let steered: Vec<_> = (0..lanes)
            .map(|lane| stage.board.steered(lane) as usize)
            .collect();
        assert_eq!(steered, counts);
    }
}

#[test]
fn among_stale_lanes_the_one_seen_last_gets_everything() {
    // All heartbeats of these lanes are too old, at any time.
    let rules = SteerRules {
        stale_ns: 1,
        ..PATIENT
    };
    let Some(stage) = Stage::new(3, &[], rules) else {
        return;
    };
    let now = monotonic_ns();
    for last in [1, 0, 2] {
        for (lane, pulse) in stage.pulses.iter().enumerate() {
            pulse.awake(now - if lane == last { 1000 } else { 2000 }, 0);
        }
        let mut expected = [0; 3];
        expected[last] = 40;
        assert_eq!(stage.round(40), expected);
    }
    stage.pulses[2].gone();
    stage.pulses[0].awake(now - 500, 0);
    assert_eq!(stage.round(40), [40, 0, 0]);
}

#[test]
fn without_a_living_lane_the_hash_decides() {
    let Some(stage) = Stage::new(2, &[], PATIENT) else {
        return;
    };
    let counts = stage.round(100);
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    assert_eq!(stage.board.steered(0) + stage.board.steered(1), 0);
    stage.pulses[0].asleep(0);
    assert_eq!(stage.round(20), [20, 0]);
    stage.board.clear();
    let counts = stage.round(100);
    assert!(counts[1] > 0, "{counts:?}");
}

#[test]
fn the_freer_lane_gets_more() {
    let Some(stage) = Stage::new(2, &[], PATIENT) else {
        return;
    };
    stage.pulses[0].awake(monotonic_ns(), 1000);
    stage.pulses[1].awake(monotonic_ns(), 0);
    assert_eq!(stage.round(50), [0, 50]);
    assert_eq!((stage.board.load(0), stage.board.load(1)), (1000, 50));
    stage.pulses[1].awake(monotonic_ns(), 3000);
    assert_eq!((stage.round(50), stage.board.load(1)), (vec![50, 0], 3000));
}

#[test]
fn the_lane_of_the_packets_cpu_is_preferred_while_it_is_free() {
    let allowed: Vec<_> = CpuSet::of_this_thread().unwrap().iter().take(2).collect();
    let [one, two] = allowed[..] else { return };
    // Lanes and CPUs are in opposite order, so that their numbers cannot be mixed up unnoticed.
    let homes = [CpuSet::of(two), CpuSet::of(one)];
    let rules = SteerRules {
        load_slack: 100,
        ..PATIENT
    };
    let Some(stage) = Stage::new(2, &homes, rules) else {
        return;
    };
    for (cpu, lane) in [(one, 1), (two, 0)] {
        stage
            .pulses
            .iter()
            .for_each(|pulse| pulse.awake(monotonic_ns(), 0));
        on_cpu(cpu, || {
            let mut expected = vec![0, 0];
            expected[lane] = 80;
            assert_eq!(stage.round(80), expected, "from CPU {cpu}");
            // When the other lane is freer by more than the slack, it gets the connections.
            stage.pulses[lane].awake(monotonic_ns(), 500);
            stage.pulses[1 - lane].awake(monotonic_ns(), 0);
            expected.reverse();
            assert_eq!(stage.round(80), expected, "from CPU {cpu}, busy");
        });
    }
}

#[test]
fn more_lanes_than_cpus_share_the_packets_cpu() {
    let Some(cpu) = CpuSet::of_this_thread().unwrap().iter().next() else {
        return;
    };
    let elsewhere = CpuSet::of(cpu + 1);
    let homes = [
        CpuSet::of(cpu),
        elsewhere.clone(),
        CpuSet::of(cpu),
        elsewhere,
    ];
    let rules = SteerRules {
        load_slack: 1000,
        ..PATIENT
    };
    let Some(stage) = Stage::new(4, &homes, rules) else {
        return;
    };
    stage.pulses.iter().for_each(|pulse| pulse.asleep(0));
    on_cpu(cpu, || {
        let counts = stage.round(200);
        assert_eq!((counts[1], counts[3]), (0, 0), "{counts:?}");
        assert!(counts[0] > 40 && counts[2] > 40, "{counts:?}");
    });
}

#[test]
fn connections_waiting_at_a_closed_gate_move() {
    let Some(mut stage) = Stage::new(2, &[], PATIENT) else {
        return;
    };
    if stage.steering.reasons().contains(&Reason::NoMigration) {
        return;
    }
    stage.pulses[0].awake(monotonic_ns(), 0);
    let clients = stage.connect(30);
    while stage.gates[0].as_ref().unwrap().queue().unwrap().unwrap().0 < 30 {
        std::thread::yield_now();
    }
    stage.pulses[0].gone();
    stage.pulses[1].awake(monotonic_ns(), 0);
    stage.gates[0] = None;
    assert_eq!(stage.accept(30), [0, 30]);
    drop(clients);
    // A live lane without a gate is skipped.
    stage.pulses[0].awake(monotonic_ns(), 0);
    assert_eq!(stage.round(40), [0, 40]);
    // A new gate of the address takes its place.
    let options = ListenOptions {
        reuseport: Reuseport::Steer,
        ..ListenOptions::default()
    };
    let address = ListenAddress::Tcp(stage.address);
    let gate = Gate::open(&address, &options, &mut Vec::new()).unwrap();
    stage.steering.set_gate(0, &gate).unwrap();
    stage.gates[0] = Some(gate);
    stage.pulses[1].awake(monotonic_ns(), 5000);
    assert_eq!(stage.round(40), [40, 0]);
}

#[test]
fn the_program_takes_charge_again() {
    let Some(mut stage) = Stage::new(2, &[], PATIENT) else {
        return;
    };
    stage.pulses[1].awake(monotonic_ns(), 0);
    // A process that does not know the program leaves this state.
    let gates: Vec<Gate> = stage.gates.iter_mut().filter_map(Option::take).collect();
    prefer_first(&gates, 1);
    stage.steering.renew(&gates, 2, &[], PATIENT).unwrap();
    stage.gates = gates.into_iter().map(Some).collect();
    assert_eq!(stage.round(40), [0, 40]);
}

/// Gates of QUIC with the program attached.
struct QuicStage {
    board: Arc<LaneBoard>,
    sockets: Vec<UdpSocket>,
    pulses: Vec<LanePulse>,
    _steering: Steering,
    client: UdpSocket,
}

impl QuicStage {
    /// `None` if BPF is not permitted.
    fn new(lanes: usize, quic: QuicRules) -> Option<QuicStage> {
        let kernel = kernel_board()?;
        let options = ListenOptions {
            reuseport: Reuseport::Steer,
            ..ListenOptions::default()
        };
        let any = ListenAddress::Udp("127.0.0.1:0".parse().unwrap());
        let gates = Gate::open_group(&any, &options, lanes, &mut Vec::new()).unwrap();
        let ListenAddress::Udp(address) = *gates[0].address() else {
            unreachable!()
        };
        let rules = SteerRules {
            is_quic: true,
            ..PATIENT
        };
        let board = LaneBoard::map(kernel.as_fd()).unwrap();
        board.set_quic(&quic);
        let pulses: Vec<LanePulse> = (0..lanes).map(|lane| board.pulse(lane).unwrap()).collect();
        pulses.iter().for_each(|pulse| pulse.asleep(0));
        let steering = Steering::begin(&gates, &[], Ok(&kernel), rules);
        assert_eq!(steering.level(), Level::Program, "{:?}", steering.reasons());
        let sockets = gates.iter().map(|gate| {
            let socket = UdpSocket::from(gate.as_fd().try_clone_to_owned().unwrap());
            socket.set_nonblocking(true).unwrap();
            socket
        });
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(address).unwrap();
        Some(QuicStage {
            board,
            sockets: sockets.collect(),
            pulses,
            _steering: steering,
            client,
        })
    }

    /// The lane that gets a datagram.
    fn lane_of(&self, datagram: &[u8]) -> usize {
        self.client.send(datagram).unwrap();
        loop {
            for (lane, socket) in self.sockets.iter().enumerate() {
                let mut bytes = [0; 64];
                if socket.recv(&mut bytes).is_ok() {
                    return lane;
                }
            }
            std::thread::yield_now();
        }
    }

    /// The lane that gets datagrams with this ID: with a short header, and with the long ones of
    /// each type, whatever is behind the ID.
    fn lane_of_id(&self, id: &[u8]) -> usize {
        let mut datagrams = Vec::new();
        for first in [0xc0, 0xd0, 0xe0, 0xf0] {
            for version in [1_u32, 0x6b33_43cf] {
                let version = version.to_be_bytes();
                let start = [&[first], &version[..], &[id.len() as u8], id].concat();
                datagrams.push([&start[..], b"\x00behind"].concat());
                datagrams.push(start);
            }
        }
        if id.len() == CONNECTION_ID_BYTES {
            datagrams.push([b"\x40", id].concat());
            datagrams.push([b"\x7f", id, b"behind"].concat());
        }
        let mut lanes: Vec<usize> = datagrams.iter().map(|bytes| self.lane_of(bytes)).collect();
        lanes.dedup();
        assert_eq!(lanes.len(), 1, "{id:02x?}: {lanes:?}");
        lanes[0]
    }
}

/// The rules with this key.
fn quic_rules(key: [u8; KEY_BYTES], process: u16) -> QuicRules {
    QuicRules {
        key,
        old_key: None,
        process,
    }
}

#[test]
fn datagrams_of_quic_go_to_the_lane_that_their_id_names() {
    for (key, _, place, id) in connection_id::VECTORS {
        let rules = quic_rules(**key, place.process);
        let lanes = usize::from(place.gate) + 1;
        let Some(stage) = QuicStage::new(lanes, rules) else {
            return;
        };
        assert_eq!(stage.lane_of_id(id), usize::from(place.gate), "{place:?}");
    }
}

#[test]
fn datagrams_of_other_ids_go_by_a_hash_of_them() {
    const LANES: usize = 5;
    let Some(stage) = QuicStage::new(LANES, quic_rules(*connection_id::KEY, 7)) else {
        return;
    };
    let ids = ConnectionIds::new(*connection_id::KEY);
    for (id, hash) in connection_id::OTHERS {
        assert_eq!(
            stage.lane_of_id(id),
            (hash % LANES as u64) as usize,
            "{id:02x?}"
        );
    }
    // Of another process, and of a lane that is not there any more.
    for place in [
        Place {
            gate: 1,
            serial: 0,
            process: 8,
        },
        Place {
            gate: 5,
            serial: 0,
            process: 7,
        },
    ] {
        let id = ids.write(*b"randomly", place);
        let expected = (ids.hash_of_other(&id) % LANES as u64) as usize;
        assert_eq!(stage.lane_of_id(&id), expected, "{place:?}");
    }
    // A lane that is stuck gets no new connection, but those that it has.
    let own = ids.write(
        *b"randomly",
        Place {
            gate: 2,
            serial: 0,
            process: 7,
        },
    );
    stage.pulses[2].gone();
    for number in 0..50_u64 {
        assert_ne!(stage.lane_of_id(&number.to_le_bytes()), 2, "{number}");
    }
    assert_eq!(stage.lane_of_id(&own), 2);
    // What is no QUIC at all goes somewhere.
    for bytes in [
        &b""[..],
        b"\x40",
        b"\x80",
        b"\xc0\0\0\0\x01\x15",
        b"\xc0\0\0\0\x01\xff",
    ] {
        assert!(stage.lane_of(bytes) < LANES, "{bytes:02x?}");
    }
}

#[test]
fn ids_that_were_given_before_the_key_was_changed_lead_to_their_lane() {
    let old = [9; KEY_BYTES];
    let Some(stage) = QuicStage::new(3, quic_rules(old, 7)) else {
        return;
    };
    let id = ConnectionIds::new(old).write(
        *b"randomly",
        Place {
            gate: 1,
            serial: 0,
            process: 7,
        },
    );
    assert_eq!(stage.lane_of_id(&id), 1);
    stage.board.set_quic(&QuicRules {
        old_key: Some(old),
        ..quic_rules(*connection_id::KEY, 7)
    });
    assert_eq!(stage.lane_of_id(&id), 1);
    let ids = ConnectionIds::new(*connection_id::KEY);
    for gate in 0..3 {
        let place = Place {
            gate,
            serial: 5,
            process: 7,
        };
        let id = ids.write(*b"randomly", place);
        assert_eq!(stage.lane_of_id(&id), usize::from(gate));
    }
}

#[test]
fn without_the_program_datagrams_of_quic_go_by_their_flow() {
    let options = ListenOptions {
        reuseport: Reuseport::Steer,
        ..ListenOptions::default()
    };
    let any = ListenAddress::Udp("127.0.0.1:0".parse().unwrap());
    let gates = Gate::open_group(&any, &options, 2, &mut Vec::new()).unwrap();
    let rules = SteerRules {
        is_quic: true,
        ..PATIENT
    };
    let pinned = [CpuSet::of(0), CpuSet::of(1)];
    let steering = Steering::begin(&gates, &pinned, Err(Reason::NotPermitted), rules);
    assert_eq!(steering.level(), Level::Hash);
    assert_eq!(steering.reasons(), [Reason::NotPermitted]);
}

#[test]
fn a_lane_that_ends_is_marked_as_gone() {
    let board = LaneBoard::private().unwrap();
    let pulse = board.pulse(3).unwrap();
    pulse.asleep(0);
    assert_eq!(board.beat(3), Beat::Asleep);
    pulse.awake(0, 7);
    assert_eq!(board.beat(3), Beat::Awake { since_ns: 0 });
    assert_eq!(board.beat(2), Beat::Gone);
    assert_eq!((board.load(3), board.load(2), board.steered(3)), (7, 0, 0));
    drop(pulse);
    assert!(board.pulse(STEERED_LANES_MAX - 1).is_some());
    assert!(board.pulse(STEERED_LANES_MAX).is_none());
    assert_eq!(board.load(usize::MAX), 0);
}

#[test]
fn each_step_down_the_ladder_has_its_reason() {
    let pinned = |cpus: &[usize]| cpus.iter().map(|cpu| CpuSet::of(*cpu)).collect::<Vec<_>>();
    let new_kernel = kernel_version().unwrap() >= INCOMING_CPU_KERNEL;
    use Reason::{NotPinned, OldKernel, OtherNumbers};
    type Case = (&'static str, Vec<CpuSet>, Level, Vec<Reason>);
    let by_cpu = |level, mut reasons: Vec<Reason>| {
        if new_kernel {
            return (Level::IncomingCpu, vec![]);
        }
        reasons.insert(0, OldKernel);
        (level, reasons)
    };
    let (straight, straight_reasons) = by_cpu(Level::CpuFilter, vec![]);
    let (crossed, crossed_reasons) = by_cpu(Level::Hash, vec![OtherNumbers]);
    let several = vec![CpuSet::first(2), CpuSet::first(2)];
    let cases: [Case; 5] = [
        (
            "lane n on CPU n",
            pinned(&[0, 1]),
            straight,
            straight_reasons,
        ),
        (
            "the other way round",
            pinned(&[1, 0]),
            crossed,
            crossed_reasons,
        ),
        ("not pinned", vec![], Level::Hash, vec![NotPinned]),
        ("one not pinned", pinned(&[0]), Level::Hash, vec![NotPinned]),
        ("on several", several, Level::Hash, vec![NotPinned]),
    ];
    for (name, homes, level, reasons) in cases {
        for reason in [Reason::NotPermitted, Reason::NotBuilt] {
            let gates = open_gates(2);
            let steering = Steering::begin(&gates, &homes, Err(reason), SteerRules::default());
            assert_eq!(steering.level(), level, "{name}");
            assert_eq!(steering.reasons()[0], reason, "{name}");
            assert_eq!(steering.reasons()[1..], reasons, "{name}");
            steering.set_gate(0, &gates[1]).unwrap();
        }
    }
    let none = Steering::begin(&[], &[], Err(Reason::NotBuilt), SteerRules::default());
    assert_eq!(none.level(), Level::Hash);
}

#[test]
fn the_cpu_filter_takes_lanes_with_their_cpus_numbers_only() {
    let gates = open_gates(2);
    let pinned = [CpuSet::of(0), CpuSet::of(1)];
    assert_eq!(attach_filter(&gates, 2, &pinned), Ok(()));
    let crossed = [CpuSet::of(1), CpuSet::of(0)];
    assert_eq!(
        attach_filter(&gates, 2, &crossed),
        Err(Reason::OtherNumbers)
    );
    assert_eq!(
        set_incoming_cpus(&gates, 2, &pinned, Some((6, 1))),
        Err(Reason::OldKernel)
    );
    assert_eq!(
        set_incoming_cpus(&gates, 2, &pinned, None),
        Err(Reason::OldKernel)
    );
}

#[test]
fn kernel_versions_are_read() {
    let cases = [
        ("6.18.44-fc-v669\n", Some((6, 18))),
        ("5.4.0", Some((5, 4))),
        ("6.2", Some((6, 2))),
        ("6", None),
        ("", None),
        ("x.y", None),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_version(text), expected, "{text:?}");
    }
}
