//! Lists of actions are read, and gone through.

use super::*;

fn acts(list: &str, is_nginx: bool) -> Result<Acts, String> {
    Acts::named(list.split(','), is_nginx)
}

#[test]
fn a_list_is_read() {
    let any = |acts: &[Act]| Ok(Acts::Any(acts.to_vec()));
    let cases = [
        ("reload,kill", false, any(&[Act::Reload, Act::Kill])),
        ("reload,kill", true, any(&[Act::Reload])),
        (
            "reload=100,kill=5",
            false,
            Ok(Acts::Counted(vec![(Act::Reload, 100), (Act::Kill, 5)])),
        ),
        ("kill", true, Err("there is no act left to do".to_owned())),
        (
            "kill=a",
            false,
            Err("\"a\" is no number of kill".to_owned()),
        ),
        (
            "kill=5,reload",
            false,
            Err("either all acts have a number, or none has".to_owned()),
        ),
    ];
    for (list, is_nginx, expected) in cases {
        assert_eq!(acts(list, is_nginx), expected, "{list}");
    }
    assert!(acts("nap", false).is_err_and(|why| why.starts_with("no act is called \"nap\"")));
}

#[test]
fn each_is_done_as_often_as_it_is_wanted() {
    let mut left = acts("reload=7,lanes=0,kill=2", false).unwrap_or(Acts::Any(Vec::new()));
    let mut done = Vec::new();
    for random in (0..).step_by(5) {
        let Some(act) = left.choose(random) else {
            break;
        };
        // Every other one is refused.
        if random.is_multiple_of(2) {
            left.was_done(act);
            done.push(act);
        }
    }
    done.sort_unstable();
    assert_eq!(done, [vec![Act::Reload; 7], vec![Act::Kill; 2]].concat());
    assert_eq!(left.wanted(Act::Reload), Some(0));
}
