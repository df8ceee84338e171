//! The invariants of every run: compares the clients' results with the configuration, and the
//! lane's logs with the peers' records.

use std::collections::{BTreeMap, BTreeSet};

use turnpike_http::counters::{CloseReason, HttpCounters};

use crate::client::{Client, Cut, Ended, How};
use crate::content::shown;
use crate::expected::Case;
use crate::http2::{Http2, Stream, StreamEnd};
use crate::message::{self, Message};
use crate::origin::{Arrival, MIRROR, OriginConnection, Outcome};
use crate::request::{Request, Target};
use crate::run::{Left, Report};
use crate::scenario::Settings;
use crate::world::{Peer, World};

/// Time-outs are in slots of the lane's wheel, which is checked periodically.
const LATE_MS: u64 = 400;

/// Checks a run that has ended.
pub(crate) fn judge(
    settings: &Settings,
    world: &World,
    left: &Left,
    counters: &HttpCounters,
    access: &str,
    report: &mut Report,
) {
    nothing_is_left(world, left, counters, report);
    report
        .problems
        .extend(world.origins.problems.iter().cloned());
    mirrors(settings, world, report);
    repeats(settings, world, report);
    let log = read_log(access, report);
    let lines: usize = log.values().map(BTreeMap::len).sum();
    if lines as u64 != counters.requests.value() {
        let requests = counters.requests.value();
        let problem = format!("{requests} requests were counted, {lines} were logged");
        report.problems.push(problem);
    }
    for (index, client) in world.clients.iter().enumerate() {
        let mut problems = Vec::new();
        let answers = Transcript::read(client, &mut problems);
        answers.judge(settings, world, client, report, &mut problems);
        let connection = world
            .sockets
            .iter()
            .filter(|socket| matches!(socket.peer, Peer::Client(_)))
            .position(|socket| socket.peer == Peer::Client(index));
        if let Some(connection) = connection {
            let lines = log.get(&(connection as u64 + 1));
            if client.script.is_handshake {
                problems.extend(lines.map(|lines| format!("{lines:?} were logged")));
            } else {
                byte_counts(world, client, index, lines, &answers, &mut problems);
            }
        }
        let name = |problem| format!("client {index}: {problem}");
        report.problems.extend(problems.into_iter().map(name));
    }
}

/// Checks that requests that were to be copied were, once, and no others.
fn mirrors(settings: &Settings, world: &World, report: &mut Report) {
    let requests = world
        .clients
        .iter()
        .flat_map(|client| &client.script.requests);
    let arrivals = &world.origins.arrivals;
    for request in requests {
        let number = request.number;
        let was_passed_on = arrivals.contains_key(&number);
        let copies = arrivals.get(&(MIRROR + number)).map_or(0, Vec::len);
        let is_copied = request.target == Target::Mirrored;
        // A try may fail, and a copy with a body is sent to one server only.
        let may_be_lost = settings.proxy.has_dead_server
            || request.has_body()
            || settings.proxy.next_upstream == "off";
        if is_copied && was_passed_on && copies == 0 && !may_be_lost {
            let problem = format!("request {number} was passed on, and not copied");
            report.problems.push(problem);
        }
        if !is_copied && copies > 0 {
            let problem = format!("request {number} was copied {copies} times");
            report.problems.push(problem);
        }
    }
}

/// Checks that a request goes to another origin only if one has failed.
fn repeats(settings: &Settings, world: &World, report: &mut Report) {
    for (number, arrivals) in &world.origins.arrivals {
        let Some((_, earlier)) = arrivals.split_last() else {
            continue;
        };
        let is_sound = |arrival: &&Arrival| {
            arrival.outcome == Outcome::Whole
                && arrival.answer.status == 200
                && arrival.broken.is_none()
                && arrival.head_ms + LATE_MS < settings.proxy.read_timeout_ms
        };
        if let Some(sound) = earlier.iter().find(is_sound) {
            let problem = format!("request {number} was sent again after {sound:?}");
            report.problems.push(problem);
        }
    }
}

