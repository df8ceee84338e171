use super::*;

#[test]
fn steps_that_cost_clients_something_are_left_out_of_a_live_climb() {
    let cases = [
        (Knob::Workers, 1, Some("keeps its CPUs")),
        (Knob::Workers, 2, None),
        (Knob::AccessLog, 1, None),
        (Knob::AccessLog, 2, Some("would be lost")),
        (Knob::AcceptMutex, 1, None),
        (Knob::AcceptMutex, 2, Some("connections that wait in them")),
        (Knob::SynCookies, 1, Some("a flood of SYNs")),
        (Knob::Napi, 3, Some("a reload or a kernel setting")),
        (Knob::Placement, 1, Some("a reload or a kernel setting")),
        (Knob::Addresses, 1, Some("connections that wait in them")),
        (Knob::BusyPoll, 1, Some("the next reload would forget it")),
        (Knob::BusyPoll, 2, None),
        (Knob::Deferred, 1, None),
    ];
    for (knob, level, expected) in cases {
        let why = unfit(knob, level);
        let is_as_expected = match expected {
            None => why.is_none(),
            Some(words) => why.is_some_and(|why| why.contains(words)),
        };
        assert!(is_as_expected, "{knob:?} {level}: {why:?}");
        assert_eq!(unfit(knob, 0), None);
    }
}
