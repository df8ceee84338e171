use super::*;

const REPORT: &str = r#"<testsuites>
  <testsuite name="3.5" package="http2/3.5" tests="2" failures="1">
    <testcase package="http2/3.5" classname="Sends a preface" time="0.1"></testcase>
    <testcase package="http2/3.5" classname="Sends invalid connection preface" time="0.1">
      <failure>The endpoint MUST terminate the TCP connection.</failure>
    </testcase>
  </testsuite>
</testsuites>"#;

#[test]
fn reports_are_judged_by_what_is_expected() {
    let round = |expected| Round {
        name: "h2c",
        port: "",
        arguments: &[],
        expected,
    };
    let whole = "<testcase classname=\"Sends a preface\"></testcase>";
    for (text, expected, wrong) in [
        (REPORT, &[INVALID_PREFACE][..], ""),
        (REPORT, &[], "h2c: failed: Sends invalid connection preface"),
        (whole, &[], ""),
        (
            whole,
            &[INVALID_PREFACE],
            "h2c: passes now, drop its row: Sends invalid connection preface",
        ),
        ("", &[], "h2c: h2spec ran no test"),
    ] {
        let report = read_report(text);
        assert_eq!(judge(&round(expected), &report).join("; "), wrong);
    }
    assert_eq!(read_report(REPORT).tests, 2);
}
