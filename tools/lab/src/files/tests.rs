#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

fn content(toml: &str) -> FileContent {
    #[derive(serde::Deserialize)]
    struct Table {
        file: FileContent,
    }
    toml::from_str::<Table>(toml).unwrap().file
}

/// What is written into a file.
fn bytes(content: &FileContent, values: &Values) -> Result<Vec<u8>, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("lab-files-{}-{count}", std::process::id());
    let path = std::env::temp_dir().join(name).join("a/file");
    let written = write(&path, content, values);
    let bytes = std::fs::read(&path);
    std::fs::remove_dir_all(path.ancestors().nth(2).unwrap()).unwrap();
    written.map(|()| bytes.unwrap())
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
        (
            "file = { command = [\"sh\", \"-c\", \"echo made > $0\", \"{file}\"] }",
            "made\n",
        ),
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
    assert!(error.ends_with("file: no value for {nothing}"), "{error}");
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
    let page = content("file = { lines = 2, text = \"<p>{line} {PLAIN}</p>\" }");
    let constants = [&bytes, &page, &lines].map(FileContent::is_constant);
    assert_eq!(constants, [true, true, false]);
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

#[test]
fn a_command_that_writes_no_file_is_an_error() {
    let failing = content("file = { command = [\"sh\", \"-c\", \"echo no key >&2; exit 1\"] }");
    let error = bytes(&failing, &Values::new()).unwrap_err();
    assert!(error.ends_with("\"sh\" wrote no file: no key"), "{error}");
    let missing = content("file = { command = [\"no-such-program\"] }");
    let error = bytes(&missing, &Values::new()).unwrap_err();
    assert!(
        error.ends_with("\"no-such-program\" is not installed"),
        "{error}"
    );
}
