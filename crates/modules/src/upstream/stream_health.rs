//! `health_check` and `match` in `stream`: active checks of the group that a server passes its
//! sessions to.

use std::pin::Pin;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Directive, Entry, View, bytes_of};
use turnpike_lane::sys::socket;
use turnpike_lane::timeout::bounded;
use turnpike_plan::regex::Regex;
use turnpike_stream::plan::Builder;
use turnpike_upstream::{
    Asks, Check, CheckOutcome, CheckRules, CheckTls, Connection, DatagramConnection,
    DatagramQuestion, Question,
};
use turnpike_wire::hex;

use super::background::{self, BackgroundTasks};
use super::handler::Upstream;
use super::health::{invalid, number, rule};
use super::matches::{self, Match};

/// The most bytes of an answer that are looked at: greetings of servers are short, and each check
/// holds so many.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// The longest datagram.
const DATAGRAM_BYTES_MAX: usize = 64 * 1024;

const FAILED_SENDING: &str = "sending data to upstream";
const FAILED_READING: &str = "reading data from upstream";
const FAILED_JUDGING: &str = "checking data from upstream";

/// A `match` block.
#[derive(Default)]
pub(super) struct Conversation {
    send: Vec<u8>,
    expect: Option<Expectation>,
}

/// `expect`.
enum Expectation {
    /// The answer begins with these bytes.
    Bytes(Vec<u8>),
    /// The pattern matches somewhere in the answer.
    Pattern(Regex),
}

/// What the beginning of an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Good,
    Bad,
    /// More may tell.
    Open,
}

impl Match for Conversation {
    fn add(&mut self, line: &Directive, place: &str) -> Result<(), Complaint> {
        let words = line.arguments.iter();
        let words: Vec<&str> = words.map(|word| word.text.as_str()).collect();
        match (line.name.text.as_str(), words.as_slice()) {
            ("send", [text]) if self.send.is_empty() => self.send = bytes_in(text)?,
            ("expect", ["~", pattern]) if self.expect.is_none() => {
                let regex = Regex::case_sensitive(pattern, place)?;
                self.expect = Some(Expectation::Pattern(regex));
            }
            ("expect", [text]) if self.expect.is_none() => {
                self.expect = Some(Expectation::Bytes(bytes_in(text)?));
            }
            (name @ ("send" | "expect"), [_] | ["~", _]) => {
                return Err(format!("\"{name}\" directive is duplicate").into());
            }
            (name @ ("send" | "expect"), _) => {
                return Err(format!("invalid parameters of \"{name}\"").into());
            }
            (name, _) => return Err(format!("unknown directive \"{name}\"").into()),
        }
        Ok(())
    }
}

impl Conversation {
    /// Judges an answer of which so much has come.
    fn judge(&self, answer: &[u8]) -> Judgement {
        match &self.expect {
            None => Judgement::Good,
            Some(Expectation::Bytes(wanted)) if answer.starts_with(wanted) => Judgement::Good,
            Some(Expectation::Bytes(wanted)) if wanted.starts_with(answer) => Judgement::Open,
            Some(Expectation::Bytes(_)) => Judgement::Bad,
            Some(Expectation::Pattern(regex)) => match regex.decide(answer) {
                Ok(true) => Judgement::Good,
                Ok(false) if answer.len() < ANSWER_BYTES_MAX => Judgement::Open,
                // What is undecided is not good.
                Ok(false) | Err(_) => Judgement::Bad,
            },
        }
    }
}

/// The bytes that a text stands for: `\x` and two hexadecimal digits are one.
fn bytes_in(text: &str) -> Result<Vec<u8>, Complaint> {
    let (text_bytes, mut bytes) = (bytes_of(text), Vec::new());
    let mut rest = text_bytes.as_slice();
    while let Some((&first, behind)) = rest.split_first() {
        match rest.strip_prefix(b"\\x") {
            None => {
                bytes.push(first);
                rest = behind;
            }
            Some(digits) => {
                let byte = hex::byte(digits);
                bytes.push(byte.ok_or_else(|| format!("invalid hex literal in \"{text}\""))?);
                rest = &digits[2..];
            }
        }
    }
    Ok(bytes)
}

/// A conversation, and the time that it may take.
struct Talk {
    conversation: Arc<Conversation>,
    timeout_ms: u64,
}

impl Question for Talk {
    fn ask<'a>(
        &'a self,
        connection: &'a Connection,
    ) -> Pin<Box<dyn Future<Output = CheckOutcome> + 'a>> {
        Box::pin(async move {
            let talk = talk(&self.conversation, connection);
            let found = bounded(self.timeout_ms, talk).await;
            CheckOutcome {
                found: found.unwrap_or(Err(FAILED_READING)),
                is_reusable: false,
            }
        })
    }
}

