//! `turnpike tune climb --live` on a server that runs, turnpike or nginx: what it refuses, and that
//! everything is put back when it is killed or asked to end. Each test has network and mounts of
//! its own.

use std::process::Command;

use crate::support::TURNPIKE;
use turnpike_testkit::{Folder, needs_root};

/// What every script begins with: a server that serves. `await` gives up after so many tries that
/// only a hang needs them.
const BEGIN: &str = r#"
    set -u
    PATH=$PATH:/usr/sbin:/sbin
    await() {
        tries=0
        until "$@"; do
            tries=$((tries + 1))
            if [ $tries -gt 1200 ]; then
                echo "gave up: $*"
                cat $STATE/errors $STATE/error.log
                exit 1
            fi
            sleep 0.05
        done
    }
    settings() { find /proc/sys/net -type f -perm -400 | sort | xargs grep -H '' 2> /dev/null; }
    files() { (cd $STATE && stat -c '%n %a %u' main.conf all/* on/*; cksum main.conf all/* on/*); }
    all() { settings; files; }
    ip link set lo up
    echo 16 > /proc/sys/net/core/somaxconn
    mkdir $STATE/www $STATE/all $STATE/on
    echo hello > $STATE/www/index.html
    cat > $STATE/main.conf <<END
        user root; worker_processes 1; pid $STATE/pid; error_log $STATE/error.log notice;
        events { accept_mutex on; worker_connections 256; }
        http { access_log $STATE/access.log; include $STATE/on/*; }
END
    echo "server { listen 127.0.0.1:8080 backlog=16; root $STATE/www; }" > $STATE/all/site
    chmod 640 $STATE/all/site
    ln -s ../all/site $STATE/on/site
    all > $STATE/before
    # Root runs a server's program only where nobody else can put another in its place.
    mount -t tmpfs -o mode=755 none /mnt
    SERVER=$(command -v $SERVER)
    cp $SERVER /mnt && SERVER=/mnt/${SERVER##*/}
    is_down() { ! kill -0 $server 2> /dev/null; }
    end() { kill -TERM $server 2> /dev/null; tries=0; await is_down; }
    $SERVER -c $STATE/main.conf || exit 1
    has_pid() { [ -s $STATE/pid ]; }
    await has_pid
    server=$(cat $STATE/pid)
    trap end EXIT
    # Few connections, so that none is dropped by the short queue and has to be waited for.
    climb="climb --live $STATE/main.conf --state $STATE/journal --worse-share 60%"
    climb="$climb --run-seconds 0.1 --connections 4"
"#;

/// What a script prints beside a server, `turnpike` or `nginx`.
fn beside(server: &str, text: &str) -> String {
    let folder = Folder::create().unwrap();
    let output = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", &format!("{BEGIN}{text}")])
        .env("SERVER", server)
        .env("TUNE", TURNPIKE)
        .env("STATE", folder.path())
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{server}: {printed}{errors}");
    printed
}

/// Each line is the end of a command; none of them changes anything.
const REFUSED: &str = r#"
    try() {
        $TUNE tune climb --state $STATE/journal --run-seconds 0.1 "$@" 2>&1 > /dev/null |
            sed "s,$STATE,.,g; s/process $server/process N/g"
    }
    try --live $STATE/nothing
    try --live $STATE/all/site
    sed "s,$STATE/www,/," $STATE/main.conf > $STATE/other.conf
    try --live $STATE/other.conf
    unshare --net $TUNE tune climb --state $STATE/journal --live $STATE/pid 2>&1 |
        grep -o 'is in another network namespace'
    try --live $STATE/pid --url http://127.0.0.1:1/
    sleep 100 & gone=$!; kill -9 $gone; wait $gone 2> /dev/null
    echo $gone > $STATE/other.pid
    try --live $STATE/other.pid | sed "s/$gone/N/"
    cp /bin/sleep /mnt; mkdir -m 777 /mnt/shared; cp /bin/sleep /mnt/shared
    setpriv --reuid 65534 --clear-groups /mnt/sleep 100 & stranger=$!
    /mnt/shared/sleep 100 & changeable=$!
    for process in $stranger $changeable; do
        runs() { readlink /proc/$process/exe | grep -q /sleep; }
        await runs
        echo $process > $STATE/other.pid
        try --live $STATE/other.pid | sed "s/$process/N/"
        kill $process
    done
    try --live $STATE/pid --worse-share 0 | head -1
    all | diff $STATE/before -
    echo 'no_such_directive;' >> $STATE/all/site
    try --live $STATE/main.conf | grep -o 'is refused before anything is changed: .*unknown dir'
    $TUNE tune status --state $STATE/journal
"#;

const REFUSALS: &str = "\
turnpike tune: ./nothing: No such file or directory (os error 2)
turnpike tune: ./all/site has no \"pid\" with an absolute path; give --live the server's pid file
turnpike tune: process N serves another configuration than ./other.conf: ./main.conf
is in another network namespace
Climbing on turnpike, live. Ctrl-C ends it and puts everything back.
turnpike tune: http://127.0.0.1:1/ does not answer; everything is put back
turnpike tune: no server runs: ./other.pid names process N, which is gone
turnpike tune: process N is not root's: root does not run the program of another user
turnpike tune: /mnt/shared/sleep is not run by root, since others than root can change /mnt/shared
error: invalid value '0' for '--worse-share <PERCENT>': above 0 and at most 100 percent
is refused before anything is changed: turnpike: [emerg] unknown dir
Nothing is changed.
";

#[test]
fn a_server_that_cannot_be_climbed_on_is_refused() {
    if needs_root(
        "a_server_that_cannot_be_climbed_on_is_refused",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    assert_eq!(beside(TURNPIKE, REFUSED), REFUSALS);
}

/// A climb whose step is in force.
const CHANGED: &str = r#"
    $TUNE tune $climb > $STATE/said 2> $STATE/errors &
    climber=$!
    is_changed() {
        kill -0 $climber || { cat $STATE/errors; exit 1; }
        ! cmp -s $STATE/main.conf $STATE/main.start || ! cmp -s $STATE/all/site $STATE/site.start
    }
    await is_changed
    queue() { ss -Hltn 'sport = :8080' | tr -s ' ' | cut -d ' ' -f 3; }
    is_put_back() { all | cmp -s - $STATE/before && [ "$(queue)" = 16 ]; }
    serves() { $TUNE load -n 1 -c 1 --quiet http://127.0.0.1:8080/ > /dev/null && echo serves; }
"#;

/// The watchdog puts back what a dead climb has left, and nginx has its one worker again.
const KILLED: &str = r#"
    kill -9 $climber
    await is_put_back
    has_one_worker() { [ $(pgrep -P $server -f 'worker process$' | wc -l) = 1 ]; }
    await has_one_worker
    serves
    $TUNE tune status --state $STATE/journal
"#;

/// The next climb does it where the watchdog is dead too; asked to end, it puts back its own.
const KILLED_WITH_WATCHDOG: &str = r#"
    kill -9 $(pgrep -P $climber -f 'tune guard') $climber
    wait $climber 2> /dev/null
    $TUNE tune status --state $STATE/journal | grep -o 'It was interrupted'
    $TUNE tune $climb > $STATE/again 2> $STATE/errors &
    climber=$!
    await grep -qs 'this load comes on top' $STATE/again
    grep -o 'The last run was interrupted\|the server was told to reload' $STATE/again
    await is_changed
    kill -INT $climber
    wait $climber
    echo ended with $?
    tail -n 1 $STATE/errors
    await is_put_back
    serves
    $TUNE tune status --state $STATE/journal
"#;

/// The files as they are before the climb.
const START: &str = "
    cp $STATE/main.conf $STATE/main.start; cp $STATE/all/site $STATE/site.start
";

#[test]
fn a_killed_climb_on_a_live_server_leaves_nothing() {
    if needs_root(
        "a_killed_climb_on_a_live_server_leaves_nothing",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let text = format!("{START}{CHANGED}{KILLED}");
    assert_eq!(beside("nginx", &text), "serves\nNothing is changed.\n");
}

#[test]
fn what_a_climb_on_a_live_server_has_left_the_next_one_puts_back() {
    if needs_root(
        "what_a_climb_on_a_live_server_has_left_the_next_one_puts_back",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let text = format!("{START}{CHANGED}{KILLED_WITH_WATCHDOG}");
    let expected = "It was interrupted\nThe last run was interrupted\n\
                    the server was told to reload\nended with 2\n\
                    turnpike tune: interrupted; everything is put back\nserves\n\
                    Nothing is changed.\n";
    assert_eq!(beside(TURNPIKE, &text), expected);
}

/// A climb that ends by its time, with what it has found, and is undone.
const WHOLE: &str = r#"
    $TUNE tune $climb --minutes 0.05 > $STATE/said 2> $STATE/errors || cat $STATE/errors
    grep -o 'It ended before all steps were tried\|were worse than the start' $STATE/said
    grep -o 'this load comes on top' $STATE/said
    kept() { grep -q 'The server runs with these changes' $STATE/said; }
    kept || { grep -q 'no step was kept' $STATE/said && all | diff $STATE/before -; }
    kept && { all | cmp -s - $STATE/before && echo nothing is changed; }
    $TUNE tune revert --state $STATE/journal > /dev/null
    all | diff $STATE/before -
    $TUNE tune status --state $STATE/journal
"#;

#[test]
fn a_climb_on_a_live_server_ends_with_what_it_has_and_is_undone() {
    if needs_root(
        "a_climb_on_a_live_server_ends_with_what_it_has_and_is_undone",
        "CAP_SYS_ADMIN",
    ) {
        return;
    }
    let expected = "this load comes on top\nIt ended before all steps were tried\n\
                    were worse than the start\nNothing is changed.\n";
    let mut printed: Vec<String> = beside(TURNPIKE, WHOLE).lines().map(String::from).collect();
    let mut expected: Vec<&str> = expected.lines().collect();
    printed.sort();
    expected.sort_unstable();
    assert_eq!(printed, expected);
}
