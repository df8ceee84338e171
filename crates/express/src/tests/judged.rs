//! Many requests and damaged frames: whatever is answered must be answered rightly, and what is not
//! answered must be passed as it came.

use std::collections::BTreeMap;

use turnpike_testkit::needs_root;
use turnpike_testkit::random::Random;
use turnpike_testkit::requests::requests;

use super::frame::{ACK, FIN, Frame, LINUX_OPTIONS, PUSH, RST, SYN};
use super::{DROP, Driver, PASS, TRANSMIT, twin};

/// Requests of the corpus.
const REQUESTS: usize = 5_000;
/// Damaged frames of a run that every push makes, and of the long one.
const FRAMES: u64 = 100_000;
const FRAMES_LONG: u64 = 1_000_000;

const SEED: u64 = 17;

const TARGETS: &[&str] = &["/a", "/b.txt", "/c?d=e&f", "/%41/~g"];

/// Where clients connect to in these tests, over both protocols.
const GATES: [&str; 2] = ["10.0.0.1:80", "[fd00::1]:80"];

/// Room for the answers of these tests, all of which have to stay. Keys are placed at random in
/// buckets of four: in the 16 buckets of 64 answers, five of the 16 keys meet in one run of forty,
/// and one of them gives way. Here that is one run of a million.
const OBJECTS: usize = 1024;

/// A driver with that room, unless this process may have none.
fn driver(test: &str) -> Option<Driver> {
    (!needs_root(test, "CAP_BPF")).then(|| Driver::with_room(OBJECTS))
}

