use super::html::prose;
use super::words::plain_ratio;

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
