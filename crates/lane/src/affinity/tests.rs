//! Tests of masks as in configurations, and of the lanes' CPUs.

#![allow(clippy::unwrap_used)]

use super::*;

fn cpus(affinity: &Affinity, lane: usize) -> Option<Vec<usize>> {
    affinity.lane(lane).map(|set| set.iter().collect())
}

#[test]
fn lanes_get_their_cpus() {
    let long = format!("1{}1", "0".repeat(199));
    type Expected<'a> = [&'a [usize]; 4];
    let cases: [(&[&str], Expected<'_>); 7] = [
        (&["auto"], [&[0], &[1], &[2], &[0]]),
        (&["auto", "1010"], [&[1], &[3], &[1], &[3]]),
        (&["01", "10"], [&[0], &[1], &[1], &[1]]),
        (&["0101", "1010"], [&[0, 2], &[1, 3], &[1, 3], &[1, 3]]),
        (&["0001 0000"], [&[4], &[4], &[4], &[4]]),
        (
            &[long.as_str()],
            [&[0, 200], &[0, 200], &[0, 200], &[0, 200]],
        ),
        (&["0", "1"], [&[], &[0], &[0], &[0]]),
    ];
    for (arguments, expected) in cases {
        let affinity = Affinity::parse(arguments, 3).unwrap();
        for (lane, expected) in expected.iter().enumerate() {
            assert_eq!(
                cpus(&affinity, lane).unwrap(),
                *expected,
                "{arguments:?} lane {lane}"
            );
        }
    }
    let none = Affinity::parse(&["auto", "000"], 3).unwrap();
    assert_eq!(cpus(&none, 0), None);
}

#[test]
fn wrong_arguments_give_nginx_messages() {
    let too_long = "0".repeat(CPUS_MAX + 1);
    let cases: [(&[&str], &str); 5] = [
        (
            &[],
            "invalid number of arguments in \"worker_cpu_affinity\" directive",
        ),
        (
            &["auto", "1", "1"],
            "invalid number of arguments in \"worker_cpu_affinity\" directive",
        ),
        (
            &["102"],
            "invalid character \"2\" in \"worker_cpu_affinity\"",
        ),
        (
            &["auto", "x"],
            "invalid character \"x\" in \"worker_cpu_affinity\"",
        ),
        (
            &[too_long.as_str()],
            "\"worker_cpu_affinity\" supports up to 8192 CPUs only",
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(
            Affinity::parse(arguments, 2).unwrap_err().message(),
            expected
        );
    }
}

#[test]
fn a_thread_is_pinned_to_a_cpu_it_is_allowed() {
    std::thread::spawn(|| {
        let cpu = CpuSet::of_this_thread().unwrap().iter().last().unwrap();
        CpuSet::of(cpu).pin_this_thread().unwrap();
        assert_eq!(CpuSet::of_this_thread().unwrap(), CpuSet::of(cpu));
        assert!(CpuSet::default().pin_this_thread().is_err());
    })
    .join()
    .unwrap();
}
