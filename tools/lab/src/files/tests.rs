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

#[test]
fn constant_files_are_links_and_others_are_written() {
    let folder = std::env::temp_dir().join(format!("turnpike-lab-files-{}", std::process::id()));
    let (constant, own) = (folder.join("constant"), folder.join("own"));
    let values = Values::from([("port".to_owned(), "80".to_owned())]);
    let bytes = content("file = 4");
    let lines = content("file = { lines = 1, text = \"{port}\" }");
    assert_eq!((bytes.is_constant(), lines.is_constant()), (true, false));
    write(&constant.join("html/a"), &bytes, &values).unwrap();
    place(&own, &constant, "html/a", &bytes, &values).unwrap();
    place(&own, &constant, "conf/b", &lines, &values).unwrap();
    assert_eq!(
        std::fs::read_link(own.join("html/a")).unwrap(),
        constant.join("html/a")
    );
    assert_eq!(std::fs::read(own.join("html/a")).unwrap(), b"turn");
    assert_eq!(std::fs::read(own.join("conf/b")).unwrap(), b"80\n");
    std::fs::remove_dir_all(&folder).unwrap();
}
