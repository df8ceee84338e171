//! Tests of `debug_connection` and `error_log ... debug`: whose requests are logged in full, and
//! where.

use turnpike_testkit::Server;

fn server(events: &str, level: &str) -> Server {
    let configuration = format!(
        "error_log %FOLDER%/error.log;
        events {{ {events} }}
        http {{
            error_log %FOLDER%/one.log {level};
            error_log %FOLDER%/two.log alert;
            server {{
                listen 127.0.0.1:%PORT%;
                location /text {{ return 200 text; }}
                location /none {{ return 404; }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

/// Clients, the level of one of the logs, and which of the logs say how a request is handled.
const CASES: &[(&str, &str, [bool; 2])] = &[
    ("", "alert", [false, false]),
    ("", "debug", [true, false]),
    ("debug_connection 127.0.0.1;", "alert", [true, true]),
    ("debug_connection 127.0.0.0/8;", "crit", [true, true]),
    (
        "debug_connection ::1; debug_connection 127.0.0.1;",
        "alert",
        [true, true],
    ),
    ("debug_connection 10.0.0.0/8;", "alert", [false, false]),
    ("debug_connection unix:;", "alert", [false, false]),
];

#[test]
fn requests_of_named_clients_are_logged_in_full() {
    for (events, level, expected) in CASES {
        let server = server(events, level);
        assert_eq!(server.get("/text").text(), "text");
        assert_eq!(server.get("/none").status, 404);
        for (name, is_expected) in ["one.log", "two.log"].into_iter().zip(expected) {
            let log = server.log(name);
            for text in [
                "[debug]",
                "using location \"/text\" for \"/text\"",
                "answering with status 200",
                "ending with status 404",
            ] {
                assert_eq!(log.contains(text), *is_expected, "{events} {name}: {log}");
            }
        }
    }
}

#[test]
fn what_is_no_address_is_refused() {
    for text in ["localhost", "127.0.0.1/33", "unix:/path"] {
        let started = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
            .configuration(&format!("events {{ debug_connection {text}; }} http {{ }}"))
            .try_start();
        assert!(started.is_err(), "{text}");
    }
}
