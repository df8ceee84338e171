//! Tests of zones in files: restarts, damage, folders without write permission, limits.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::cache::{Counting, DISK, ask, response, server, status, wait_until};
use nix::sys::signal::Signal;
use turnpike_testkit::{Folder, Origin, Server, Step, needs_root};

const FRESH: &str = "Cache-Control: max-age=600\r\n";

/// The files of a zone, at any level.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

fn configuration(origin: &Counting, folder: &Folder, more: &str) -> String {
    format!(
        "error_log %FOLDER%/error.log info;
        events {{ }}
        http {{
            access_log off;
            proxy_cache_path {}/cache levels=1:2 keys_zone=Z:1m use_temp_path=off {more};
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{
                    proxy_pass http://127.0.0.1:{};
                    proxy_cache Z;
                    add_header X-Cache $upstream_cache_status;
                    add_header X-Why $upstream_cache_not_stored;
                }}
            }}
        }}",
        folder.path().display(),
        origin.port()
    )
}

fn start(configuration: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(configuration)
        .start()
}

#[test]
fn a_restart_keeps_what_is_stored() {
    let folder = Folder::create().unwrap();
    // The server's own user writes and reads the folder.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let origin = Counting::start(&response(&format!("{FRESH}X-Own: 1\r\n"), "content"));
    let text = configuration(&origin, &folder, "");
    let first = start(&text);
    for path in ["/a", "/b"] {
        assert_eq!(status(&ask(&first, &format!("GET {path}"), "")), "MISS");
    }
    first.quit();
    let second = start(&text);
    for path in ["/a", "/b"] {
        let got = ask(&second, &format!("GET {path}"), "");
        assert_eq!((status(&got), got.text().as_str()), ("HIT", "content"));
        assert_eq!(got.header("X-Own"), Some("1"));
    }
    assert_eq!(origin.requests(), 2);
}

