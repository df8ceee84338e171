use super::*;

#[test]
fn fields_give_urgency_and_incremental() {
    let table: &[(&str, u8, bool)] = &[
        ("", 3, false),
        ("u=0", 0, false),
        ("u=7, i", 7, true),
        ("i;x=1 , u=5;y", 5, true),
        ("i=?0", 3, false),
        ("i, i=?0", 3, false),
        ("i=?1", 3, true),
        ("u=8", 3, false),
        ("u=-1", 3, false),
        ("u=high,,;=", 3, false),
    ];
    for (value, urgency, incremental) in table {
        let expected = Priority {
            urgency: *urgency,
            incremental: *incremental,
        };
        assert_eq!(Priority::parse(value.as_bytes()), expected, "{value}");
    }
}
