//! Tests of the express lane's program over the lives of processes: another binary, a master or a
//! serving process that is killed, and its end. A pair of virtual interfaces joins two network
//! namespaces; the client's asks all the time.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::support::daemon::Daemon;
use crate::support::express::{ask, join, under_load};
use crate::support::{is_running, wait_for};
use nix::libc::{SIGHUP, SIGKILL, SIGQUIT, SIGUSR2, SIGWINCH};
use turnpike_lane::sys::signal;

fn configuration(port: u16, express: &str) -> String {
    format!(
        "pid nginx.pid; error_log error.log notice; worker_processes 2; daemon on;
         events {{ }}
         http {{
             access_log off;
             express_interface s0;
             express_mode generic;
             server {{
                 listen {port};
                 location /hello {{ express {express}; return 200 hello; }}
                 location /metrics {{ metrics; }}
             }}
         }}"
    )
}

fn start() -> Daemon {
    let daemon = Daemon::configured(|_, port| configuration(port, "on"));
    daemon.start_again().unwrap();
    daemon
}

/// Requests that the driver has answered; `None` while the server or the express lane does not
/// say.
fn hits(port: u16) -> Option<u64> {
    let page = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    };
    let page = page().unwrap_or_default();
    let mut lines = page.lines();
    let line = lines.find_map(|line| line.strip_prefix("turnpike_express_requests_total "));
    line?.parse().ok()
}

/// Waits until the driver answers the load.
fn wait_for_hits(port: u16) {
    let mut before = None;
    wait_for("answers of the driver", || {
        let count = hits(port);
        before = before.or(count);
        count
            .zip(before)
            .is_some_and(|(count, before)| count > before + 20)
    });
}

/// Nothing was refused, and no second program was loaded.
fn assert_undisturbed(daemon: &Daemon) {
    let log = daemon.log();
    assert!(!log.contains("the express lane does not work"), "{log}");
    let attached = log.matches("the express lane answers on \"s0\"").count();
    assert_eq!(attached, 1, "{log}");
}

#[test]
fn another_binary_takes_the_program_over() {
    let Some(network) = join("another_binary_takes_the_program_over") else {
        return;
    };
    let daemon = start();
    let failures = under_load(&network, daemon.port, |_| {
        wait_for_hits(daemon.port);
        for _ in 0..3 {
            let old = daemon.master();
            daemon.upgrade(&[]).unwrap();
            wait_for("the old one to end", || !is_running(old));
            wait_for_hits(daemon.port);
        }
    });
    assert_eq!(failures, Vec::<String>::new());
    assert_undisturbed(&daemon);
}

#[test]
fn whichever_of_two_masters_ends_the_other_has_the_program() {
    let Some(network) = join("whichever_of_two_masters_ends_the_other_has_the_program") else {
        return;
    };
    let daemon = start();
    let failures = under_load(&network, daemon.port, |_| {
        wait_for_hits(daemon.port);
        for ends_new in [true, false, true] {
            let old = daemon.master();
            signal::send(old, SIGUSR2).unwrap();
            wait_for("the new one", || ![0, old].contains(&daemon.master()));
            let new = daemon.master();
            wait_for_hits(daemon.port);
            if ends_new {
                signal::send(old, SIGHUP).unwrap();
            } else {
                signal::send(old, SIGWINCH).unwrap();
            }
            let ends = if ends_new { new } else { old };
            signal::send(ends, SIGQUIT).unwrap();
            wait_for("its end", || !is_running(ends));
            wait_for_hits(daemon.port);
        }
    });
    assert_eq!(failures, Vec::<String>::new());
    assert_undisturbed(&daemon);
}

#[test]
fn a_killed_master_leaves_the_program_to_the_next_one() {
    let Some(network) = join("a_killed_master_leaves_the_program_to_the_next_one") else {
        return;
    };
    let daemon = start();
    let failures = under_load(&network, daemon.port, |_| {
        wait_for_hits(daemon.port);
        let serving = daemon.serving();
        for _ in 0..3 {
            let old = daemon.master();
            signal::send(old, SIGKILL).unwrap();
            wait_for("the master to end", || !is_running(old));
            wait_for_hits(daemon.port);
            daemon.start_again().unwrap();
            assert_eq!(daemon.serving(), serving, "{}", daemon.log());
            wait_for_hits(daemon.port);
        }
    });
    assert_eq!(failures, Vec::<String>::new());
    assert_undisturbed(&daemon);
}

