//! Tests of the services of successive plans: which run, and how long.

#![allow(clippy::unwrap_used)]

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Reports when it is prepared, started and dropped.
struct Probe {
    name: &'static str,
    identity: usize,
    lifetime: Lifetime,
    sender: Sender<String>,
}

struct Dropped(&'static str, Sender<String>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.1.send(format!("{} dropped", self.0));
    }
}

impl Service for Probe {
    fn run(self: Arc<Self>) -> Running {
        Box::pin(async move {
            let _dropped = Dropped(self.name, self.sender.clone());
            let _ = self.sender.send(format!("{} runs", self.name));
            std::future::pending::<()>().await;
        })
    }

    fn prepare(&self) {
        let _ = self.sender.send(format!("{} is prepared", self.name));
    }

    fn lifetime(&self) -> Lifetime {
        self.lifetime
    }

    fn identity(&self) -> usize {
        self.identity
    }
}

struct Bench {
    background: Background,
    sender: Sender<String>,
    events: Receiver<String>,
}

impl Bench {
    fn new() -> Bench {
        let (sender, events) = channel();
        Bench {
            background: Background::default(),
            sender,
            events,
        }
    }

    fn start(&self, generation: u64, services: &[(&'static str, usize, Lifetime)]) {
        let services = services.iter().map(|(name, identity, lifetime)| {
            let service = Probe {
                name,
                identity: *identity,
                lifetime: *lifetime,
                sender: self.sender.clone(),
            };
            Arc::new(service) as Arc<dyn Service>
        });
        let services: Vec<_> = services.collect();
        self.background.start(generation, &services).unwrap();
    }

    fn expect(&self, lines: &[&str]) {
        for line in lines {
            assert_eq!(self.events.recv().unwrap(), *line);
        }
    }
}

#[test]
fn a_service_in_force_ends_with_the_next_plan() {
    let bench = Bench::new();
    bench.start(1, &[("a", 1, Lifetime::InForce)]);
    bench.expect(&["a is prepared", "a runs"]);
    bench.start(2, &[("b", 2, Lifetime::InForce)]);
    bench.expect(&["b is prepared", "a dropped", "b runs"]);
    bench.start(3, &[]);
    bench.expect(&["b dropped"]);
    bench.start(4, &[("c", 3, Lifetime::InForce)]);
    bench.expect(&["c is prepared", "c runs"]);
    drop(bench.background);
    assert_eq!(bench.events.recv().unwrap(), "c dropped");
}

#[test]
fn a_service_in_use_runs_once_and_ends_with_its_last_plan() {
    let bench = Bench::new();
    bench.start(1, &[("zone", 1, Lifetime::InUse)]);
    bench.expect(&["zone is prepared", "zone runs"]);
    bench.start(2, &[("again", 1, Lifetime::InUse)]);
    bench.start(3, &[("other", 2, Lifetime::InUse)]);
    bench.expect(&["again is prepared", "other is prepared", "other runs"]);
    bench.background.stop(1);
    bench.background.stop(2);
    bench.expect(&["zone dropped"]);
    bench.background.stop(3);
    bench.expect(&["other dropped"]);
}

/// Completes something at the end, when it is let.
struct Completing {
    release: Mutex<Receiver<()>>,
    sender: Sender<String>,
}

impl Service for Completing {
    fn run(self: Arc<Self>) -> Running {
        Box::pin(std::future::pending())
    }

    fn finish(&self, _: Instant) {
        let _ = self.sender.send("completing".to_owned());
        let _ = self.release.lock().unwrap().recv();
        let _ = self.sender.send("completed".to_owned());
    }
}

/// A time that no test waits for.
fn much_later() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// Last work that reports its end, and what lets it end.
fn held_work(sender: &Sender<String>) -> Sender<()> {
    let (release, held) = channel();
    let sender = sender.clone();
    run_last(move || {
        let _ = held.recv();
        let _ = sender.send("last work has ended".to_owned());
    })
    .unwrap();
    release
}

#[test]
fn the_end_waits_for_services_and_for_last_work() {
    let bench = Bench::new();
    let (release, held) = channel();
    let service = Completing {
        release: Mutex::new(held),
        sender: bench.sender.clone(),
    };
    bench.background.start(1, &[Arc::new(service)]).unwrap();
    let release_work = held_work(&bench.sender);
    thread::scope(|scope| {
        scope.spawn(|| {
            bench.background.finish_until(much_later());
            bench.sender.send("ended".to_owned()).unwrap();
        });
        bench.expect(&["completing"]);
        drop(release_work);
        bench.expect(&["last work has ended"]);
        drop(release);
        bench.expect(&["completed", "ended"]);
    });
}

#[test]
fn the_end_does_not_wait_for_ever() {
    let bench = Bench::new();
    let release = held_work(&bench.sender);
    bench.background.finish_until(Instant::now());
    bench.sender.send("gave up".to_owned()).unwrap();
    bench.expect(&["gave up"]);
    drop(release);
    bench.expect(&["last work has ended"]);
}

#[test]
fn last_work_that_panics_is_not_waited_for() {
    let (sender, panicked) = channel::<()>();
    run_last(move || {
        let _sender = sender;
        panic!("on purpose");
    })
    .unwrap();
    assert!(panicked.recv().is_err());
    LAST.wait(much_later());
}

#[test]
fn a_plan_without_services_needs_no_thread() {
    let background = Background::default();
    background.start(1, &[]).unwrap();
    background.stop(1);
    assert!(background.lock().is_none());
}

#[test]
fn a_command_beyond_the_limit_is_refused() {
    let (done, wait) = channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let held = || {
        let wait = wait.clone();
        move || {
            let _ = wait.lock().unwrap().recv();
        }
    };
    for _ in 0..COMMANDS.limits().threads_max {
        run_command(held()).unwrap();
    }
    assert!(matches!(run_command(held()), Err(PoolRefusal::Full)));
    drop(done);
}
