#![allow(clippy::unwrap_used)]

use super::*;

const RIGHT: &str = r#"name = "t"
title = "t"
source = "s"
about = "a"

[placement]
server = "all"
driver = "all"

[drive]
program = "load"
arguments = []

[[configuration]]
name = "main"
text = """
listen {address}:{port} queue {queue};
threads {server_cpu_count} on {server_cpus};
"""

[[contender]]
name = "nginx"
program = "nginx"
configuration = "main"

[[factor]]
name = "backlog"
title = "backlog"
levels = [{ name = "short", set = { queue = "16" } }, { name = "long", set = { queue = "4096" } }]
"#;

fn load(text: &str) -> Result<Served, String> {
    Served::of(study::parse("t.toml", text).map_err(|error| error.to_string())?)
}

#[test]
fn levels_fill_the_configuration() {
    let served = load(RIGHT).unwrap();
    assert_eq!(
        served.factors().collect::<Vec<_>>(),
        [("backlog", vec!["short", "long"])]
    );
    let spot = Spot {
        folder: Path::new("/f"),
        constant: Path::new("/c"),
        address: "198.18.0.1",
        port: 80,
        server_cpus: &[1, 3],
        driver_cpus: &[0],
    };
    for (level, queue) in [("short", 16), ("long", 4096)] {
        let text = served.configuration(&spot, |_| level).unwrap();
        let expected = format!("listen 198.18.0.1:80 queue {queue};\nthreads 2 on 1,3;\n");
        assert_eq!(text, expected);
    }
    let error = served.configuration(&spot, |_| "other").unwrap_err();
    assert_eq!(error, "no value for {queue}");
}

#[test]
fn a_study_that_describes_no_single_server_is_refused() {
    let contender = "[[contender]]\nname = \"b\"\nprogram = \"nginx\"\nconfiguration = \"main\"\n";
    let cases = [
        (
            format!("{RIGHT}{contender}"),
            "the study needs one [[contender]], without an origin in t.toml:1",
        ),
        (
            RIGHT.replace("name = \"long\", set", "name = \"long\", sysctl"),
            "no value for {queue} in t.toml:17",
        ),
        (
            RIGHT.replace(
                "set = { queue = \"16\" }",
                "set = { queue = \"16\" }, sysctl = { a = \"1\" }",
            ),
            "the study needs levels that only set values in t.toml:27",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(load(&text).unwrap_err(), expected);
    }
}
