use super::script;
use crate::pass::params::{self, parameter_name};

#[test]
fn fields_are_called_as_cgi_calls_them() {
    const CASES: &[(&str, &str)] = &[
        ("Host", "HTTP_HOST"),
        ("x-Forwarded-for", "HTTP_X_FORWARDED_FOR"),
        ("a_b", "HTTP_A_B"),
        ("", "HTTP_"),
    ];
    for (name, expected) in CASES {
        assert_eq!(parameter_name(name.as_bytes()), expected.as_bytes());
    }
}

#[test]
fn arguments_are_checked_as_nginx_does() {
    let complaint = |checked: Result<(), String>| checked.err().unwrap_or_default();
    assert_eq!(complaint(params::check("", &["A", "b"])), "");
    assert_eq!(
        complaint(params::check("", &["A", "b", "if_not_empty"])),
        ""
    );
    assert_eq!(
        complaint(params::check("", &["A", "b", "c"])),
        "invalid parameter \"c\""
    );
    assert_eq!(complaint(script::check("", &["^(.+\\.php)(/.*)$"])), "");
    assert_eq!(
        complaint(script::check("", &["^(.+\\.php)$"])),
        "pattern \"^(.+\\.php)$\" must have 2 captures"
    );
}
