//! Tests of `stream` over TCP while the configuration and the binary change: no relay breaks.
//!
//! `TURNPIKE_TEST_ROUNDS` makes the run longer: each round has ten reloads and a change of the
//! binary. `make stream-long` asks for ten rounds.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::daemon::{Daemon, rounds};
use crate::support::echo::echo;
use turnpike_testkit::{ports, wait_for};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The clients at a time: more than lanes, and few enough for a busy machine.
const CLIENTS: usize = 8;

/// The rounds of a relay. A new binary waits for the last relay of the old one, so they must end.
const ROUNDS: usize = 20;

/// Clients whose relays follow each other; each panics where a byte is missing.
struct Relays {
    stop: Arc<AtomicBool>,
    ended: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Relays {
    fn start(ports: [u16; 2]) -> Relays {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(AtomicU64::new(0));
        let clients = (0..CLIENTS).map(|client| {
            let (stop, ended) = (Arc::clone(&stop), Arc::clone(&ended));
            let port = ports[client % ports.len()];
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    relay(port);
                    ended.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        Relays {
            clients: clients.collect(),
            stop,
            ended,
        }
    }

    /// Waits until some more relays have ended well.
    fn go_on(&self) {
        let until = self.ended.load(Ordering::Relaxed) + CLIENTS as u64;
        let went_on = || {
            let has_failed = self.clients.iter().any(JoinHandle::is_finished);
            assert!(!has_failed, "a relay broke");
            (self.ended.load(Ordering::Relaxed) >= until).then_some(())
        };
        wait_for(went_on).expect("relays go on");
    }

    fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().unwrap();
        }
        self.ended.load(Ordering::Relaxed)
    }
}

/// One connection: every question has its answer, and the end is orderly.
fn relay(port: u16) {
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    for round in 0..ROUNDS {
        let question = format!("question {round:04}");
        client.write_all(question.as_bytes()).unwrap();
        let mut answer = vec![0; question.len()];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, question.as_bytes());
        thread::sleep(Duration::from_millis(1));
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0, "nothing but the end");
}

#[test]
fn no_relay_breaks_when_configuration_and_binary_change() {
    let origin = echo();
    let [one, each] = [0; 2].map(|_| ports::reserve().unwrap());
    let main = format!(
        "stream {{
            server {{ listen 127.0.0.1:{one}; proxy_pass 127.0.0.1:{origin}; }}
            server {{ listen 127.0.0.1:{each} reuseport; proxy_pass 127.0.0.1:{origin}; }}
        }}"
    );
    let daemon = Daemon::start_as("", "", &main);
    let relays = Relays::start([one, each]);
    relays.go_on();
    let (changes, reloads) = rounds().map_or((2, 5), |rounds| (rounds, 10));
    daemon.reload_and_upgrade(changes, reloads, || relays.go_on());
    let waits = 1 + changes * (reloads + 1);
    assert!(relays.finish() >= (waits * CLIENTS) as u64);
    daemon.assert_no_alert();
}
