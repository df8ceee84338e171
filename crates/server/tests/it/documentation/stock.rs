//! The settings that distributions install for nginx: they load and serve, in their places and in
//! a folder of an ordinary user.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use crate::support;
use crate::support::stock::{STOCKS, Stock};
use crate::support::{TURNPIKE, stderr, turnpike};
use turnpike_testkit::{Folder, needs_root, ports};

/// The steps in mount, network and process namespaces of their own: `/etc/nginx` is `$ETC`, and
/// `/var` and `/run` are empty but for what a package makes there. The users are `$USERS`.
const STEPS: &str = r#"
set -eu
ip link set lo up
mount --bind "$ETC" /etc/nginx
mount -t tmpfs none /usr/share/nginx
mount --bind "$USERS/passwd" /etc/passwd
mount --bind "$USERS/group" /etc/group
mount -t tmpfs none /run
mount -t tmpfs none /var
mkdir -p /var/log/nginx /var/lib/nginx /var/cache/nginx "$ROOT"
ln -s /run /var/run
printf 'a stock page' >"$ROOT/$PAGE"
server() { "$TURNPIKE" -p /usr/share/nginx -c /etc/nginx/nginx.conf "$@"; }
server -t
server
curl -sS -i --retry 9 --retry-connrefused http://127.0.0.1/
server -s quit
while test -e /run/nginx.pid; do sleep 0.02; done
test -s /var/log/nginx/access.log
"#;

/// The users and groups of this machine, and those of the distributions.
fn write_users(folder: &Folder) {
    for (name, line) in [
        (
            "passwd",
            "nginx:x:61234:61234::/var/cache/nginx:/usr/sbin/nologin\n",
        ),
        ("group", "nginx:x:61234:\n"),
    ] {
        let own = fs::read_to_string(Path::new("/etc").join(name)).unwrap();
        let others: Vec<&str> = own
            .lines()
            .filter(|line| !line.starts_with("nginx:"))
            .collect();
        folder.write(name, others.join("\n") + "\n" + line).unwrap();
    }
}

fn serve_in_its_place(stock: &Stock) -> Output {
    let folder = Folder::create().unwrap();
    write_users(&folder);
    let etc = folder.path().join("etc");
    for (path, text) in stock.files {
        let path = etc.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let types = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../conf/mime.types"
    ));
    fs::write(etc.join("mime.types"), types).unwrap();
    Command::new("unshare")
        .args([
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ])
        .args(["sh", "-c", STEPS])
        .env("TURNPIKE", TURNPIKE)
        .env("ETC", &etc)
        .env("USERS", folder.name())
        .env("ROOT", stock.root)
        .env("PAGE", stock.page)
        .output()
        .unwrap()
}

fn check(stock: &Stock, response: &str) {
    let begin = format!("HTTP/1.1 {} ", stock.status);
    assert!(response.starts_with(&begin), "{}: {response}", stock.name);
    let is_page = response.ends_with("a stock page");
    assert_eq!(is_page, stock.status == 200, "{}: {response}", stock.name);
}

#[test]
fn stock_files_serve_in_their_places() {
    if needs_root("stock_files_serve_in_their_places", "CAP_SYS_ADMIN") {
        return;
    }
    for stock in STOCKS {
        let output = serve_in_its_place(stock);
        let shown = stderr(&output);
        assert!(output.status.success(), "{}: {shown}", stock.name);
        assert!(
            shown.contains("nginx.conf test is successful"),
            "{}: {shown}",
            stock.name
        );
        check(stock, &String::from_utf8(output.stdout).unwrap());
    }
}

/// Starts a server with the stock files in a folder, and returns its answer to `GET /`.
fn serve(stock: &Stock) -> String {
    let folder = Folder::create().unwrap();
    let port = ports::reserve().unwrap();
    stock.relocate(&folder, port);
    let output = turnpike(&folder.arguments(&[]));
    assert!(
        output.status.success(),
        "{}: {}",
        stock.name,
        stderr(&output)
    );
    let response = TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok(response)
    });
    let output = turnpike(&folder.arguments(&["-s", "quit"]));
    assert!(output.status.success(), "{}", stderr(&output));
    support::wait_for("the end", || !folder.has("nginx.pid"));
    response.unwrap()
}

#[test]
fn stock_files_serve() {
    for stock in STOCKS {
        check(stock, &serve(stock));
    }
}

#[test]
fn stock_files_load_without_a_warning() {
    for stock in STOCKS {
        let folder = Folder::create().unwrap();
        stock.relocate(&folder, ports::reserve().unwrap());
        let file = format!("{}/nginx.conf", folder.name());
        let output = turnpike(&["check", "-p", folder.name(), &file]);
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}: {report}", stock.name);
        let tested = turnpike(&folder.arguments(&["-tq"]));
        let result = (tested.status.code(), stderr(&tested));
        assert_eq!(result, (Some(0), String::new()), "{}", stock.name);
    }
}
