//! A running server under an agent: what is changed without a reload, what by one, and what is
//! kept if a wish cannot be fulfilled.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use turnpike_agent::{Agent, ApplyError, Desired, Outcome, Places, status};
use turnpike_testkit::{Origin, Server, Step};

/// The server, which is built beside the tests' folder.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("turnpike");
    assert!(
        program.is_file(),
        "cargo build -p turnpike-server is needed first"
    );
    program
}

fn backend(name: &str) -> Origin {
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}",
        name.len()
    );
    Origin::start(vec![vec![Step::ReadHead, Step::send(answer)]])
}

/// A server with one group, and its agent.
struct Bed {
    server: Server,
    agent: Agent,
    configuration: String,
}

impl Bed {
    fn start() -> Bed {
        let server = Server::builder(program())
            .configuration(
                "control %FOLDER%/control;
                events { }
                http { server { listen 127.0.0.1:%PORT%; return 200 first; } }",
            )
            .start();
        let folder = server.folder().to_path_buf();
        let configuration = format!(
            "control {0}/control;
            events {{ }}
            http {{
                upstream group {{ zone group 64k; state {0}/state/group.conf; }}
                server {{ listen 127.0.0.1:{1}; location / {{ proxy_pass http://group; }} }}
            }}",
            folder.display(),
            server.port(),
        );
        let agent = Agent::new(Places {
            configuration: folder.join("turnpike.conf"),
            socket: folder.join("control"),
            state: folder.join("state"),
        });
        Bed {
            server,
            agent,
            configuration,
        }
    }

    fn wish(&self, servers: &[&Origin]) -> Desired {
        let servers = servers
            .iter()
            .map(|origin| format!("127.0.0.1:{} max_fails=0", origin.port()));
        Desired {
            configuration: self.configuration.clone(),
            groups: BTreeMap::from([("group".to_owned(), servers.collect())]),
        }
    }

    fn body(&self) -> String {
        let response = self.server.get("/");
        format!("{} {}", response.status, response.text())
    }

    fn reloads(&self) -> u64 {
        let status = status(&self.server.folder().join("control")).unwrap();
        status["reloads"].as_u64().unwrap()
    }
}

#[test]
fn servers_change_without_a_reload_and_the_rest_by_one() {
    let (one, two) = (backend("one"), backend("two"));
    let mut bed = Bed::start();
    let wish = bed.wish(&[&one]);
    let Ok(Outcome::Reloaded { .. }) = bed.agent.apply(&wish) else {
        panic!("a reload is needed first");
    };
    assert_eq!(bed.body(), "200 one");
    assert!(matches!(bed.agent.apply(&wish), Ok(Outcome::Unchanged)));
    let reloads = bed.reloads();
    let wish = bed.wish(&[&two]);
    let outcome = bed.agent.apply(&wish).unwrap();
    assert_eq!(outcome, Outcome::Servers(vec!["group".to_owned()]));
    assert_eq!(bed.body(), "200 two");
    let wish = bed.wish(&[]);
    bed.agent.apply(&wish).unwrap();
    assert!(bed.body().starts_with("503 "), "{}", bed.body());
    assert_eq!(bed.reloads(), reloads, "servers change without a reload");
    assert_eq!(bed.agent.generation(), 3);
}

#[test]
fn a_refused_wish_leaves_the_last_one_in_force() {
    let (one, two) = (backend("one"), backend("two"));
    let mut bed = Bed::start();
    let good = bed.wish(&[&one]);
    bed.agent.apply(&good).unwrap();
    let mut bad = bed.wish(&[&two]);
    bad.configuration.push_str("nonsense;");
    match bed.agent.apply(&bad) {
        Err(ApplyError::Refused(text)) => assert!(text.contains("\"nonsense\""), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(bed.body(), "200 one");
    assert_eq!(bed.agent.applied(), Some(&good));
    let file = std::fs::read_to_string(bed.server.folder().join("turnpike.conf")).unwrap();
    assert_eq!(file, good.configuration, "a restart finds what is in force");
    let mut odd = good.clone();
    odd.groups
        .insert("group".to_owned(), vec!["no server at all".to_owned()]);
    assert!(matches!(bed.agent.apply(&odd), Err(ApplyError::Group(..))));
    assert_eq!(bed.body(), "200 one");
}

#[test]
fn another_agent_sets_what_it_does_not_know() {
    let (one, two) = (backend("one"), backend("two"));
    let mut bed = Bed::start();
    let wish = bed.wish(&[&one]);
    bed.agent.apply(&wish).unwrap();
    let wish = bed.wish(&[&two]);
    let mut other = Agent::new(Places {
        configuration: bed.server.folder().join("turnpike.conf"),
        socket: bed.server.folder().join("control"),
        state: bed.server.folder().join("state"),
    });
    other.apply(&wish).unwrap();
    assert_eq!(bed.body(), "200 two");
}

#[test]
fn a_server_that_is_away_is_named() {
    let mut agent = Agent::new(Places {
        configuration: PathBuf::from("/nonexistent/nginx.conf"),
        socket: PathBuf::from("/nonexistent/control"),
        state: PathBuf::from("/nonexistent/state"),
    });
    let error = agent.apply(&Desired::default()).unwrap_err().to_string();
    let expected = "control socket /nonexistent/control: No such file or directory (os error 2)";
    assert_eq!(error, expected);
}
