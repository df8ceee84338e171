//! A comparison with an installed nginx of the server, location and map value of a request: both
//! load the same generated configurations and must choose the same.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::Path;

use turnpike_testkit::Server;

const NGINX: &str = "/usr/sbin/nginx";

/// The server blocks in a configuration.
const BLOCKS: usize = 100;

/// The configurations of each run of the tests, 300 blocks, and of a long run, 10,000 blocks. The
/// seed of each is its number.
const CONFIGURATIONS: u64 = 3;
const CONFIGURATIONS_LONG: u64 = 100;

/// The requests to each block, in one piece.
const REQUESTS: usize = 100;

/// Pseudorandom numbers from a seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn path(&mut self) -> String {
        const SEGMENTS: &[&str] = &[
            "a", "b", "ab", "A", "img", "a.php", "b.JPG", "x-1", "12", "aa",
        ];
        let mut path = String::new();
        for _ in 0..1 + self.below(3) {
            path.push('/');
            path.push_str(self.one_of(SEGMENTS));
        }
        match self.below(4) {
            0 => path.push('/'),
            1 => path.push_str(self.one_of(&["b", "1", ".php", "-"])),
            _ => {}
        }
        path
    }

    fn pattern(&mut self) -> String {
        const PATTERNS: &[&str] = &[
            "\\.php$",
            "^/a",
            "^/(a|b)/",
            "b+/?$",
            "/(?!a)b",
            "/(\\w+)/\\1",
            "[^/]*\\.jpg$",
            "^/.*/$",
            "-\\d",
            "a{2}",
            "(?i)IMG",
            "^/[[:alpha:]]+$",
            "\\A/ab?\\z",
            "(?>a+)b",
            "^/[^.]*\\.\\w+$",
            "(?<first>a|b)/(?<second>\\d+)",
            "^(?=.*img)(?!.*php)",
            "1|2|^/b",
            "/(?:a|ab)(?:/|$)",
            "(*NO_JIT)b.",
            "(?#note)12",
            "a++/b",
            "[]a]b",
            "[\\w-]+-1",
            "A(?-i)b",
            "\\bimg\\b",
        ];
        self.one_of(PATTERNS).to_owned()
    }

    fn host(&mut self) -> String {
        const LABELS: &[&str] = &["a", "b", "www", "x1", "example", "org", "com"];
        let labels = 1 + self.below(3);
        let labels: Vec<&str> = (0..labels).map(|_| self.one_of(LABELS)).collect();
        labels.join(".")
    }

    /// An argument of `server_name` or, with `hostnames`, a key of a map.
    fn host_name(&mut self) -> String {
        let host = self.host();
        match self.below(4) {
            0 => format!("*.{host}"),
            1 => format!("{host}.*"),
            2 => format!(".{host}"),
            _ => host,
        }
    }
}

/// Locations of one level; `inside` is the prefix of the surrounding one's name, or empty for a
/// pattern.
fn locations(
    random: &mut Random,
    out: &mut String,
    inside: Option<&str>,
    depth: usize,
    mark: &str,
) {
    let mut written = BTreeSet::new();
    for number in 0..1 + random.below(10) {
        let prefix = inside.map(|inside| format!("{inside}{}", random.path()));
        let (kind, text) = match (random.below(10), prefix) {
            (0..4, Some(prefix)) => ("", prefix),
            (4, Some(prefix)) => ("^~ ", prefix),
            (5 | 6, Some(prefix)) => ("= ", prefix),
            (0..8, _) => ("~ ", random.pattern()),
            (_, _) => ("~* ", random.pattern()),
        };
        let is_new = written.insert((kind == "= ", text.clone()));
        if !is_new && !kind.starts_with('~') {
            continue;
        }
        let mark = format!("{mark}.{number}");
        writeln!(
            out,
            "location {kind}\"{text}\" {{ return 200 \"{mark} $MAP $1\\n\";"
        )
        .unwrap();
        if depth > 0 && kind != "= " && random.below(4) == 0 {
            let inside = (!kind.starts_with('~')).then_some(text.as_str());
            locations(random, out, inside, depth - 1, &mark);
        }
        out.push_str("}\n");
    }
}

fn map(random: &mut Random, out: &mut String, name: &str) {
    let is_hostnames = random.below(2) == 0;
    let hostnames = if is_hostnames { "hostnames;" } else { "" };
    writeln!(out, "map $arg_k ${name} {{ {hostnames} default none;").unwrap();
    let mut written = BTreeSet::new();
    for number in 0..random.below(12) {
        let key = match (random.below(3), is_hostnames) {
            (0, _) => format!("\"~{}\"", random.pattern()),
            (1, true) => random.host(),
            (_, true) => format!("*.{}", random.host()),
            (_, false) => random.host(),
        };
        if key.starts_with("\"~") || written.insert(key.clone()) {
            writeln!(out, "{key} v{number};").unwrap();
        }
    }
    out.push_str("}\n");
}