impl DatagramQuestion for Talk {
    fn ask<'a>(
        &'a self,
        socket: &'a DatagramConnection,
    ) -> Pin<Box<dyn Future<Output = Result<(), &'static str>> + 'a>> {
        Box::pin(async move {
            let talk = exchange(&self.conversation, socket);
            let found = bounded(self.timeout_ms, talk).await;
            found.unwrap_or(Err(FAILED_READING))
        })
    }
}

async fn talk(conversation: &Conversation, connection: &Connection) -> Result<(), &'static str> {
    if !conversation.send.is_empty() {
        let sent = connection.write_all(&conversation.send, 0).await;
        sent.map_err(|_| FAILED_SENDING)?;
    }
    let mut answer = Vec::new();
    loop {
        match conversation.judge(&answer) {
            Judgement::Good => return Ok(()),
            Judgement::Bad => return Err(FAILED_JUDGING),
            Judgement::Open => {}
        }
        let room = ANSWER_BYTES_MAX.saturating_sub(answer.len());
        match connection.read(&mut answer, room, 0).await {
            Ok(0) => return Err(FAILED_JUDGING),
            Ok(_) => {}
            Err(_) => return Err(FAILED_READING),
        }
    }
}

/// Sends the datagram, and waits for one. The socket is new: it answers this question.
async fn exchange(
    conversation: &Conversation,
    peer: &DatagramConnection,
) -> Result<(), &'static str> {
    let sent = peer.send(&conversation.send).await;
    sent.map_err(|_| FAILED_SENDING)?;
    let mut datagram = vec![0; DATAGRAM_BYTES_MAX];
    let received = peer.receive(|from| socket::receive(from, &mut datagram));
    let bytes = received.await.map_err(|_| FAILED_READING)?;
    match conversation.judge(&datagram[..bytes]) {
        Judgement::Good => Ok(()),
        Judgement::Bad | Judgement::Open => Err(FAILED_JUDGING),
    }
}

/// What a server says of the group that is checked.
pub(crate) struct CheckedServers<'a> {
    /// The group.
    pub upstream: &'a Upstream,
    /// TLS, where the group speaks it.
    pub tls: Option<CheckTls>,
    /// What connections begin with.
    pub proxy_header: Vec<u8>,
}

/// Has the group checked where the server says so.
///
/// # Errors
/// nginx's, of parameters.
pub(crate) fn check_servers(
    view: View<'_>,
    builder: &mut Builder<'_>,
    checked: CheckedServers<'_>,
) -> Result<(), ConfError> {
    let Some(entry) = view.own("health_check") else {
        return Ok(());
    };
    let log = background::log(view, builder)?;
    let place = |message: Complaint| view.error(entry.span, message);
    let mut rules = CheckRules::default();
    let (conversation, by_datagrams) = parameters(entry, &mut rules, builder).map_err(place)?;
    let timeout_ms = view.milliseconds("health_check_timeout");
    let talk = Arc::new(Talk {
        conversation,
        timeout_ms,
    });
    let check = Check {
        group: Arc::downgrade(checked.upstream.group()),
        number: number(&rules, checked.upstream.group()).map_err(place)?,
        rules,
        question: if by_datagrams {
            Asks::Datagrams(talk)
        } else {
            Asks::Connection(talk)
        },
        proxy_header: checked.proxy_header,
        tls: checked.tls,
        connect_timeout_ms: timeout_ms,
        log,
    };
    builder.store::<BackgroundTasks>().add(Arc::new(check));
    Ok(())
}

/// Reads the parameters: what is said and expected, and whether by datagrams.
fn parameters(
    entry: &Entry,
    rules: &mut CheckRules,
    builder: &mut Builder<'_>,
) -> Result<(Arc<Conversation>, bool), Complaint> {
    let (mut conversation, mut by_datagrams) = (Arc::<Conversation>::default(), false);
    for word in entry.arguments.iter() {
        let text = word.text.as_str();
        if rule(text, rules)? {
            continue;
        }
        match text.split_once('=') {
            Some(("match", given)) => {
                conversation = matches::named(given, builder)?;
                rules.name = given.to_owned();
            }
            None if text == "udp" => by_datagrams = true,
            _ => return Err(invalid(text).into()),
        }
    }
    // Without an answer, nothing is known of a server of UDP.
    if by_datagrams && (conversation.send.is_empty() || conversation.expect.is_none()) {
        let message = "\"udp\" parameter requires \"match\" with \"send\" and \"expect\"";
        return Err(message.to_owned().into());
    }
    Ok((conversation, by_datagrams))
}

#[cfg(test)]
mod tests;
