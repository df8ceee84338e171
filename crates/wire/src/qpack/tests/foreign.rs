//! A comparison with ls-qpack, which shares no code with this crate: it reads our sections, and we
//! read its.

use std::io::Write as _;
use std::process::{Command, Stdio};

use turnpike_testkit::python::AIOQUIC;
use turnpike_testkit::random::Random;

use super::super::{Decoder, Encoder, FieldSink, Indexing};
use crate::hex;

const PROGRAM: &str = include_str!("foreign.py");

/// Sections of each direction.
const SECTIONS: usize = 500;

/// Names that are in the static table, with values that are and are not, and others.
const NAMES: [&str; 9] = [
    ":method",
    ":path",
    ":status",
    "content-type",
    "cache-control",
    "x-frame-options",
    "x-own",
    "a",
    "a-name-that-is-longer-than-seven-bytes-and-than-thirty",
];

const VALUES: [&str; 8] = [
    "",
    "GET",
    "/",
    "200",
    "no-cache",
    "sameorigin",
    "Some text, with UTF-8: \u{e4}\u{20ac}.",
    "\u{1}\u{7f}",
];

/// Names and values, in hexadecimal digits.
#[derive(Default)]
struct Texts(Vec<String>);

impl FieldSink for Texts {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.0.push(format!("{}:{}", text(name), text(value)));
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fields(random: &mut Random) -> Vec<(&'static str, String)> {
    let count = 1 + random.below(12);
    let field = |_| {
        let name = NAMES[random.below(NAMES.len() as u64) as usize];
        let value = VALUES[random.below(VALUES.len() as u64) as usize];
        let repeated = match random.below(8) {
            0 => value.repeat(40),
            _ => value.to_owned(),
        };
        (name, repeated)
    };
    (0..count).map(field).collect()
}

#[test]
fn ls_qpack_reads_our_sections_and_we_read_its() {
    let Some(python) = AIOQUIC.python("ls_qpack_reads_our_sections_and_we_read_its") else {
        return;
    };
    let mut random = Random::new(9204);
    let (mut lines, mut expected) = (String::new(), Vec::new());
    for number in 0..2 * SECTIONS {
        let fields = fields(&mut random);
        let mut texts = Texts::default();
        let mut section = Vec::new();
        let mut encoder = Encoder::default();
        encoder.begin(&mut section);
        for (at, (name, value)) in fields.iter().enumerate() {
            let indexing = [Indexing::Never, Indexing::No, Indexing::WhenRepeated][at % 3];
            texts.field(name.as_bytes(), value.as_bytes());
            encoder.field(name.as_bytes(), value.as_bytes(), indexing, &mut section);
        }
        let texts = texts.0.join(",");
        lines += &match number % 2 {
            0 => format!("encode {texts}\n"),
            _ => format!("decode {}\n", text(&section)),
        };
        expected.push(texts);
    }
    let mut child = Command::new(python)
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python");
    let mut input = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("output");
    writer.join().expect("a thread").expect("all is written");
    let output = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<&str> = output.lines().collect();
    assert_eq!(answers.len(), expected.len());
    for (number, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
        if number % 2 == 1 {
            assert_eq!(answer, expected);
            continue;
        }
        let section = hex::bytes(answer.as_bytes()).expect("a section");
        let mut fields = Texts::default();
        let decoded = Decoder::default().decode(&section, &mut fields);
        assert_eq!(decoded, Ok(()), "{answer}");
        assert_eq!(fields.0.join(","), *expected, "{answer}");
    }
}
