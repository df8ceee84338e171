use super::script;
use crate::pass::params::{self, name_parameter};
use turnpike_conf::Complaint;

#[test]
fn fields_are_called_as_cgi_calls_them() {
    const CASES: &[(&str, &str)] = &[
        ("Host", "HTTP_HOST"),
        ("x-Forwarded-for", "HTTP_X_FORWARDED_FOR"),
        ("a_b", "HTTP_A_B"),
        ("", "HTTP_"),
    ];
    let mut parameter = b"an earlier one".to_vec();
    for (name, expected) in CASES {
        name_parameter(name.as_bytes(), &mut parameter);
        assert_eq!(parameter, expected.as_bytes());
    }
}

#[test]
fn arguments_are_checked_as_nginx_does() {
    let complaint =
        |checked: Result<(), Complaint>| checked.err().map_or_else(String::new, String::from);
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
