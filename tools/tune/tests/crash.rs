//! Deaths and restarts: `kill -9` in the middle of an apply and of a climb, and a restart of the
//! machine. Each test has network, mounts, `/run` and `/etc` of its own, so that nothing here
//! reaches the machine, and tests can run side by side.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use turnpike_testkit::{Folder, needs_root};

/// What every script begins with. `await` gives up after so many tries that only a hang needs them.
const BEGIN: &str = r#"
    set -u
    await() {
        tries=0
        until "$@"; do
            tries=$((tries + 1))
            if [ $tries -gt 1200 ]; then echo "gave up: $*"; exit 1; fi
            sleep 0.05
        done
    }
    settings() { find /proc/sys/net -type f -perm -400 | sort | xargs grep -H '' 2> /dev/null; }
    files() { find /etc -type f | sort | xargs cksum; }
    somaxconn=/proc/sys/net/core/somaxconn
    mount -t tmpfs none /run
    ip link set lo up
"#;

/// For scripts that change files of the distribution.
const OWN_ETC: &str = "
    mkdir -p $STATE/etc/sysctl.d
    mount --bind $STATE/etc /etc
";

/// What a script prints in namespaces of its own, with the program as `$TUNE`.
fn script(folder: &Folder, text: &str) -> String {
    let output = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", &format!("{BEGIN}{text}")])
        .env("TUNE", env!("CARGO_BIN_EXE_turnpike-tune"))
        .env("CLIMBS", concat!(env!("CARGO_MANIFEST_DIR"), "/climbs"))
        .env("RECORD", RECORD)
        .env("STATE", folder.path())
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    printed
}

/// The same for a script that changes files of the distribution.
fn changing(folder: &Folder, text: &str) -> String {
    script(folder, &format!("{OWN_ETC}{text}"))
}

/// Everything that can be changed is changed, and put back to the byte.
const ALL: &str = "
    echo 16 > $somaxconn
    echo mine > /etc/sysctl.d/10-mine.conf
    settings > $STATE/settings; files > $STATE/files
    $TUNE apply --seconds 0 --state $STATE/journal --notes --keep --yes > $STATE/applied
    grep -q '^net.core.somaxconn = 65535: 16 -> 65535, done' $STATE/applied && echo applied
    settings | cmp -s - $STATE/settings || echo settings differ
    files | cmp -s - $STATE/files || echo files differ
    $TUNE revert --state $STATE/journal > /dev/null && echo reverted
    settings | diff $STATE/settings -
    files | diff $STATE/files -
";

