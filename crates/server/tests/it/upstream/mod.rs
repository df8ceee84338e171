//! Tests of groups of servers: refused configurations, checks, and commands.

mod changes;
mod codecs;
mod limits;
mod sticky;

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc::{Receiver, channel};

use crate::support::{stderr, turnpike};
use turnpike_testkit::ports::RefusedPort;
use turnpike_testkit::{DEADLINE, Folder, Origin, Server, Step, needs_root, wait_for};

/// The content of `http { }`, and nginx's message.
const REFUSED: &[(&str, &str)] = &[
    ("upstream u { }", "no servers are inside upstream"),
    (
        "upstream u { zone u 64k; }",
        "no servers are inside upstream",
    ),
    (
        "upstream u { state u.state; server 127.0.0.1; }",
        "\"server\" directive is incompatible with \"state\"",
    ),
    (
        "upstream u { server 127.0.0.1; } upstream u { server 127.0.0.1; }",
        "duplicate upstream \"u\"",
    ),
    (
        "upstream u { server 127.0.0.1; } upstream U { server 127.0.0.1; }",
        "duplicate upstream \"U\"",
    ),
    (
        "upstream Up { server 127.0.0.1; } server { location / { proxy_pass http://uP:1; } }",
        "upstream \"uP\" may not have port 1",
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
    ("resolver conf=;", "invalid parameter: conf="),
    ("resolver ipv6=off;", "no name servers defined"),
    (
        "resolver conf; upstream u { resolver off; server a.b resolve; }",
        "no resolver defined to resolve names at run time in upstream \"u\"",
    ),
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
        "upstream u { server 127.0.0.1; queue 0; }",
        "invalid value \"0\" in \"queue\" directive",
    ),
    (
        "upstream u { server 127.0.0.1; queue 1 timeout=0; }",
        "invalid value \"1 timeout=0\" in \"queue\" directive",
    ),
    (
        "upstream u { server 127.0.0.1; queue 1 time=1s; }",
        "invalid value \"1 time=1s\" in \"queue\" directive",
    ),
    (
        "upstream u { server 127.0.0.1; retry_budget 20; }",
        "invalid value \"20\" in \"retry_budget\" directive",
    ),
    (
        "upstream u { server 127.0.0.1; retry_budget 101%; }",
        "invalid value \"101%\" in \"retry_budget\" directive",
    ),
    (
        "upstream u { server 127.0.0.1; retry_budget 20% min=x; }",
        "invalid value \"20% min=x\" in \"retry_budget\" directive",
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
        "upstream u { zone z 1; server 127.0.0.1; }",
        "zone \"z\" is too small",
    ),
    (
        "upstream u { zone z 1x; server 127.0.0.1; }",
        "invalid zone size \"1x\"",
    ),
    (
        "upstream u { keepalive many; server 127.0.0.1; }",
        "invalid value \"many\" in \"keepalive\" directive",
    ),
    ("upstream u { server 127.0.0.1 route=; }", "route is empty"),
    (
        "server { location / { health_check; } }",
        "\"health_check\" directive requires \"proxy_pass\"",
    ),
    (
        "server { location / { proxy_pass http://127.0.0.1; health_check match=m; } }",
        "unknown match \"m\"",
    ),
    (
        "server { location / { proxy_pass http://127.0.0.1; health_check type=grpc; } }",
        "invalid parameter \"type=grpc\"",
    ),
    (
        "server { location / { proxy_pass http://127.0.0.1; proxy_store on; proxy_cache z; } }
         proxy_cache_path z keys_zone=z:1m memory;",
        "\"proxy_store\" directive is incompatible with \"proxy_cache\"",
    ),
    ("match m { status 1; }", "invalid status \"1\""),
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
fn mistakes_are_refused_with_nginxs_messages() {
    let folder = Folder::create().unwrap();
    for (http, complaint) in REFUSED {
        folder
            .write("nginx.conf", format!("events {{ }} http {{ {http} }}"))
            .unwrap();
        let output = turnpike(&folder.arguments(&["-t"]));
        let shown = stderr(&output);
        let sentence = format!("turnpike: [emerg] {complaint}");
        assert!(shown.starts_with(&sentence), "{http}: {shown}");
        let place = format!(" in {}/nginx.conf:1", folder.name());
        let first = shown.lines().next().unwrap();
        assert!(first.ends_with(&place), "{http}: {shown}");
    }
}

fn answers(response: &str) -> Origin {
    Origin::start(vec![vec![Step::ReadHead, Step::send(response)]])
}

/// A server in front of two origins, with this text in its location.
fn in_front_of(origins: [&Origin; 2], location: &str) -> Server {
    let [one, two] = origins.map(Origin::port);
    let configuration = format!(
        "error_log %FOLDER%/error.log notice;
        events {{ }}
        http {{
            upstream u {{ server 127.0.0.1:{one}; server 127.0.0.1:{two}; keepalive 0; }}
            match good {{ status 200; body ~ fine; }}
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ proxy_pass http://u; {location} }}
            }}
        }}"
    );
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start()
}

