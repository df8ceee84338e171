use super::handler::find;
use super::password::{Outcome, verify};

#[test]
fn verifies_every_scheme() {
    use Outcome::{Right, UnknownScheme, Wrong};
    let cases = [
        ("{PLAIN}password", "password", Right),
        ("{PLAIN}password", "passwor", Wrong),
        ("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "password", Right),
        ("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "123", Wrong),
        ("{SHA}_____Mm5Pz8GgiULbPgzG37mj9g=", "1", Wrong),
        ("{SHA}Zm9vCg==", "1", Wrong),
        ("{SSHA}yI6cZwQadOA1e+/f+T+H3eCQQhRzYWx0", "password", Right),
        ("{SSHA}yI6cZwQadOA1e+/f+T+H3eCQQhRzYWx0", "123", Wrong),
        ("{SSHA}Zm9vCg==", "1", Wrong),
        ("$apr1$salt$Xxd1irWT9ycqoYxGFn4cb.", "password", Right),
        ("$apr1$salt$Xxd1irWT9ycqoYxGFn4cb.", "123", Wrong),
        ("$apr1$", "1", Wrong),
        (
            "$apr1$saltsalt$4YdsMdvaQmZ0TvJbACAEe0",
            "a much longer password than sixteen bytes",
            Right,
        ),
        ("$1$salt$qJH7.N4xYta3aEG/dfqo/0", "password", Right),
        ("$1$salt$qJH7.N4xYta3aEG/dfqo/0", "123", Wrong),
        ("$1$", "1", Wrong),
        ("sa3tHJ3/KuYvI", "password", Right),
        ("sa3tHJ3/KuYvI", "123", Wrong),
        (
            "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            "Hello world!",
            Right,
        ),
        (
            "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            "Hello",
            Wrong,
        ),
        (
            "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJu\
             esI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
            "Hello world!",
            Right,
        ),
        ("", "", Wrong),
        ("$y$j9T$salt$hash", "1", UnknownScheme),
    ];
    for (stored, password, expected) in cases {
        let got = verify(password.as_bytes(), stored.as_bytes());
        assert_eq!(got, expected, "{stored} with {password}");
    }
}

#[test]
fn finds_the_line_of_a_user() {
    let text = b"# a comment:x\nlong:1\nlon:2:extra\nlast:3\r\n\nend:4";
    let cases: [(&str, Option<&str>); 7] = [
        ("long", Some("1")),
        ("lon", Some("2")),
        ("last", Some("3")),
        ("end", Some("4")),
        ("lo", None),
        ("# a comment", None),
        ("extra", None),
    ];
    for (user, stored) in cases {
        let got = find(text, user.as_bytes());
        assert_eq!(got, stored.map(str::as_bytes), "{user}");
    }
}