fn configuration(random: &mut Random) -> String {
    let mut text = "worker_processes 1;
        events { }
        http {
            access_log off;
            error_log %FOLDER%/error.log crit;
            keepalive_requests 1000000;
            server_names_hash_max_size 8192;
            map_hash_max_size 8192;
            variables_hash_max_size 8192;\n"
        .to_owned();
    for block in 0..BLOCKS {
        let mut locations_text = String::new();
        locations(
            random,
            &mut locations_text,
            Some(""),
            2,
            &format!("{block}"),
        );
        let name = format!("m{block}");
        map(random, &mut text, &name);
        let mut names = format!("s{block}.test");
        for _ in 0..random.below(3) {
            write!(names, " {}", random.host_name()).unwrap();
        }
        if random.below(3) == 0 {
            let pattern =
                random.one_of(&["^a", "x\\d\\.", "(b|c)\\.org$", "^(?!s\\d).*com", "^[^.]+$"]);
            write!(names, " \"~{pattern}\"").unwrap();
        }
        writeln!(
            text,
            "server {{ listen 127.0.0.1:%PORT%; server_name {names};\n{}}}",
            locations_text.replace("$MAP", &format!("${name}"))
        )
        .unwrap();
    }
    text.push_str("}\n");
    text
}

/// Requests to a block, or to any one that has a name.
fn requests(random: &mut Random, block: usize) -> Vec<String> {
    let request = |_| {
        let host = match random.below(5) {
            0 => random.host(),
            _ => format!("s{block}.test"),
        };
        let key = match random.below(2) {
            0 => random.host(),
            _ => random.path(),
        };
        let path = random.path();
        format!("GET {path}?k={key} HTTP/1.1\r\nHost: {host}\r\n\r\n")
    };
    (0..REQUESTS).map(request).collect()
}

/// The status and the body of each answer.
fn answers(server: &Server, requests: &[String]) -> Vec<String> {
    let peer = server.connect();
    let mut stream = peer.stream();
    stream.write_all(requests.concat().as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut answer = |_| {
        let (mut status, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if status.is_empty() {
                status = line.split(' ').nth(1).unwrap().to_owned();
            } else if let Some(text) = line.strip_prefix("Content-Length: ") {
                length = text.trim().parse().unwrap();
            } else if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        match status.as_str() {
            "200" => String::from_utf8(body).unwrap(),
            // The page contains the server's name.
            _ => status,
        }
    };
    requests.iter().map(&mut answer).collect()
}

/// Compares the choices for these configurations; returns the number of answers and the locations
/// that were chosen.
fn compare(seeds: std::ops::Range<u64>) -> (usize, BTreeSet<(u64, Option<String>)>) {
    let (mut compared, mut chosen) = (0, BTreeSet::new());
    for seed in seeds {
        let mut random = Random::new(seed);
        let text = configuration(&mut random);
        let start = |program: &str| Server::builder(program).configuration(&text).start();
        let ours = start(env!("CARGO_BIN_EXE_turnpike"));
        let nginx = start(NGINX);
        for block in 0..BLOCKS {
            let requests = requests(&mut random, block);
            let (got, expected) = (answers(&ours, &requests), answers(&nginx, &requests));
            for ((request, got), expected) in requests.iter().zip(got).zip(expected) {
                assert_eq!(got, expected, "seed {seed}, block {block}: {request}");
                compared += 1;
                chosen.insert((seed, expected.split(' ').next().map(str::to_owned)));
            }
        }
    }
    (compared, chosen)
}

fn check(seeds: std::ops::Range<u64>) {
    if !Path::new(NGINX).exists() {
        println!("skipped: no {NGINX}");
        return;
    }
    let configurations = usize::try_from(seeds.end - seeds.start).unwrap();
    let (compared, chosen) = compare(seeds);
    assert_eq!(compared, configurations * BLOCKS * REQUESTS);
    let (found, least) = (chosen.len(), configurations * 170);
    assert!(found > least, "only {found} locations were chosen");
}

#[test]
fn both_servers_choose_the_same() {
    check(0..CONFIGURATIONS);
}

#[test]
#[ignore = "a million requests take minutes: a part of make test-long"]
fn both_servers_choose_the_same_in_a_long_run() {
    check(0..CONFIGURATIONS_LONG);
}