const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";
const POOR: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npoor";

#[test]
fn a_server_that_fails_its_check_takes_no_requests() {
    let origins = [answers(FINE), answers(POOR)];
    let [fine, poor] = &origins;
    let check = "health_check interval=10ms jitter=5ms uri=/health match=good;";
    let server = in_front_of([fine, poor], check);
    let line = format!(
        "peer is unhealthy while checking body, health check \"good\" of peer 127.0.0.1:{} in \
         upstream \"u\"",
        poor.port()
    );
    server.wait_for_log("error.log", &line);
    for _ in 0..10 {
        assert_eq!(server.get("/").text(), "fine");
    }
    let asked = String::from_utf8(poor.received()[0].clone()).unwrap();
    assert!(
        asked.starts_with("GET /health HTTP/1.1\r\nHost: u\r\n"),
        "{asked}"
    );
}

#[test]
fn servers_are_commanded_while_the_server_runs() {
    let origins = [answers(FINE), answers(POOR)];
    let [fine, poor] = &origins;
    let server = in_front_of([fine, poor], "");
    let peer = format!("127.0.0.1:{}", poor.port());
    // The socket is in the folder of the pid file.
    let socket = server.folder().join("pid.control");
    assert!(wait_for(|| socket.exists().then_some(())).is_some());
    let command = |words: &[&str]| {
        let words = [words, &["--socket", socket.to_str().unwrap()]].concat();
        let output = turnpike(&words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let taken = || {
        let text = |_| server.get("/").text();
        let all: Vec<String> = (0..10).map(text).collect();
        all.iter().filter(|text| *text == "poor").count()
    };
    assert_eq!(taken(), 5);
    command(&["upstream", "drain", "u", &peer]);
    assert!(command(&["upstream", "list"]).contains("draining"));
    assert_eq!(taken(), 0);
    command(&["upstream", "up", "u", &peer]);
    assert_eq!(taken(), 5);
    command(&["upstream", "weight", "u", &peer, "4"]);
    assert_eq!(taken(), 8);
}

/// The state of each server that the table of `upstream list` shows.
fn states(server: &Server) -> Vec<String> {
    let socket = server.folder().join("pid.control");
    assert!(wait_for(|| socket.exists().then_some(())).is_some());
    let output = turnpike(&["upstream", "list", "--socket", socket.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    let mut rows = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<&str>>());
    assert_eq!(rows.next().unwrap()[3], "STATE", "{table}");
    rows.map(|row| row[3].to_owned()).collect()
}

#[test]
fn the_list_has_one_word_for_the_state_of_a_server() {
    let refusing = RefusedPort::new().unwrap();
    let silent = Origin::start(vec![vec![Step::ReadHead, Step::ReadToEnd]]);
    let configuration = format!(
        "error_log %FOLDER%/error.log notice;
        events {{ }}
        http {{
            upstream a {{
                server 127.0.0.1:{refusing} fail_timeout=1h;
                server 127.0.0.1:{refusing} down;
            }}
            upstream b {{ server 127.0.0.1:{silent} max_conns=1; }}
            server {{
                listen 127.0.0.1:%PORT%;
                location /a {{ proxy_pass http://a; }}
                location /b {{ proxy_pass http://b; }}
            }}
        }}",
        refusing = refusing.number(),
        silent = silent.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    assert_eq!(states(&server), ["up", "down", "up"]);
    assert_eq!(server.get("/a").status, 502);
    let mut client = server.connect();
    client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    let is_full = || (states(&server)[2] == "full").then_some(());
    assert!(wait_for(is_full).is_some(), "{:?}", states(&server));
    assert_eq!(states(&server), ["failed", "down", "full"]);
}

/// The name that a question to a name server has, and the answer: 127.0.0.1.
fn answer_to(question: &[u8]) -> (String, Vec<u8>) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while question[at] != 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..end]).into_owned());
        at = end;
    }
    let mut answer = question[..at + 5].to_vec();
    answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
    (labels.join("."), answer)
}

#[test]
fn a_name_that_was_looked_up_is_the_one_that_is_asked() {
    let names = UdpSocket::bind("127.0.0.1:0").unwrap();
    names.set_read_timeout(Some(DEADLINE)).unwrap();
    let origin = Origin::start(vec![vec![
        Step::ReadHead,
        Step::send("HTTP/1.1 204 No Content\r\n\r\n"),
    ]]);
    let configuration = format!(
        "worker_processes 1;
        events {{ }}
        http {{
            server {{
                listen 127.0.0.1:%PORT%;
                resolver {} ipv6=off;
                location / {{ proxy_pass http://n$connections_active.example:{}; }}
                location /counted {{ return 200 $connections_active; }}
            }}
        }}",
        names.local_addr().unwrap(),
        origin.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut packet = [0; 512];
    let (bytes, from) = names.recv_from(&mut packet).unwrap();
    let (name, answer) = answer_to(&packet[..bytes]);
    // The address has another value from now on.
    let mut others = Vec::new();
    let is_another = || {
        let mut other = server.connect();
        let counted = other.round("GET /counted HTTP/1.1\r\nHost: x\r\n\r\n");
        others.push(other);
        (name != format!("n{}.example", counted.text())).then_some(())
    };
    assert!(wait_for(is_another).is_some(), "{name}");
    names.send_to(&answer, from).unwrap();
    assert_eq!(client.response().status, 204);
    let received = String::from_utf8(origin.received().remove(0)).unwrap();
    let host = format!("\r\nHost: {name}:{}\r\n", origin.port());
    assert!(received.contains(&host), "{name}: {received}");
}

/// The name servers of `resolver conf` are those of the file when a name is looked up.
#[test]
fn name_servers_are_those_that_the_file_has_now() {
    if needs_root(
        "name_servers_are_those_that_the_file_has_now",
        "CAP_NET_BIND_SERVICE",
    ) {
        return;
    }
    let (one, asked_of_one) = own_name_server(1);
    let (two, asked_of_two) = own_name_server(2);
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(NO_CONTENT)]; 4]);
    let configuration = format!(
        "events {{ }}
        http {{
            resolver 127.0.0.1:9;
            server {{
                listen 127.0.0.1:%PORT%;
                resolver conf=%FOLDER%/resolv.conf ipv6=off;
                location / {{ proxy_pass http://$arg_name:{}; }}
                location /off/ {{ resolver off; proxy_pass http://$arg_name:{0}; }}
            }}
        }}",
        origin.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .file("resolv.conf", "")
        .start();
    for (address, asked, name) in [
        (one, &asked_of_one, "one.test"),
        (two, &asked_of_two, "two.test"),
        (one, &asked_of_one, "three.test"),
    ] {
        // As programs write it: in one step.
        server.write("new.conf", format!("search x\nnameserver {address}\n"));
        let folder = server.folder();
        std::fs::rename(folder.join("new.conf"), folder.join("resolv.conf")).unwrap();
        assert_eq!(server.get(&format!("/?name={name}")).status, 204);
        assert!(asked.try_iter().any(|asked| asked == name), "{name}");
    }
    assert_eq!(server.get("/off/?name=one.test").status, 502);
    server.wait_for_log("error.log", "no resolver defined to resolve one.test");
}

/// Lookups are counted under the name that `status_zone` gives, those of `http` and `stream` once.
#[test]
fn lookups_are_counted_by_zone() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let _asked = name_server(socket);
    let origin = Origin::start(vec![vec![Step::ReadHead, Step::send(NO_CONTENT)]; 2]);
    let configuration = format!(
        "events {{ }}
        stream {{
            resolver 127.0.0.1:{port} ipv6=off status_zone=names;
            server {{ listen 127.0.0.1:%PORT_STREAM%; return a; }}
        }}
        http {{
            resolver 127.0.0.1:{port} ipv6=off status_zone=names;
            server {{
                listen 127.0.0.1:%PORT%;
                location / {{ proxy_pass http://$arg_name:{}; }}
                location /metrics {{ metrics by=total; }}
                location /other {{ resolver 127.0.0.1:9 status_zone=other; return 204; }}
            }}
        }}",
        origin.port()
    );
    let server = Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&configuration)
        .start();
    for _ in 0..2 {
        assert_eq!(server.get("/?name=one.test").status, 204);
    }
    let page = server.get("/metrics").text();
    for line in [
        "turnpike_resolver_queries_total{zone=\"names\",type=\"name\"} 2",
        "turnpike_resolver_sent_total{zone=\"names\",type=\"aaaa\"} 0",
        "turnpike_resolver_responses_total{zone=\"names\",outcome=\"timedout\"} 0",
        "turnpike_resolver_queries_total{zone=\"other\",type=\"name\"} 0",
    ] {
        assert_eq!(
            page.lines().filter(|own| *own == line).count(),
            1,
            "{line}: {page}"
        );
    }
    // A packet may have been lost, and the question sent again.
    assert!(!page.contains("turnpike_resolver_sent_total{zone=\"names\",type=\"a\"} 0"));
}

/// A name server that knows all names, on the port that it has in every file, at an address that no
/// other test uses; and the names that it is asked for.
fn own_name_server(number: u8) -> (Ipv4Addr, Receiver<String>) {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, 53 + number, high, low);
    (
        address,
        name_server(UdpSocket::bind((address, 53)).unwrap()),
    )
}

/// The names that a name server at this socket, which knows all names, is asked for.
fn name_server(socket: UdpSocket) -> Receiver<String> {
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((bytes, from)) = socket.recv_from(&mut packet) {
            let (name, answer) = answer_to(&packet[..bytes]);
            if sender.send(name).is_err() || socket.send_to(&answer, from).is_err() {
                return;
            }
        }
    });
    asked
}

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
