#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use turnpike_lane::steering::Level;
use turnpike_lane::sys::descriptor::socket_pair;

use super::*;
use crate::needs::Rights;
use crate::paths::{Paths, Places};
use turnpike_plan::environment::Capability;
use turnpike_plan::product::Product;

fn null() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

fn inode(descriptor: &OwnedFd) -> u64 {
    File::from(descriptor.try_clone().unwrap())
        .metadata()
        .unwrap()
        .ino()
}

fn bundle(listening_sockets: usize, text_bytes: usize) -> Bundle {
    let listening = |lane| {
        let lane = (lane % 3 > 0).then_some(lane);
        ListeningSocket {
            listen: 7,
            gate: 9,
            lane,
            steering: lane.map(|lane| Level::ALL[lane % Level::ALL.len()]),
            descriptor: null(),
        }
    };
    Bundle {
        generation: 42,
        paths: Paths {
            prefix: PathBuf::from("/srv/"),
            configuration: PathBuf::from("/srv/conf/nginx.conf"),
            given: None,
            embedded: false,
            error_log: Some(PathBuf::from("/srv/logs/error.log")),
            product: Product::Nginx,
            cpu_count: 2,
            places: Places::Folder(PathBuf::from("/var/cache/t")),
            user: Some("www-data".to_owned()),
        },
        globals: Some("daemon off;".to_owned()),
        rights: Rights {
            folders: BTreeSet::from([PathBuf::from("/srv/a"), PathBuf::from("/srv/b")]),
            capabilities: BTreeSet::from([Capability::NetRaw]),
        },
        sources: vec![(
            PathBuf::from("/srv/conf/nginx.conf"),
            vec![0xff; text_bytes],
        )],
        listening_sockets: (0..listening_sockets).map(listening).collect(),
        logs: vec![Log {
            path: PathBuf::from("/srv/a.log"),
            descriptor: null(),
        }],
        extras: vec![Extra {
            name: "steer".to_owned(),
            descriptor: null(),
        }],
    }
}

#[test]
fn a_large_bundle_arrives_whole() {
    // More than one message carries; sent and received, below the 1024 that a user may have open.
    const SEATS: usize = 300;
    let (master, serving) = socket_pair().unwrap();
    let sent = bundle(SEATS, 3_000_000);
    let sender = std::thread::spawn(move || {
        send_apply(master.as_fd(), &sent).unwrap();
        (master, sent)
    });
    let Some(Order::Apply(got)) = receive_order(serving.as_fd()).unwrap() else {
        panic!("not a bundle");
    };
    let (_master, sent) = sender.join().unwrap();
    assert_eq!(
        (got.generation, &got.paths, &got.globals),
        (42, &sent.paths, &sent.globals)
    );
    assert_eq!(got.rights, sent.rights);
    assert_eq!(got.sources, sent.sources);
    let facts = |listening: &ListeningSocket| {
        let (lane, steering) = (listening.lane, listening.steering);
        (listening.listen, listening.gate, lane, steering)
    };
    let list = |bundle: &Bundle| {
        bundle
            .listening_sockets
            .iter()
            .map(facts)
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&got), list(&sent));
    assert_eq!(got.logs[0].path, sent.logs[0].path);
    assert_eq!(got.extras[0].name, "steer");
    assert_eq!(
        inode(&got.listening_sockets[SEATS - 1].descriptor),
        inode(&null())
    );
}

