use super::origin::ParamTexts;
use super::rows::ROWS;
use crate::pass::params::ParamWriter as _;

#[test]
fn names_and_values_end_with_zero_bytes() {
    let mut out = Vec::new();
    let mut texts = ParamTexts::default();
    texts.write(b"A", b"", &mut out);
    texts.write(b"Z", b"\0", &mut out);
    texts.write(b"CONTENT_LENGTH", b"1", &mut out);
    texts.write(b"B", b"c d", &mut out);
    assert_eq!(out, b"A\0\0B\0c d\0");
    assert_eq!(texts.refused, [b"Z"]);
}

#[test]
fn all_rows_are_of_this_family() {
    assert!(ROWS.iter().all(|row| row.name.starts_with("scgi_")));
}