#[test]
fn special_files_under_cache_names_block_no_request() {
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let origin = Counting::start(&response(FRESH, "content"));
    let text = configuration(&origin, &folder, "");
    let first = start(&text);
    for path in ["/fifo", "/link", "/file"] {
        assert_eq!(status(&ask(&first, &format!("GET {path}"), "")), "MISS");
    }
    let found = files(&folder.path().join("cache"));
    let of = |key: &str| {
        let is_of = |path: &&PathBuf| {
            let bytes = fs::read(path).unwrap();
            bytes
                .windows(key.len())
                .any(|window| window == key.as_bytes())
        };
        found.iter().find(is_of).unwrap()
    };
    let (fifo, link) = (of("/fifo"), of("/link"));
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(link, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, link).unwrap();
    fs::remove_file(fifo).unwrap();
    nix::unistd::mkfifo(fifo, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
    for path in ["/fifo", "/link"] {
        let got = ask(&first, &format!("GET {path}"), "");
        assert_eq!(
            (status(&got), got.text().as_str()),
            ("MISS", "content"),
            "{path}"
        );
    }
    first.quit();
    for path in [fifo, link] {
        fs::remove_file(path).unwrap();
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
    }
    let second = start(&text);
    wait_until("the file is known again", || {
        status(&ask(&second, "GET /file", "")) == "HIT"
    });
    for path in ["/fifo", "/link"] {
        let request = format!("GET {path}");
        assert_eq!(status(&ask(&second, &request, "")), "MISS", "{path}");
        assert_eq!(status(&ask(&second, &request, "")), "HIT", "{path}");
    }
    assert_eq!(second.quit().code(), Some(0));
}

#[test]
fn a_restart_keeps_date_and_age() {
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let date = "Sun, 06 Nov 2022 08:49:37 GMT";
    let fields = format!("Date: {date}\r\nCache-Control: max-age=999999999\r\n");
    let origin = Counting::start(&response(&fields, "content"));
    let text = configuration(&origin, &folder, "");
    let first = start(&text);
    ask(&first, "GET /a", "");
    let before = ask(&first, "GET /a", "");
    first.quit();
    let second = start(&text);
    let after = ask(&second, "GET /a", "");
    assert_eq!((status(&before), status(&after)), ("HIT", "HIT"));
    assert_eq!(before.header("Date"), Some(date));
    assert_eq!(after.header("Date"), Some(date));
    let age = |got: &turnpike_testkit::Response| got.header("Age").unwrap().parse::<u64>().unwrap();
    assert!(age(&before) > 100_000_000);
    assert!(age(&after) >= age(&before));
}

#[test]
fn files_of_a_former_version_are_fetched_again() {
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let origin = Counting::start(&response(FRESH, "content"));
    let text = configuration(&origin, &folder, "");
    let first = start(&text);
    ask(&first, "GET /a", "");
    first.quit();
    let found = files(&folder.path().join("cache"));
    assert_eq!(found.len(), 1);
    let mut bytes = fs::read(&found[0]).unwrap();
    assert_eq!(&bytes[..7], b"TPCACHE");
    assert_ne!(bytes[7], b'1', "the former version");
    bytes[7] = b'1';
    fs::write(&found[0], bytes).unwrap();
    let second = start(&text);
    assert_eq!(status(&ask(&second, "GET /a", "")), "MISS");
    assert_eq!(status(&ask(&second, "GET /a", "")), "HIT");
    assert_eq!(origin.requests(), 2);
}

#[test]
fn a_file_that_was_cut_or_altered_is_fetched_again() {
    type Damage = fn(&mut Vec<u8>);
    let damages: &[(&str, Damage)] = &[
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("emptied", Vec::clear),
        ("content altered", |bytes| bytes[130] ^= 1),
        ("head altered", |bytes| {
            let last = bytes.len() - 3;
            bytes[last] ^= 1;
        }),
        ("header altered", |bytes| bytes[40] ^= 1),
    ];
    let origin = Counting::start(&response(&format!("{FRESH}X-Own: 1\r\n"), "content"));
    let server = server(&origin, DISK, "");
    for (number, (name, damage)) in damages.iter().enumerate() {
        let request = format!("GET /{number}");
        let folder = server.folder().join("cache");
        let others = files(&folder);
        assert_eq!(status(&ask(&server, &request, "")), "MISS");
        assert_eq!(status(&ask(&server, &request, "")), "HIT");
        let before = origin.requests();
        let found = files(&folder);
        let added = found.iter().find(|path| !others.contains(path)).unwrap();
        let mut bytes = fs::read(added).unwrap();
        damage(&mut bytes);
        fs::write(added, bytes).unwrap();
        let got = ask(&server, &request, "");
        assert_eq!(
            (status(&got), got.text().as_str()),
            ("MISS", "content"),
            "{name}"
        );
        assert_eq!(got.header("X-Own"), Some("1"));
        assert_eq!(origin.requests(), before + 1, "{name}");
        assert_eq!(status(&ask(&server, &request, "")), "HIT", "{name}");
    }
    server.wait_for_log("error.log", "is damaged and is removed");
}

#[test]
fn a_file_that_was_removed_is_fetched_again() {
    let origin = Counting::start(&response(FRESH, "content"));
    let server = server(&origin, DISK, "");
    assert_eq!(status(&ask(&server, "GET /a", "")), "MISS");
    for path in files(&server.folder().join("cache")) {
        fs::remove_file(path).unwrap();
    }
    for expected in ["MISS", "HIT"] {
        assert_eq!(status(&ask(&server, "GET /a", "")), expected);
    }
}

#[test]
fn a_write_error_costs_no_response() {
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let body = "x".repeat(3_000_000);
    let origin = Counting::start(&response(FRESH, &body));
    // No file may grow beyond a megabyte: more fails, as on a full disk.
    let script = folder.path().join("limited");
    let binary = env!("CARGO_BIN_EXE_turnpike");
    fs::write(
        &script,
        format!("#!/bin/sh\nulimit -f 2000\nexec {binary} \"$@\"\n"),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let server = Server::builder(&script)
        .configuration(&configuration(&origin, &folder, ""))
        .start();
    for _ in 0..2 {
        let got = ask(&server, "GET /big", "");
        assert_eq!((status(&got), got.body.len()), ("MISS", body.len()));
    }
    let begin = format!(
        "cache \"Z\" could not be written to: write() \"{}/",
        folder.name()
    );
    server.wait_for_log("error.log", &begin);
    server.wait_for_log("error.log", "failed (27: File too large)");
    wait_until("the files to go", || {
        files(&folder.path().join("cache")).is_empty()
    });
    origin.answer_with(&response(FRESH, "small"));
    for expected in ["MISS", "HIT"] {
        assert_eq!(status(&ask(&server, "GET /small", "")), expected);
    }
}

#[test]
fn a_disk_that_is_full_costs_no_response() {
    // The test mounts its own disk in its own namespace. If that is not permitted, the test above
    // replaces this one.
    if needs_root("a_disk_that_is_full_costs_no_response", "CAP_SYS_ADMIN") {
        return;
    }
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let body = "x".repeat(100_000);
    let origin = Counting::start(&response(FRESH, &body));
    let script = folder.path().join("with-a-disk");
    let (binary, disk) = (env!("CARGO_BIN_EXE_turnpike"), disk.display());
    let inner = format!("mount -t tmpfs -o size=1m,mode=777 none {disk} && exec {binary} \"$@\"");
    let text = format!("#!/bin/sh\nexec unshare -m sh -c '{inner}' sh \"$@\"\n");
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let configuration = configuration(&origin, &folder, "");
    let server = Server::builder(&script)
        .configuration(&configuration.replace("/cache levels", "/disk/cache levels"))
        .start();
    let ask_all = || {
        let mut hits = 0;
        for number in 0..20 {
            let got = ask(&server, &format!("GET /{number}"), "");
            assert!(got.status == 200 && got.body == body.as_bytes(), "{number}");
            hits += usize::from(status(&got) == "HIT");
        }
        hits
    };
    assert_eq!(ask_all(), 0);
    server.wait_for_log("error.log", "(28: No space left on device)");
    // Earlier stored responses stay valid.
    assert!((1..20).contains(&ask_all()));
}

#[test]
fn max_size_and_inactive_remove_files() {
    let folder = Folder::create().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let body = "x".repeat(10_000);
    let origin = Counting::start(&response(FRESH, &body));
    let server = start(&configuration(
        &origin,
        &folder,
        "max_size=100k inactive=1s",
    ));
    for number in 0..50 {
        ask(&server, &format!("GET /{number}"), "");
        let bytes: u64 = files(&folder.path().join("cache"))
            .iter()
            .filter_map(|path| fs::metadata(path).ok())
            .map(|metadata| metadata.len())
            .sum();
        assert!(bytes <= 100 * 1024, "{bytes}");
    }
    wait_until("what is inactive to go", || {
        files(&folder.path().join("cache")).is_empty()
    });
    assert_eq!(status(&ask(&server, "GET /49", "")), "MISS");
}

/// A zone whose files are unused after a second, and one without such haste.
fn two_zones(origin: &Counting, folder: &Folder, inactive: &str) -> String {
    let folder = folder.path().display();
    let port = origin.port();
    let passed = format!("proxy_pass http://127.0.0.1:{port}");
    format!(
        "error_log %FOLDER%/error.log notice;
        events {{ }}
        http {{
            access_log off;
            proxy_cache_path {folder}/kept keys_zone=K:1m use_temp_path=off inactive={inactive};
            proxy_cache_path {folder}/brief keys_zone=B:1m use_temp_path=off inactive=1s;
            server {{
                listen 127.0.0.1:%PORT%;
                location /kept {{ {passed}; proxy_cache K; add_header X-Inactive {inactive}; }}
                location /brief {{ {passed}; proxy_cache B; }}
                location /held {{ {passed}; }}
            }}
        }}"
    )
}

/// Passes the time after which a zone that cares for its files removes an unused one, twice.
fn pass_time(server: &Server, folder: &Folder) {
    for _ in 0..2 {
        ask(server, "GET /brief", "");
        wait_until("what is inactive to go", || {
            files(&folder.path().join("brief")).is_empty()
        });
    }
}

/// The number of files that the other zone has, after that time.
fn kept_after(server: &Server, folder: &Folder) -> usize {
    wait_until("the next plan", || {
        ask(server, "GET /kept", "").header("X-Inactive") == Some("600s")
    });
    pass_time(server, folder);
    files(&folder.path().join("kept")).len()
}

#[test]
fn the_zone_of_an_earlier_plan_or_process_removes_no_files() {
    let next: &[(&str, Signal)] = &[("plan", Signal::SIGHUP), ("process", Signal::SIGQUIT)];
    for (name, signal) in next {
        let folder = Folder::create().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let origin = Counting::start(&response(FRESH, "content"));
        let mut first = start(&two_zones(&origin, &folder, "1s"));
        ask(&first, "GET /kept", "");
        // A request that does not end keeps the plan and the process.
        let mut held = first.connect();
        held.send("POST /held HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n");
        let text = two_zones(&origin, &folder, "600s");
        first.write_configuration(&text);
        first.signal(*signal);
        let kept = match *signal {
            Signal::SIGQUIT => {
                first.wait_for_log("error.log", "gracefully shutting down");
                kept_after(&start(&text), &folder)
            }
            _ => kept_after(&first, &folder),
        };
        assert_eq!(kept, 1, "{name}");
        held.send("x");
        assert_eq!(held.response().status, 200, "{name}");
    }
}

/// A zone in files before an origin that gives these answers in order, over one connection.
fn scripted(folder: &Folder, answers: &[String], directives: &str) -> (Origin, Server) {
    let steps = answers
        .iter()
        .flat_map(|text| [Step::ReadHead, Step::send(text)]);
    let origin = Origin::start(vec![steps.collect()]);
    let (folder, port) = (folder.path().display(), origin.port());
    let text = format!(
        "events {{ }}
        http {{
            access_log off;
            proxy_http_version 1.1;
            proxy_cache_path {folder}/cache keys_zone=Z:1m use_temp_path=off;
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{
                    proxy_pass http://127.0.0.1:{port};
                    proxy_cache Z;
                    add_header X-Cache $upstream_cache_status always;
                    {directives}
                }}
            }}
        }}"
    );
    (origin, start(&text))
}

