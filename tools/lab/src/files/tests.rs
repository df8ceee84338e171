#![allow(clippy::unwrap_used)]

use super::*;

fn content(toml: &str) -> FileContent {
    #[derive(serde::Deserialize)]
    struct Table {
        file: FileContent,
    }
    toml::from_str::<Table>(toml).unwrap().file
}

#[test]
fn contents_are_what_the_study_describes() {
    let values = Values::from([("port".to_owned(), "80".to_owned())]);
    let cases = [
        ("file = 12", "turnpike tur"),
        (
            "file = { lines = 2, text = \"listen {port}; name s{line}; { }\" }",
            "listen 80; name s1; { }\nlisten 80; name s2; { }\n",
        ),
        ("file = { lines = 0, text = \"x\" }", ""),
    ];
    for (toml, expected) in cases {
        let bytes = bytes(&content(toml), &values).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{toml}");
    }
    let addresses = repeated(300, "10.0.{line_high}.{line_low}", &values).unwrap();
    assert!(addresses.starts_with("10.0.0.1\n") && addresses.ends_with("10.0.1.44\n"));
}

#[test]
fn a_line_with_an_unknown_value_is_an_error() {
    let content = content("file = { lines = 2, text = \"{nothing}\" }");
    let error = bytes(&content, &Values::new()).unwrap_err();
    assert_eq!(error.to_string(), "no value for {nothing}");
}

#[test]
fn words_have_the_length_and_are_the_same_each_time() {
    let text = words(10_000);
    assert_eq!((text.len(), words(10_000) == text), (10_000, true));
    let different: std::collections::BTreeSet<&str> = text.split_whitespace().collect();
    assert!((200..=VOCABULARY_WORDS).contains(&different.len()));
}
