use super::html::prose;
use super::picture::{forest, forest_scale};
use super::words::{plain_ratio, ratio, verdict};
use crate::statistics;
use crate::study::model::Expect;
use crate::summary::ClaimSummary;

/// A claim with so many pairs of this ratio.
fn claim(of: f64, pairs: usize) -> ClaimSummary {
    ClaimSummary {
        text: "a claim".to_owned(),
        metric: "requests_per_s".to_owned(),
        at: Vec::new(),
        of: "of".to_owned(),
        against: "against".to_owned(),
        published: None,
        expect: Expect::Above,
        answer: statistics::answer(&vec![(of, 1.0); pairs], Expect::Above, 1),
    }
}

#[test]
fn texts_cannot_become_mark_up() {
    assert_eq!(
        prose("<script> & `<b>`").ok().as_deref(),
        Some("&#60;script&#62; &#38; <code>&#60;b&#62;</code>")
    );
}

#[test]
fn ratios_keep_the_digits_that_matter() {
    let cases = [
        (3.1764, "3.18"),
        (0.025, "0.025"),
        (33.33, "33.3"),
        (120.4, "120"),
        (1.0, "1.00"),
    ];
    for (ratio, shown) in cases {
        assert_eq!(plain_ratio(ratio), shown);
    }
}

#[test]
fn ratios_beyond_the_scale_are_marked_at_its_ends() {
    for name in ["¼", "½", ">1<", ">2<", ">4<"] {
        assert!(forest_scale().contains(name), "{name}");
    }
    for (ratio, is_on_the_line) in [(0.12, false), (0.3, true), (3.9, true), (33.3, false)] {
        let drawing = forest(&claim(ratio, 5));
        assert_eq!(drawing.contains("<circle"), is_on_the_line, "{ratio}");
        let label = format!("here: {}", plain_ratio(ratio));
        assert!(drawing.contains(&label), "{drawing}");
    }
}

#[test]
fn one_pair_is_no_plural() {
    let cases = [
        (
            0,
            "no pair of runs can be used",
            "not usable: 0 usable pairs",
        ),
        (1, "0.94, from 1 pair only", "not usable: 1 usable pair"),
        (2, "0.94, from 2 pairs only", "not usable: 2 usable pairs"),
    ];
    for (pairs, shown, answer) in cases {
        let claim = claim(0.94, pairs);
        assert_eq!(
            (ratio(&claim), verdict(&claim)),
            (shown.to_owned(), answer.to_owned())
        );
    }
}
