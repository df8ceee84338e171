//! Tests of accepted and refused options.
#![allow(clippy::unwrap_used)]

use super::Options;

#[test]
fn options() {
    let parse = |line: &str| {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments, &["--seconds", "--only"], &["--quick"])
    };
    let options = parse("--seconds 3 --quick --seconds 4").unwrap();
    assert!(options.has("--quick") && !options.has("--only"));
    assert_eq!(options.number("--seconds", 9), Ok(4));
    assert_eq!(options.number("--only", 9), Ok(9));
    assert!(parse("--only x").unwrap().number("--only", 9).is_err());
    assert!(parse("--seconds").is_err() && parse("--other").is_err());
}
