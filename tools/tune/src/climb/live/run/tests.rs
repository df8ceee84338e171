use super::*;

/// Longer than any of the programs below takes that ends.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

#[test]
fn a_program_ends_by_itself_or_is_ended() {
    let ended = Err("/bin/sh -c was ended after 0 s");
    let cases = [
        ("echo one; echo two >&2", LONG, Ok("one\ntwo\n")),
        (
            "echo warn; echo '[emerg] bad'; exit 1",
            LONG,
            Err("[emerg] bad"),
        ),
        ("echo first; echo second; exit 1", LONG, Err("first")),
        ("exit 1", LONG, Err("it failed")),
        ("kill -9 $$", LONG, Err("it failed")),
        ("echo begun; exec sleep 600", SHORT, ended),
    ];
    for (script, patience, expected) in cases {
        let words = ["-c", script].map(ToOwned::to_owned);
        let said = output(Path::new("/bin/sh"), &words, patience);
        let said = said.as_deref().map_err(String::as_str);
        assert_eq!(said, expected, "{script}");
    }
}

#[test]
fn a_program_that_says_much_does_not_wait_for_its_reader() {
    let words = ["-c", "head -c 3000000 /dev/zero; echo end >&2"].map(ToOwned::to_owned);
    let said = output(Path::new("/bin/sh"), &words, LONG);
    assert_eq!(said.map(|said| said.len() as u64), Ok(SAID_BYTES_MAX));
}
