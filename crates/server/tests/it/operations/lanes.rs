//! Tests of lanes that start and end while requests are served, without an effect on these.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::support::{configuration, serving_of, start, start_as, wait_for};
use turnpike_testkit::Signal;
use turnpike_testkit::process::{self, Moment};

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);
/// The clients of each kind.
const CLIENTS: usize = 4;
/// The requests that each must have completed under every count of lanes.
const REQUESTS_EACH: usize = 40;

const MODES: &[(&str, &str)] = &[
    ("", ""),
    ("accept_mutex on; accept_mutex_delay 5ms;", ""),
    ("", "reuseport"),
    ("", "reuseport=steer"),
];

fn main_text(lanes: usize, events: &str, port: u16, option: &str) -> String {
    format!(
        "worker_processes {lanes}; events {{ {events} }} \
         http {{ keepalive_requests 1000000; server {{ listen 127.0.0.1:{port} {option}; \
         location / {{ return 200 \"ok\"; }} }} }}"
    )
}

fn free_port() -> u16 {
    turnpike_testkit::ports::reserve().unwrap()
}

fn lanes_of(process: i32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let mut lanes: Vec<String> = names
        .filter(|name| name.starts_with("lane "))
        .map(|name| name.trim().to_owned())
        .collect();
    lanes.sort_unstable();
    lanes
}

fn connect(port: u16) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(stream)
}

/// Sends one request, at once or in two pieces; panics unless it is answered.
fn ask(stream: &mut BufReader<TcpStream>, slowly: bool) {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (first, rest) = request.split_at(if slowly { 20 } else { 0 });
    stream.get_mut().write_all(first).unwrap();
    if slowly {
        std::thread::sleep(Duration::from_millis(2));
    }
    stream.get_mut().write_all(rest).unwrap();
    read_answer(stream);
}

fn read_answer(stream: &mut BufReader<TcpStream>) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "closed: {head:?}");
    }
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    stream.read_exact(&mut [0; 2]).unwrap();
}

/// Sends requests until it is stopped, on one connection or on one each.
fn client(port: u16, number: usize, answered: &AtomicUsize, is_over: &AtomicBool) {
    let mut kept = connect(port);
    while !is_over.load(SeqCst) {
        match number % 2 {
            0 => ask(&mut kept, number % 4 == 2),
            _ => ask(&mut connect(port), number % 4 == 3),
        }
        answered.fetch_add(1, SeqCst);
    }
}

#[test]
fn lanes_start_and_end_under_load_without_lost_requests() {
    for (events, option) in MODES {
        let port = free_port();
        let server = start(&main_text(1, events, port, option));
        let serving = serving_of(&server);
        let (answered, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..2 * CLIENTS)
                .map(|number| {
                    let (answered, is_over) = (&answered, &is_over);
                    scope.spawn(move || client(port, number, answered, is_over))
                })
                .collect();
            for (index, lanes) in [3, 2, 4, 1, 2, 1].into_iter().enumerate() {
                let text = main_text(lanes, events, port, option);
                server
                    .files()
                    .write("nginx.conf", configuration(&text))
                    .unwrap();
                server.signal(Signal::SIGHUP);
                server.wait_for_log(
                    "error.log",
                    &format!("serving with configuration {}", index + 2),
                );
                let until = answered.load(SeqCst) + 2 * CLIENTS * REQUESTS_EACH;
                wait_for("requests", || {
                    answered.load(SeqCst) >= until || clients.iter().any(|one| one.is_finished())
                });
                wait_for("the lanes", || lanes_of(serving[0]).len() == lanes);
            }
            is_over.store(true, SeqCst);
        });
        assert_eq!(serving_of(&server), serving, "one process did it all");
        let log = server.log("error.log");
        assert!(
            !log.contains("[alert]") && !log.contains("[emerg]"),
            "{log}"
        );
    }
}

#[test]
fn a_connection_outlives_its_lane_and_the_lane_its_last_request() {
    let port = free_port();
    let server = start(&main_text(4, "", port, "reuseport"));
    let mut kept: Vec<_> = (0..32).map(|_| connect(port)).collect();
    kept.iter_mut().for_each(|stream| ask(stream, false));
    let mut fresh: Vec<_> = (0..8).map(|_| connect(port)).collect();
    let mut half: Vec<_> = (0..8).map(|_| connect(port)).collect();
    for stream in &mut half {
        stream.get_mut().write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    }
    let text = main_text(1, "", port, "reuseport");
    server
        .files()
        .write("nginx.conf", configuration(&text))
        .unwrap();
    server.signal(Signal::SIGHUP);
    server.wait_for_log("error.log", "worker generation 1 exited with code 0");
    wait_for("one lane to be left", || {
        lanes_of(serving_of(&server)[0]) == ["lane 0"]
    });
    for stream in kept.iter_mut().chain(&mut fresh) {
        ask(stream, false);
        ask(stream, false);
    }
    for stream in &mut half {
        stream.get_mut().write_all(b"st: a\r\n\r\n").unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200 "), "{line:?}");
    }
}

