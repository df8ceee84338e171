//! Losses go to the act that can have caused them.

use super::*;

#[test]
fn a_kept_connection_may_be_missed_late() {
    let kill = Deed {
        act: Act::Kill,
        from_us: 200,
        until_us: 210,
        is_done: true,
    };
    let failure = |was_kept, begun_us| Failure {
        begun_us,
        ended_us: begun_us + 5,
        was_kept,
        ..Failure::default()
    };
    assert!(failure(true, 300).is_lost_at(&kill));
    assert!(!failure(false, 300).is_lost_at(&kill));
    assert!(!failure(true, 300 + NOTICE_US).is_lost_at(&kill));
}

#[test]
fn only_requests_in_flight_are_lost_at_a_kill() {
    let deed = |act, from_us, until_us| Deed {
        act,
        from_us,
        until_us,
        is_done: true,
    };
    let deeds = [
        deed(Act::Reload, 100, 110),
        deed(Act::Kill, 200, 210),
        deed(Act::Stall, 300, 500),
    ];
    let cases = [
        // Begin, end, and the action that explains the loss.
        ((50, 99), "nothing"),
        ((50, 100), "reload"),
        ((190, 200), ""),
        ((205, 220), ""),
        ((211, 220), "nothing"),
        ((120, 199), "nothing"),
        ((105, 400), ""),
        ((211, 600), "stall"),
    ];
    for ((begun_us, ended_us), expected) in cases {
        let account = Account {
            offered: 3,
            answered: 2,
            failures: vec![Failure {
                begun_us,
                ended_us,
                kind: "reset".to_owned(),
                ..Failure::default()
            }],
            ..Account::default()
        };
        let losses = account.losses(&deeds);
        let acts: Vec<&str> = losses
            .otherwise
            .keys()
            .map(|(acts, _)| acts.as_str())
            .collect();
        let expected: Vec<&str> = Some(expected)
            .filter(|act| !act.is_empty())
            .into_iter()
            .collect();
        assert_eq!(acts, expected, "{begun_us} to {ended_us}");
        assert_eq!(losses.at_kills_total() + losses.otherwise_total(), 1);
        assert_eq!(account.list(&deeds, 0).len(), expected.len());
        assert!(account.is_balanced());
    }
}

#[test]
fn the_kill_of_a_master_explains_nothing() {
    let deed = |act, from_us, until_us| Deed {
        act,
        from_us,
        until_us,
        is_done: true,
    };
    let deeds = [
        deed(Act::KillMaster, 100, 190),
        deed(Act::KillBoth, 200, 400),
        deed(Act::Kill, 210, 220),
    ];
    // Begun, ended; lost in flight, otherwise.
    let cases = [
        ((110, 120), (0, 1)),
        ((201, 205), (0, 1)),
        ((215, 230), (1, 0)),
        ((300, 310), (0, 1)),
    ];
    for ((begun_us, ended_us), expected) in cases {
        let account = Account {
            failures: vec![Failure {
                begun_us,
                ended_us,
                kind: "refused".to_owned(),
                ..Failure::default()
            }],
            ..Account::default()
        };
        let losses = account.losses(&deeds);
        let got = (losses.at_kills_total(), losses.otherwise_total());
        assert_eq!(got, expected, "{begun_us} {ended_us}");
    }
}
