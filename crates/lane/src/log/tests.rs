#![allow(clippy::unwrap_used)]

use std::fs::Permissions;
use std::io;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("turnpike-log-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn specs_are_read_as_nginx_reads_them() {
    let file = |path: &str| Destination::File(PathBuf::from(path));
    let good: &[(&[&str], Destination, Level)] = &[
        (&["logs/error.log"], file("/p/logs/error.log"), Level::Error),
        (
            &["/var/log/e.log", "debug"],
            file("/var/log/e.log"),
            Level::Debug,
        ),
        (
            &["e", "debug_http", "debug_core"],
            file("/p/e"),
            Level::Debug,
        ),
        (&["stderr", "warn"], Destination::Stderr, Level::Warn),
    ];
    for (arguments, destination, level) in good {
        let spec = Spec::parse(arguments, Path::new("/p/")).unwrap();
        assert_eq!(
            (&spec.destination, &spec.level),
            (destination, level),
            "{arguments:?}"
        );
    }
}

/// Arguments, and nginx's or Angie's message.
const WRONG: &[(&[&str], &str)] = &[
    (&["e", "format=xml"], "unknown log format \"xml\""),
    (&["e", "filter=x"], "missing filter type in \"x\""),
    (
        &["e", "filter=logline:"],
        "empty filter pattern \"logline:\"",
    ),
    (
        &["e", "filter=client:="],
        "empty filter pattern \"client:=\"",
    ),
    (&["e", "filter=host:~"], "empty filter pattern \"host:~\""),
    (
        &["e", "filter=age:1"],
        "filter with unknown property \"age\"",
    ),
    (
        &["e", "filter=tag:x"],
        "filters of tags are not supported in \"tag:x\"",
    ),
    (
        &["e", "filter=sourcefile:x"],
        "source file filtering requires debug build",
    ),
    (
        &["e", "filter=message:~a(b"],
        "pcre2_compile() failed: missing closing parenthesis in \"a(b\"",
    ),
    (&["e", "rate="], "invalid rate \"rate=\""),
    (&["e", "rate=1r/s"], "invalid rate \"rate=1r/s\""),
    (&["e", "rate=-1"], "invalid rate \"rate=-1\""),
    (
        &["e", "format=json", "warn", "format=json"],
        "duplicate \"format\" parameter",
    ),
    (&["e", "loud"], "invalid log level \"loud\""),
    (&["e", "warn", "info"], "duplicate log level \"info\""),
    (
        &["e", "warn", "debug_http"],
        "invalid log level \"debug_http\"",
    ),
    (&["memory:32m"], "buffers in memory are not supported"),
    (&["syslog:tag=x"], "no syslog server specified"),
    (
        &["syslog:server=127.0.0.1:0"],
        "invalid port in syslog server \"127.0.0.1:0\"",
    ),
    (
        &["syslog:server=unix:"],
        "no path in the unix domain socket in syslog server \"unix:\"",
    ),
    (
        &["syslog:server=127.0.0.1,facility=x"],
        "unknown syslog facility \"x\"",
    ),
    (
        &["syslog:server=127.0.0.1,severity=x"],
        "unknown syslog severity \"x\"",
    ),
    (
        &["syslog:server=127.0.0.1,x"],
        "unknown syslog parameter \"x\"",
    ),
    (
        &["syslog:server=127.0.0.1,tag=a,tag=b"],
        "duplicate syslog \"tag\"",
    ),
    (
        &["syslog:server=127.0.0.1,tag=a.b"],
        "syslog \"tag\" only allows alphanumeric characters and underscore",
    ),
    (
        &["syslog:server=127.0.0.1,tag=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
        "syslog tag length exceeds 32",
    ),
];

#[test]
fn wrong_specs_give_nginx_messages() {
    for (arguments, message) in WRONG {
        assert_eq!(
            Spec::parse(arguments, Path::new("/p"))
                .unwrap_err()
                .to_string(),
            *message
        );
    }
}

#[test]
fn a_line_has_time_level_process_and_connection() {
    let folder = scratch("line");
    let path = folder.join("e.log");
    let mut set = LogSet::new();
    let file = set.open(&path).unwrap();
    let log = ErrorLog::new(vec![Target::new(Level::Info, Sink::File(file))]);
    log.write(Level::Error, Some(7), format_args!("failed {}", 1));
    log.event(Level::Notice, format_args!("start"));
    log.event(Level::Debug, format_args!("hidden"));
    let text = std::fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 3);
    let first = String::from_utf8(lines[0].to_vec()).unwrap();
    let (stamp, rest) = first.split_at(20);
    assert_eq!(
        stamp.chars().filter(char::is_ascii_digit).count(),
        14,
        "{stamp}"
    );
    let process = std::process::id();
    assert!(rest.starts_with(&format!("[error] {process}#")), "{rest}");
    assert!(rest.ends_with(": *7 failed 1"), "{rest}");
    assert!(lines[1].ends_with(b": start"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_long_line_is_cut_and_still_ends() {
    let folder = scratch("long");
    let path = folder.join("e.log");
    let file = Arc::new(LogFile::open(&path).unwrap());
    let log = ErrorLog::new(vec![Target::new(Level::Info, Sink::File(file))]);
    log.event(Level::Info, format_args!("{}", "x".repeat(9000)));
    let text = std::fs::read(&path).unwrap();
    assert_eq!(text.len(), LINE_BYTES_MAX);
    assert_eq!(text.last(), Some(&b'\n'));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn each_target_filters_for_itself() {
    let folder = scratch("targets");
    let mut set = LogSet::new();
    let target = |set: &mut LogSet, name: &str, level| {
        let sink = Sink::File(set.open(&folder.join(name)).unwrap());
        Target::new(level, sink)
    };
    let targets = vec![
        target(&mut set, "crit", Level::Crit),
        target(&mut set, "debug", Level::Debug),
        target(&mut set, "warn", Level::Warn),
    ];
    let log = ErrorLog::new(targets);
    for level in Level::ALL {
        log.event(level, format_args!("a line"));
    }
    for (name, count) in [("crit", 3), ("debug", 8), ("warn", 5)] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(text.lines().count(), count, "{name}");
    }
    assert!(!ErrorLog::none().enabled(Level::Emerg));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_reopened_file_gets_the_next_line() {
    let folder = scratch("reopen");
    let path = folder.join("e.log");
    let mut set = LogSet::new();
    let sink = Sink::File(set.open(&path).unwrap());
    let log = ErrorLog::new(vec![Target::new(Level::Info, sink)]);
    log.event(Level::Info, format_args!("one"));
    std::fs::rename(&path, folder.join("old.log")).unwrap();
    log.event(Level::Info, format_args!("two"));
    let descriptor = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .unwrap();
    set.adopt(&path, descriptor.into());
    log.event(Level::Info, format_args!("three"));
    let count = |name: &str| {
        std::fs::read_to_string(folder.join(name))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!((count("old.log"), count("e.log")), (2, 1));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_adopted_file_that_others_cannot_read_is_created_again_as_such() {
    let folder = scratch("secret");
    let plain = folder.join("plain.log");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let open = |name: &str, mode: u32| {
        let path = folder.join(name);
        let file = std::fs::File::create(&path).unwrap();
        file.set_permissions(Permissions::from_mode(mode)).unwrap();
        (path, OwnedFd::from(file))
    };
    LogFile::open(&plain).unwrap();
    // The mode of a log, which the mask of this process may have narrowed.
    let wide = mode(&plain);
    for (before, then, created) in [
        (0o600, None, 0o600),
        (0o400, None, 0o600),
        (0o640, None, wide),
        (0o644, None, wide),
        (0o644, Some(0o600), 0o600),
        (0o600, Some(0o644), wide),
    ] {
        let mut files = LogSet::new();
        for mode in [Some(before), then].into_iter().flatten() {
            let (path, descriptor) = open("adopted.log", mode);
            files.adopt(&path, descriptor);
        }
        let file = files.file(&folder.join("adopted.log")).unwrap();
        std::fs::remove_file(file.path()).unwrap();
        file.reopen().unwrap();
        assert_eq!(mode(file.path()), created, "{before:o} {then:?}");
        std::fs::remove_file(file.path()).unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn syslog_lines_carry_priority_and_tag() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let cases = [
        ("", Level::Error, 23 * 8 + 3, "nginx: "),
        (
            ",facility=user,tag=SEETHIS",
            Level::Info,
            8 + 6,
            "SEETHIS: ",
        ),
        (",facility=kern,nohostname", Level::Emerg, 0, "nginx: "),
    ];
    for (parameters, level, priority, tag) in cases {
        let argument = format!("syslog:server=127.0.0.1:{port}{parameters}");
        let spec = Spec::parse(&[&argument, "info"], Path::new("/")).unwrap();
        let log = ErrorLog::from_specs(&[spec], &LogSet::new());
        log.event(level, format_args!("hello"));
        let mut buffer = [0u8; 4096];
        let length = server.recv(&mut buffer).unwrap();
        let text = std::str::from_utf8(&buffer[..length]).unwrap();
        assert!(text.starts_with(&format!("<{priority}>")), "{text}");
        assert!(text.contains(tag) && text.ends_with(": hello"), "{text}");
    }
}

#[test]
fn errno_text_is_the_systems() {
    let cases = [
        (
            io::Error::from_raw_os_error(98),
            "(98: Address already in use)",
        ),
        (
            io::Error::from_raw_os_error(2),
            "(2: No such file or directory)",
        ),
        (io::Error::other("odd"), "(odd)"),
    ];
    for (error, text) in cases {
        assert_eq!(Errno(&error).to_string(), text);
    }
}

/// A request with a field that a client has chosen.
struct Request(String);

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, ", request: \"{}\"", self.0)
    }
}

impl Subject for Request {
    fn members(&self, add: &mut dyn FnMut(Member, fmt::Arguments<'_>)) {
        add(Member::Request, format_args!("{}", self.0));
        add(Member::Host, format_args!("h"));
    }
}

#[test]
fn a_target_takes_the_lines_that_meet_all_its_filters() {
    let cases: &[(&[&str], bool)] = &[
        (&["logline:GET /a"], true),
        (&["logline:=no room, request: \"GET /a\""], true),
        (&["logline:~room.*/a\"$"], true),
        // Neither time nor number of the connection are in it.
        (&["logline:*7"], false),
        (&["logline:~^no"], true),
        (&["message:=no room"], true),
        (&["message:GET"], false),
        (&["message:~^no r.*m$"], true),
        (&["request:=GET /a"], true),
        (&["request_line:/a"], true),
        (&["request:=GET"], false),
        (&["host:~^h$"], true),
        (&["client:1"], false),
        (&["message:no", "host:h"], true),
        (&["message:no", "host:x"], false),
        // Letters of another case are other letters.
        (&["message:NO"], false),
        (&["message:~(?i)NO"], true),
        // A pattern whose match ends without a result hides nothing.
        (&["logline:~^(((.|o)*)*)*[xyz]$"], true),
    ];
    let folder = scratch("filter");
    for (filters, written) in cases {
        for form in ["format=default", "format=json"] {
            let filters = filters.iter().map(|filter| format!("filter={filter}"));
            let words: Vec<String> = [form.to_owned()].into_iter().chain(filters).collect();
            let words: Vec<&str> = [["e", "info"].to_vec(), refs(&words)].concat();
            let spec = Spec::parse(&words, &folder).unwrap();
            let mut set = LogSet::new();
            set.open(spec.file().unwrap()).unwrap();
            let log = ErrorLog::from_specs(&[spec], &set);
            let subject = Request("GET /a".to_owned());
            log.write_about(
                Level::Info,
                Some(7),
                format_args!("no room"),
                Some(&subject),
            );
            log.write_everywhere(Level::Debug, None, format_args!("no room"), Some(&subject));
            let path = folder.join("e");
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(
                text.lines().count(),
                if *written { 2 } else { 0 },
                "{words:?} {text}"
            );
            std::fs::remove_file(path).unwrap();
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn a_rate_leaves_more_room_to_severe_lines() {
    use rate::{Limit, Verdict::*};

    let limit = Limit::new(2);
    let counted = |level, now_ms| limit.count(level, Level::Warn, now_ms);
    let steps = [
        (Level::Warn, 1000, Written),
        (Level::Warn, 1000, Written),
        (Level::Warn, 1000, FirstLost),
        (Level::Warn, 1100, Lost),
        // Twice the rate for errors, three times for what is critical.
        (Level::Error, 1100, Written),
        (Level::Error, 1100, Written),
        (Level::Error, 1100, FirstLost),
        (Level::Crit, 1100, Written),
        (Level::Crit, 1100, FirstLost),
        // Half a second makes room for a line, a long time for no more than the rate.
        (Level::Crit, 1700, Written),
        (Level::Warn, 90_000, Written),
        (Level::Warn, 90_000, Written),
        (Level::Warn, 90_000, FirstLost),
        // A clock that another thread has read earlier.
        (Level::Error, 89_000, Written),
    ];
    for (number, (level, now_ms, verdict)) in steps.into_iter().enumerate() {
        assert_eq!(counted(level, now_ms), verdict, "step {number}");
    }
}

#[test]
fn a_rate_limits_the_lines_and_says_so() {
    let folder = scratch("rate");
    const LINES: usize = 100;
    let cases: [(&[&str], Range<usize>); 5] = [
        // A machine that takes seconds for a hundred lines lets some more pass.
        (&["e", "rate=2"], 3..LINES),
        (&["e", "rate=2m/s", "format=json"], 3..LINES),
        (&["e", "rate=0"], LINES..LINES + 1),
        (&["e", "debug", "rate=2"], LINES..LINES + 1),
        // Lines that a filter holds back are not counted.
        (&["e", "rate=2", "filter=message:else"], 0..1),
    ];
    for (words, counts) in cases {
        let spec = Spec::parse(words, &folder).unwrap();
        let mut set = LogSet::new();
        set.open(spec.file().unwrap()).unwrap();
        let log = ErrorLog::from_specs(&[spec], &set);
        for number in 0..LINES {
            log.write(Level::Error, Some(1), format_args!("line {number}"));
        }
        let path = folder.join("e");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(counts.contains(&text.lines().count()), "{words:?} {text}");
        let is_said = text.contains("too many log messages, limiting");
        assert_eq!(is_said, counts.start == 3, "{words:?} {text}");
        std::fs::remove_file(path).unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn lines_are_json_objects_where_asked_for() {
    let folder = scratch("json");
    let specs = [&["j", "format=json", "info"][..], &["n", "info"]];
    let specs = specs.map(|words| Spec::parse(words, &folder).unwrap());
    let mut set = LogSet::new();
    for spec in &specs {
        set.open(spec.file().unwrap()).unwrap();
    }
    let log = ErrorLog::from_specs(&specs, &set);
    let process = std::process::id();
    for (request, written) in [
        ("GET /", "GET /"),
        (
            "\"\\\u{7}\n, client: 1",
            "\\\"\\\\\\u0007\\u000a, client: 1",
        ),
        ("ü", "ü"),
    ] {
        let subject = Request(request.to_owned());
        log.write_about(Level::Error, Some(7), format_args!("no"), Some(&subject));
        let text = std::fs::read_to_string(folder.join("j")).unwrap();
        let line = text.lines().last().unwrap();
        assert!(line.starts_with("{\"time\":\"2"), "{line}");
        assert!(
            line.contains(&format!(
                "\"level\":\"error\",\"pid\":{process},\"thread\":"
            )),
            "{line}"
        );
        let end = format!(
            ",\"connection\":7,\"message\":\"no\",\"request\":\"{written}\",\"host\":\"h\"}}"
        );
        assert!(line.ends_with(&end), "{line}");
    }
    let plain = std::fs::read_to_string(folder.join("n")).unwrap();
    assert!(plain.contains(": *7 no, request: \"GET /\"\n"), "{plain}");
    // A value that is too long is cut, and the object is whole.
    for long in ["x".repeat(9000), "ü\"".repeat(9000)] {
        let subject = Request(long.clone());
        log.write_about(Level::Error, None, format_args!("{long}"), Some(&subject));
        let text = std::fs::read_to_string(folder.join("j")).unwrap();
        let line = text.lines().last().unwrap();
        assert!(line.len() < LINE_BYTES_MAX, "{}", line.len());
        assert!(line.ends_with("\"}"), "{line}");
        let quotes = line.replace("\\\"", "").matches('"').count();
        assert_eq!(quotes % 2, 0, "{line}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
