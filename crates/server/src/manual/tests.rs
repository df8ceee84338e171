//! What pages and completions hold; that shells and roff read them is tested with the binary.

use super::{PAGES, SHELLS, server_options, whole};
use crate::families;
use crate::usage_text::options_of;

#[test]
fn options_are_read_from_the_help() {
    let names = |options: &[turnpike_load::OptionUsage]| -> String {
        options.iter().filter_map(|option| option.short).collect()
    };
    assert_eq!(names(&server_options()), "?hvVtTqspecg");
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
    let (_, page) = PAGES[1];
    let page = page();
    for (_, row) in families::registry().rows() {
        assert!(
            page.contains(&format!("\n\\fB{}", row.name)),
            "{}",
            row.name
        );
    }
}

#[test]
fn every_subcommand_is_completed_and_described() {
    let (_, server) = PAGES[0];
    let page = server();
    for command in whole().subcommands {
        assert!(page.contains(&format!("\\fB{}", command.name.replace('-', "\\-"))));
        for (shell, text) in SHELLS {
            assert!(text().contains(&command.name), "{shell}: {}", command.name);
        }
    }
}

#[test]
fn pages_are_plain_ascii() {
    for (name, page) in PAGES {
        let page = page();
        assert!(page.is_ascii(), "{name}");
        let empty = |line: &str| line.is_empty();
        assert!(!page.lines().any(empty), "{name}");
    }
}