/// What makes a start fail, once the serving process has the configuration and before.
const FAILURES: &[(&str, &str)] = &[
    ("control missing/c;", "missing/c\" failed (2: "),
    ("working_directory missing;", ""),
];

#[test]
fn a_start_that_fails_gives_the_program_back() {
    let Some(network) = join("a_start_that_fails_gives_the_program_back") else {
        return;
    };
    let daemon = start();
    let text = configuration(daemon.port, "on");
    let failures = under_load(&network, daemon.port, |_| {
        for (number, (directive, message)) in FAILURES.iter().enumerate() {
            wait_for_hits(daemon.port);
            let (master, serving) = (daemon.master(), daemon.serving());
            signal::send(master, SIGKILL).unwrap();
            wait_for("the master to end", || !is_running(master));
            // With another number of objects, it is another program.
            let objects = format!("{directive} events {{ }}");
            let broken = text.replace("events { }", &objects).replace(
                "express_mode generic;",
                &format!("express_mode generic; express_objects {};", 64 << number),
            );
            daemon.folder.write("nginx.conf", &broken).unwrap();
            let error = daemon.start_again().unwrap_err();
            assert!(error.contains(message), "{error}");
            assert!(is_running(serving), "{directive}");
            wait_for_hits(daemon.port);
            daemon.folder.write("nginx.conf", &text).unwrap();
            daemon.start_again().unwrap();
            wait_for_hits(daemon.port);
        }
    });
    assert_eq!(failures, Vec::<String>::new());
}

/// How often the serving process is killed.
const KILLS: usize = 3;

#[test]
fn the_program_outlives_a_killed_serving_process() {
    let Some(network) = join("the_program_outlives_a_killed_serving_process") else {
        return;
    };
    let daemon = start();
    let failures = under_load(&network, daemon.port, |_| {
        wait_for_hits(daemon.port);
        for _ in 0..KILLS {
            let serving = daemon.serving();
            signal::send(serving, SIGKILL).unwrap();
            wait_for("another one", || ![0, serving].contains(&daemon.serving()));
            wait_for_hits(daemon.port);
        }
    });
    // Each may have died while it answered the one client.
    assert!(failures.len() <= KILLS, "{failures:?}");
    assert_undisturbed(&daemon);
}

/// Whether the driver has a program.
fn has_program() -> bool {
    let output = Command::new("ip").args(["link", "show", "s0"]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.contains(" xdp")
}

#[test]
fn off_detaches_the_program_and_on_attaches_it_again() {
    let Some(network) = join("off_detaches_the_program_and_on_attaches_it_again") else {
        return;
    };
    let daemon = start();
    let failures = under_load(&network, daemon.port, |_| {
        for _ in 0..2 {
            wait_for_hits(daemon.port);
            assert!(has_program());
            for (express, is_attached) in [("off", false), ("on", true)] {
                let text = configuration(daemon.port, express);
                daemon.folder.write("nginx.conf", &text).unwrap();
                signal::send(daemon.master(), SIGHUP).unwrap();
                wait_for(express, || has_program() == is_attached);
            }
        }
        wait_for_hits(daemon.port);
    });
    assert_eq!(failures, Vec::<String>::new());
    let log = daemon.log();
    assert!(!log.contains("the express lane does not work"), "{log}");
}

#[test]
fn an_interface_that_was_not_free_is_taken_once_it_is() {
    let Some(network) = join("an_interface_that_was_not_free_is_taken_once_it_is") else {
        return;
    };
    let [first, second] = [(); 2].map(|()| start());
    let message = "interface \"s0\" has another XDP program";
    assert_eq!(second.log().matches(message).count(), 1, "{}", second.log());
    let failures = under_load(&network, second.port, |_| {
        let master = first.master();
        signal::send(master, SIGQUIT).unwrap();
        wait_for("its end", || !is_running(master));
        wait_for_hits(second.port);
    });
    assert_eq!(failures, Vec::<String>::new());
    let log = second.log();
    assert_eq!(log.matches(message).count(), 1, "{log}");
    network.on_client(|| ask(second.port)).unwrap();
}
