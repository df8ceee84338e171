#![allow(clippy::unwrap_used)]

use super::knobs::Knob;
use super::search::Run;
use super::*;
use crate::change::Change;

/// A server of which each run is kept, as `Field` keeps them.
struct Server(Vec<(String, Run)>);

impl Bench for Server {
    fn run(&mut self, levels: Levels) -> Result<Run, Failure> {
        let long = levels.level(Knob::Backlog) * levels.level(Knob::Somaxconn);
        let workers = [1.0, 1.6, 1.3][levels.level(Knob::Workers)];
        let noise = 1.0 + (self.0.len() % 3) as f64 / 50.0;
        let run = Run {
            connections_per_s: (9000.0 * (1.0 + long as f64) * workers * noise).round(),
            p99_us: 900.0,
            answered: 9000,
            overflows: if long == 1 { 0 } else { 70 },
            ..Run::default()
        };
        self.0.push((levels.key(), run.clone()));
        Ok(run)
    }
}

fn replay(mut recorded: record::Recorded) -> Result<(Climbed, Option<Optimum>), Failure> {
    let climbing = recorded.climbing.clone();
    searched(&mut recorded, &climbing, &mut |_| {})
}

fn climbing(has_grid: bool) -> Climbing {
    Climbing {
        server: "nginx".to_owned(),
        effort: Effort {
            pairs: 4,
            pairs_min: PAIRS_MIN,
            pairs_max: 16,
            pairs_without_gain_max: 8,
            early_factor: EARLY_FACTOR,
            p99_factor_max: 3.0,
            has_all_knobs: false,
        },
        has_grid,
    }
}

#[test]
fn a_record_decides_as_its_climb_did() {
    let climbing = climbing(true);
    let mut server = Server(Vec::new());
    let (climbed, optimum) = searched(&mut server, &climbing, &mut |_| {}).unwrap();
    let text = table::text(&climbed, optimum.as_ref(), 80);
    let written = record::text(&climbing, &server.0);
    let recorded = record::of_text(&written).unwrap();
    assert_eq!(record::text(&climbing, &recorded.all), written);
    let (again, best) = replay(recorded).unwrap();
    assert_eq!(table::text(&again, best.as_ref(), 80), text);
    assert!(text.contains("The best of 432 combinations"), "{text}");
    // Study S3 stands beside it, with what the same knobs did here.
    assert!(text.contains("x 1.82  accept_mutex off"), "{text}");
    assert!(
        text.contains("here: not possible, a veth pair has no interrupts"),
        "{text}"
    );
}

/// The figures of a run that its first records had, and those of today.
#[test]
fn a_record_without_later_figures_is_read() {
    const CASES: &[(&str, Option<u64>, f64)] = &[
        ("[100,9,0,60,true,2,80.5]", None, 0.0),
        ("[100,9,0,60,true,2,80.5,40,0,0.3,0.1]", None, 0.1),
        ("[100,9,0,60,true,2,80.5,40,0,0.3,0.1,null]", None, 0.1),
        ("[100,9,0,60,true,2,80.5,40,0,0.3,0.1,7]", Some(7), 0.1),
    ];
    let head = record::text(&climbing(false), &[]);
    for (figures, cookies, idle_share) in CASES.iter().copied() {
        let run = format!("\"runs\":[[\"000000000000\",{figures}]");
        let text = head.replace("\"runs\":[", &run);
        let recorded = record::of_text(&text).unwrap();
        let (_, run) = &recorded.all[0];
        assert_eq!((run.cookies, run.idle_share), (cookies, idle_share));
        assert_eq!((run.cpu_us, run.overflows), (80.5, 2), "{figures}");
    }
}

#[test]
fn a_file_that_is_no_record_is_refused() {
    for text in ["{}", "{\"schema\":\"turnpike-tune-climb/1\",\"runs\":[]}"] {
        let error = record::of_text(text).unwrap_err();
        assert!(error.starts_with("not a record of"), "{error}");
    }
}

#[test]
fn a_bundle_has_what_was_kept() {
    let climbing = climbing(false);
    let (climbed, _) = searched(&mut Server(Vec::new()), &climbing, &mut |_| {}).unwrap();
    let mut plan = bundle::plan(&climbing, &bundle::changed(&climbed));
    let changes: Vec<&Change> = plan.steps.iter().map(|step| &step.change).collect();
    assert_eq!(changes, [&Change::setting("net.core.somaxconn", 4096)]);
    assert_eq!(plan.take_cautioned(&[]), Ok(Vec::new()));
    let picture = bundle::picture(&climbed);
    for tried in &climbed.tried {
        let title = format!("<title>{}: {:.0} connections", tried.text, tried.rate);
        assert!(picture.contains(&title), "{title}");
    }
    assert_eq!(picture.matches("class=\"kept\"").count(), 3);
}