#[test]
fn orders_and_replies_come_back_as_sent() {
    let (master, serving) = socket_pair().unwrap();
    for end in [End::Announced, End::Drained, End::Stopped] {
        send_end(master.as_fd(), end).unwrap();
    }
    let counts = MasterCounts {
        reloads: 1,
        reloads_failed: 2,
        restarts: 3,
        cores: 4,
    };
    send_counts(master.as_fd(), counts).unwrap();
    let log = Log {
        path: PathBuf::from("/a"),
        descriptor: null(),
    };
    send_reopen(master.as_fd(), &[log]).unwrap();
    send_adoption(master.as_fd(), null().as_fd()).unwrap();
    let next = || receive_order(serving.as_fd()).unwrap();
    assert!(matches!(next(), Some(Order::Announce)));
    assert!(matches!(next(), Some(Order::Quit)));
    assert!(matches!(next(), Some(Order::Stop)));
    assert!(matches!(
        receive_order(serving.as_fd()).unwrap(),
        Some(Order::Counts(read)) if read == counts
    ));
    let Some(Order::Reopen(logs)) = receive_order(serving.as_fd()).unwrap() else {
        panic!("not a reopen");
    };
    assert_eq!(logs[0].path, PathBuf::from("/a"));
    assert!(matches!(
        receive_order(serving.as_fd()).unwrap(),
        Some(Order::Adoption(listener)) if inode(&listener) == inode(&null())
    ));
    let replies = [
        Reply::Ready {
            generation: 1,
            report: "{}".to_owned(),
        },
        Reply::Refused {
            generation: 2,
            message: "no\n".to_owned(),
        },
        Reply::Stuck,
        Reply::Released {
            generation: u64::MAX,
        },
        Reply::GatesClosed {
            generation: 4,
            gates: vec![1, u64::MAX],
        },
        Reply::Answer {
            number: 3,
            outcome: "{}".to_owned(),
        },
    ];
    for reply in &replies {
        send_reply(serving.as_fd(), reply).unwrap();
        assert_eq!(receive_reply(master.as_fd()).unwrap().as_ref(), Some(reply));
    }
    drop(serving);
    assert_eq!(receive_reply(master.as_fd()).unwrap(), None);
}

#[test]
fn links_of_a_succession_come_back_as_sent() {
    let (master, serving) = socket_pair().unwrap();
    for [has_flows, has_connections] in [[false, true], [true, false], [true, true]] {
        let links = SuccessionLinks {
            flows: has_flows.then(null),
            connections: has_connections.then(null),
        };
        send_succession(master.as_fd(), &links).unwrap();
        let Some(Order::Succession(read)) = receive_order(serving.as_fd()).unwrap() else {
            panic!("not a succession");
        };
        assert_eq!(read.flows.is_some(), has_flows);
        assert_eq!(read.connections.is_some(), has_connections);
        let mut encoder = Encoder::new(SUCCESSION);
        links.encode(&mut encoder);
        let count = usize::from(has_flows) + usize::from(has_connections);
        for wrong in [count - 1, count + 1] {
            let descriptors = (0..wrong).map(|_| null()).collect();
            assert!(
                decode_order(&encoder.bytes, descriptors).is_err(),
                "{wrong}"
            );
        }
        let mut extras: Vec<Extra> = links.into_extras().collect();
        assert_eq!(extras.len(), count);
        let taken = SuccessionLinks::take(&mut extras);
        assert_eq!(taken.flows.is_some(), has_flows);
        assert_eq!(taken.connections.is_some(), has_connections);
        assert!(extras.is_empty());
    }
}

#[test]
fn every_cut_message_is_refused() {
    let mut encoder = Encoder::new(APPLY);
    bundle(2, 10).encode(&mut encoder);
    let whole = encoder.bytes;
    let descriptors = |count: usize| (0..count).map(|_| null()).collect::<Vec<_>>();
    assert!(decode_order(&whole, descriptors(4)).is_ok());
    assert!(decode_order(&whole, descriptors(3)).is_err());
    assert!(decode_order(&whole, descriptors(5)).is_err());
    for length in 0..whole.len() {
        assert!(
            decode_order(&whole[..length], descriptors(4)).is_err(),
            "{length}"
        );
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(decode_order(&longer, descriptors(4)).is_err());
    for bad in [
        &[][..],
        &[0],
        &[READY],
        &[READY, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[200; 9],
    ] {
        assert!(decode_reply(bad).is_err(), "{bad:?}");
    }
}