fn nothing_is_left(world: &World, left: &Left, counters: &HttpCounters, report: &mut Report) {
    let mut wrong = |is_wrong: bool, problem: String| {
        if is_wrong {
            report.problems.push(problem);
        }
    };
    if let Err(error) = &left.ended {
        wrong(true, format!("the lane failed: {error}"));
    }
    let [slots, driven, awaited, background] = left.connections;
    let [timers, watched_sockets, futures] = left.event_loop;
    let is_open = |connection: &&OriginConnection| !connection.is_closed;
    let open = world.upstream.iter().filter(is_open).count();
    for (count, what) in [
        (slots, "slots"),
        (driven, "driven connections"),
        (awaited, "awaited connections"),
        (background, "background requests"),
        (timers, "timers"),
        (watched_sockets, "watched sockets"),
        (futures, "futures"),
        (left.old_plans, "plans from before a reload"),
        (left.holders, "exchanges with their buffers"),
        (world.active_at_end as usize, "connections"),
        (open, "connections to origins"),
    ] {
        wrong(count > 0, format!("{count} {what} were left"));
    }
    let polls = left.spent_polls;
    wrong(
        polls > 0,
        format!("{polls} polls took turn after turn though no byte moved"),
    );
    let gauges = [
        ("active", counters.active.value()),
        ("writing", counters.writing.value()),
        ("waiting", counters.waiting.value()),
    ];
    for (name, value) in gauges {
        wrong(value > 0, format!("the gauge {name} was left at {value}"));
    }
    let panics = counters.panics.value();
    wrong(panics > 0, format!("{panics} panics"));
    let accepted = counters.accepted.value();
    let reasons: u64 = counters.closed.iter().map(|counter| counter.value()).sum();
    wrong(
        accepted != reasons,
        format!("{accepted} connections were accepted, {reasons} closings have a reason"),
    );
    let failed = counters.closed[CloseReason::Failed as usize].value();
    wrong(
        failed > 0,
        format!("{failed} connections ended by a fault of ours"),
    );
}

/// Length of `100 Continue`.
const CONTINUE_BYTES: u64 = 25;

/// A line of the access log.
#[derive(Clone, Copy, Debug)]
struct Line {
    status: u16,
    bytes_sent: u64,
    request_length: u64,
}

/// Lines by connection and by request.
type AccessLog = BTreeMap<u64, BTreeMap<u64, Line>>;

fn read_log(access: &str, report: &mut Report) -> AccessLog {
    let mut log = AccessLog::new();
    let mut given_up = BTreeSet::new();
    for text in access.lines() {
        let numbers: Vec<u64> = text
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [connection, request, status, bytes_sent, request_length, _] = numbers[..] else {
            report.problems.push(format!("a broken access log: {text}"));
            continue;
        };
        let is_http2 = text.ends_with("HTTP/2.0");
        let is_counted = log
            .get(&connection)
            .is_none_or(|lines| !lines.contains_key(&request));
        let is_given_up = matches!(status, 400 | 408) && bytes_sent == 0 && !is_http2;
        if is_given_up && !(request > 0 && is_counted) {
            // An incomplete head, too late or cut off: no request was counted, none is answered.
            // One that was read is counted, also if its response could not be sent.
            if !given_up.insert(connection) {
                let problem = format!("connection {connection} was given up twice");
                report.problems.push(problem);
            }
            continue;
        }
        let line = Line {
            status: status as u16,
            bytes_sent,
            request_length,
        };
        let lines = log.entry(connection).or_default();
        if lines.insert(request, line).is_some() {
            let problem = format!("request {request} of connection {connection} was logged twice");
            report.problems.push(problem);
        }
    }
    log
}

/// The responses that a client has read.
struct Transcript {
    /// The answers, with the indexes of their requests.
    answers: Vec<(usize, Message)>,
    /// The length of each with the interim responses before it.
    interim_bytes: usize,
}

impl Transcript {
    fn read(client: &Client, problems: &mut Vec<String>) -> Transcript {
        let has_ended = matches!(client.ended, Some((Ended::ByServer, _)));
        if let Some(http2) = &client.http2 {
            problems.extend(client.misread.clone());
            let streams = http2.streams.iter().enumerate();
            let answer = |(index, stream): (usize, &Stream)| Some((index, stream.answer.clone()?));
            return Transcript {
                answers: streams.filter_map(answer).collect(),
                interim_bytes: 0,
            };
        }
        let mut answers: Vec<(usize, Message)> = Vec::new();
        let mut interim_bytes = 0;
        let mut at = 0;
        while at < client.received.len() && !client.script.is_handshake {
            let request = client.script.requests.get(answers.len());
            let is_headless = request.is_some_and(Request::is_head);
            match message::response(&client.received[at..], is_headless, has_ended) {
                Ok(Some(message)) => {
                    at += message.length;
                    if message.status() < 200 && !message.is_tunnel() {
                        interim_bytes += message.length;
                        continue;
                    }
                    let is_whole = message.is_whole;
                    answers.push((answers.len(), message));
                    if !is_whole {
                        break;
                    }
                }
                // The head is incomplete.
                Ok(None) => break,
                Err(error) => {
                    let rest = shown(&client.received[at..]);
                    problems.push(format!("cannot read an answer ({error}): {rest}"));
                    break;
                }
            }
        }
        Transcript {
            answers,
            interim_bytes,
        }
    }

