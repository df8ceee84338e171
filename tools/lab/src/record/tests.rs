#![allow(clippy::unwrap_used)]

use super::*;

fn run() -> Run {
    let mut figures: BTreeMap<String, Figure> = METRICS
        .iter()
        .enumerate()
        .map(|(index, metric)| (metric.name.to_owned(), Figure::Value(index as f64 + 0.5)))
        .collect();
    let why = "tracefs is not mounted, and \"may not\" be".to_owned();
    figures.insert("contentions_per_s".to_owned(), Figure::Missing(why));
    Run {
        round: 3,
        position: 7,
        case: Case {
            at: vec![
                ("contender".to_owned(), "nginx, \"tuned\"".to_owned()),
                ("mode".to_owned(), "mutex on".to_owned()),
            ],
        },
        marks: vec!["noise: others took 20 %".to_owned(), "errors: 3".to_owned()],
        figures,
        workers: Ok(vec![30, 10, 0]),
        calls: BTreeMap::from([
            ("accept4, nobody there".to_owned(), 0.25),
            ("close".to_owned(), 1.0),
        ]),
        cores: vec![CoreTimes {
            cpu: 1,
            busy: 0.75,
            idle: 0.25,
            softirq: 0.5,
            steal: 0.0,
        }],
        distribution: vec![(50.0, 1.5), (99.99, 1234.75)],
    }
}

fn file(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("lab-record-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn a_run_is_read_as_it_was_written() {
    let path = file("round-trip");
    let unknown = Run {
        workers: Err("perf_event_open: not permitted".to_owned()),
        marks: Vec::new(),
        distribution: Vec::new(),
        ..run()
    };
    append(&path, &header(&["contender".to_owned(), "mode".to_owned()])).unwrap();
    append(&path, &run().line()).unwrap();
    append(&path, &unknown.line()).unwrap();
    assert_eq!(read(&path).unwrap(), [run(), unknown]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn an_older_run_has_reasons_for_what_it_did_not_measure() {
    let path = file("older");
    let without = |text: String, name: &str| text.replacen(&format!(",{name}"), "", 1);
    let head = header(&["contender".to_owned(), "mode".to_owned()]);
    append(&path, &without(without(head, "waits"), "calls")).unwrap();
    let mut older = run();
    let waits = older.figures["waits"].value().unwrap().to_string();
    older.calls.clear();
    let line = without(older.line(), &waits).replacen("30 10 0,,", "30 10 0,", 1);
    append(&path, &line).unwrap();
    let why = "the run is older than this metric".to_owned();
    older
        .figures
        .insert("waits".to_owned(), Figure::Missing(why));
    assert_eq!(read(&path).unwrap(), [older]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn an_incomplete_line_is_ignored_and_removed() {
    let path = file("cut");
    append(&path, &header(&["contender".to_owned(), "mode".to_owned()])).unwrap();
    append(&path, &run().line()).unwrap();
    append(&path, &run().line()[..40]).unwrap();
    assert_eq!(read(&path).unwrap().len(), 1);
    mend(&path).unwrap();
    append(&path, &run().line()).unwrap();
    assert_eq!(read(&path).unwrap().len(), 2);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn garbage_is_reported_with_its_line() {
    let path = file("garbage");
    append(&path, &header(&["contender".to_owned(), "mode".to_owned()])).unwrap();
    append(&path, "1,2,nonsense\n").unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("{}:2: not a line of the lab's", path.display())
    );
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_full_disk_is_reported_with_the_file() {
    let error = append(Path::new("/dev/full"), "a line\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("/dev/full: No space left on device"),
        "{error}"
    );
}
