//! The expected answer to a request, by the configuration and the origins' actions.

use crate::answer::{Ending, Failing};
use crate::client::Client;
use crate::content::{body, shown};
use crate::message::Message;
use crate::origin::{AUTH, Arrival, Broken, Outcome};
use crate::protocol::Protocol;
use crate::request::{Request, Target};
use crate::scenario::{FILE_BYTES, FILE_NUMBER, Settings, TEXT_BYTES};
use crate::world::World;

/// Lifetimes are in whole seconds, and are checked by the lane's clock.
const STALE_MS: u64 = 2_000;

/// A page: text and commands, in turns. It includes the answer of an origin and a text.
pub(crate) const PAGE: [&str; 5] = [
    "beginning\n",
    "<!--#include virtual=\"/part/$http_x_number\" -->",
    "middle\n",
    "<!--#include virtual=\"/text/2\" -->",
    "end\n",
];

/// The expected answer.
struct Expected {
    body: Vec<u8>,
    /// Whether it may end too early, and whether that is visible.
    may_be_cut: bool,
    may_seem_whole: bool,
    has_length: bool,
}

/// One request with its answer, and all data about both.
pub(crate) struct Case<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) world: &'a World,
    pub(crate) client: &'a Client,
    pub(crate) index: usize,
    pub(crate) request: &'a Request,
    pub(crate) answer: &'a Message,
    /// Whether the client has left before the end.
    pub(crate) has_left: bool,
}

