//! Tests of the harness with nginx, so that a fault of the harness is not taken for one of the
//! server.
#![allow(clippy::unwrap_used)]

use crate::{Server, Signal, StartError, check, clients, ports, process};

const CONFIGURATION: &str = "events {}
http {
    access_log %FOLDER%/access.log;
    server {
        listen 127.0.0.1:%PORT%;
        listen 127.0.0.1:%PORT_B%;
        root %FOLDER%/html;
    }
}
";

fn nginx() -> Server {
    let nginx = Server::builder("/usr/sbin/nginx").configuration(CONFIGURATION);
    nginx
        .file("html/a.txt", "hello")
        .file("html/b/c.txt", "again")
        .start()
}

#[test]
fn a_server_starts_answers_and_stops() {
    let server = nginx();
    assert!(ports::is_listening(server.port()) && ports::is_listening(server.port_named("B")));
    assert_ne!(server.port(), server.port_named("B"));
    check(
        &server,
        &[
            (
                "a file",
                "GET /a.txt HTTP/1.0\n\n",
                "HTTP/1.1 200 OK\n*\n\nhello\n(closed)",
            ),
            (
                "two in one packet",
                "GET /a.txt HTTP/1.1\nHost: a\n\nGET /b/c.txt HTTP/1.1\nHost: a\n\n",
                "HTTP/1.1 200 OK\n*\nContent-Length: 5\n*\n\nhelloHTTP/1.1 200 OK\n*\n\nagain",
            ),
            (
                "a bare head is refused",
                "GET / HTTP/1.1\n\n",
                "HTTP/1.1 400 *\n*\n(closed)",
            ),
        ],
    );
    assert_eq!(server.get("/a.txt").text(), "hello");
    assert!(
        server
            .exchange("GET /x HTTP/1.0\r\n\r\n")
            .starts_with(b"HTTP/1.1 404")
    );
    let serving = server.serving_pids();
    assert!(!serving.is_empty());
    let pid = server.pid();
    assert!(server.quit().success());
    assert!(!process::is_alive(pid) && !serving.iter().any(|pid| process::is_alive(*pid)));
}

#[test]
fn a_reload_may_bring_a_port() {
    let mut server = nginx();
    let more = CONFIGURATION.replace("root", "listen 127.0.0.1:%PORT_C%;\nroot");
    server.write_configuration(&more);
    server.signal(Signal::SIGHUP);
    server.wait_for_port("C");
}

#[test]
fn foreign_clients_are_run() {
    let server = nginx();
    let url = format!("http://127.0.0.1:{}/a.txt", server.port());
    assert_eq!(clients::curl(&[&url]), "hello");
    let load = clients::ab(&["-q", "-n", "50", "-c", "5", &url]);
    assert_eq!((load.requests, load.failed()), (50, 0));
    let load = clients::wrk(&["-d", "1", "-c", "5", "-t", "1", &url]);
    assert!(load.requests > 0 && load.failed() == 0, "{load}");
    server.wait_for_log("access.log", "GET /a.txt");
}

#[test]
fn a_refusal_carries_the_servers_output() {
    let refused = Server::builder("/usr/sbin/nginx")
        .configuration("nonsense;")
        .try_start();
    let Err(StartError::Ended(status, output)) = refused else {
        panic!("{refused:?}")
    };
    assert!(
        !status.success() && output.contains("unknown directive \"nonsense\""),
        "{output}"
    );
}

#[test]
fn a_dropped_server_has_ended() {
    let server = nginx();
    let (pid, serving, folder) = (
        server.pid(),
        server.serving_pids(),
        server.folder().to_owned(),
    );
    drop(server);
    let is_gone = |pid: u32| crate::wait_for(|| (!process::is_alive(pid)).then_some(())).is_some();
    assert!(is_gone(pid) && serving.into_iter().all(is_gone));
    assert!(!folder.exists());
}
