//! Real kernel settings, in a network namespace of the test's own.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use turnpike_testkit::{Folder, needs_root};

/// What a shell prints in a new network namespace, with the program as `$TUNE`.
fn in_namespace(folder: &Folder, script: &str) -> String {
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", script])
        .env("TUNE", env!("CARGO_BIN_EXE_turnpike-tune"))
        .env("STATE", folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

const APPLY: &str = "
    somaxconn=/proc/sys/net/core/somaxconn
    echo 16 > $somaxconn
    $TUNE apply --seconds 0 --state $STATE --only somaxconn-low --yes > /dev/null
    echo applied $(cat $somaxconn)
    $TUNE status --state $STATE | grep somaxconn
    $TUNE revert --state $STATE > /dev/null
    echo reverted $(cat $somaxconn)
";

#[test]
fn settings_are_changed_and_put_back() {
    if needs_root("settings_are_changed_and_put_back", "CAP_SYS_ADMIN") {
        return;
    }
    let folder = Folder::create().unwrap();
    let expected = "applied 65535\n  \
                    /proc/sys/net/core/somaxconn: 16 -> 65535, in force\nreverted 16\n";
    assert_eq!(in_namespace(&folder, APPLY), expected);
}

const CHANGED: &str = "
    somaxconn=/proc/sys/net/core/somaxconn
    echo 16 > $somaxconn
    $TUNE apply --seconds 0 --state $STATE --only somaxconn-low --yes > /dev/null
    echo 999 > $somaxconn
    $TUNE revert --state $STATE | grep somaxconn
    echo now $(cat $somaxconn)
";

#[test]
fn what_somebody_else_has_set_since_stays() {
    if needs_root("what_somebody_else_has_set_since_stays", "CAP_SYS_ADMIN") {
        return;
    }
    let folder = Folder::create().unwrap();
    let expected = "/proc/sys/net/core/somaxconn: left: \
                    somebody else has changed it since, to 999\n\
                    now 999\n";
    assert_eq!(in_namespace(&folder, CHANGED), expected);
}

/// This machine's own kernel with bad settings, and good ones.
const CHECK: &str = "
    cd /proc/sys/net
    check() { $TUNE check --seconds 0 --json > $STATE/found; echo $?; }
    found() { grep -c \"\\\"id\\\": \\\"$1\\\"\" $STATE/found; }
    echo 65535 > core/somaxconn; echo 1 > ipv4/tcp_timestamps; echo 1 > ipv4/tcp_syncookies
    echo 0 > ipv4/tcp_abort_on_overflow; echo '1024 65535' > ipv4/ip_local_port_range
    check > /dev/null
    for id in $IDS; do found $id; done | sort | uniq -c | tr -s ' '
    echo 16 > core/somaxconn; echo 0 > ipv4/tcp_timestamps; echo 2 > ipv4/tcp_syncookies
    echo 1 > ipv4/tcp_abort_on_overflow; echo '32768 60999' > ipv4/ip_local_port_range
    status=$(check)
    [ $status -ge 3 ] && echo warned
    for id in $IDS; do found $id; done | sort | uniq -c | tr -s ' '
    grep -o 'net.core.somaxconn is 16' $STATE/found
";

#[test]
fn a_check_of_this_machine_finds_what_is_set_badly() {
    if needs_root(
        "a_check_of_this_machine_finds_what_is_set_badly",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let ids = "somaxconn-low timestamps-off syn-cookies-always abort-on-overflow ports-narrow";
    let script = format!("IDS='{ids}'; {CHECK}");
    let expected = " 5 0\nwarned\n 5 1\nnet.core.somaxconn is 16\n";
    assert_eq!(in_namespace(&Folder::create().unwrap(), &script), expected);
}

#[test]
fn the_page_of_the_documentation_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tune.md");
    let written = std::fs::read_to_string(path).unwrap();
    assert!(
        written == turnpike_tune::reference(),
        "run cargo xtask docs"
    );
}