/// The answers that are published, each another one, by method, target and host.
struct Answers(BTreeMap<(bool, &'static str), Vec<u8>>);

impl Answers {
    fn publish(driver: &Driver) -> Answers {
        let mut answers = BTreeMap::new();
        for (number, target) in TARGETS.iter().enumerate() {
            for is_head in [false, true] {
                let bytes = format!("HTTP/1.1 200 OK\r\nX: {number}{is_head}\r\n\r\n{target}");
                for gate in GATES {
                    let gate = gate.parse().unwrap();
                    driver.publish_as(is_head, gate, ("x", target), bytes.as_bytes());
                }
                answers.insert((is_head, *target), bytes.into_bytes());
            }
        }
        Answers(answers)
    }

    /// The answer that the driver has to give to a text; `None`: none, it is for the lanes.
    fn expected(&self, text: &[u8]) -> Option<&[u8]> {
        let plain = twin::read(text).filter(|plain| plain.closes && plain.host == "x")?;
        let mut known = self.0.iter();
        let found = known
            .find(|((is_head, target), _)| (*is_head, *target) == (plain.is_head, plain.target));
        found.map(|(_, answer)| answer.as_slice())
    }
}

/// SYN segments with different options and protocols.
fn syns() -> Vec<Frame> {
    vec![
        Frame::syn_v4(),
        Frame::syn_v6(),
        Frame::syn_v4().with_options(&LINUX_OPTIONS),
        Frame::syn_v6().with_options(&LINUX_OPTIONS),
        Frame::syn_v4().with_options(&[2, 4, 2, 24]),
        Frame::syn_v4().with_options(&[1, 1, 1, 1, 2, 4, 5, 180]),
        Frame::syn_v4().with_options(&[2, 4, 5, 180, 3, 3, 14, 0]),
        Frame::syn_v4().with_vlan(1),
        Frame::syn_v6().with_vlan(2),
    ]
}

#[test]
fn requests_of_the_corpus_are_answered_as_published_or_passed() {
    let Some(driver) = driver("requests_of_the_corpus_are_answered_as_published_or_passed") else {
        return;
    };
    let answers = Answers::publish(&driver);
    let firsts: Vec<Frame> = syns().into_iter().map(|syn| driver.connect(syn)).collect();
    let mut answered = 0;
    for (number, request) in requests(SEED, REQUESTS, TARGETS).enumerate() {
        let mut next = firsts[number % firsts.len()].clone();
        for (place, piece) in request.pieces.iter().enumerate() {
            let frame = next.with_bytes(piece);
            let (verdict, bytes) = driver.program.run_on(&frame.bytes());
            // What follows a first piece belongs to a connection that the kernel has by then.
            let expected = answers.expected(piece).filter(|_| place == 0);
            let Some(expected) = expected else {
                assert_eq!(verdict, PASS, "{request:?}");
                assert_eq!(bytes, frame.bytes(), "{request:?}");
                next.sequence += piece.len() as u32;
                continue;
            };
            let answer = Frame::parse(&bytes);
            assert_eq!(verdict, TRANSMIT, "{request:?}");
            assert_eq!(answer.text, expected, "{request:?}");
            assert!(answer.checksums_are_right(), "{request:?}");
            answered += 1;
        }
    }
    // About three of eight are plain.
    assert!(answered > REQUESTS / 5, "{answered}");
}

/// What clients send, whole.
struct Clients {
    syns: Vec<Frame>,
    /// Where requests are sent, and other connections that end without one: a FIN behind a request
    /// that was passed on is passed on too.
    asking: Vec<Frame>,
    ending: Vec<Frame>,
    texts: Vec<Vec<u8>>,
}

impl Clients {
    fn of(driver: &Driver) -> Clients {
        let connect = |port| {
            let syns = syns().into_iter();
            let first = |syn: Frame| driver.connect(syn.with_source_port(port));
            syns.map(first).collect()
        };
        let corpus = requests(SEED, 400, TARGETS);
        Clients {
            syns: syns(),
            asking: connect(4100),
            ending: connect(4200),
            texts: corpus.map(|request| request.bytes()).collect(),
        }
    }

    fn frame(&self, random: &mut Random) -> Frame {
        let place = random.index(self.syns.len());
        let (asking, ending) = (&self.asking[place], &self.ending[place]);
        match random.index(6) {
            0 => self.syns[place].clone(),
            1 => ending.clone(),
            2 => ending.with_flags(FIN | ACK),
            3 => asking.with_flags(random.pick(&[RST, SYN | FIN, FIN, PUSH, 0, RST | ACK])),
            _ => asking.with_bytes(&self.texts[random.index(self.texts.len())]),
        }
    }

    /// A frame with some of its bytes changed, cut off or added.
    fn damaged(&self, random: &mut Random) -> Vec<u8> {
        let frame = self.frame(random);
        let mut bytes = frame.bytes();
        // The headers, which are most of what is judged, are changed more often than the text.
        let reach = if random.percent(60) { 80 } else { bytes.len() };
        for _ in 0..=random.index(3) {
            let place = random.index(bytes.len().min(reach));
            bytes[place] = random.below(256) as u8;
        }
        // Else nothing but the checksum would be judged.
        if random.percent(80) {
            frame.mend(&mut bytes);
        }
        match random.index(20) {
            // The kernel takes no frame for a test that is shorter than its Ethernet header.
            0 => bytes.truncate(14 + random.index(bytes.len() - 14)),
            1 => bytes.extend(std::iter::repeat_n(0, random.index(40))),
            _ => {}
        }
        bytes
    }
}

#[test]
fn damaged_packets_are_passed_or_answered_rightly() {
    judge_damaged("damaged_packets_are_passed_or_answered_rightly", FRAMES);
}

#[test]
#[ignore = "some minutes: in make test-long"]
fn a_million_damaged_packets_are_passed_or_answered_rightly() {
    let name = "a_million_damaged_packets_are_passed_or_answered_rightly";
    judge_damaged(name, FRAMES_LONG);
}

fn judge_damaged(test: &str, frames: u64) {
    let Some(driver) = driver(test) else {
        return;
    };
    let answers = Answers::publish(&driver);
    let clients = Clients::of(&driver);
    let mut verdicts = BTreeMap::new();
    for number in 0..frames {
        let random = &mut Random::of_case(SEED, number);
        let sent = clients.damaged(random);
        let (verdict, got) = driver.program.run_on(&sent);
        *verdicts.entry(verdict).or_insert(0_u64) += 1;
        let case = || format!("frame {number} of seed {SEED}: {sent:02x?}");
        match verdict {
            PASS => assert_eq!(got, sent, "{}", case()),
            DROP => assert!(is_acknowledgement(&Frame::parse(&sent)), "{}", case()),
            TRANSMIT => {
                let (frame, answer) = (Frame::parse(&sent), Frame::parse(&got));
                assert!(is_right(&frame, &answer, &answers), "{}", case());
            }
            other => panic!("verdict {other}, {}", case()),
        }
    }
    // Every verdict was reached, and damage mostly shows.
    assert!(verdicts[&PASS] > frames / 2, "{verdicts:?}");
    assert!(
        verdicts[&DROP] > 0 && verdicts[&TRANSMIT] > 0,
        "{verdicts:?}"
    );
}

/// Whether nothing is lost if this frame is dropped.
fn is_acknowledgement(frame: &Frame) -> bool {
    frame.text.is_empty() && frame.flags & (SYN | FIN | RST | ACK) == ACK
}

/// Whether an answer is the right one to a frame.
fn is_right(frame: &Frame, answer: &Frame, answers: &Answers) -> bool {
    let is_turned = answer.is_turned(frame) && answer.checksums_are_right();
    let phantom = u32::from(frame.flags & (SYN | FIN) != 0);
    let end = frame
        .sequence
        .wrapping_add(frame.text.len() as u32 + phantom);
    let says = match (frame.flags & SYN != 0, frame.text.is_empty()) {
        (true, _) => answer.flags == SYN | ACK && answer.text.is_empty(),
        (false, true) => frame.flags & FIN != 0 && answer.flags & (SYN | RST) == 0,
        (false, false) => answers.expected(&frame.text) == Some(answer.text.as_slice()),
    };
    is_turned && says && frame.tcp_checksum_is_right() && answer.acknowledgement == end
}