impl Case<'_> {
    /// The error of the answer, if any.
    pub(crate) fn problem(&self) -> Option<String> {
        let path = self.request.path();
        let expected = match self.expected() {
            Ok(expected) => expected,
            Err(problem) => return Some(format!("{path}: {problem}")),
        };
        expected
            .compare(self)
            .or_else(|| self.connection(expected.may_be_cut))
            .map(|problem| format!("{path}: {problem}"))
    }

    fn expected(&self) -> Result<Expected, String> {
        let status = self.answer.status();
        let is_unsent = self.client.is_unsent(self.index);
        if is_unsent && (status == 400 || status == 408) {
            return Ok(page(status));
        }
        match self.request.target {
            Target::Text(number) => self.own(200, body(number as u64, TEXT_BYTES[number])),
            Target::File(number) | Target::Slow(number) => {
                let content = FILE_NUMBER + number as u64;
                self.own(200, body(content, FILE_BYTES[number]))
            }
            Target::Missing => self.own(404, page(404).body),
            Target::Malformed => self.own(400, page(400).body),
            Target::Passed(_) | Target::Mirrored | Target::Tunnel(_) => {
                self.passed_on(self.arrivals(0))
            }
            Target::Guarded => self.guarded(),
            Target::Page => self.page(),
            Target::Cached(path) => {
                let arrivals = self.world.origins.versions.get(&path);
                self.stored(arrivals.map_or(&[], Vec::as_slice))
            }
        }
    }

    /// The requests that a client's request has led to, with this difference of numbers.
    fn arrivals(&self, difference: u64) -> &[Arrival] {
        let arrivals = &self.world.origins.arrivals;
        let found = arrivals.get(&(self.request.number + difference));
        found.map_or(&[], Vec::as_slice)
    }

    /// The answer to a request that another origin must allow.
    fn guarded(&self) -> Result<Expected, String> {
        let status = self.answer.status();
        let asked = self.arrivals(AUTH);
        let judged = asked.last();
        let said = judged.map_or(0, |last| last.answer.status);
        let is_own = self.content().is_none();
        let has_failed = self.ends_with(502, asked) || self.ends_with(504, asked);
        let line = &self.answer.first_line;
        if self.arrivals(0).is_empty() && is_own && matches!(status, 401 | 403 | 500) {
            let is_refusal = match status {
                500 => has_failed || !matches!(said, 200 | 401 | 403),
                status => status == said,
            };
            return if is_refusal {
                Ok(page(status))
            } else {
                Err(format!("was refused with {line}, the guard: {judged:?}"))
            };
        }
        let is_allowed = said == 200
            && judged.is_some_and(|last| {
                last.broken != Some(Broken::Head)
                    && last.outcome != Outcome::Failed { had_head: false }
            });
        if is_allowed {
            self.passed_on(self.arrivals(0))
        } else {
            Err(format!(
                "was let through with {line}, the guard: {judged:?}"
            ))
        }
    }

    /// A page with an origin's answer in it, or with the page of its error.
    fn page(&self) -> Result<Expected, String> {
        if self.answer.status() != 200 {
            return Err(format!("was answered with {}", self.answer.first_line));
        }
        let arrivals = self.arrivals(0);
        let text = body(2, TEXT_BYTES[2]);
        let whole = |part: &[u8]| {
            let [beginning, _, middle, _, end] = PAGE.map(str::as_bytes);
            [beginning, part, middle, &text, end].concat()
        };
        let mut candidates = Vec::new();
        if let Some(last) = arrivals.last()
            && last.broken != Some(Broken::Head)
        {
            let has_failed = last.outcome == Outcome::Failed { had_head: true };
            let is_cut = has_failed || last.broken.is_some();
            let mut part = body(last.content, last.answer.length);
            let is_closed = last
                .answer
                .fails
                .is_some_and(|(_, how)| how == Failing::Close);
            if has_failed && is_closed && is_ended_by_close(last) {
                // Its end cannot be told from that of a whole part: it is where something else has
                // come, if anything has.
                let came = self.answer.body.get(PAGE[0].len()..).unwrap_or_default();
                let common = part
                    .iter()
                    .zip(came)
                    .take_while(|(one, other)| one == other);
                let common = common.count();
                if came.len() > common {
                    part.truncate(common);
                }
            }
            candidates.push((part, is_cut));
        }
        for status in [502, 504] {
            if self.ends_with(status, arrivals) {
                candidates.push((page(status).body, false));
            }
        }
        let of_candidate = |(part, may_be_cut): (Vec<u8>, bool)| Expected {
            body: whole(&part),
            may_be_cut,
            may_seem_whole: false,
            has_length: false,
        };
        let mut candidates = candidates.into_iter().map(of_candidate);
        let fits = |expected: &Expected| expected.compare(self).is_none();
        // Without a part there is only what stands before it.
        let first = candidates.next().unwrap_or_else(|| Expected {
            body: PAGE[0].into(),
            may_be_cut: true,
            may_seem_whole: false,
            has_length: false,
        });
        if fits(&first) {
            Ok(first)
        } else {
            Ok(candidates.find(fits).unwrap_or(first))
        }
    }

    fn own(&self, status: u16, body: Vec<u8>) -> Result<Expected, String> {
        if self.answer.status() != status {
            return Err(format!("was answered with {}", self.answer.first_line));
        }
        Ok(Expected {
            body,
            may_be_cut: false,
            may_seem_whole: false,
            has_length: true,
        })
    }

    /// The answer of the last origin that was tried.
    fn passed_on(&self, arrivals: &[Arrival]) -> Result<Expected, String> {
        let content = self.content();
        if let Some(last) = arrivals.last()
            && content == Some(last.content)
        {
            return self.of_origin(last);
        }
        let status = self.answer.status();
        if content.is_none() && self.ends_with(status, arrivals) {
            Ok(page(status))
        } else {
            let line = &self.answer.first_line;
            let last = arrivals.last();
            Err(format!("was answered with {line}, the origin: {last:?}"))
        }
    }

    /// Whether these tries may end with a page of the server's own with this status.
    fn ends_with(&self, status: u16, arrivals: &[Arrival]) -> bool {
        let is_due = match arrivals {
            // A failed kept connection does not use a try, but removes its server: none is left at
            // the end.
            [.., last] if status == 502 => {
                let loses_servers = arrivals.len() > 1 || self.has_closed_idle();
                self.fails_with(last, 502) || (loses_servers && self.fails_with(last, 504))
            }
            [.., last] => self.fails_with(last, status),
            [] => status == 502 && self.met_a_closed_connection(),
        };
        // The last try may have gone to the server that refuses connections.
        let is_refused = status == 502 && self.settings.proxy.has_dead_server;
        is_due || is_refused
    }

    /// Whether an origin has closed an idle connection at any time.
    fn has_closed_idle(&self) -> bool {
        !self.world.origins.idle_closed_ms.is_empty()
    }

    /// Whether the request may have gone to a kept connection that its origin was just closing, and
    /// may not go to another server: with `proxy_next_upstream off`, or with a body, it ends there,
    /// as in nginx.
    fn met_a_closed_connection(&self) -> bool {
        let asked_ms = self.client.asked_ms.get(self.index).copied().unwrap_or(0);
        let closed_ms = self.world.origins.idle_closed_ms.last().copied();
        let is_last_try = self.settings.proxy.next_upstream == "off" || self.request.has_body();
        is_last_try && closed_ms.is_some_and(|at_ms| at_ms >= asked_ms)
    }

    /// An answer of any version that may still be used.
    fn stored(&self, arrivals: &[Arrival]) -> Result<Expected, String> {
        let status = self.answer.status();
        let Some(content) = self.content() else {
            let has_failed = arrivals.iter().any(|one| self.fails_with(one, status));
            let is_refused = status == 502 && self.settings.proxy.has_dead_server;
            let is_closed = status == 502 && self.met_a_closed_connection();
            return if has_failed || is_refused || is_closed {
                Ok(page(status))
            } else {
                Err(format!("was answered with {}", self.answer.first_line))
            };
        };
        let version = arrivals.iter().position(|one| one.content == content);
        let Some(version) = version else {
            return Err(format!("holds content {content}, which no origin has sent"));
        };
        let arrival = &arrivals[version];
        let asked_ms = self.client.asked_ms.get(self.index).copied().unwrap_or(0);
        let lives_ms = arrival.answer.fresh_s.unwrap_or(0) * 1000 + STALE_MS;
        let is_fresh = asked_ms <= arrival.at_ms + arrival.answer.delay_ms + lives_ms;
        if !is_fresh && !self.settings.proxy.uses_stale {
            let at_ms = arrival.at_ms;
            return Err(format!(
                "holds an answer of {at_ms} ms, asked at {asked_ms} ms"
            ));
        }
        self.of_origin(arrival)
    }

    fn of_origin(&self, arrival: &Arrival) -> Result<Expected, String> {
        let answer = &arrival.answer;
        if self.answer.status() != answer.status {
            return Err(format!(
                "was answered with {}, the origin sent {}",
                self.answer.first_line, answer.status
            ));
        }
        if arrival.broken == Some(Broken::Head) {
            return Err(format!("was passed on with a broken head: {arrival:?}"));
        }
        if answer.ending == Ending::Tunnel {
            return self.tunnelled(arrival);
        }
        let has_failed = matches!(arrival.outcome, Outcome::Failed { had_head: true });
        let how = answer.fails.map(|(_, how)| how);
        Ok(Expected {
            body: body(arrival.content, answer.length),
            may_be_cut: has_failed || arrival.broken.is_some(),
            may_seem_whole: has_failed && is_ended_by_close(arrival) && how == Some(Failing::Close),
            has_length: false,
        })
    }

    /// What an origin sends through a tunnel. The tunnel's end is all that ends it, early or not.
    fn tunnelled(&self, arrival: &Arrival) -> Result<Expected, String> {
        let upgrade = self.answer.field("Upgrade");
        if upgrade != Some("simulated") {
            return Err(format!("Upgrade is {upgrade:?}"));
        }
        let may_be_cut = arrival.outcome != Outcome::Whole;
        Ok(Expected {
            body: body(arrival.content, arrival.answer.length),
            may_be_cut,
            may_seem_whole: may_be_cut,
            has_length: false,
        })
    }

    /// Whether this failure of an origin gives this status.
    fn fails_with(&self, arrival: &Arrival, status: u16) -> bool {
        let fails = arrival.answer.fails;
        let is_late = arrival.head_ms + 400 >= self.settings.proxy.read_timeout_ms;
        let is_cut = arrival.outcome == Outcome::Failed { had_head: false };
        let is_silent = is_cut && matches!(fails, Some((_, Failing::Stall)));
        match status {
            // A wrong part of the body may come together with the head.
            502 => (is_cut && !is_silent) || arrival.broken.is_some(),
            504 => is_late || is_silent,
            // There is no value, and that is all that is said.
            404 => {
                let is_none = arrival.answer.status != 200 && !is_cut;
                arrival.protocol == Protocol::Memcached && is_none
            }
            _ => false,
        }
    }

    /// The number of the answer's content.
    fn content(&self) -> Option<u64> {
        self.answer.field("X-Content")?.parse().ok()
    }

    /// The fault in `Connection`, if any. A body that may be cut short ends the connection, if that
    /// is known before the head is sent.
    fn connection(&self, may_be_cut: bool) -> Option<String> {
        let request = self.request;
        let value = self.answer.field("Connection");
        if self.client.http2.is_some() {
            return value.map(|value| format!("Connection is {value:?} in HTTP/2"));
        }
        let status = self.answer.status();
        if status == 101 {
            return (value != Some("upgrade")).then(|| format!("Connection is {value:?}"));
        }
        // Pages for these faults end the connection, as in nginx.
        let is_fault = status == 400 || (status == 500 && self.content().is_none());
        let asks_close = request.says_close || request.is_version_10 || is_fault;
        let is_last = self.index + 1 >= self.settings.keepalive_requests;
        let is_right = if asks_close || is_last {
            value == Some("close")
        } else {
            // An unread body may end the connection.
            let may_end = request.upload.is_some() || status == 408 || may_be_cut;
            value == Some("keep-alive") || may_end
        };
        (!is_right).then(|| format!("Connection is {value:?}"))
    }
}