#[test]
fn a_stale_response_whose_file_is_gone_costs_no_answer() {
    type Expected = (u16, &'static str, &'static str);
    let stale = response("X-Accel-Expires: @1\r\nETag: \"a\"\r\n", "old");
    let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n".to_owned();
    let new = response(FRESH, "new");
    let failed = "HTTP/1.1 500 No\r\nContent-Length: 3\r\nX-Own: 1\r\n\r\nwhy".to_owned();
    let cases: &[(&str, Vec<String>, Expected)] = &[
        (
            "proxy_cache_revalidate on;",
            vec![stale.clone(), not_modified, new],
            (200, "EXPIRED", "new"),
        ),
        (
            "proxy_cache_use_stale http_500;",
            vec![stale, failed],
            (500, "EXPIRED", "why"),
        ),
    ];
    for (directives, answers, expected) in cases {
        let folder = Folder::create().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (origin, server) = scripted(&folder, answers, directives);
        ask(&server, "GET /a", "");
        let stored = files(&folder.path().join("cache"));
        assert_eq!(stored.len(), 1, "{directives}");
        fs::remove_file(&stored[0]).unwrap();
        let got = ask(&server, "GET /a", "");
        let text = got.text();
        assert_eq!((got.status, status(&got), text.as_str()), *expected);
        assert_eq!(got.header("X-Own").is_some(), expected.0 == 500);
        let asked = String::from_utf8(origin.received().concat()).unwrap();
        let conditional = usize::from(directives.contains("revalidate"));
        assert_eq!(asked.matches("\r\nIf-None-Match:").count(), conditional);
        assert_eq!(asked.matches("GET /a").count(), answers.len(), "{asked}");
    }
}
