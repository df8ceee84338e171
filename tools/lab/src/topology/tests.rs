#![allow(clippy::unwrap_used)]

use super::*;

/// Where namespaces may be made: as root, with `ip`, in a container that is allowed to.
fn can_make() -> bool {
    Namespace::make("probe").is_ok()
}

fn exists(name: &str) -> bool {
    Path::new("/run/netns").join(name).exists()
}

#[test]
fn a_pair_of_namespaces_is_made_and_removed() {
    if !can_make() {
        return;
    }
    let (topology, why) = Topology::make("netns");
    assert_eq!((topology.name(), why), ("netns", None));
    let Topology::Pair { server, driver } = &topology else {
        unreachable!("its name says so");
    };
    let names = [server.0.clone(), driver.0.clone()];
    assert!(names.iter().all(|name| exists(name)));
    let listener = topology
        .at_server(|| std::net::TcpListener::bind((SERVER_ADDRESS, 0)))
        .unwrap()
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    let connected = topology
        .at_driver(|| std::net::TcpStream::connect((SERVER_ADDRESS, port)))
        .unwrap();
    assert!(connected.is_ok(), "{connected:?}");
    listener.accept().unwrap();
    let addresses = topology.addresses(3).unwrap();
    assert_eq!(addresses, ["198.18.0.1", "198.18.0.3", "198.18.0.4"]);
    let bind = || {
        addresses
            .iter()
            .map(|at| std::net::TcpListener::bind((at.as_str(), 0)))
    };
    let bound = topology.at_server(|| bind().all(|result| result.is_ok()));
    assert!(bound.unwrap());
    listener.set_nonblocking(true).unwrap();
    // Somebody else may listen on this port out here.
    let _ = std::net::TcpStream::connect(("127.0.0.1", port));
    assert!(
        listener.accept().is_err(),
        "the port is the namespace's own"
    );
    drop(topology);
    assert!(!names.iter().any(|name| exists(name)));
}

#[test]
fn settings_of_a_namespace_are_its_own() {
    if !can_make() {
        return;
    }
    let path = "net/ipv4/tcp_fin_timeout";
    let machine = Topology::Loopback(None);
    let before = machine.setting(path).unwrap();
    let (topology, why) = Topology::make("loopback");
    assert_eq!((topology.address(), why), ("127.0.0.1", None));
    topology.change(path, "7").unwrap();
    assert_eq!(topology.setting(path).unwrap(), "7");
    assert_eq!(machine.setting(path).unwrap(), before);
    assert!(topology.setting("net/ipv4/no_such_setting").is_err());
}

#[test]
fn commands_are_run_inside() {
    let words = vec!["true".to_owned()];
    let machine = Topology::Loopback(None);
    assert_eq!(machine.server_words(words.clone()), words);
    // Never made, and so not to be removed.
    let namespace = std::mem::ManuallyDrop::new(Namespace("no-such-namespace".to_owned()));
    let inside = within(Some(&namespace), words);
    assert_eq!(inside.join(" "), "ip netns exec no-such-namespace true");
}

#[test]
fn an_interface_of_a_pair_is_changed_in_its_namespace() {
    if !can_make() {
        return;
    }
    let (topology, _) = Topology::make("netns");
    let rps = "queues/rx-0/rps_cpus";
    topology.change_interface(rps, "1").unwrap();
    let mask = topology.interface(rps).unwrap();
    assert_eq!(mask.trim_start_matches(['0', ',']), "1");

    let error = topology.change_interface("no_such", "1").unwrap_err();
    assert!(error.contains("lab0/no_such"), "{error}");
    let error = Topology::Loopback(None).interface(rps).unwrap_err();
    assert_eq!(error, "there is no veth pair");
}
