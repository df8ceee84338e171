use super::*;

#[test]
fn limits_are_judged_before_figures_are_rounded() {
    use GoalVerdict::{Met, Missed, NoGoal, NotMeasured};
    let cases: &[(&[Limited], GoalVerdict)] = &[
        (&[(Some(0.90), Some(0.90)), (None, None)], Met),
        (&[(Some(0.90), Some(0.9001))], Missed),
        (&[(None, Some(5.0)), (None, Some(5.0))], NoGoal),
        (&[(Some(0.90), None), (Some(4.0), Some(1.0))], NotMeasured),
        (&[(Some(4.0), Some(4.0)), (Some(0.5), Some(0.6))], Missed),
    ];
    for (parts, verdict) in cases {
        assert_eq!(judge(parts), *verdict, "{parts:?}");
    }
}
