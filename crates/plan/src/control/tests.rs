//! Tests of arguments and their errors.

use super::*;

fn arguments(text: &str) -> Arguments {
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => arguments,
        _ => panic!("not an object: {text}"),
    }
}

#[test]
fn arguments_are_read_or_refused_by_name() {
    let given = arguments(
        r#"{"a":"x","n":7,"s":"8","m":-1,"w":"x1","t":true,"on":"on","off":"off","z":null}"#,
    );
    assert_eq!(required_text(&given, "a"), Ok("x"));
    assert_eq!(text(&given, "z"), Ok(None));
    let message = |error: CommandError| (error.code(), error.to_string());
    assert_eq!(
        required_text(&given, "b").map_err(message),
        Err(("invalid", "\"b\" must be given".to_owned()))
    );
    assert_eq!(
        text(&given, "n").map_err(message),
        Err(("invalid", "\"n\" must be a text".to_owned()))
    );
    assert_eq!(number(&given, "n"), Ok(Some(7)));
    assert_eq!(number(&given, "s"), Ok(Some(8)));
    assert_eq!(number(&given, "none"), Ok(None));
    for wrong in ["m", "w", "t"] {
        assert!(number(&given, wrong).is_err(), "{wrong}");
    }
    let flags = [("t", true), ("on", true), ("off", false), ("none", false)];
    for (name, value) in flags {
        assert_eq!(flag(&given, name), Ok(value), "{name}");
    }
    assert!(flag(&given, "a").is_err());
}
