//! Browsers and their ages, as nginx sees them.

#![allow(clippy::unwrap_used)]

use super::handler::{Browsers, KINDS, Rule};
use super::plan::{check_modern, version};

fn rule(name: &str, text: &str) -> Rule {
    Rule {
        kind: KINDS.iter().find(|kind| kind.name == name).unwrap(),
        version: version(text).unwrap(),
    }
}

#[test]
fn a_browser_is_as_old_as_its_version_says() {
    let browsers = Browsers {
        modern: vec![
            rule("msie", "5.5"),
            rule("gecko", "1.0.0"),
            rule("opera", "9.0"),
            rule("safari", "413"),
            rule("konqueror", "3.0"),
        ],
        ancient: vec![b"Lynx".as_slice().into()],
        unlisted_is_modern: true,
        netscape4_is_ancient: true,
        ..Browsers::default()
    };
    for (agent, modern) in [
        ("Mozilla/4.0 (compatible; MSIE 6.0; Windows)", true),
        ("Mozilla/4.0 (compatible; MSIE 5.5; Windows)", true),
        ("Mozilla/4.0 (compatible; MSIE 5.01; Windows)", false),
        ("Mozilla/5.0 (X11; rv:109.0) Gecko/20100101", true),
        ("Mozilla/5.0 (X11; rv:0.9) Gecko/20100101", false),
        ("Opera 9.10 (X11)", true),
        ("Opera 8.0 (X11)", false),
        (
            "Mozilla/5.0 (Macintosh) AppleWebKit/522 Safari/522.12",
            true,
        ),
        ("Mozilla/5.0 (compatible; Konqueror/3.5; Linux)", true),
        ("Mozilla/4.08 (X11; I; Linux)", false),
        ("Lynx/2.8.7", false),
        ("curl/8.0", true),
    ] {
        assert_eq!(
            browsers.is_modern(Some(agent.as_bytes())),
            modern,
            "{agent}"
        );
    }
    assert!(browsers.is_modern(None));
    assert!(!Browsers::default().is_modern(None));
}

#[test]
fn what_modern_browser_is_given_is_checked() {
    for (words, complaint) in [
        (&["unlisted"][..], ""),
        (&["msie", "5.5"], ""),
        (&["msie", "x"], "invalid browser version \"x\""),
        (&["lynx", "1"], "unknown browser name \"lynx\""),
        (&["lynx"], "unknown browser name \"lynx\""),
    ] {
        let found = check_modern("modern_browser", words)
            .err()
            .map(String::from);
        assert_eq!(found.unwrap_or_default(), complaint, "{words:?}");
    }
}
