//! Groups of servers: what is refused in their configuration, and with which words.

#![allow(clippy::unwrap_used)]

mod support;

use support::{Folder, stderr, turnpike};

/// What stands in `http { }`, and nginx's complaint.
const REFUSED: &[(&str, &str)] = &[
    ("upstream u { }", "no servers are inside upstream"),
    (
        "upstream u { server 127.0.0.1; } upstream u { server 127.0.0.1; }",
        "duplicate upstream \"u\"",
    ),
    (
        "upstream u { server nowhere.invalid; }",
        "host not found in upstream \"nowhere.invalid\"",
    ),
    (
        "upstream u { server 127.0.0.1:0; }",
        "invalid port in upstream \"127.0.0.1:0\"",
    ),
    (
        "upstream u { server unix:; }",
        "no path in the unix domain socket in upstream \"unix:\"",
    ),
    (
        "upstream u { server a.b resolve; }",
        "no resolver defined to resolve names at run time in upstream \"u\"",
    ),
    (
        "upstream u { server a.b service=http; }",
        "service upstream \"a.b\" requires \"resolve\" parameter",
    ),
    (
        "upstream u { server a.b:80 service=http resolve; }",
        "service upstream \"a.b:80\" may not have port",
    ),
    (
        "upstream u { server 127.0.0.1 service=http resolve; }",
        "service upstream \"127.0.0.1\" requires domain name",
    ),
    ("resolver 127.0.0.1 valid=x;", "invalid parameter: valid=x"),
    (
        "server { resolver nowhere.invalid; }",
        "host not found in resolver \"nowhere.invalid\"",
    ),
    (
        "server { location / { resolver 127.0.0.1 ipv4=off ipv6=off; } }",
        "\"ipv4\" and \"ipv6\" cannot both be \"off\"",
    ),
    (
        "upstream u { server 127.0.0.1 weight=0; }",
        "invalid parameter \"weight=0\"",
    ),
    (
        "upstream u { server 127.0.0.1 color=red; }",
        "invalid parameter \"color=red\"",
    ),
    (
        "upstream u { server 127.0.0.1 backup; }",
        "no servers in upstream \"u\"",
    ),
    (
        "upstream u { ip_hash; server 127.0.0.1 backup; }",
        "balancing method does not support parameter \"backup\"",
    ),
    (
        "upstream u { hash $uri; server 127.0.0.1 slow_start=1s; }",
        "balancing method does not support parameter \"slow_start=1s\"",
    ),
    (
        "upstream u { hash $uri ring; server 127.0.0.1; }",
        "invalid parameter \"ring\"",
    ),
    (
        "upstream u { random three; server 127.0.0.1; }",
        "invalid parameter \"three\"",
    ),
    (
        "upstream u { keepalive many; server 127.0.0.1; }",
        "invalid value \"many\" in \"keepalive\" directive",
    ),
    ("upstream u { server 127.0.0.1 route=; }", "route is empty"),
    (
        "upstream u { server 127.0.0.1; sticky cookie a color; }",
        "unknown parameter \"color\"",
    ),
    (
        "upstream u { server 127.0.0.1; sticky cookie a samesite=some; }",
        "\"sticky\" directive invalid \"samesite\" parameter value",
    ),
    (
        "upstream u { server 127.0.0.1; sticky learn create=$a lookup=$a; }",
        "\"sticky\" directive \"zone\" parameter is not specified",
    ),
];

#[test]
fn mistakes_are_refused_in_nginx_s_words() {
    let folder = Folder::new();
    for (http, complaint) in REFUSED {
        folder.write("nginx.conf", &format!("events {{ }} http {{ {http} }}"));
        let output = turnpike(&folder.arguments(&["-t"]));
        let shown = stderr(&output);
        let expected = format!(
            "nginx: [emerg] {complaint} in {}/nginx.conf:1\n",
            folder.name()
        );
        assert!(shown.starts_with(&expected), "{http}: {shown}");
    }
}