impl Expected {
    fn compare(&self, case: &Case<'_>) -> Option<String> {
        let answer = case.answer;
        let body: &[u8] = if case.request.is_head() {
            b""
        } else {
            &self.body
        };
        if !body.starts_with(&answer.body) {
            let at = answer.body.iter().zip(body).take_while(|(a, b)| a == b);
            let (at, come, whole) = (at.count(), answer.body.len(), body.len());
            let got = shown(&answer.body[at..come.min(at + 64)]);
            return Some(format!(
                "a wrong body ({come} bytes of {whole}), from byte {at} on: {got}"
            ));
        }
        let is_whole = answer.body.len() == body.len();
        let seems_cut = !answer.is_whole && !case.has_left && !self.may_be_cut;
        let ends_early = answer.is_whole && !is_whole && !self.may_seem_whole;
        // Without a length and chunks, the end of the connection is the end of the body. It comes
        // early for a client that has ended its side, and has read that end as its answer's.
        let has_cut = case.has_left || case.client.cut_done.is_some();
        let may_end = self.may_be_cut || is_whole || has_cut;
        let is_bare = case.request.is_version_10 && may_end;
        if (seems_cut || ends_early) && !is_bare {
            let (come, whole) = (answer.body.len(), body.len());
            return Some(format!("{come} bytes of {whole} came"));
        }
        let length = answer.field("Content-Length");
        let wanted = self.body.len().to_string();
        if self.has_length && length != Some(wanted.as_str()) {
            return Some(format!("Content-Length is {length:?}, not {wanted}"));
        }
        None
    }
}

/// Whether only the end of the connection shows the end of the answer: records and lengths show it
/// otherwise.
fn is_ended_by_close(arrival: &Arrival) -> bool {
    match arrival.protocol {
        Protocol::Http1 => arrival.answer.ending == Ending::Close,
        // There are no chunks.
        Protocol::Scgi | Protocol::Uwsgi => arrival.answer.ending != Ending::Length,
        Protocol::FastCgi | Protocol::Memcached => false,
    }
}

/// An answer of the server's own.
fn page(status: u16) -> Expected {
    let reason = match status {
        400 => "Bad Request",
        401 => "Authorization Required",
        403 => "Forbidden",
        404 => "Not Found",
        500 => "Internal Server Error",
        408 => "Request Time-out",
        502 => "Bad Gateway",
        _ => "Gateway Time-out",
    };
    let body = format!(
        "<html>\r\n<head><title>{status} {reason}</title></head>\r\n<body>\r\n\
         <center><h1>{status} {reason}</h1></center>\r\n<hr><center>nginx/1.31.6</center>\r\n\
         </body>\r\n</html>\r\n"
    );
    Expected {
        body: body.into_bytes(),
        may_be_cut: false,
        may_seem_whole: false,
        has_length: true,
    }
}
