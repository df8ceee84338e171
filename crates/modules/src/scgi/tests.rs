use super::origin::write_param;
use super::rows::ROWS;

#[test]
fn names_and_values_end_with_zero_bytes() {
    let mut out = Vec::new();
    write_param(b"A", b"", &mut out);
    write_param(b"B", b"c d", &mut out);
    assert_eq!(out, b"A\0\0B\0c d\0");
}

#[test]
fn all_rows_are_of_this_family() {
    assert!(ROWS.iter().all(|row| row.name.starts_with("scgi_")));
}
