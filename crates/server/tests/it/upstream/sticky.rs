//! Tests of `sticky learn`: sessions that servers begin, over lanes, a reload and a drain.

use turnpike_testkit::{Server, Signal, wait_for};

/// Two servers that begin the session that the client wishes, and say which of them has answered.
const CONFIGURATION: &str = "
    worker_processes 2;
    events { }
    http {
        keepalive_timeout 0;
        add_header X-Session $arg_new;
        server { listen 127.0.0.1:%PORT_1%; return 200 first; }
        server { listen 127.0.0.1:%PORT_2%; return 200 second; }
        upstream u {
            zone u 64k;
            server 127.0.0.1:%PORT_1% FIRST;
            server 127.0.0.1:%PORT_2% SECOND;
            sticky learn create=$upstream_http_x_session lookup=$cookie_session
                zone=sessions:64k header;
        }
        server {
            listen 127.0.0.1:%PORT%;
            location / { proxy_pass http://u; }
            location /generation { return 200 FIRST.SECOND; }
        }
    }";

fn configuration(first: &str, second: &str) -> String {
    let filled = CONFIGURATION.replace("FIRST", first);
    filled.replace("SECOND", second)
}

/// The server that answers a request of a session, or one that begins it.
fn asked(server: &Server, path: &str, session: &str) -> String {
    let mut client = server.connect();
    let cookie = match session {
        "" => String::new(),
        session => format!("Cookie: session={session}\r\n"),
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n{cookie}\r\n");
    client.round(request).text()
}

#[test]
fn learned_sessions_stay_with_their_server_over_a_reload_and_a_drain() {
    let mut server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration("weight=1", "weight=1"))
        .start();
    let sessions: Vec<(String, String)> = (0..8)
        .map(|number| {
            let session = format!("s{number}");
            let first = asked(&server, &format!("/?new={session}"), "");
            (session, first)
        })
        .collect();
    let has = |name: &str| sessions.iter().any(|(_, own)| own == name);
    assert!(has("first") && has("second"), "{sessions:?}");
    let stay = |server: &Server| {
        // More requests than there are lanes, each on a connection of its own.
        for _ in 0..4 {
            for (session, own) in &sessions {
                assert_eq!(asked(server, "/", session), *own, "{session}");
            }
        }
    };
    stay(&server);
    server.write_configuration(&configuration("drain", "weight=1"));
    server.signal(Signal::SIGHUP);
    let is_new = || (asked(&server, "/generation", "") == "drain.weight=1").then_some(());
    assert!(wait_for(is_new).is_some());
    stay(&server);
    for number in 0..8 {
        // Neither a new session nor one that is not known goes to a server that is drained.
        assert_eq!(asked(&server, &format!("/?new=t{number}"), ""), "second");
        assert_eq!(asked(&server, "/", &format!("unknown{number}")), "second");
    }
}
