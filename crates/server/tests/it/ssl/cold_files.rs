//! Files over TLS that are not in memory: they are read by threads, so that no lane waits for a
//! disk, and arrive whole by HTTP/1.1 and HTTP/2.
//!
//! Whether a disk has to be waited for depends on the disk. The kernel's description of its own
//! types is always read by threads, since its file system cannot say what is in memory.

use std::fs::{self, File};
use std::process::Command;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use turnpike_testkit::Server;

use crate::support::tls::{big, keys, start};

const CONFIGURATION: &str = r#"
    server {
        %SECURE%
        http2 on;
        root %FOLDER%/html;
        sub_filter "no such text" "another";
        location /changed/ { alias %FOLDER%/html/; sub_filter_types *; }
        location /kernel/ { alias /sys/kernel/btf/; }
        location /kernel/changed/ { alias /sys/kernel/btf/; sub_filter_types *; }
        location /metrics { metrics by=total; }
    }"#;

/// A file that is always read by threads, where the kernel has it.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Has the kernel forget the content of a file.
fn forget(server: &Server, name: &str) {
    let file = File::open(server.folder().join(name)).unwrap();
    file.sync_all().unwrap();
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).unwrap();
}

fn get(server: &Server, path: &str, more: &[&str]) -> Vec<u8> {
    let url = format!("https://127.0.0.1:{}{path}", server.port());
    let mut command = Command::new("curl");
    command
        .args(["-sk", "--max-time", "60"])
        .args(more)
        .arg(url);
    command.output().unwrap().stdout
}

/// The number of reads by threads so far.
fn waits(server: &Server) -> u64 {
    let page = String::from_utf8(get(server, "/metrics", &[])).unwrap();
    let mut lines = page.lines();
    let line = lines.find(|line| line.starts_with("turnpike_file_waits_total"));
    let number = line.unwrap().split_whitespace().last().unwrap();
    number.parse().unwrap()
}

#[test]
fn files_that_the_kernel_has_forgotten_arrive_whole() {
    let keys = keys();
    let server = start(&keys, CONFIGURATION);
    let content = big();
    let cases: &[(&str, &str, &[&str], &[u8])] = &[
        ("big.bin", "/big.bin", &["--http1.1"], &content),
        ("big.bin", "/big.bin", &["--http2"], &content),
        ("big.bin", "/changed/big.bin", &["--http1.1"], &content),
        (
            "big.bin",
            "/big.bin",
            &["--http1.1", "-r", "70000-"],
            &content[70_000..],
        ),
        ("a.txt", "/a.txt", &["--http1.1"], b"hello"),
    ];
    for (name, path, more, expected) in cases {
        forget(&server, &format!("html/{name}"));
        let body = get(&server, path, more);
        assert!(body == *expected, "{path} {more:?}: {} bytes", body.len());
    }
}

#[test]
fn files_that_may_have_to_be_waited_for_are_read_by_threads() {
    let keys = keys();
    let server = start(&keys, CONFIGURATION);
    let content = fs::read(KERNEL_TYPES).unwrap_or_default();
    let cases: &[(&str, &[&str])] = &[
        ("/kernel/vmlinux", &["--http1.1"]),
        ("/kernel/vmlinux", &["--http2"]),
        ("/kernel/changed/vmlinux", &["--http1.1"]),
        ("/kernel/changed/vmlinux", &["--http2"]),
    ];
    // Not every kernel has the file; the other test covers disks then.
    let cases = if content.is_empty() { &[] } else { cases };
    for (path, more) in cases {
        let before = waits(&server);
        let body = get(&server, path, more);
        assert!(body == content, "{path} {more:?}: {} bytes", body.len());
        let reads = waits(&server) - before;
        println!("{path} {more:?}: {reads} reads of {} bytes", content.len());
        // Each read has 64 KiB at most.
        assert!(reads >= content.len() as u64 / 65_536, "{path} {more:?}");
    }
}
