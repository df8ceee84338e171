//! The table of a record, and the markers.

use super::{between_markers, section};

const MARKERS: (&str, &str) = ("<!-- bench:begin -->", "<!-- bench:end -->");

#[test]
fn the_section_of_a_record_ends_at_the_next_heading() {
    let record = "# t\n\n## Goals\n\n| a |\n|---|\n\nA goal.\n\n## Notes\n\n- none\n";
    assert_eq!(section(record, "## Goals"), Some("| a |\n|---|\n\nA goal."));
    assert_eq!(section(record, "## Notes"), Some("- none"));
    assert_eq!(section(record, "## Cases"), None);
}

#[test]
fn the_table_is_put_between_the_markers() {
    let text = "a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb\n";
    let expected = "a\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nb\n";
    assert_eq!(
        between_markers(text, "new\n", MARKERS).as_deref(),
        Some(expected)
    );
    assert_eq!(between_markers("none", "new\n", MARKERS), None);
}
