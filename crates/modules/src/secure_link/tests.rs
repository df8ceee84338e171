use super::handler::{judge, link};

#[test]
fn judges_signatures_and_times() {
    let right = "kEypXFR0CqYzItivggMT_g";
    let cases = [
        (right.to_owned(), Some(true)),
        (format!("{right}=="), Some(true)),
        (format!("{right},1000"), Some(true)),
        (format!("{right},999"), Some(false)),
        (format!("{right},0"), None),
        (format!("{right},x"), None),
        (format!("{right}==="), None),
        ("AAAAAAAAAAAAAAAAAAAAAA".to_owned(), None),
        (String::new(), None),
    ];
    for (text, expected) in cases {
        let got = judge(text.as_bytes(), b"secret/p2", 1000);
        assert_eq!(got, expected, "{text}");
    }
}

#[test]
fn finds_links_behind_their_signature() {
    let right = "5e814704a28d9bc1914ff19fa0c4a00a";
    let cases = [
        (format!("/p/{right}/link"), Some("link")),
        (format!("/p/{}/link", right.to_uppercase()), Some("link")),
        (format!("/p/{right}/other"), None),
        (format!("/p/{right}/"), None),
        (format!("/p/{right}"), None),
        ("/p/short/link".to_owned(), None),
        (String::new(), None),
    ];
    for (target, expected) in cases {
        let got = link(target.as_bytes(), b"secret");
        assert_eq!(got, expected.map(str::as_bytes), "{target}");
    }
}
