//! `$upstream_*`: what is known of the servers that were asked. Values of several tries stand in
//! their order, behind a comma, or behind a colon where an internal redirect lies between.

use super::text::{append_number, append_seconds, same_name};
use crate::exchange::Exchange;
use crate::upstream::Try;

pub(super) fn address(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| {
        out.extend_from_slice(one.address.as_bytes());
    })
}

pub(super) fn status(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| match one.status {
        0 => out.push(b'-'),
        status => append_number(out, u64::from(status)),
    })
}

pub(super) fn queue_time(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| time(one.queue_ms, out))
}

pub(super) fn connect_time(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| time(one.connect_ms, out))
}

pub(super) fn header_time(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| time(one.header_ms, out))
}

pub(super) fn response_time(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| time(one.response_ms, out))
}

pub(super) fn response_length(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| {
        append_number(out, one.response_bytes);
    })
}

pub(super) fn bytes_received(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| {
        append_number(out, one.bytes_received);
    })
}

pub(super) fn bytes_sent(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    list(exchange, out, |one, out| append_number(out, one.bytes_sent))
}

/// `$upstream_http_NAME`.
pub(super) fn field(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    let mut found = false;
    for (own, value) in exchange.upstream.answer().fields.iter() {
        if same_name(own, name) {
            if found {
                out.extend_from_slice(b", ");
            }
            found = true;
            out.extend_from_slice(value);
        }
    }
    found
}

/// `$upstream_cookie_NAME`: of the first `Set-Cookie` that sets it. Cookies are read by nginx's
/// rule: only spaces stand around the equals sign, and the name begins the value.
pub(super) fn cookie(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    let mut fields = exchange.upstream.answer().fields.iter();
    let value = fields.find_map(|(own, value)| cookie_value(own, value, name));
    let Some(value) = value else { return false };
    out.extend_from_slice(value);
    true
}

/// The value that a `Set-Cookie` field gives the cookie of that name.
fn cookie_value<'a>(own: &[u8], value: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    if !own.eq_ignore_ascii_case(b"Set-Cookie") {
        return None;
    }
    let (begin, rest) = value.split_at_checked(name.len())?;
    if !begin.eq_ignore_ascii_case(name) {
        return None;
    }
    let rest = without_spaces(without_spaces(rest).strip_prefix(b"=")?);
    let end = memchr::memchr(b';', rest).unwrap_or(rest.len());
    Some(&rest[..end])
}

fn without_spaces(mut text: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = text {
        text = rest;
    }
    text
}

fn list(exchange: &Exchange, out: &mut Vec<u8>, one: impl Fn(&Try, &mut Vec<u8>)) -> bool {
    for (index, part) in exchange.upstream.tries().iter().enumerate() {
        if index > 0 {
            let between: &[u8] = if part.after_redirect { b" : " } else { b", " };
            out.extend_from_slice(between);
        }
        one(part, out);
    }
    !exchange.upstream.tries().is_empty()
}

fn time(milliseconds: Option<u64>, out: &mut Vec<u8>) {
    match milliseconds {
        Some(milliseconds) => append_seconds(out, milliseconds),
        None => out.push(b'-'),
    }
}
