//! What pages and completions hold; that shells and roff read them is tested with the binary.

use turnpike_usage::{OptionUsage, Usage};

use super::{completions, roff, server_options, whole};
use crate::families;
use crate::usage_text::options_of;

/// What the other program may say of a tool.
fn tool() -> Usage {
    Usage {
        name: "turnpike load".to_owned(),
        summary: "Send load".to_owned(),
        options: vec![OptionUsage {
            long: Some("rate".to_owned()),
            value: Some("RATE".to_owned()),
            help: "Requests a second".to_owned(),
            ..OptionUsage::default()
        }],
        subcommands: Vec::new(),
    }
}

#[test]
fn options_are_read_from_the_help() {
    let names = |options: &[OptionUsage]| -> String {
        options.iter().filter_map(|option| option.short).collect()
    };
    assert_eq!(names(&server_options()), "?hvVtTqspecgl");
    let two = options_of("  -c FILE, -p FOLDER : which\n  --json : JSON,\n     as text\n");
    let shown: Vec<_> = two
        .iter()
        .map(|one| {
            (
                one.short,
                one.long.as_deref(),
                one.value.as_deref(),
                one.help.as_str(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (Some('c'), None, Some("FILE"), "which"),
            (Some('p'), None, Some("FOLDER"), "which"),
            (None, Some("json"), None, "JSON, as text"),
        ]
    );
}

#[test]
fn every_directive_has_a_place_in_its_page() {
    let page = roff::directives();
    for (_, row) in families::registry().rows() {
        assert!(
            page.contains(&format!("\n\\fB{}", row.name)),
            "{}",
            row.name
        );
    }
}

#[test]
fn texts_stand_below_their_directives_with_their_examples() {
    let page = roff::directives();
    let (_, part) = page.split_once("\n\\fBgzip on").expect("the directive");
    let (part, _) = part.split_once("\n.TP\n").expect("its end");
    for text in [
        "\nContext: http",
        "\n.IP\n.EX\n\\&http {\n\\&    ",
        "\n.EE\n",
    ] {
        assert!(part.contains(text), "{text}: {part}");
    }
    for markdown in ["```", "<!-- asks", "]("] {
        assert!(!page.contains(markdown), "{markdown}");
    }
}

#[test]
fn every_subcommand_is_completed_and_described() {
    let page = roff::server();
    let whole = whole(&[tool()]);
    let shells = [
        completions::bash(&whole),
        completions::zsh(&whole),
        completions::fish(&whole),
    ];
    for command in &whole.subcommands {
        assert!(page.contains(&format!("\\fB{}", command.name.replace('-', "\\-"))));
        for text in &shells {
            assert!(text.contains(&command.name), "{}: {text}", command.name);
        }
    }
    for text in &shells {
        assert!(text.contains("rate"), "{text}");
    }
}

#[test]
fn pages_are_plain_ascii() {
    let tool = roff::tool(&tool());
    let pages = [roff::server(), roff::directives(), roff::view(), tool];
    for (name, page) in ["server", "directives", "view", "tool"].iter().zip(pages) {
        assert!(page.is_ascii(), "{name}");
        let empty = |line: &str| line.is_empty();
        assert!(!page.lines().any(empty), "{name}");
    }
}
