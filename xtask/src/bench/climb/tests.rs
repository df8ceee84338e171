use serde_json::{Value, json};

use super::{judge, table};

fn goals(found: usize, ratio: &Value, reached: bool) -> Value {
    json!({
        "found": vec!["a"; found], "not_found": vec!["b"; 7 - found], "found_min": 5,
        "differing": if ratio.is_null() { vec![] } else { vec!["a"] },
        "rate": ratio, "cpu": null, "client_limited": reached,
        "ratio_min": 0.95, "reached": reached
    })
}

#[test]
fn both_servers_stand_side_by_side_and_a_missed_goal_is_an_error() {
    let ratio = json!({ "ratio": 0.9, "low": 0.88, "high": 0.93 });
    let mut all = vec![
        ("turnpike".to_owned(), goals(6, &Value::Null, true)),
        ("nginx".to_owned(), goals(4, &ratio, false)),
    ];
    let table = table(&all);
    let rows: Vec<&str> = table.lines().skip(2).collect();
    let same = "| turnpike | 6 of 7 | at least 5 | the same, the client was the limit | the same \
                | the interval reaches 0.95 | met |";
    let less = "| nginx | 4 of 7 | at least 5 | 0.900 (0.880 to 0.930) | none \
                | the interval reaches 0.95 | **missed** |";
    assert_eq!(rows, [same, less]);
    let error = "the goals are missed with nginx".to_owned();
    assert_eq!(judge(&all), Err(error));
    all.pop();
    assert_eq!(judge(&all), Ok(()));
}

/// A bundle without a verdict has none that is good.
#[test]
fn goals_that_say_nothing_are_missed() {
    assert!(judge(&[("nginx".to_owned(), json!({}))]).is_err());
}