/// Stops a lane while `work` runs; until then repeats `disturb`.
fn with_lane_held(
    serving: i32,
    lane: &str,
    moment: Moment,
    mut disturb: impl FnMut(),
    work: impl FnOnce(),
) {
    let serving = u32::try_from(serving).unwrap();
    let threads = process::threads(serving);
    let (thread, _) = threads.iter().find(|(_, name)| name == lane).unwrap();
    let (is_held, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            process::hold_thread(*thread, moment, || {
                is_held.store(true, SeqCst);
                !is_over.load(SeqCst)
            })
        });
        wait_for("the lane to be held", || {
            disturb();
            is_held.load(SeqCst) || holder.is_finished()
        });
        work();
        is_over.store(true, SeqCst);
        holder.join().unwrap().expect("to be allowed to trace");
    });
}

#[test]
fn connections_that_wait_for_a_silent_lane_are_served_by_another() {
    for option in ["reuseport", "reuseport=steer"] {
        let port = free_port();
        let text = main_text(2, "", port, option);
        let server = start(&format!("lane_rescue_timeout 50ms; {text}"));
        ask(&mut connect(port), false);
        let serving = serving_of(&server)[0];
        with_lane_held(
            serving,
            "lane 1",
            Moment::Any,
            || {},
            || {
                // The hash gives half of them to the stopped lane.
                let mut waiting: Vec<_> = (0..64).map(|_| connect(port)).collect();
                waiting.iter_mut().for_each(|stream| ask(stream, false));
                server.wait_for_log("error.log", "lane 0 accepts them");
                server.wait_for_log("error.log", "lane 1: thread state ");
                let mut more: Vec<_> = (0..64).map(|_| connect(port)).collect();
                more.iter_mut().for_each(|stream| ask(stream, false));
                // A configuration is applied without that lane, which is still supervised.
                let text = main_text(3, "", port, option);
                let text = format!("lane_rescue_timeout 50ms; {text}");
                server
                    .files()
                    .write("nginx.conf", configuration(&text))
                    .unwrap();
                server.signal(Signal::SIGHUP);
                let mut more: Vec<_> = (0..64).map(|_| connect(port)).collect();
                more.iter_mut().for_each(|stream| ask(stream, false));
            },
        );
        server.wait_for_log("error.log", "lane 1 works again");
        server.wait_for_log("error.log", "serving with configuration 2");
        wait_for("the third lane", || {
            lanes_of(serving_of(&server)[0]).len() == 3
        });
        let mut more: Vec<_> = (0..64).map(|_| connect(port)).collect();
        more.iter_mut().for_each(|stream| ask(stream, false));
    }
}

#[test]
fn another_lane_is_started_if_none_works() {
    for option in ["", "reuseport"] {
        let port = free_port();
        let text = main_text(1, "", port, option);
        let server = start(&format!("lane_rescue_timeout 20ms; {text}"));
        let mut stuck = Vec::new();
        let disturb = || {
            let mut stream = connect(port);
            let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
            stream.get_mut().write_all(request).unwrap();
            stuck.push(stream);
        };
        let serving = serving_of(&server)[0];
        with_lane_held(serving, "lane 0", Moment::Awake, disturb, || {
            let mut waiting: Vec<_> = (0..64).map(|_| connect(port)).collect();
            waiting.iter_mut().for_each(|stream| ask(stream, false));
            server.wait_for_log(
                "error.log",
                "no lane works; lane 1 accepts connections until another does",
            );
            // The working lane applies a configuration.
            let answer = main_text(1, "", port, option).replace("\"ok\"", "\"OK\"");
            let text = format!("lane_rescue_timeout 20ms; {answer}");
            server
                .files()
                .write("nginx.conf", configuration(&text))
                .unwrap();
            server.signal(Signal::SIGHUP);
            server.wait_for_log("error.log", "serving with configuration 2");
            waiting.iter_mut().for_each(|stream| ask(stream, false));
        });
        server.wait_for_log("error.log", "lane 0 works again; the stand-by lane 1 ends");
        stuck.iter_mut().for_each(read_answer);
        wait_for("one lane to be left", || lanes_of(serving) == ["lane 0"]);
        ask(&mut connect(port), false);
        assert_eq!(serving_of(&server), [serving]);
    }
}

