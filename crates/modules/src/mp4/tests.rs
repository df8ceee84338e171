//! Tables: which part a query asks for.

use turnpike_wire::mp4::Excerpt;

use super::handler::wish;

#[test]
fn a_query_asks_for_a_part() {
    for (query, expected) in [
        ("", None),
        ("a=b", None),
        ("start=1", Some((1000, None))),
        ("start=1.5&end=2.75", Some((1500, Some(1250)))),
        ("a=b&START=.25", Some((250, None))),
        ("start=1.23456789012345678901", Some((1234, None))),
        ("end=3", Some((0, Some(3000)))),
        ("start=0", Some((0, None))),
        ("start=4&end=3", Some((4000, None))),
        ("start=4&end=4", Some((4000, None))),
        ("end=0", None),
        ("start=x&end=2", Some((0, Some(2000)))),
        ("start=-1", None),
        ("start=1.2.3", None),
        ("start=", None),
        ("start=99999999999999999999", None),
        ("restart=5", None),
    ] {
        let expected = expected.map(|(start_ms, length_ms)| Excerpt {
            start_ms,
            length_ms,
            from_key_frame: false,
        });
        assert_eq!(wish(query.as_bytes(), false), expected, "{query}");
    }
}
