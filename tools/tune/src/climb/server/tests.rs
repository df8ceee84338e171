#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use turnpike_testkit::Folder;

use super::*;

const HAPROXY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../studies/climb-haproxy.toml"
);

const CPUS: &[usize] = &[0, 1, 2];

static ADDRESSES: LazyLock<Vec<String>> = LazyLock::new(|| vec!["198.18.0.1".to_owned()]);

fn here() -> Place<'static> {
    Place {
        folder: "/f",
        addresses: &ADDRESSES,
        port: 8080,
        client: 0,
        cpus: CPUS,
        split: None,
    }
}

#[test]
fn a_file_that_ends_in_toml_is_a_study() {
    for word in ["nginx", "/usr/sbin/nginx", "./toml"] {
        assert!(matches!(
            Server::of(Path::new(word)),
            Ok(Server::Program(_))
        ));
    }
    assert!(matches!(
        Server::of(Path::new(HAPROXY)),
        Ok(Server::Study(_, _))
    ));
    let error = Server::of(Path::new("./nowhere.toml")).unwrap_err();
    assert_eq!(
        error,
        "./nowhere.toml: No such file or directory (os error 2)"
    );
}

#[test]
fn the_words_of_a_study_follow_the_levels() {
    let server = Server::of(Path::new(HAPROXY)).unwrap();
    let start = Levels::default();
    let cases = [
        (start, "bind 198.18.0.1:8080 backlog 16 shards 1\n"),
        (start, "nbthread 1\n"),
        (start, "log stdout format raw daemon\n"),
        (start, "file /f/html/index.html\n"),
        (start.with(Knob::Workers, 2), "nbthread 3\n"),
        (start.with(Knob::Backlog, 1), " backlog 4096 "),
        (start.with(Knob::AcceptMutex, 2), " shards by-thread\n"),
        (
            start.with(Knob::AccessLog, 2),
            "log 127.0.0.1 daemon emerg\n",
        ),
    ];
    for (levels, expected) in cases {
        let text = server.configuration(levels, &here()).unwrap();
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_level_that_a_study_does_not_have_is_not_possible() {
    let Server::Study(served, _) = Server::of(Path::new(HAPROXY)).unwrap() else {
        panic!("a program");
    };
    let start = Levels::default();
    let cases = [
        (start, None),
        (start.with(Knob::Backlog, 1).with(Knob::SynCookies, 1), None),
        (
            start.with(Knob::AccessLog, 1),
            Some("f has no access_log with the level \"access log with a buffer of 64 KB\""),
        ),
        (
            start.with(Knob::OpenFileCache, 1),
            Some("f has no open_file_cache with the level \"open_file_cache max=1000\""),
        ),
    ];
    for (levels, expected) in cases {
        assert_eq!(missing(&served, "f", levels).as_deref(), expected);
    }
}

#[test]
fn a_study_of_other_settings_is_refused() {
    let right = std::fs::read_to_string(HAPROXY).unwrap();
    let cases = [
        (
            "name = \"backlog\"",
            "name = \"queue\"",
            "\"queue\" is not a setting of a climb",
        ),
        (
            "name = \"backlog 16\"",
            "name = \"16\"",
            "backlog has no level \"16\"; there are backlog 16,",
        ),
    ];
    for (from, to, expected) in cases {
        let folder = Folder::create().unwrap();
        folder.write("s.toml", right.replace(from, to)).unwrap();
        let error = Server::of(&folder.path().join("s.toml")).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
