#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn wishes_become_cpus() {
    let four = [0, 1, 2, 3];
    let cases: &[(&str, &str, &[usize], &[usize])] = &[
        ("all", "all", &[0, 1, 2, 3], &[0, 1, 2, 3]),
        ("first 1", "rest", &[0], &[1, 2, 3]),
        ("first 3", "rest or all", &[0, 1, 2], &[3]),
        ("first 4", "rest or all", &[0, 1, 2, 3], &[0, 1, 2, 3]),
        ("0-1", "2,3", &[0, 1], &[2, 3]),
    ];
    for (server, driver, serving, driving) in cases {
        let placed = place(server, driver, &four).unwrap();
        assert_eq!(placed.server, *serving, "{server}");
        assert_eq!(placed.driver, *driving, "{driver}");
        let overlap = serving.iter().any(|cpu| driving.contains(cpu));
        assert_eq!(placed.is_shared(), overlap);
    }
}

#[test]
fn too_few_cpus_are_reported() {
    let two = [0, 1];
    let cases = [
        ("first 4", "all", "not enough CPUs: 4 asked for, 2 there"),
        (
            "all",
            "rest",
            "not enough CPUs: the server takes all 2 and none is left to drive",
        ),
        ("0-3", "all", "not enough CPUs: CPU 2 asked for, 2 there"),
        ("first 0", "all", "not enough CPUs: 0 asked for, 2 there"),
        ("half", "all", "cannot read the placement \"half\""),
        ("3-1", "all", "cannot read the placement \"3-1\""),
        ("0-99999", "all", "cannot read the placement \"0-99999\""),
    ];
    for (server, driver, text) in cases {
        assert_eq!(place(server, driver, &two).unwrap_err(), text);
    }
}
