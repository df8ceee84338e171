use super::*;

fn run(overflows: u64, softirq: f64, idle: f64, client_limited: bool) -> Run {
    Run {
        overflows,
        softirq_share: softirq,
        idle_share: idle,
        client_limited,
        ..Run::default()
    }
}

#[test]
fn what_a_run_shows_picks_what_is_tried_first() {
    let cases: [(Run, &str, &[Knob]); 8] = [
        (run(9, 0.9, 0.5, true), "overflowed 9 times", QUEUE),
        (
            run(0, 0.9, 0.5, true),
            "soft interrupts for 90 %",
            &[Knob::PacketSteering],
        ),
        // No CPU has time left, so that handing packets on gains nothing.
        (run(0, 0.9, 0.04, false), "the CPUs", &[Knob::Workers]),
        (run(0, 0.4, 0.1, false), "the CPUs", &[Knob::Workers]),
        (
            run(0, 0.1, 0.3, true),
            "the load generator",
            &[Knob::Workers],
        ),
        (run(0, 0.1, 0.3, false), "idle for 30 %", &[Knob::Workers]),
        (run(0, 0.0, 0.0, false), "the CPUs", &[Knob::Workers]),
        (Run::default(), "the CPUs", &[Knob::Workers]),
    ];
    for (run, words, expected) in cases {
        let cause = Cause::of(&run);
        assert!(cause.text().contains(words), "{}", cause.text());
        assert_eq!(next(&mut groups(true), cause), Some(expected), "{words}");
    }
}

#[test]
fn cookies_bind_before_the_queue_that_they_answer_for() {
    let sent = Run {
        cookies: Some(30),
        ..run(90, 0.9, 0.5, true)
    };
    let cause = Cause::of(&sent);
    assert!(cause.text().ends_with("sent 30 SYN cookies"));
    let mut left = groups(false);
    let order = [next(&mut left, cause), next(&mut left, cause)];
    assert_eq!(order, [COOKIES, QUEUE].map(Some));
    let cases = [
        (COOKIES, Some(0), true),
        (COOKIES, Some(1), false),
        // A record without the count.
        (COOKIES, None, false),
        (QUEUE, Some(0), false),
    ];
    for (knobs, cookies, expected) in cases {
        let run = Run {
            cookies,
            ..Run::default()
        };
        assert_eq!(without_effect(knobs, &run).is_some(), expected);
    }
}

#[test]
fn every_knob_is_tried_once_whatever_binds() {
    let causes = [
        Cause::Cookies(1),
        Cause::Queue(1),
        Cause::Softirq(0.7),
        Cause::Client,
        Cause::Idle(0.4),
        Cause::Cpu,
    ];
    for cause in causes {
        for (all, count) in [(false, Knob::SEVEN.len()), (true, Knob::ALL.len())] {
            let mut left = groups(all);
            let mut tried: Vec<Knob> = Vec::new();
            while let Some(group) = next(&mut left, cause) {
                tried.extend(group);
            }
            tried.sort();
            tried.dedup();
            assert_eq!(tried.len(), count, "{cause:?}");
        }
    }
}

#[test]
fn idle_cpus_have_the_turns_of_workers_tried_after_their_number() {
    let mut left = groups(false);
    let cause = Cause::Idle(0.5);
    let order = [
        next(&mut left, cause),
        next(&mut left, cause),
        next(&mut left, cause),
    ];
    let expected: [Group; 3] = [&[Knob::Workers], &[Knob::AcceptMutex], &[Knob::AccessLog]];
    assert_eq!(order, expected.map(Some));
}
