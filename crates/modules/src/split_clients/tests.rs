//! Shares, limits and hashes, without a request.

use super::handler::murmur2;
use super::plan::{parts, share};

#[test]
fn shares_have_two_decimals() {
    let cases = [
        ("50%", Some(5000)),
        ("0.5%", Some(50)),
        ("33.33%", Some(3333)),
        (".5%", Some(50)),
        ("100%", Some(10_000)),
        ("*", Some(0)),
        ("0%", None),
        ("1.234%", None),
        ("50", None),
        ("%", None),
        ("-1%", None),
    ];
    for (text, expected) in cases {
        assert_eq!(share(text), expected, "{text}");
    }
}

#[test]
fn shares_become_limits() {
    let limits = |shares: &[u32]| {
        let shares = shares.iter().map(|share| (*share, Vec::new())).collect();
        parts(shares).map(|parts| parts.iter().map(|part| part.limit).collect::<Vec<_>>())
    };
    let half = 2_147_483_647;
    let over = Err("percent total is greater than 100%".into());
    assert_eq!(limits(&[5000, 0]), Ok(vec![Some(half), None]));
    assert_eq!(limits(&[5000, 5000]), Ok(vec![Some(half), None]));
    assert_eq!(limits(&[5000]), Ok(vec![Some(half)]));
    assert_eq!(limits(&[6000, 5000]), over);
}

#[test]
fn the_hash_is_murmur_hash_2() {
    // From the reference implementation, seed 0.
    let cases: &[(&[u8], u32)] = &[
        (b"", 0),
        (b"a", 0x9268_5f5e),
        (b"ab", 0x1aa1_4063),
        (b"abc", 0x1357_7c9b),
        (b"abcd", 0x2687_3021),
    ];
    for (text, expected) in cases {
        assert_eq!(murmur2(text), *expected, "{text:?}");
    }
}
