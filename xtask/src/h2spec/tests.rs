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
fn every_test_that_failed_is_named() {
    let round = Round {
        name: "h2c",
        port: "",
        arguments: &[],
    };
    let whole = "<testcase classname=\"Sends a preface\"></testcase>";
    for (text, wrong) in [
        (REPORT, "h2c: failed: Sends invalid connection preface"),
        (whole, ""),
        ("", "h2c: h2spec ran no test"),
    ] {
        assert_eq!(judge(&round, &read_report(text)).join("; "), wrong);
    }
    assert_eq!(read_report(REPORT).tests, 2);
}