    fn judge(
        &self,
        settings: &Settings,
        world: &World,
        client: &Client,
        report: &mut Report,
        problems: &mut Vec<String>,
    ) {
        let requests = &client.script.requests;
        report.requests += client.asked_ms.len() as u64;
        for (index, answer) in &self.answers {
            let index = *index;
            let Some(request) = requests.get(index) else {
                problems.push(format!("an answer to no request: {}", answer.first_line));
                return;
            };
            report.answered += u64::from(answer.is_whole);
            let case = Case {
                settings,
                world,
                client,
                index,
                request,
                answer,
                has_left: has_left(client),
            };
            problems.extend(case.problem());
            problems.extend(plan_problem(world, client, index, answer));
            let has_close = answer.field("Connection") == Some("close");
            if has_close && client.http2.is_none() && self.answers.len() > index + 1 {
                problems.push(format!("was answered after a close, at request {index}"));
            }
        }
        match &client.http2 {
            None => self.missing(world, settings, client, problems),
            Some(http2) => missing_streams(http2, world, settings, client, problems),
        }
    }

    /// Checks whether requests may be without an answer.
    fn missing(
        &self,
        world: &World,
        settings: &Settings,
        client: &Client,
        problems: &mut Vec<String>,
    ) {
        let Some((ended, ended_ms)) = end(client, problems) else {
            return;
        };
        let count = self.answers.len();
        if count >= client.asked_ms.len() || ended == Ended::ByClient {
            return;
        }
        let last = self.answers.last().map(|(_, answer)| answer);
        let has_close = last.is_some_and(|answer| answer.field("Connection") == Some("close"));
        let is_cut = last.is_some_and(|answer| !answer.is_whole);
        // The server closed the idle connection while the request was on its way.
        let idle_until_ms = idle_until_ms(settings, client);
        let was_idle = ended_ms + LATE_MS >= idle_until_ms;
        let is_slow = was_idle && client.asked_ms[count] + LATE_MS >= idle_until_ms;
        let is_failed_page = is_failed_page(world, client, count);
        if !has_close && !is_cut && !is_slow && !is_failed_page && !has_left(client) {
            problems.push(format!("request {count} got no answer"));
        }
    }
}

/// The error in the plan that an answer was made by, if any: a request that comes after a reload is
/// served by the new plan, and none before it.
fn plan_problem(world: &World, client: &Client, index: usize, answer: &Message) -> Option<String> {
    let number = answer.field("X-Plan").and_then(|text| text.parse().ok());
    let Some(number) = number else {
        return Some(format!(
            "request {index} was answered without a plan's number"
        ));
    };
    let in_force_by = |at_ms: u64| {
        let reloads = world.reloaded_ms.iter();
        1 + reloads.filter(|reload_ms| **reload_ms < at_ms).count()
    };
    // An earlier head may have been read before the reload, so its body is of the old plan. What is
    // malformed is answered before it has come whole.
    let request = client.script.requests.get(index);
    let is_plain = request
        .is_some_and(|request| request.upload.is_none() && request.target != Target::Malformed);
    let asked_ms = client.asked_ms.get(index).copied().filter(|_| is_plain);
    let least = in_force_by(asked_ms.unwrap_or(0));
    let answered_ms = client.answered_at_ms(index);
    let most = in_force_by(answered_ms.map_or(u64::MAX, |at_ms| at_ms + 1));
    (!(least..=most).contains(&number))
        .then(|| format!("request {index} was served by plan {number}, not by {least} to {most}"))
}

/// How and when the client's connection ended; a problem where it did not, or was forgotten.
fn end(client: &Client, problems: &mut Vec<String>) -> Option<(Ended, u64)> {
    match client.ended {
        None => problems.push("has not ended".to_owned()),
        Some((Ended::Impatient, _)) => {
            problems.push("was forgotten: it neither got an answer nor was it closed".to_owned());
        }
        Some(_) => {}
    }
    client.ended
}

/// Until when the server keeps the idle connection, in milliseconds.
fn idle_until_ms(settings: &Settings, client: &Client) -> u64 {
    match client.answered_ms.last() {
        Some(answered_ms) => answered_ms + settings.keepalive_timeout_ms,
        None => client.script.start_ms + settings.header_timeout_ms,
    }
}

/// Whether a request is for a page whose part failed on the way: the head waits for the first bytes
/// of the body (`postpone_output`), and is not sent where these do not come.
fn is_failed_page(world: &World, client: &Client, index: usize) -> bool {
    let request = client.script.requests.get(index);
    request.is_some_and(|request| {
        let arrivals = world.origins.arrivals.get(&request.number);
        let last = arrivals.and_then(|arrivals| arrivals.last());
        request.target == Target::Page
            && last.is_some_and(|last| last.outcome != Outcome::Whole || last.broken.is_some())
    })
}

