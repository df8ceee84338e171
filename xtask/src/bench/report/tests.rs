//! The arithmetic of the report, and the README's markers.

use super::{MARKERS, Spread, between_markers};

#[test]
fn spreads() {
    let cases = [
        (
            vec![3.0, 1.0, 2.0],
            Spread {
                median: 2.0,
                min: 1.0,
                max: 3.0,
            },
        ),
        (
            vec![4.0, 1.0],
            Spread {
                median: 2.5,
                min: 1.0,
                max: 4.0,
            },
        ),
    ];
    for (values, expected) in cases {
        assert_eq!(Spread::of(values), expected);
    }
    assert!(Spread::of(Vec::new()).median.is_nan());
    assert_eq!(
        Spread {
            median: 2.0,
            min: 1.0,
            max: 3.0
        }
        .text(1),
        "2.0 (1.0..3.0)"
    );
}

#[test]
fn markers() {
    let text = "a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb\n";
    let expected = "a\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nb\n";
    assert_eq!(
        between_markers(text, "new\n", MARKERS).as_deref(),
        Some(expected)
    );
    assert_eq!(between_markers("none", "new\n", MARKERS), None);
}
