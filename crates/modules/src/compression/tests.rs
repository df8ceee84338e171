#![allow(clippy::unwrap_used)]

use std::io::Read;

use flate2::read::GzDecoder;

use super::encoder::{Coding, Next, Strength};

#[test]
fn gzip_is_accepted_where_it_is_named_with_a_weight() {
    let cases: &[(&str, bool)] = &[
        ("gzip", true),
        ("GZip", true),
        ("deflate, gzip", true),
        ("br,gzip;q=0.001", true),
        ("gzip; q=1.000, br", true),
        ("gzip ;Q = 0.5", true),
        ("gzip;q=0", false),
        ("gzip;q=0.000", false),
        ("gzip;q=0.0001", false),
        ("gzip;q=1.5", false),
        ("gzip;q=", false),
        ("gzip;x=1", false),
        ("xgzip, gzipx", false),
        ("*", false),
        ("", false),
        ("br", false),
    ];
    for (codings, expected) in cases {
        let accepted = Coding::Gzip.weight(codings.as_bytes()) > 0;
        assert_eq!(accepted, *expected, "{codings}");
    }
}

#[test]
fn weights_are_read_in_thousandths() {
    let cases: &[(&str, [u16; 3])] = &[
        ("gzip, deflate, br, zstd", [1000, 1000, 1000]),
        ("gzip;q=0.8, br;q=0.25, zstd;q=0.001", [250, 1, 800]),
        ("br;q=1.000, ZSTD ; Q = 0.5", [1000, 500, 0]),
        ("br;q=0, zstd;q=0.000, gzip;q=1.001", [0, 0, 0]),
        ("br;q=0.1234, zstd;q=.5, gzip;q=0.5x", [0, 0, 0]),
        ("identity, *;q=0.5", [0, 0, 0]),
    ];
    for (codings, expected) in cases {
        let weights = Coding::ALL.map(|coding| coding.weight(codings.as_bytes()));
        assert_eq!(weights, *expected, "{codings}");
    }
}

/// A body goes through every coding, level and kind of pause, and is read again by the decoder of
/// its library.
#[test]
fn what_is_encoded_is_read_again() {
    let words = ["all ", "happy ", "families ", "are ", "alike; "];
    let text: String = (0..60_000_usize)
        .map(|number| words[number * number % 7 % 5])
        .collect();
    for (coding, levels) in [
        (Coding::Gzip, 1..=9),
        (Coding::Brotli, 0..=11),
        (Coding::Zstd, 1..=22),
    ] {
        for level in levels {
            let strength = Strength {
                coding,
                level,
                window_bits: 15,
            };
            let mut encoder = strength.encoder().unwrap();
            let (mut coded, mut readable) = (Vec::new(), 0);
            for (number, piece) in text.as_bytes().chunks(70_000).enumerate() {
                let next = [Next::More, Next::Pause][number % 2];
                encoder.encode(piece, next, &mut coded).unwrap();
                if number == 1 {
                    readable = decoded(coding, &coded).len();
                }
            }
            encoder.encode(b"", Next::End, &mut coded).unwrap();
            assert!(
                coded.len() < text.len() / 20,
                "{strength:?} {}",
                coded.len()
            );
            assert_eq!(readable, 140_000, "{strength:?} before the end");
            assert!(decoded(coding, &coded) == text.as_bytes(), "{strength:?}");
            if let Some(mut again) = encoder.reset() {
                let mut coded = Vec::new();
                again.encode(b"again", Next::End, &mut coded).unwrap();
                assert_eq!(decoded(coding, &coded), b"again", "{strength:?}");
            }
        }
    }
}

/// What can be read of a coded body, which may not be whole.
fn decoded(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn Read + '_> = match coding {
        Coding::Gzip => Box::new(GzDecoder::new(coded)),
        Coding::Brotli => Box::new(brotli::Decompressor::new(coded, 4096)),
        Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(coded).unwrap()),
    };
    let (mut out, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = reader.read(&mut piece) {
        out.extend_from_slice(&piece[..count]);
    }
    out
}

/// Which levels may work on a lane.
#[test]
fn slow_levels_leave_the_lane() {
    let slow = |coding, level| {
        Strength {
            coding,
            level,
            window_bits: 15,
        }
        .is_slow()
    };
    assert!(!slow(Coding::Gzip, 9));
    assert!(!slow(Coding::Brotli, 6) && slow(Coding::Brotli, 7));
    assert!(!slow(Coding::Zstd, 9) && slow(Coding::Zstd, 10));
}
