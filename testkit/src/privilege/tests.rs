use super::{has, needs_root};

const STATUSES: &[(&str, u32, bool)] = &[
    ("Name:\tx\nCapEff:\t000001ffffffffff\n", 39, true),
    ("CapEff:\t0000000000000000\n", 39, false),
    ("CapEff:\t0000000000200000\n", 21, true),
    ("CapEff:\t0000000000200000\n", 24, false),
    ("CapPrm:\t000001ffffffffff\n", 21, false),
    ("", 0, false),
];

#[test]
fn the_effective_set_decides() {
    for (status, number, expected) in STATUSES {
        assert_eq!(has(status, *number), *expected, "{status} {number}");
    }
}

#[test]
#[should_panic(expected = "no capability is called \"CAP_FLY\"")]
fn an_unknown_capability_is_refused() {
    needs_root("a test", "CAP_FLY");
}