/// Checks whether requests of HTTP/2 may be without an answer.
fn missing_streams(
    http2: &Http2,
    world: &World,
    settings: &Settings,
    client: &Client,
    problems: &mut Vec<String>,
) {
    let Some((_, ended_ms)) = end(client, problems) else {
        return;
    };
    if has_left(client) {
        return;
    }
    let idle_until_ms = idle_until_ms(settings, client);
    for (index, stream) in http2.streams.iter().enumerate() {
        let is_answered = match stream.ended {
            Some((StreamEnd::Whole | StreamEnd::Refused, _)) => true,
            Some((StreamEnd::Reset, _)) => {
                stream.answer.is_some() || is_failed_page(world, client, index)
            }
            // The server closed the idle connection while the request was on its way.
            None => {
                ended_ms + LATE_MS >= idle_until_ms && stream.asked_ms + LATE_MS >= idle_until_ms
            }
        };
        if !is_answered {
            let end = stream.ended;
            problems.push(format!(
                "request {index} got no answer, its stream: {end:?}"
            ));
        }
    }
}

/// Whether the server may abort an answer because the client has left.
fn has_left(client: &Client) -> bool {
    let left = matches!(client.ended, Some((Ended::ByClient, _)));
    if client.http2.is_some() && client.cut_done.is_some() {
        return true;
    }
    let cut = client.script.cut.map(|cut: Cut| cut.how);
    if left || (client.cut_done.is_some() && cut == Some(How::Stall)) {
        return true;
    }
    // A client that has ended its side counts as gone if its answer must be waited for.
    let waits = |request: &Request| {
        request.waits_for_origins() || matches!(request.target, Target::Slow(_))
    };
    let open = client.script.requests.get(client.answers..);
    client.cut_done == Some(How::HalfClose) && open.unwrap_or_default().iter().any(waits)
}

/// Checks that the access log matches the sent bytes and the client's record.
fn byte_counts(
    world: &World,
    client: &Client,
    index: usize,
    lines: Option<&BTreeMap<u64, Line>>,
    transcript: &Transcript,
    problems: &mut Vec<String>,
) {
    let none = BTreeMap::new();
    let lines = lines.unwrap_or(&none);
    let peer = Peer::Client(index);
    let Some(socket) = world.sockets.iter().find(|socket| socket.peer == peer) else {
        return;
    };
    let logged: u64 = lines.values().map(|line| line.bytes_sent).sum();
    // Interim responses are not logged, and the client may not have read the last.
    let expects = |request: &&Request| request.upload.is_some_and(|one| one.expects_continue);
    let expecting = client.script.requests.iter().filter(expects).count() as u64;
    let interim = transcript.interim_bytes as u64;
    let rest = socket.sent.wrapping_sub(logged);
    let is_continue = rest % CONTINUE_BYTES == 0 && rest / CONTINUE_BYTES <= expecting;
    // Frames of the connection belong to no request, and a client that leaves does not get all.
    let is_http2 = client.http2.is_some() && (socket.sent >= logged || has_left(client));
    if rest != interim && !is_continue && !is_http2 {
        let sent = socket.sent;
        problems.push(format!("{sent} bytes were sent, {logged} were logged"));
    }
    let has_read_all = matches!(client.ended, Some((Ended::ByServer, _)));
    if has_read_all && socket.sent != client.received.len() as u64 {
        let (sent, read) = (socket.sent, client.received.len());
        problems.push(format!("{sent} bytes were sent, {read} were read"));
    }
    for (number, line) in lines {
        let index = (*number as usize).checked_sub(1);
        let request = index.and_then(|index| client.script.requests.get(index));
        let Some((request, index)) = request.zip(index) else {
            problems.push(format!("request {number} was logged, and never sent"));
            continue;
        };
        // The end of a malformed request line is undefined.
        let has_end = request.target != Target::Malformed && client.http2.is_none();
        if has_end && line.request_length > request.length as u64 {
            let (logged, sent) = (line.request_length, request.length);
            problems.push(format!(
                "request {number} has {sent} bytes, {logged} were logged"
            ));
        }
        let mut answers = transcript.answers.iter();
        let answer = answers.find(|(answered, _)| *answered == index);
        if let Some((_, answer)) = answer.filter(|(_, answer)| answer.is_whole)
            && answer.status() != line.status
        {
            let (sent, logged) = (answer.status(), line.status);
            problems.push(format!(
                "request {number} was answered with {sent}, {logged} was logged"
            ));
        }
    }
}
