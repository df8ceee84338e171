//! Changes stand over what was read, and a copy goes its own way.

use super::*;

fn fields(list: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in list {
        fields.add(name.as_bytes(), value.as_bytes());
    }
    fields
}

#[test]
fn changes_leave_what_was_read() {
    let read = fields(&[("A", "1"), ("B", "2")]);
    let mut changed = ChangedFields::default();
    assert_eq!(changed.over(&read), &read);
    changed.change(&read, |fields| fields.remove(b"A"));
    changed.change(&read, |fields| fields.add(b"C", b"3"));
    assert_eq!(changed.over(&read), &fields(&[("B", "2"), ("C", "3")]));
    assert_eq!(read, fields(&[("A", "1"), ("B", "2")]));
    changed.clear();
    assert_eq!(changed.over(&read), &read);
}

#[test]
fn a_copy_has_the_changes_made_before_it() {
    let read = fields(&[("A", "1")]);
    let mut changed = ChangedFields::default();
    let mut unchanged = ChangedFields::default();
    unchanged.copy(&changed);
    changed.change(&read, |fields| fields.clear());
    let mut copy = ChangedFields::default();
    copy.copy(&changed);
    copy.change(&read, |fields| fields.add(b"B", b"2"));
    assert_eq!(unchanged.over(&read), &read);
    assert!(changed.over(&read).is_empty());
    assert_eq!(copy.over(&read), &fields(&[("B", "2")]));
}