#[test]
fn every_setting_and_file_is_put_back_to_the_byte() {
    if needs_root(
        "every_setting_and_file_is_put_back_to_the_byte",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let expected = "applied\nsettings differ\nfiles differ\nreverted\n";
    assert_eq!(changing(&Folder::create().unwrap(), ALL), expected);
}

/// A climb's own plan, made again from its record: what it sets is put back to the byte too.
const PLAN_OF_A_CLIMB: &str = "
    echo 16 > $somaxconn
    settings > $STATE/settings; files > $STATE/files
    $TUNE climb --replay $CLIMBS/two-cpus-busy.json --bundle $STATE/bundle > /dev/null
    plan=$STATE/bundle/plan.json
    $TUNE apply --seconds 0 --state $STATE/journal --plan $plan --keep --yes > /dev/null
    echo applied $(cat $somaxconn)
    settings | cmp -s - $STATE/settings || echo settings differ
    files | cmp -s - $STATE/files || echo files differ
    $TUNE revert --state $STATE/journal > /dev/null && echo reverted
    settings | diff $STATE/settings -
    files | diff $STATE/files -
";

#[test]
fn the_plan_of_a_climb_is_put_back_to_the_byte() {
    if needs_root(
        "the_plan_of_a_climb_is_put_back_to_the_byte",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let expected = "applied 4096\nsettings differ\nfiles differ\nreverted\n";
    assert_eq!(
        changing(&Folder::create().unwrap(), PLAN_OF_A_CLIMB),
        expected
    );
}

/// The climb with its grid that the bench keeps.
const RECORD: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../bench/results/2026-11-26-climb-2xamd-epyc-linux-6-18-44/turnpike/runs.json"
);

/// The plan of a climb that found SYN cookies dear: they stay on unless they are named.
const PLAN_WITH_A_CAUTION: &str = "
    cookies=/proc/sys/net/ipv4/tcp_syncookies
    echo 1 > $cookies
    $TUNE climb --replay $RECORD --bundle $STATE/bundle > /dev/null
    apply=\"apply --seconds 0 --state $STATE/journal --plan $STATE/bundle/plan.json --yes\"
    $TUNE $apply | grep -o 'tcp_syncookies = 0: left out'
    echo cookies $(cat $cookies)
    $TUNE $apply --also net.ipv4.tcp_syncookies | grep -o 'tcp_syncookies = 0: 1 -> 0, done'
    echo cookies $(cat $cookies)
    $TUNE revert --state $STATE/journal > /dev/null
    echo cookies $(cat $cookies)
";

#[test]
fn a_plan_switches_syn_cookies_off_only_by_name() {
    if needs_root(
        "a_plan_switches_syn_cookies_off_only_by_name",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let expected = "tcp_syncookies = 0: left out\ncookies 1\n\
                    tcp_syncookies = 0: 1 -> 0, done\ncookies 0\ncookies 1\n";
    let folder = Folder::create().unwrap();
    assert_eq!(changing(&folder, PLAN_WITH_A_CAUTION), expected);
}

/// The apply waits for ever to open a pipe in the place of its file, after two settings.
const KILLED_APPLY: &str = "
    echo 16 > $somaxconn
    settings > $STATE/settings
    mkfifo /etc/sysctl.d/99-turnpike-tune.conf.turnpike-tune-new
    apply='apply --seconds 0 --only somaxconn-low --yes'
    $TUNE $apply --state $STATE/journal --keep > /dev/null &
    is_at_the_pipe() { grep -q '\"kind\":\"disk\"' $STATE/journal/journal; }
    await is_at_the_pipe
    kill -9 $!
    wait $!
    echo killed with $(cat $somaxconn)
    $TUNE status --state $STATE/journal | grep -o 'It was interrupted'
";

/// The next apply first undoes what the dead one has left.
const NEXT_APPLY: &str = "
    $TUNE $apply --state $STATE/journal | head -4
    $TUNE revert --state $STATE/journal > /dev/null
    settings | diff $STATE/settings -
    find /etc -type f -o -type p
";

/// So does a revert.
const REVERT: &str = "
    $TUNE revert --state $STATE/journal > /dev/null
    settings | diff $STATE/settings -
    find /etc -type f -o -type p
";

#[test]
fn what_a_killed_apply_has_left_is_put_back() {
    if needs_root("what_a_killed_apply_has_left_is_put_back", "CAP_SYS_ADMIN") {
        return;
    }
    let killed = "killed with 65535\nIt was interrupted\n";
    let text = format!("{KILLED_APPLY}{REVERT}");
    assert_eq!(changing(&Folder::create().unwrap(), &text), killed);
    let text = format!("{KILLED_APPLY}{NEXT_APPLY}");
    let undone = "The last run was interrupted; its changes are undone first:\n\
                  /etc/sysctl.d/99-turnpike-tune.conf: put back\n\
                  /proc/sys/net/ipv4/tcp_max_syn_backlog: put back\n\
                  /proc/sys/net/core/somaxconn: put back\n";
    let expected = format!("{killed}{undone}");
    assert_eq!(changing(&Folder::create().unwrap(), &text), expected);
}

/// The first run of the machine: settings are changed and kept.
const BEFORE_RESTART: &str = "
    settings > $STATE/settings; files > $STATE/files
    $TUNE apply --seconds 0 --state $STATE/journal --only somaxconn-low --keep --yes > /dev/null
    echo applied $(cat $somaxconn)
";

/// The second run: `/run` and the network are new, the kernel has another number for its start,
/// and the distribution has read its files.
const AFTER_RESTART: &str = "
    echo 11111111-2222-3333-4444-555555555555 > $STATE/boot
    mount --bind $STATE/boot /proc/sys/kernel/random/boot_id
    settings | diff $STATE/settings - && echo defaults
    sed -n 's/net.core.somaxconn = //p' /etc/sysctl.d/99-turnpike-tune.conf > $somaxconn
    $TUNE status --state $STATE/journal | grep -o 'somaxconn:.*\\|The machine was restarted since'
    $TUNE revert --state $STATE/journal > /dev/null && echo reverted
    settings | diff $STATE/settings -
    files | diff $STATE/files -
";

#[test]
fn after_a_restart_of_the_machine_all_is_put_back() {
    if needs_root(
        "after_a_restart_of_the_machine_all_is_put_back",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let folder = Folder::create().unwrap();
    assert_eq!(changing(&folder, BEFORE_RESTART), "applied 65535\n");
    let after = changing(&folder, AFTER_RESTART);
    let lines: Vec<&str> = after.lines().collect();
    let [defaults, setting, restarted, reverted] = lines[..] else {
        panic!("{after}");
    };
    assert_eq!(
        (defaults, restarted, reverted),
        ("defaults", "The machine was restarted since", "reverted")
    );
    assert!(setting.ends_with(" -> 65535, in force"), "{setting}");
}

/// What a start of the machine finds of an apply that a crash has cut short: neither `/run` nor the
/// settings, but the journal and half of a file.
const RESTART_AFTER_A_CRASH: &str = "
    echo 11111111-2222-3333-4444-555555555555 > $STATE/boot
    mount --bind $STATE/boot /proc/sys/kernel/random/boot_id
    settings > $STATE/settings
    $TUNE status --state $STATE/journal > $STATE/status
    grep -o 'It was interrupted\\|The machine was restarted since' $STATE/status
    $TUNE apply --seconds 0 --only somaxconn-low --yes --state $STATE/journal > $STATE/applied
    grep -c ': put back$' $STATE/applied
    grep -o 'somaxconn: left: a restart of the machine has set it' $STATE/applied
    echo applied $(cat $somaxconn)
    $TUNE revert --state $STATE/journal > /dev/null && echo reverted
    settings | diff $STATE/settings -
    find /etc -type f -o -type p
";

#[test]
fn what_a_crash_of_the_machine_has_left_is_put_back_by_the_next_start() {
    if needs_root(
        "what_a_crash_of_the_machine_has_left_is_put_back_by_the_next_start",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let folder = Folder::create().unwrap();
    let killed = "killed with 65535\nIt was interrupted\n";
    assert_eq!(changing(&folder, KILLED_APPLY), killed);
    let expected = "It was interrupted\nThe machine was restarted since\n2\n\
                    somaxconn: left: a restart of the machine has set it\n\
                    applied 65535\nreverted\n";
    assert_eq!(changing(&folder, RESTART_AFTER_A_CRASH), expected);
}

/// A climb that serves.
const CLIMB: &str = "
    settings > $STATE/settings
    $TUNE climb --quick > /dev/null 2> $STATE/errors &
    climb=$!
    server=turnpike-lab-$climb-0-server
    serves() {
        kill -0 $climb || { cat $STATE/errors; exit 1; }
        [ $(ip netns pids $server 2> /dev/null | wc -l) -ge 2 ]
    }
    await serves
    processes=$(ip netns pids $server; ip netns pids turnpike-lab-$climb-1-driver)
    [ -d $STATE/turnpike-climb-$climb ] && echo serves
    is_clean() {
        for process in $processes; do [ ! -e /proc/$process ] || return 1; done
        [ -z \"$(ls /run/netns)\" ] && [ ! -e $STATE/turnpike-climb-$climb ]
    }
";

const KILLED_CLIMB: &str = "
    kill -9 $climb
    await is_clean && echo clean
    settings | diff $STATE/settings -
";

const KILLED_WITH_WATCHDOG: &str = "
    kill -9 $(pgrep -P $climb -f 'tune guard') $climb
    wait $climb
    ls /run/netns | grep -c turnpike-lab-$climb
    killed=$climb
    $TUNE climb --quick > /dev/null 2> $STATE/errors &
    climb=$!
    begins() { [ -e /run/netns/turnpike-lab-$climb-0-server ]; }
    await begins
    ls /run/netns | grep -c turnpike-lab-$killed
    kill -TERM $climb
    wait $climb
    echo ended with $?
    climb=$killed
    await is_clean && echo clean
    settings | diff $STATE/settings -
";

/// The servers are killed under the climb, which cannot go on without figures of what it had.
const KILLED_SERVERS: &str = "
    is_over() {
        kill -9 $(ip netns pids $server 2> /dev/null) 2> /dev/null
        ! grep -q '^State:.[^Z]' /proc/$climb/status
    }
    await is_over
    wait $climb
    echo ended with $?
    tail -n 1 $STATE/errors | grep -o 'everything is put back'
    await is_clean && echo clean
    settings | diff $STATE/settings -
";

/// Ctrl-C, as a terminal sends it.
const INTERRUPTED: &str = "
    kill -INT $climb
    wait $climb
    echo ended with $?
    tail -n 1 $STATE/errors
    await is_clean && echo clean
    settings | diff $STATE/settings -
";

#[test]
fn a_climb_that_cannot_go_on_puts_everything_back() {
    if needs_root(
        "a_climb_that_cannot_go_on_puts_everything_back",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let cases = [
        (KILLED_SERVERS, "everything is put back"),
        (
            INTERRUPTED,
            "turnpike tune: it was interrupted; everything is put back",
        ),
    ];
    for (text, said) in cases {
        let text = format!("{CLIMB}{text}");
        let printed = script(&Folder::create().unwrap(), &text);
        assert_eq!(printed, format!("serves\nended with 2\n{said}\nclean\n"));
    }
}

/// Power is lost: climb, watchdog and servers are gone at once.
const POWER_LOST: &str = "
    kill -9 $climb $(pgrep -P $climb) $processes
    wait $climb
    ls $STATE | grep -c turnpike-climb-
";

/// The next start has an empty `/run` and another network; the files of the dead climb are there.
const AFTER_POWER_LOST: &str = "
    $TUNE climb --quick > /dev/null 2> $STATE/errors &
    climb=$!
    begins() { [ -e /run/netns/turnpike-lab-$climb-0-server ]; }
    await begins
    kill -TERM $climb
    wait $climb
    echo ended with $?
    ls $STATE | grep -c turnpike-climb-
    ls /run/netns | wc -l
";

#[test]
fn the_climb_after_a_loss_of_power_removes_what_was_left() {
    if needs_root(
        "the_climb_after_a_loss_of_power_removes_what_was_left",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let folder = Folder::create().unwrap();
    let text = format!("{CLIMB}{POWER_LOST}");
    assert_eq!(script(&folder, &text), "serves\n1\n");
    assert_eq!(script(&folder, AFTER_POWER_LOST), "ended with 2\n0\n0\n");
}

#[test]
fn a_killed_climb_leaves_nothing() {
    if needs_root("a_killed_climb_leaves_nothing", "CAP_SYS_ADMIN") {
        return;
    }
    let text = format!("{CLIMB}{KILLED_CLIMB}");
    let printed = script(&Folder::create().unwrap(), &text);
    assert_eq!(printed, "serves\nclean\n");
}

#[test]
fn the_next_climb_removes_what_a_dead_watchdog_has_not() {
    if needs_root(
        "the_next_climb_removes_what_a_dead_watchdog_has_not",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let text = format!("{CLIMB}{KILLED_WITH_WATCHDOG}");
    let printed = script(&Folder::create().unwrap(), &text);
    assert_eq!(printed, "serves\n2\n0\nended with 2\nclean\n");
}
