//! Tests of the product name: the server's own, or nginx's if it is called so.

use std::process::Command;

use turnpike_testkit::Server;

const CONFIGURATION: &str = "
    error_log %FOLDER%/error.log notice;
    events { }
    http {
        access_log off;
        server {
            listen 127.0.0.1:%PORT%;
            location / { return 200 ok; }
            location /off { server_tokens off; return 403; }
            location /build { server_tokens build; return 200 ok; }
            location /number { return 200 $nginx_version; }
        }
    }";

/// Whether it uses its own name; directives of the main context; `Server` of `/`, `/off` and
/// `/build`.
const CASES: &[(bool, &str, [&str; 3])] = &[
    (
        true,
        "",
        [
            "turnpike/0.1.0",
            "turnpike",
            "turnpike/0.1.0 (nginx/1.31.4)",
        ],
    ),
    (
        true,
        "compatibility nginx;",
        ["nginx/1.31.4", "nginx", "nginx/1.31.4 (turnpike/0.1.0)"],
    ),
    (
        false,
        "",
        ["nginx/1.31.4", "nginx", "nginx/1.31.4 (turnpike/0.1.0)"],
    ),
    (
        false,
        "compatibility turnpike;",
        [
            "turnpike/0.1.0",
            "turnpike",
            "turnpike/0.1.0 (nginx/1.31.4)",
        ],
    ),
];

#[test]
fn server_fields_pages_and_the_log_carry_the_name() {
    for (own_name, main, [on, off, build]) in CASES {
        let builder = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&format!("{main} {CONFIGURATION}"));
        let server = match own_name {
            true => builder.own_name().start(),
            false => builder.start(),
        };
        for (path, name) in [("/", on), ("/off", off), ("/build", build)] {
            assert_eq!(
                server.get(path).header("Server"),
                Some(*name),
                "{main} {path}"
            );
        }
        let page = server.get("/off").text();
        assert!(
            page.contains(&format!("<hr><center>{off}</center>")),
            "{page}"
        );
        assert_eq!(server.get("/number").text(), "1.31.4");
        server.wait_for_log("error.log", &format!(": {build}\n"));
    }
}

#[test]
fn reports_of_the_lab_name_the_server_by_its_own_name() {
    let programs = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../studies/programs/programs.toml"
    ));
    let rows = programs
        .lines()
        .filter_map(|row| row.strip_prefix("version = [\"{turnpike}\""));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows, [", \"-v\"]"]);
    // The first line is the version in the report.
    let output = Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .arg("-v")
        .output()
        .expect("the binary runs");
    let shown = [output.stdout, output.stderr].concat();
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let expected = concat!("turnpike version: turnpike/", env!("CARGO_PKG_VERSION"));
    assert_eq!(shown.lines().next(), Some(expected), "{shown}");
}
