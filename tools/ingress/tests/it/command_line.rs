//! The program itself: `render`, `check`, and flags.

use std::process::{Command, Output};

use turnpike_ingress::{FlagUse, Options, flags};
use turnpike_testkit::Folder;

use crate::bed::{ingress, program, service};

fn run(folder: &Folder, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_turnpike-ingress"))
        .current_dir(folder.path())
        .args(arguments)
        .arg("--server")
        .arg(program())
        .args(["--temporary", &folder.path().display().to_string()])
        .output()
        .unwrap()
}

fn folder() -> Folder {
    let folder = Folder::create().unwrap();
    let text = service("default", "one", 9)
        + &ingress("good", "good.test", "", "Prefix / one")
        + &ingress("bad", "bad.test", "auth-secret: absent", "Prefix / one")
        + &format!(
            "---\nkind: ConfigMap\nmetadata: {{name: c, namespace: i}}\ndata: {{error-log-path: \
             {0}/errors.log, access-log-path: {0}/access.log, bind-address: 127.0.0.1}}\n",
            folder.path().display()
        );
    folder.write("manifests/all.yaml", text).unwrap();
    folder
}

const PORTS: [&str; 6] = [
    "--http-port",
    "20080",
    "--https-port=20443",
    "--status-port=20246",
    "--configmap",
    "i/c",
];

#[test]
fn render_prints_a_configuration_that_the_server_takes() {
    let folder = folder();
    let output = run(&folder, &[&["render", "manifests"][..], &PORTS].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("server_name \"good.test\""), "{text}");
    folder.write("nginx.conf", text.as_bytes()).unwrap();
    let test = Command::new(program())
        .args(["-t", "-e", "stderr", "-c"])
        .arg(folder.path().join("nginx.conf"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(test.status.success(), "{test:?}");
    let again = run(&folder, &[&["render", "manifests"][..], &PORTS].concat());
    assert_eq!(
        output.stdout, again.stdout,
        "the same manifests make the same text"
    );
}

#[test]
fn check_says_what_works() {
    let folder = folder();
    let output = run(&folder, &[&["check", "manifests"][..], &PORTS].concat());
    let expected = "Ingress default/bad: closed: auth-secret: there is no Secret default/absent; \
                    the answer is 503\n1 of 2 Ingresses work as they are; 0 left out, 1 closed, 0 \
                    notes\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(1));
}

/// Arguments, and the message about them.
const WRONG: &[(&[&str], &str)] = &[
    (&["render"], "a command and a folder are needed"),
    (&["render", "absent"], "absent: No such file"),
    (&["draw", "manifests"], "there is no command draw"),
    (
        &["render", "manifests", "--http-prot=1"],
        "there is no flag --http-prot, did you mean \"http-port\"?",
    ),
    (
        &["render", "manifests", "--http-port=x"],
        "--http-port: the value is not a port",
    ),
    (
        &["render", "manifests", "--configmap=x"],
        "--configmap: the value is not NAMESPACE/NAME",
    ),
    (
        &["render", "manifests", "--enable-ssl-chain-completion"],
        "--enable-ssl-chain-completion is refused: certificates are sent as they are",
    ),
];

#[test]
fn wrong_arguments_are_named() {
    let folder = folder();
    for (arguments, expected) in WRONG {
        let output = run(&folder, arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(expected), "{arguments:?}: {text}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn every_flag_is_taken_or_refused_by_its_name() {
    for flag in flags() {
        let mut notes = Vec::new();
        let taken = Options::default().take(&format!("--{}=1/1", flag.name), None, &mut notes);
        let text = taken.map_or_else(|error| error.to_string(), |_| notes.join(""));
        let is_named = text.contains(&format!("--{}", flag.name));
        match flag.used {
            FlagUse::Refused(_) | FlagUse::WithoutEffect(_) => assert!(is_named, "{text}"),
            FlagUse::Sets(_) | FlagUse::Switches(_) => {
                assert!(text.is_empty() || is_named, "{text}");
            }
        }
    }
    assert!(flags().count() >= 75, "{} flags", flags().count());
}
