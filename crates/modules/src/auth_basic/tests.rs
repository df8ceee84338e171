use super::handler::find;
use super::password::{Outcome, verify};

#[test]
fn verifies_every_scheme() {
    use Outcome::{Right, Wrong};
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
    ];
    for (stored, password, expected) in cases {
        let got = verify(password.as_bytes(), stored.as_bytes());
        assert_eq!(got, expected, "{stored} with {password}");
    }
}

/// What Debian's crypt(3) made of "correct horse", a scheme each.
const STORED: &[&str] = &[
    "$y$j9T$abcdefghijklmnop$0Hi8KsZH/hAMRN9Bam6ce3nmi5QAIz3R/KeaXG/c7p9",
    "$gy$j9T$abcdefghijklmnop$OoCZc5LoOgQrpI9itgWeephZAERGDeOFMt6RAJyjSP3",
    "$7$CU..../....abcdefghijklmnop$wOaHrgxgyKv4FQ2e7tZJ6BboaneHJOB6e0NHrTk0.n/",
    "$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2",
    "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2",
    "$2a$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2",
    "$6$rounds=1000$saltstring$YiR6NSM0LQXmu7vAhkMXfkdYk7qtFouVx1Mdr3HmzXspT8kONjlpU3CsV7ezCB62\
     uXJoAdaagsH4ck7/tB9js.",
    "$5$rounds=1000$saltstring$95Bg/RfV2QriLpMdLPHK9el0Ighm6E3CBqMKzZKgCa2",
    "$1$saltsalt$NuzA7WTAelpl95xgBGWN60",
    "$sha1$1000$saltsalt$ouns5uP5ckp8yJ3a80IEZtEDXjoB",
    "$md5,rounds=1$saltsalt$$pOfZ9YY3O2bwn9iHvAYLe1",
    "_J9..saltGomPeRUt8OA",
    "sa6zCY2NLg.wE",
    "$3$$cfc43211ba8dc470832267827cac1407",
];

#[test]
fn verifies_every_scheme_of_the_system() {
    for stored in STORED {
        let verify = |password: &[u8]| verify(password, stored.as_bytes());
        assert_eq!(verify(b"correct horse"), Outcome::Right, "{stored}");
        for wrong in [
            &b"correct"[..],
            b"",
            b"correct horse\0",
            b"correct horse\0more",
            &[b'x'; 4096],
        ] {
            assert_eq!(verify(wrong), Outcome::Wrong, "{stored} with {wrong:?}");
        }
    }
}

#[test]
fn what_is_no_hash_matches_nothing() {
    use Outcome::{UnknownScheme, Wrong};
    let cases = [
        ("*", Wrong),
        ("!", Wrong),
        ("!!", Wrong),
        ("*0", Wrong),
        ("*1", Wrong),
        ("*LK*", Wrong),
        ("x", Wrong),
        ("!$6$saltstring$", Wrong),
        ("!sa6zCY2NLg.wE", Wrong),
        ("plain text", Wrong),
        ("$", UnknownScheme),
        ("$99$salt$hash", UnknownScheme),
        ("$y$j9T", UnknownScheme),
        ("$2b$99$abcdefghijklmnopqrstuu", UnknownScheme),
    ];
    for (stored, expected) in cases {
        for password in [stored, "", "*0", "*1", "x"] {
            let got = verify(password.as_bytes(), stored.as_bytes());
            assert_eq!(got, expected, "{stored} with {password}");
        }
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
