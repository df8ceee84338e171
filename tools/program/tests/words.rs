//! What the program says of its tools. That `turnpike` starts them is tested with the server.

use std::process::{Command, Output};

fn tools(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_turnpike-tools"))
        .args(words)
        .output()
        .expect("the program starts")
}

#[test]
fn each_tool_has_a_help_and_a_usage() {
    let usages = tools(&["usage"]).stdout;
    let usages: Vec<turnpike_usage::Usage> = serde_json::from_slice(&usages).expect("JSON");
    let names: Vec<&str> = usages.iter().map(|usage| usage.name.as_str()).collect();
    assert_eq!(names, ["turnpike load", "turnpike lab", "turnpike tune"]);
    for usage in usages {
        assert!(!usage.options.is_empty() || !usage.subcommands.is_empty());
        let (_, tool) = usage
            .name
            .split_once(' ')
            .expect("the program and the tool");
        let help = tools(&[tool, "--help"]);
        assert!(help.status.success(), "{tool}");
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        assert!(help.contains(&usage.name), "{help}");
    }
}

#[test]
fn a_word_that_is_no_tool_is_refused() {
    for words in [&[][..], &["serve"], &["--help"]] {
        let output = tools(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("turnpike load"), "{text}");
    }
}
