//! Tests of look-ups by nginx's inheritance.

use super::{files, main_path, registry};
use crate::check::{Entry, Scope};
use crate::registry::Context;
use crate::view::View;

const TEXT: &str = "
    http {
        root /http; sendfile on; add_header a 1; add_header b 2;
        satisfy ANY; gzip_buffers 4 8k; send_timeout 1500ms; expires_age 2m;
        server {
            server_name one; server_name two; return 204;
            location /a {
                root /a; add_header c 3; internal;
                location /a/b { client_max_body_size 2g; }
            }
            location = /c { sendfile off; }
        }
        map $a $b { default 1; x \"y z\"; }
    }";

fn scope() -> Scope {
    registry()
        .load(&files(TEXT.as_bytes(), &[]), main_path(), None)
        .unwrap()
        .1
}

/// http, server, /a, /a/b, = /c
fn views(scope: &Scope) -> [View<'_>; 5] {
    let http = View::root(scope).children("http").next().unwrap();
    let server = http.children("server").next().unwrap();
    let locations: Vec<View<'_>> = server.children("location").collect();
    let inner = locations[0].children("location").next().unwrap();
    [http, server, locations[0], inner, locations[1]]
}

fn texts<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<&'a str> {
    entries.into_iter().map(|entry| entry.argument(0)).collect()
}

#[test]
fn missing_directives_are_inherited() {
    let scope = scope();
    let [http, server, a, b, c] = views(&scope);
    let roots = [http, server, a, b, c].map(|view| view.text("root"));
    assert_eq!(roots, ["/http", "/http", "/a", "/a", "/http"]);
    let flags = [http, server, a, b, c].map(|view| view.flag("sendfile"));
    assert_eq!(flags, [true, true, true, true, false]);
    assert_eq!(texts(server.nearest_all("add_header")), ["a", "b"]);
    assert_eq!(texts(b.nearest_all("add_header")), ["c"]);
    assert_eq!(texts(server.own_all("server_name")), ["one", "two"]);
    assert_eq!(server.own_all("root").count(), 0);
    assert!(server.own("root").is_none());
}

#[test]
fn directives_of_their_own_block_are_not_inherited() {
    let scope = scope();
    let [_, server, a, b, _] = views(&scope);
    assert!(a.nearest("internal").is_some());
    assert!(b.nearest("internal").is_none());
    assert!(server.nearest("return").is_some());
    assert!(a.nearest("return").is_none());
    // A location cannot have server_name, so the look-up gives the server's.
    assert_eq!(b.text("server_name"), "one");
}

#[test]
fn typed_look_ups_give_values_and_defaults() {
    let scope = scope();
    let [http, _, a, b, _] = views(&scope);
    let root = View::root(&scope);
    assert_eq!(b.offset("client_max_body_size"), 2 << 30);
    assert_eq!(a.offset("client_max_body_size"), 1 << 20);
    assert_eq!(a.size("client_body_buffer_size"), 16 << 10);
    assert_eq!(a.milliseconds("send_timeout"), 1500);
    assert_eq!(a.seconds("expires_age"), 120);
    assert_eq!(a.number("keepalive_requests"), 1000);
    assert_eq!(root.number("worker_connections"), 512);
    assert_eq!(a.choice("satisfy"), "any");
    assert_eq!(root.choice("satisfy"), "all");
    assert_eq!(a.buffers("gzip_buffers"), (4, 8192));
    assert_eq!(root.buffers("gzip_buffers"), (32, 4096));
    assert_eq!(root.text("worker_processes"), "1");
    assert_eq!(http.try_choice("next"), None);
    assert_eq!(http.try_text("server_name"), None);
    assert!(!root.flag("sendfile"));
}

#[test]
fn blocks_know_their_place() {
    let scope = scope();
    let [http, server, a, b, c] = views(&scope);
    assert_eq!(View::root(&scope).context(), Context::Main);
    assert_eq!(b.context(), Context::Location);
    assert_eq!(b.argument(0), "/a/b");
    assert_eq!(
        (c.arguments().len(), c.argument(1), c.argument(2)),
        (2, "/c", "")
    );
    assert_eq!(b.parent().unwrap().argument(0), "/a");
    assert!(
        b.enclosing(Context::Server)
            .unwrap()
            .own("return")
            .is_some()
    );
    assert!(http.enclosing(Context::Server).is_none());
    assert_eq!((server.span().line, server.end().line), (5, 12));
    assert_eq!(
        a.error(a.end(), "no way").to_string(),
        "no way in /etc/main.conf:10"
    );
    let map = http.children("map").next().unwrap();
    assert_eq!(map.context(), Context::Entries);
    let lines: Vec<(&str, &str)> = map
        .data()
        .iter()
        .map(|line| (line.name.text.as_str(), line.arguments[0].text.as_str()))
        .collect();
    assert_eq!(lines, [("default", "1"), ("x", "y z")]);
    let names: Vec<&str> = server
        .entries()
        .iter()
        .map(|entry| entry.row.name)
        .collect();
    assert_eq!(
        names,
        [
            "server_name",
            "server_name",
            "return",
            "location",
            "location"
        ]
    );
    assert!(http.child(http.own("root").unwrap()).is_none());
}
