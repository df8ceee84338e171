use super::rows::ROWS;

#[test]
fn all_rows_are_of_this_family() {
    assert!(ROWS.iter().all(|row| row.name.starts_with("tunnel_")));
}
