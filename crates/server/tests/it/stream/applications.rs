//! Tests of `stream` with real servers and their own clients: memcached and Redis over TCP, a DNS
//! server over UDP.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use turnpike_testkit::process::{self, find_program};
use turnpike_testkit::{Folder, Server, Signal, ports, wait_for};

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(60);

/// The queries of dig at a time.
const DIGS: usize = 4;

/// A server of others with a folder of its own; it ends when this is dropped.
struct Service {
    child: Child,
    folder: Folder,
}

impl Service {
    /// Starts a program; `arguments` get the path of its folder.
    fn start(program: &str, arguments: impl FnOnce(&str) -> Vec<String>) -> Service {
        let folder = Folder::create().unwrap();
        let arguments = arguments(folder.path().to_str().unwrap());
        let child = command(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Service { child, folder }
    }

    /// The unix socket of the application.
    fn socket(&self) -> String {
        format!("{}/socket", self.folder.path().display())
    }

    fn wait_for_socket(self) -> Service {
        let socket = self.socket();
        wait_for(|| UnixStream::connect(&socket).ok()).expect("it listens");
        self
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        process::signal(self.child.id(), Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

fn command(program: &str) -> Command {
    let found = find_program(program);
    Command::new(found.unwrap_or_else(|| {
        panic!("run `cargo xtask setup test`: {program} is not installed");
    }))
}

/// The output of a client's program that succeeds.
fn output(program: &str, arguments: &[&str], input: &str) -> String {
    let mut client = command(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = client.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = client.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

fn server(stream: &str) -> Server {
    Server::builder(env!("CARGO_BIN_EXE_turnpike"))
        .configuration(&format!(
            "error_log %FOLDER%/error.log info; events {{ }}
            stream {{
                log_format line '$protocol $status $bytes_received $bytes_sent $upstream_addr';
                access_log %FOLDER%/access.log line;
                {stream}
            }}"
        ))
        .start()
}

fn connect(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

fn round(client: &mut TcpStream, text: &str, expected: &str) {
    client.write_all(text.as_bytes()).unwrap();
    let mut answer = vec![0; expected.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), expected);
}

#[test]
fn memcached_is_used_through_a_group_of_servers() {
    let memcached = Service::start("memcached", |folder| {
        let socket = format!("{folder}/socket");
        let arguments = ["-s", &socket, "-a", "0777", "-U", "0", "-u", "root"];
        arguments.map(str::to_owned).to_vec()
    })
    .wait_for_socket();
    let server = server(&format!(
        "upstream values {{
            zone values 64k;
            server unix:/nonexistent/socket max_fails=1;
            server unix:{};
            least_conn;
        }}
        server {{
            listen 127.0.0.1:%PORT%;
            proxy_pass values;
            proxy_connect_timeout 5s;
        }}",
        memcached.socket()
    ));
    let mut client = connect(server.port());
    let large = "0123456789".repeat(80_000);
    let command = format!("set large 0 0 {}\r\n{large}\r\n", large.len());
    round(&mut client, &command, "STORED\r\n");
    let value = format!("VALUE large 0 {}\r\n{large}\r\nEND\r\n", large.len());
    round(&mut client, "get large\r\n", &value);
    client.write_all(b"quit\r\n").unwrap();
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    let received = command.len() + "get large\r\n".len() + "quit\r\n".len();
    let line = format!("TCP 200 {received} {} ", 8 + value.len());
    server.wait_for_log("access.log", &line);
    let log = server.log("error.log");
    assert!(
        log.contains("while connecting to upstream, client: 127.0.0.1"),
        "{log}"
    );
}

#[test]
fn redis_is_used_by_its_own_clients() {
    let redis = Service::start("redis-server", |folder| {
        let socket = format!("{folder}/socket");
        let all = format!("--port 0 --unixsocket {socket} --unixsocketperm 777 --appendonly no");
        let mut all: Vec<String> = all.split(' ').map(str::to_owned).collect();
        all.extend(["--save", "", "--dir", folder].map(str::to_owned));
        all
    })
    .wait_for_socket();
    let server = server(&format!(
        "server {{ listen 127.0.0.1:%PORT%; proxy_pass unix:{}; }}",
        redis.socket()
    ));
    let port = server.port().to_string();
    let ask = |arguments: &[&str], input: &str| {
        output("redis-cli", &[&["-p", &port], arguments].concat(), input)
    };
    assert_eq!(ask(&["set", "name", "value"], ""), "OK\n");
    assert_eq!(
        ask(&[], "get name\nincr count\nincr count\n"),
        "value\n1\n2\n"
    );
    // A value of more than any buffer, both ways, and as many commands as come at once.
    let large = "0123456789abcdef".repeat(250_000);
    assert_eq!(ask(&["-x", "set", "large"], &large), "OK\n");
    assert_eq!(ask(&["strlen", "large"], ""), "4000000\n");
    assert_eq!(ask(&["get", "large"], "").trim_end(), large);
    let mut commands = String::new();
    for number in 0..10_000 {
        write!(commands, "SET key:{number} {number}\r\n").unwrap();
    }
    let piped = ask(&["--pipe"], &commands);
    assert!(piped.contains("errors: 0, replies: 10000"), "{piped}");
    assert_eq!(ask(&["dbsize"], ""), "10003\n");
    // A subscriber, whose answers nobody asks for one by one.
    let mut subscriber = connect(server.port());
    let subscribed = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
    round(&mut subscriber, "SUBSCRIBE news\r\n", subscribed);
    assert_eq!(ask(&["publish", "news", "one"], ""), "1\n");
    let message = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\none\r\n";
    round(&mut subscriber, "", message);
    let load = [
        "-p",
        &port,
        "-n",
        "2000",
        "-c",
        "20",
        "-t",
        "set,get,lrange_600",
        "--csv",
    ];
    let report = output("redis-benchmark", &load, "");
    assert_eq!(report.lines().count(), 5, "{report}");
    drop(subscriber);
    server.wait_for_log(
        "access.log",
        &format!("TCP 200 16 {}", message.len() + subscribed.len()),
    );
}

/// dnsmasq with a few names, and its port.
fn dns_server() -> (Service, u16) {
    let start = || {
        let port = ports::reserve()?;
        let mut service = Service::start("dnsmasq", |_| {
            let long = "x".repeat(200);
            let all = format!(
                "--no-daemon --conf-file=/dev/null --port={port} --listen-address=127.0.0.1 \
                 --bind-interfaces --no-resolv --no-hosts --edns-packet-max=4096 \
                 --local=/turnpike.test/ --address=/www.turnpike.test/192.0.2.7 \
                 --address=/www.turnpike.test/2001:db8::7 \
                 --txt-record=long.turnpike.test,{long},{long},{long},{long}"
            );
            all.split_whitespace().map(str::to_owned).collect()
        });
        let answers = || {
            let is_over = service.child.try_wait().unwrap().is_some();
            let tried = TcpStream::connect(("127.0.0.1", port));
            (is_over || tried.is_ok()).then_some(!is_over)
        };
        // Another process may have taken the port.
        wait_for(answers)?.then_some((service, port))
    };
    wait_for(start).expect("dnsmasq starts")
}

#[test]
fn a_dns_server_answers_over_udp_and_tcp() {
    let (_service, dns) = dns_server();
    let refused = ports::RefusedPort::of_datagrams().unwrap();
    let refuses = refused.number();
    let server = server(&format!(
        "proxy_responses 1;
        upstream names {{ server 127.0.0.1:{refuses} backup; server 127.0.0.1:{dns}; }}
        server {{ listen 127.0.0.1:%PORT% udp reuseport; proxy_pass names; proxy_timeout 20s; }}
        server {{ listen 127.0.0.1:%PORT%; proxy_pass names; }}"
    ));
    let port = server.port().to_string();
    let dig = |more: &[&str]| {
        let own = ["@127.0.0.1", "-p", &port, "+short", "+tries=3"];
        output("dig", &[&own, more].concat(), "")
    };
    for transport in ["+notcp", "+tcp"] {
        for (question, expected) in [
            (&["www.turnpike.test", "A"][..], "192.0.2.7\n"),
            (&["www.turnpike.test", "AAAA"], "2001:db8::7\n"),
            (&["none.turnpike.test", "A"], ""),
        ] {
            let answer = dig(&[question, &[transport]].concat());
            assert_eq!(answer, expected, "{question:?} {transport}");
        }
        // 800 bytes: EDNS over UDP.
        let long = dig(&["long.turnpike.test", "TXT", transport]);
        assert_eq!(long.matches('x').count(), 800, "{long}");
    }
    // Without EDNS the answer is cut, and dig asks again over TCP by itself.
    let long = dig(&["long.turnpike.test", "TXT", "+noedns"]);
    assert_eq!(long.matches('x').count(), 800, "{long}");
    // Many flows at a time.
    let folder = Folder::create().unwrap();
    folder
        .write("names", "www.turnpike.test A\n".repeat(25))
        .unwrap();
    let names = folder.path().join("names").display().to_string();
    thread::scope(|scope| {
        let digs = [(); DIGS].map(|()| scope.spawn(|| dig(&["-f", &names])));
        for answers in digs.map(|dig| dig.join().unwrap()) {
            assert_eq!(answers, "192.0.2.7\n".repeat(25));
        }
    });
    let sessions = || server.log("access.log").matches("UDP 200 ").count();
    wait_for(|| (sessions() >= 25 * DIGS).then_some(())).expect("a session for each question");
    assert!(!server.log("access.log").contains(" 502 "));
}
