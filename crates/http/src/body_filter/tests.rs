//! Filters over a body whose pieces come as a script says.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::{BodyFilter, Filtered, Passed, Piece, TURN_BYTES_MAX};
use crate::client::Client;
use crate::exchange::Exchange;
use crate::response::{BodyFailed, BodyStream, LocalFuture};
use crate::testing;

/// The pieces of a script, and what is ready of them, call by call.
type Case = (&'static [Option<&'static [u8]>], &'static [&'static str]);

/// A body: pieces that are at hand, `None` where one has to be waited for.
struct Script {
    pieces: VecDeque<Option<Vec<u8>>>,
    ended: Rc<Cell<bool>>,
}

impl Script {
    fn of(pieces: &[Option<&[u8]>]) -> Self {
        let owned = |piece: &Option<&[u8]>| piece.map(<[u8]>::to_vec);
        Self {
            pieces: pieces.iter().map(owned).collect(),
            ended: Rc::default(),
        }
    }
}

impl BodyStream for Script {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        _client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async move { self.ready(exchange, out).unwrap_or(Err(BodyFailed)) })
    }

    fn ready(
        &mut self,
        _exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        let piece = self.pieces.pop_front().unwrap_or(Some(Vec::new()))?;
        out.extend_from_slice(&piece);
        Some(Ok(!self.pieces.is_empty()))
    }

    fn outlives_client(&mut self) -> bool {
        true
    }

    fn ended(&mut self, _exchange: &mut Exchange) {
        self.ended.set(true);
    }
}

/// Lets the first bytes through, and ends there.
struct First(usize);

impl BodyFilter for First {
    fn pass(
        &mut self,
        _exchange: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        piece.move_to(out);
        out.truncate(self.0);
        self.0 -= out.len();
        match self.0 {
            0 => Ok(Passed::Ended),
            _ => Ok(piece.passed(out)),
        }
    }
}

/// Gathers pieces until there is enough, doubles each byte, and fails at an `x`.
struct Doubling {
    held: Vec<u8>,
    enough: usize,
}

impl BodyFilter for Doubling {
    fn pass(
        &mut self,
        exchange: &Exchange,
        piece: &mut Piece,
        out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        while let Some(byte) = piece.rest().first().copied() {
            if out.len() >= self.enough {
                return Ok(Passed::Full);
            }
            if byte == b'x' {
                return Err(BodyFailed);
            }
            piece.take(1);
            self.held.push(byte);
            if self.held.len() * 2 >= self.enough {
                self.flush(exchange, out)?;
            }
        }
        if piece.is_last() {
            self.flush(exchange, out)?;
            return Ok(Passed::Ended);
        }
        Ok(Passed::NeedsMore)
    }

    fn flush(&mut self, _exchange: &Exchange, out: &mut Vec<u8>) -> Result<(), BodyFailed> {
        out.extend(self.held.drain(..).flat_map(|byte| [byte, byte]));
        Ok(())
    }
}

fn exchange() -> Exchange {
    let plan = testing::plan("server { listen 127.0.0.1:8080; }").expect("a plan");
    testing::exchange(plan, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// What is ready, call by call, up to the end or the first call with nothing.
fn ready<F: BodyFilter>(filtered: &mut Filtered<F>) -> Vec<String> {
    let mut exchange = exchange();
    let mut calls = Vec::new();
    loop {
        let mut out = Vec::new();
        let ready = filtered.ready(&mut exchange, &mut out);
        let text = String::from_utf8(out).expect("text");
        match ready {
            None => calls.push("nothing".to_owned()),
            Some(Err(BodyFailed)) => calls.push("failed".to_owned()),
            Some(Ok(false)) => calls.push(format!("{text} end")),
            Some(Ok(true)) => {
                calls.push(text);
                continue;
            }
        }
        return calls;
    }
}

#[test]
fn a_piece_at_hand_is_ready_behind_a_filter() {
    let cases: &[Case] = &[
        (
            &[Some(b"ab"), Some(b"cd"), Some(b"ef")],
            &["ab", "cd", "e end"],
        ),
        (&[Some(b"ab"), None], &["ab", "nothing"]),
        (&[Some(b""), Some(b"abcdefg")], &["abcde end"]),
        (&[None, Some(b"ab")], &["nothing"]),
        (&[Some(b"ab")], &["ab end"]),
    ];
    for (pieces, expected) in cases {
        let mut filtered = Filtered::new(Box::new(Script::of(pieces)), First(5));
        assert_eq!(ready(&mut filtered), *expected, "{pieces:?}");
    }
}

#[test]
fn what_a_filter_holds_is_flushed_when_nothing_is_at_hand() {
    let cases: &[Case] = &[
        (
            &[Some(b"ab"), Some(b"c"), None, None],
            &["aabbcc", "nothing"],
        ),
        (&[Some(b"ab"), Some(b"c")], &["aabbcc end"]),
        (&[Some(b"abcdef")], &["aabbccdd", "eeff end"]),
        (&[Some(b"ax"), None], &["failed"]),
    ];
    for (pieces, expected) in cases {
        let filter = Doubling {
            held: Vec::new(),
            enough: 8,
        };
        let mut filtered = Filtered::new(Box::new(Script::of(pieces)), filter);
        assert_eq!(ready(&mut filtered), *expected, "{pieces:?}");
    }
}

/// Lets nothing through.
struct Nothing;

impl BodyFilter for Nothing {
    fn pass(
        &mut self,
        _exchange: &Exchange,
        piece: &mut Piece,
        _out: &mut Vec<u8>,
    ) -> Result<Passed, BodyFailed> {
        piece.take(piece.rest().len());
        Ok(piece.passed(b""))
    }
}

#[test]
fn a_turn_ends_although_nothing_comes_of_it() {
    let piece = vec![b'a'; TURN_BYTES_MAX / 2];
    let pieces: Vec<Option<&[u8]>> = vec![Some(&piece); 5];
    let mut filtered = Filtered::new(Box::new(Script::of(&pieces)), Nothing);
    assert_eq!(ready(&mut filtered), ["", "", " end"]);
}

#[test]
fn a_body_that_outlives_its_client_is_read_without_the_filter() {
    let script = Script::of(&[Some(b"ab"), Some(b"cd"), Some(b"ef")]);
    let ended = Rc::clone(&script.ended);
    let mut filtered = Filtered::new(Box::new(script), First(1));
    let mut exchange = exchange();
    let mut out = Vec::new();
    assert_eq!(filtered.ready(&mut exchange, &mut out), Some(Ok(false)));
    assert!(filtered.outlives_client());
    assert_eq!(ready(&mut filtered), ["cd", "ef end"]);
    assert!(!ended.get());
    filtered.ended(&mut exchange);
    assert!(ended.get());
}