/// The resident memory of a process, in KB.
fn resident_kb(process: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().strip_suffix(" kB").unwrap();
    number.parse().unwrap()
}

/// A report allocates a few buffers and frees most of them; a build's debug information takes fifty
/// times as much.
const REPORT_KB_MAX: u64 = 8 * 1024;

#[test]
fn a_report_names_functions_and_takes_little_memory() {
    let port = free_port();
    let text = format!(
        "worker_processes 2; lane_rescue_timeout 50ms; http {{ access_log off;
         server {{ listen 127.0.0.1:{port} reuseport; keepalive_requests 1000;
         location / {{ return 200 \"ok\"; }}
         location /logged {{ access_log /dev/stdout; return 200 \"ok\"; }} }} }}"
    );
    // Its output is not read: a lane that logs there hangs as soon as the pipe is full.
    let server = start_as(&text, |command| {
        command.stdout(std::process::Stdio::piped());
    });
    let mut warm: Vec<_> = (0..64).map(|_| connect(port)).collect();
    warm.iter_mut().for_each(|stream| ask(stream, false));
    let serving = serving_of(&server)[0];
    let before_kb = resident_kb(serving);
    let target = format!("/logged?{}", "x".repeat(700));
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut stuck = connect(port);
    stuck
        .get_mut()
        .write_all(request.repeat(200).as_bytes())
        .unwrap();
    let line = || {
        let log = server.log("error.log");
        let line = log
            .lines()
            .find(|line| line.contains(" is in ") && line.contains(" < "));
        line.map(str::to_owned)
    };
    // Connections that come during the hang wait. Those that it had accepted before stay with it.
    let mut waiting = Vec::new();
    wait_for("the report", || {
        if waiting.len() < 256 {
            waiting.extend((0..4).map(|_| connect(port)));
        }
        line().is_some()
    });
    let line = line().unwrap();
    for name in ["write", "access_log", "Exchange"] {
        assert!(line.contains(name), "{line}");
    }
    let grown_kb = resident_kb(serving).saturating_sub(before_kb);
    assert!(
        grown_kb < REPORT_KB_MAX,
        "{grown_kb} KB more after the report"
    );
}

/// The first CPU that this process may use.
fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.unwrap().trim().split([',', '-']).next();
    first.unwrap().to_owned()
}

#[test]
fn automatic_lanes_are_as_many_as_the_cpus_that_may_be_used() {
    // The master decides: the serving process cannot look from its sandbox.
    for main in [
        "worker_processes auto;",
        "worker_processes auto; sandbox on;",
    ] {
        let server = start_as(main, |command| {
            let mut limited = std::process::Command::new("taskset");
            limited
                .args(["-c", &first_cpu()])
                .arg(command.get_program());
            limited
                .args(command.get_args())
                .stdin(std::process::Stdio::null());
            *command = limited;
        });
        wait_for("one lane", || {
            let serving = serving_of(&server);
            serving
                .first()
                .is_some_and(|process| lanes_of(*process).len() == 1)
        });
    }
}

/// Whether a connection's next request is answered.
fn is_answered(stream: &mut BufReader<TcpStream>) -> bool {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut line = String::new();
    let asked = stream.get_mut().write_all(request);
    asked.is_ok() && stream.read_line(&mut line).is_ok() && line.starts_with("HTTP/1.1 200 ")
}

#[test]
#[ignore = "a lane is given up after 5 seconds"]
#[cfg(target_arch = "x86_64")]
fn a_lane_that_spins_is_given_up_with_its_process() {
    let port = free_port();
    let text = main_text(2, "", port, "reuseport");
    let server = start(&format!("lane_rescue_timeout 50ms; {text}"));
    let mut kept: Vec<_> = (0..16).map(|_| connect(port)).collect();
    for stream in &mut kept {
        ask(stream, false);
    }
    let serving = serving_of(&server)[0];
    let threads = process::threads(serving as u32);
    let (thread, _) = threads.iter().find(|(_, name)| name == "lane 1").unwrap();
    let disturb = || {
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        }
    };
    process::spin_thread(serving as u32, *thread, disturb).expect("to be allowed to trace");
    server.wait_for_log(
        "error.log",
        "is given up, and another worker process is requested",
    );
    server.wait_for_log("error.log", "is stuck: another one is started");
    wait_for("another process alone", || {
        let processes = serving_of(&server);
        processes.len() == 1 && processes[0] != serving
    });
    for _ in 0..16 {
        ask(&mut connect(port), false);
    }
    // Those of the other lane were handed over; those of this one went with it.
    let answered = kept
        .iter_mut()
        .filter_map(|stream| is_answered(stream).then_some(()));
    assert!(answered.count() > 0);
}
