//! Samples of the requests that the program answers.

use turnpike_lane::sys::process::monotonic_ns;

use super::frame::{Frame, LINUX_OPTIONS};
use super::{ANSWER, Driver, REQUEST, TRANSMIT, driver};
use crate::{Answer, Key, Published};

/// What the lanes note of the answer. Read as a record's length, it says that the record is still
/// written.
const NOTE: u64 = 0xfedc_ba98_f654_3210;

/// Longer than a record may be written.
const LONG_NS: u64 = 60_000_000_000;

/// Publishes the answer of a target so that one of so many requests is sampled.
fn publish(driver: &Driver, target: &str, sampled_one_in: u32) {
    for gate in ["10.0.0.1:80", "[fd00::1]:80"] {
        let key = Key {
            gate: gate.parse().unwrap(),
            host: b"x",
            target: target.as_bytes(),
            is_head: false,
        };
        let answer = Answer {
            sampled_one_in,
            note: NOTE,
            ..driver.answer(ANSWER)
        };
        assert_eq!(driver.memory.publish(key, answer), Published::Yes);
    }
}

/// Takes samples: the client, the gate and the head of each.
fn take(driver: &Driver, generation: u64, count_max: usize) -> Vec<(String, String, String)> {
    let mut taken = Vec::new();
    driver
        .memory
        .take_samples(generation, count_max, &mut |sample| {
            assert_eq!(sample.note, NOTE);
            assert_eq!(sample.answer_bytes as usize, ANSWER.len());
            let head = String::from_utf8(sample.head.to_vec()).unwrap();
            taken.push((sample.client.to_string(), sample.gate.to_string(), head));
        });
    taken
}

/// Samples that were drawn: taken into the ring, over the limit, without room.
fn drawn(driver: &Driver) -> [u64; 3] {
    ["sampled", "sample_limited", "sample_lost"].map(|name| driver.count(name))
}

fn ask_as_many(driver: &Driver, count: u16, request: &str) {
    let syn = Frame::syn_v4();
    for number in 0..count {
        let (verdict, _) = driver.ask(syn.with_source_port(10_000 + number), request);
        assert_eq!(verdict, TRANSMIT);
    }
}

#[test]
fn samples_tell_of_the_request_and_its_client() {
    let Some(driver) = driver("samples_tell_of_the_request_and_its_client") else {
        return;
    };
    publish(&driver, "/s", 1);
    let request = REQUEST.replace("/a", "/s");
    let v4 = ("10.0.0.2:4000", "10.0.0.1:80");
    let v6 = ("[fd00::2]:4000", "[fd00::1]:80");
    for (syn, (client, gate)) in [
        (Frame::syn_v4(), v4),
        (Frame::syn_v6(), v6),
        (Frame::syn_v4().with_options(&LINUX_OPTIONS), v4),
        (Frame::syn_v6().with_vlan(2), v6),
    ] {
        assert_eq!(driver.ask(syn.clone(), REQUEST).0, TRANSMIT);
        assert_eq!(take(&driver, driver.generation, 8), [], "{syn:?}");
        assert_eq!(driver.ask(syn.clone(), &request).0, TRANSMIT);
        let expected = [(client.to_owned(), gate.to_owned(), request.clone())];
        assert_eq!(take(&driver, driver.generation, 8), expected, "{syn:?}");
    }
    assert_eq!(drawn(&driver), [4, 0, 0]);
}

#[test]
fn samples_of_another_configuration_are_left_out() {
    let Some(driver) = driver("samples_of_another_configuration_are_left_out") else {
        return;
    };
    publish(&driver, "/s", 1);
    let request = REQUEST.replace("/a", "/s");
    ask_as_many(&driver, 3, &request);
    assert_eq!(take(&driver, driver.generation + 1, 8), []);
    assert_eq!(take(&driver, driver.generation, 2).len(), 2);
    let next = driver.memory.begin(&[super::gate_at(80, true)], true);
    assert_eq!(take(&driver, driver.generation, 8), []);
    assert_eq!(take(&driver, next, 8), []);
    assert_eq!(drawn(&driver)[0], 3);
}

/// Requests, of which one in `ONE_IN` is to be drawn.
const REQUESTS: u16 = 4_000;
const ONE_IN: u32 = 10;

#[test]
fn samples_are_drawn_by_lot() {
    let Some(driver) = driver("samples_are_drawn_by_lot") else {
        return;
    };
    publish(&driver, "/s", ONE_IN);
    ask_as_many(&driver, REQUESTS, &REQUEST.replace("/a", "/s"));
    let count: u64 = drawn(&driver).into_iter().sum();
    // The standard deviation is 19.
    assert!((300..500).contains(&count), "{count} samples");
}

#[test]
fn samples_are_lost_when_nobody_reads_them() {
    let Some(driver) = driver("samples_are_lost_when_nobody_reads_them") else {
        return;
    };
    publish(&driver, "/s", 1);
    let pad = "p".repeat(1300);
    let request = format!("GET /s HTTP/1.0\r\nHost: x\r\nX: {pad}\r\n\r\n");
    ask_as_many(&driver, 1_000, &request);
    let [sampled, limited, lost] = drawn(&driver);
    assert_eq!(sampled + limited + lost, 1_000);
    assert!(lost > 0, "{sampled} samples, {limited} over the limit");
    let taken = take(&driver, driver.generation, 1_000);
    assert_eq!(taken.len() as u64, sampled);
    assert!(taken.iter().all(|(_, _, head)| *head == request));
    assert_eq!(take(&driver, driver.generation, 1_000), []);
}

#[test]
fn samples_go_on_behind_a_place_that_another_reader_has_changed() {
    let test = "samples_go_on_behind_a_place_that_another_reader_has_changed";
    let Some(driver) = driver(test) else {
        return;
    };
    publish(&driver, "/s", 1);
    let request = REQUEST.replace("/a", "/s");
    for place in [8, 1 << 40, u64::MAX - 7] {
        ask_as_many(&driver, 2, &request);
        driver.memory.move_sample_reader(place);
        take(&driver, driver.generation, 8);
        let later_ns = monotonic_ns() + LONG_NS;
        driver
            .memory
            .take_samples_at(later_ns, driver.generation, 8, &mut |_| {});
        ask_as_many(&driver, 1, &request);
        let taken = take(&driver, driver.generation, 8);
        let is_whole = |(_, _, head): &(String, String, String)| *head == request;
        assert!(taken.iter().all(is_whole) && !taken.is_empty(), "{place}");
    }
}