/// A climb may find that SYN cookies cost something, and check advises to leave them on.
#[test]
fn a_plan_without_syn_cookies_is_followed_only_by_name() {
    let settings = [
        ("net/ipv4/tcp_syncookies", "0"),
        ("net/core/somaxconn", "4096"),
    ];
    let settings = settings.map(|(path, value)| (path.to_owned(), value.to_owned()));
    let name = "net.ipv4.tcp_syncookies".to_owned();
    let cases: [(&[String], usize, usize); 2] = [(&[], 1, 1), (&[name], 2, 0)];
    for (also, made, left) in cases {
        let plan = bundle::plan(&climbing(false), &settings);
        let text = serde_json::to_string(&plan).unwrap();
        let mut plan: crate::plan::Plan = serde_json::from_str(&text).unwrap();
        let cautioned = plan.take_cautioned(also).unwrap();
        assert_eq!((plan.steps.len(), cautioned.len()), (made, left));
        assert!(cautioned.iter().all(|step| {
            let caution = step.caution.as_deref();
            caution.is_some_and(|text| text.contains("check` advises 1"))
        }));
    }
    let mut plan = bundle::plan(&climbing(false), &settings);
    let error = plan.take_cautioned(&["net.core.somaxconn".to_owned()]);
    assert_eq!(
        error,
        Err("the plan has no caution about net.core.somaxconn".to_owned())
    );
}

#[test]
fn a_thread_that_receives_needs_napi() {
    let cases = [
        (Knob::Napi, 0, ["off", "0", "0", "0", "0"]),
        (Knob::Napi, 1, ["on", "0", "0", "0", "0"]),
        (Knob::Napi, 2, ["on", "1", "0", "0", "0"]),
        (Knob::Napi, 3, ["on", "0", "200000", "2", "0"]),
        (Knob::PacketSteering, 1, ["off", "0", "0", "0", "9"]),
        (Knob::BusyPoll, 1, ["on", "0", "0", "0", "0"]),
    ];
    for (knob, level, expected) in cases {
        let levels = Levels::default().with(knob, level);
        let values = levels.interface(&[0, 3], None).map(|(_, value)| value);
        assert_eq!(values, expected, "{knob:?} {level}");
    }
}

/// A recorded climb.
struct Recorded {
    text: &'static str,
    found: &'static [&'static str],
    /// Where the grid was run: what the goals say of the end beside the best.
    goals: Option<&'static str>,
}

/// A climb with its grid, as `cargo xtask bench climb` keeps it.
macro_rules! bench_record {
    ($server:literal) => {
        include_str!(concat!(
            "../../../../bench/results/2026-11-26-climb-2xamd-epyc-linux-6-18-44/",
            $server,
            "/runs.json"
        ))
    };
}

const ALL_BUT_ACCEPT_MUTEX: &[&str] = &[
    "workers",
    "access_log",
    "backlog",
    "somaxconn",
    "open_file_cache",
    "tcp_syncookies",
];

/// Of two CPUs, one of which the load generator has.
const RECORDED: &[Recorded] = &[
    Recorded {
        text: include_str!("../../climbs/two-cpus-busy.json"),
        found: &["workers", "backlog", "somaxconn", "accept_mutex"],
        goals: None,
    },
    Recorded {
        text: bench_record!("turnpike"),
        found: ALL_BUT_ACCEPT_MUTEX,
        goals: Some("432 combinations: x 0.977 [0.928, 1.032]; the client was the limit"),
    },
    Recorded {
        text: bench_record!("nginx"),
        found: ALL_BUT_ACCEPT_MUTEX,
        goals: Some("432 combinations: x 1.010 [0.966, 1.056]; the client was the limit"),
    },
];

#[test]
fn recorded_climbs_find_what_they_found() {
    for recorded in RECORDED {
        let record = record::of_text(recorded.text).unwrap();
        let server = record.climbing.server.clone();
        let (climbed, optimum) = replay(record).unwrap();
        let found: Vec<&str> = climbed.found().into_iter().map(Knob::name).collect();
        assert_eq!(found, recorded.found, "{server}");
        let reached = optimum.map(|optimum| Reached::of(&server, &climbed, &optimum));
        assert_eq!(reached.is_some(), recorded.goals.is_some(), "{server}");
        if let (Some(reached), Some(words)) = (reached, recorded.goals) {
            let text = reached.text(1000);
            assert!(reached.is_reached() && text.contains(words), "{text}");
        }
    }
}

#[test]
fn a_record_names_a_program_without_its_folders() {
    let cases = [
        ("nginx", "nginx"),
        ("/home/me/target/release/turnpike", "turnpike"),
        ("./mine/haproxy.toml", "./mine/haproxy.toml"),
    ];
    for (server, expected) in cases {
        let command = Climb {
            quick: true,
            server: PathBuf::from(server),
            connections: 1,
            p99_factor: 3.0,
            grid: false,
            bundle: None,
            record: None,
            replay: None,
            live: live::Options::default(),
        };
        assert_eq!(command.climbing().server, expected);
    }
}
