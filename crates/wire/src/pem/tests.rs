//! Which lines are blocks, and which are text. The expectations are what OpenSSL 3 does.

#![allow(clippy::unwrap_used)]

use super::{Fault, LINE_BYTES_MAX, PemError, Piece, Pieces};

/// The text, and its blocks: the number of the first line, the label, the header and the data.
type Read = (
    &'static [u8],
    &'static [(usize, &'static str, &'static str, &'static str)],
);

const READ: &[Read] = &[
    (b"", &[]),
    (b"some text", &[]),
    (
        b"-----BEGIN A-----\nYWJj\n-----END A-----\n",
        &[(1, "A", "", "abc")],
    ),
    (
        b"-----BEGIN A-----\nYWJj\n-----END A-----",
        &[(1, "A", "", "abc")],
    ),
    (
        b"-----BEGIN A B-----\r\nYWJj\r\n-----END A B-----\r\n",
        &[(1, "A B", "", "abc")],
    ),
    // Any white space behind the first and last lines, and in the data.
    (
        b"-----BEGIN A----- \t\xc2\xa0\n Y\tW\n Jj \n-----END A-----  \n",
        &[(1, "A", "", "abc")],
    ),
    (
        b"a\n\n-----BEGIN A-----\nYQ==\n-----END A-----\nb",
        &[(3, "A", "", "a")],
    ),
    (
        b"\xef\xbb\xbf-----BEGIN A-----\nYWI=\n-----END A-----\n",
        &[(1, "A", "", "ab")],
    ),
    (
        b"-----BEGIN A-----\nYQ==\n-----END A-----\n\xef\xbb\xbf\
          -----BEGIN B-----\nYg==\n-----END B-----",
        &[(1, "A", "", "a"), (4, "B", "", "b")],
    ),
    // A mark of the order of bytes stands in a first line alone.
    (
        b"-----BEGIN A-----\nYQ==\n-----END A-----\n\n\xef\xbb\xbf\
          -----BEGIN B-----\nYg==\n-----END B-----",
        &[(1, "A", "", "a")],
    ),
    (b" -----BEGIN A-----\nYQ==\n-----END A-----\n", &[]),
    (b"x-----BEGIN A-----\nYQ==\n-----END A-----\n", &[]),
    (b"-----BEGIN A-----x\nYQ==\n-----END A-----\n", &[]),
    (b"-----begin A-----\nYQ==\n-----end A-----\n", &[]),
    // A header ends with an empty line.
    (
        b"-----BEGIN A-----\nB: c\nd\n\nYQ==\n-----END A-----\n",
        &[(1, "A", "B: c\nd\n", "a")],
    ),
    (
        b"-----BEGIN A-----\n\nYQ==\n-----END A-----\n",
        &[(1, "A", "", "a")],
    ),
    // A hyphen ends the data.
    (
        b"-----BEGIN A-----\nYWJj\n-\n*\n-----END A-----\n",
        &[(1, "A", "", "abc")],
    ),
    // A NUL ends its line, and the text where it begins one.
    (
        b"a\0b\n-----BEGIN A-----\nYQ==\n-----END A-----\n",
        &[(2, "A", "", "a")],
    ),
    (b"a\n\0\n-----BEGIN A-----\nYQ==\n-----END A-----\n", &[]),
];

/// The text, and what is wrong with it in which line.
const FAULTS: &[(&[u8], Fault, usize)] = &[
    (b"-----BEGIN A-----", Fault::BadEndLine, 1),
    (b"\n-----BEGIN A-----\nYQ==\n", Fault::BadEndLine, 4),
    (
        b"-----BEGIN A-----\nYQ==\n-----END B-----\n",
        Fault::BadEndLine,
        3,
    ),
    (
        b"-----BEGIN A-----\nYQ==\n-----END A----------BEGIN A-----\n",
        Fault::BadEndLine,
        3,
    ),
    (
        b"-----BEGIN A-----\n\nYQ==\nYQ==\n-----END A-----\n",
        Fault::BadEndLine,
        4,
    ),
    (
        b"-----BEGIN A-----\nYQ==\n\n\n-----END A-----\n",
        Fault::BadEndLine,
        4,
    ),
    (
        b"-----BEGIN A-----\nYQ=\n-----END A-----\n",
        Fault::BadBase64,
        1,
    ),
    (
        b"-----BEGIN A-----\nY*==\n-----END A-----\n",
        Fault::BadBase64,
        1,
    ),
    (
        b"-----BEGIN A-----\nYQ==YQ==\n-----END A-----\n",
        Fault::BadBase64,
        1,
    ),
    (
        b"-----BEGIN A-----\nY===\n-----END A-----\n",
        Fault::BadBase64,
        1,
    ),
    (
        b"-----BEGIN A-----\nYWJ-\n-----END A-----\n",
        Fault::BadBase64,
        1,
    ),
    (b"-----BEGIN A-----\n-----END A-----\n", Fault::Empty, 1),
    (
        b"-----BEGIN A-----\nYQ==\n\n-----END A-----\n",
        Fault::Empty,
        1,
    ),
    (
        b"-----BEGIN A-----\nB: c\nYQ==\n-----END A-----\n",
        Fault::Empty,
        1,
    ),
];

#[test]
fn blocks_are_those_of_openssl() {
    for (text, expected) in READ {
        let mut blocks = Vec::new();
        let mut bytes = 0;
        for piece in Pieces::new(text) {
            match piece.unwrap() {
                Piece::Text(lines) => bytes += lines.bytes.len(),
                Piece::Block(block) => {
                    bytes += block.body.bytes.len();
                    let [label, header, data] = [block.label, &block.header, &block.data]
                        .map(|part| str::from_utf8(part).unwrap().to_owned());
                    blocks.push((block.line, label, header, data));
                }
            }
        }
        let blocks: Vec<_> = blocks
            .iter()
            .map(|(line, label, header, data)| (*line, &**label, &**header, &**data))
            .collect();
        assert_eq!(blocks, *expected, "{}", text.escape_ascii());
        assert!(bytes <= text.len());
    }
}

#[test]
fn faults_have_their_lines() {
    for (text, fault, line) in FAULTS {
        let mut pieces = Pieces::new(text);
        let error = pieces.find_map(Result::err);
        let expected = PemError {
            fault: *fault,
            line: *line,
        };
        assert_eq!(error, Some(expected), "{}", text.escape_ascii());
        assert_eq!(pieces.next(), None);
    }
    let long = format!(
        "-----BEGIN A-----\n\n{}\n-----END A-----\n",
        "YWJj".repeat(17)
    );
    let error = Pieces::new(long.as_bytes()).find_map(Result::err).unwrap();
    assert_eq!((error.fault, error.line), (Fault::LongLine, 3));
}

#[test]
fn long_lines_are_taken_in_parts() {
    // The data of a block may be one line.
    let data = "YWJj".repeat(1000);
    let text = format!("-----BEGIN A-----\n{data}\n-----END A-----\n");
    let block = Pieces::new(text.as_bytes()).next().unwrap().unwrap();
    assert!(matches!(block, Piece::Block(block) if block.data == "abc".repeat(1000).as_bytes()));
    // A first line may stand where the next part of a line begins.
    let text = "x".repeat(LINE_BYTES_MAX) + "-----BEGIN A-----\nYQ==\n-----END A-----\n";
    let block = Pieces::new(text.as_bytes()).nth(1).unwrap().unwrap();
    assert!(matches!(block, Piece::Block(block) if block.line == 1 && block.data == b"a"));
}
