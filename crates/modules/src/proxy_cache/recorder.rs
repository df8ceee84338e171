//! A server's answer on its way into the zone.

use std::sync::Arc;

use turnpike_cache::disk::{WriteFailure, Writer};
use turnpike_cache::fetch::{FetchOutcome, Turn};
use turnpike_cache::freshness::{
    RequestFacts, Staleness, judge, may_replace_status, remove_withheld,
};
use turnpike_cache::head::remove_unstorable;
use turnpike_cache::not_stored::NotStored;
use turnpike_cache::purge::{PurgeKind, Target};
use turnpike_cache::stored::{StoredBody, Variant};
use turnpike_cache::tally::Use;
use turnpike_cache::validation;
use turnpike_cache::vary::Selection;
use turnpike_cache::why::WhyNotStored;
use turnpike_cache::zone::{GrowingBody, NewResponse, Zone};
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_http::rooms::Rooms;
use turnpike_lane::log::{Errno, Level};
use turnpike_wire::date;
use turnpike_wire::message::{Head, Known, Method};

use super::answer::{self, Stored, Unanswered};
use super::counts;
use super::handler::{Question, request_field};
use super::note::note;
use super::plan::Honor;
use crate::common::predicates::any_holds;
use crate::pass::Failure;
use crate::pass::response_store::{Recorder, RecorderDecision};

/// One answer that may be stored.
pub(super) struct Storing {
    question: Question,
    /// What is stored already, and stale.
    stale: Option<Stored>,
    /// Whether an answer was about something else than is stored, so that conditions are of no use.
    mismatched: bool,
    turn: Option<Turn>,
    purge_sequence: u64,
    sent_ms: u64,
    /// How the request counts if a server answers it.
    one: Use,
    /// Whether HEAD is asked as GET.
    converted: bool,
    /// Whether the client's range is asked for as it is.
    of_range: bool,
    /// Where it is a POST: what it changes.
    post: Option<Post>,
    taking: Option<Taking>,
}

/// What a POST is about; left with the exchange while it is looked up.
pub(super) struct Post {
    /// The key of its target for GET.
    pub(super) target: Arc<[u8]>,
    /// Whether its success makes invalid what is stored there.
    pub(super) invalidates: bool,
}

impl Post {
    /// Leaves it with the exchange, in place of what an earlier look has left.
    pub(super) fn leave(self, rooms: &mut Rooms) {
        let _ = Self::take(rooms);
        rooms.hold(self);
    }

    fn take(rooms: &mut Rooms) -> Option<Self> {
        rooms.take_held()
    }
}

/// An answer that is being taken.
struct Taking {
    entry: NewResponse,
    sink: Sink,
}

enum Sink {
    Memory(GrowingBody),
    File(Writer),
    /// The response is not stored after all; with the system's error, where there is one.
    Failed(NotStored),
}

impl Storing {
    /// Before a server is asked.
    pub(super) fn begin(
        exchange: &mut Exchange,
        question: Question,
        one: Use,
        stale: Option<Stored>,
        turn: Option<Turn>,
    ) -> Self {
        if let Some(stale) = &stale
            && is_conditional(&question, &stale.variant)
        {
            let head = &stale.variant.head;
            let note = note(&mut exchange.rooms);
            note.modified = head.value(b"last-modified").and_then(date::parse);
            note.etag.clear();
            let etag = head.value(b"etag");
            note.etag.extend_from_slice(etag.unwrap_or_default());
        }
        let is_head = exchange.method() == Method::Head;
        Self {
            purge_sequence: question.zone.purge_sequence(),
            sent_ms: exchange.lane.clock.unix_ms(),
            converted: is_head && question.settings.convert_head,
            question,
            one,
            stale,
            mismatched: false,
            turn,
            of_range: false,
            post: Post::take(&mut exchange.rooms),
            taking: None,
        }
    }

    /// The same for a part of the response, asked for with the client's own fields.
    pub(super) fn of_range(self) -> Self {
        Self {
            of_range: true,
            ..self
        }
    }

    fn asked(&self, exchange: &Exchange) -> RequestFacts {
        let mut control = Vec::new();
        let no_store = self.question.settings.honor_request != Honor::Off
            && request_field(exchange, b"cache-control", &mut control)
            && turnpike_cache::control::CacheControl::parse(std::iter::once(control.as_slice()))
                .no_store;
        // No client is sent what only decides about a request: the key alone says for whom it
        // decides.
        let is_shared = !exchange.walk.only_decides();
        RequestFacts {
            authorized: is_shared && exchange.known_field(Known::Authorization).is_some(),
            no_store,
            explicit_only: self.post.is_some(),
            sent_ms: self.sent_ms,
            received_ms: exchange.lane.clock.unix_ms(),
        }
    }

    /// Decides whether the answer is stored, and where it goes.
    fn take(&self, exchange: &Exchange) -> Result<Taking, WhyNotStored> {
        let settings = &*self.question.settings;
        if !settings.no_store.is_empty() && any_holds(exchange, &settings.no_store) {
            return Err(WhyNotStored::Configured);
        }
        let mut head = exchange.upstream.head().compacted();
        if self.of_range && head.status != 206 {
            return Err(WhyNotStored::RangeOffset);
        }
        if head.status == 206 && exchange.method() != Method::Get {
            return Err(WhyNotStored::Partial);
        }
        if let Some(post) = &self.post
            && post.target == self.question.key
            && !is_of_target(exchange, &head)
        {
            return Err(WhyNotStored::Method);
        }
        let asked = self.asked(exchange);
        let timing = judge(&asked, &head, &settings.rules)?;
        let field = |name: &[u8], out: &mut Vec<u8>| request_field(exchange, name, out);
        let selection = if settings.rules.ignore_vary {
            Selection::default()
        } else {
            Selection::of(&head, &field)?
        };
        decided(exchange)?;
        let zone = &self.question.zone;
        let for_head = exchange.method() == Method::Head && !self.converted;
        if for_head {
            zone.note_head(&self.question.key, &head, &field, asked.received_ms);
        }
        let length = exchange.response.content_length().filter(|_| !for_head);
        if length.is_some_and(|length| !zone.holds(length)) {
            return Err(WhyNotStored::TooLarge);
        }
        remove_unstorable(&mut head);
        remove_withheld(&mut head, &settings.rules);
        let entry = NewResponse {
            key: self.question.key.clone(),
            host: host_of(exchange),
            head,
            selection,
            for_head,
            status_only: false,
            timing,
            purge_sequence: self.purge_sequence,
        };
        let sink = match zone.as_disk() {
            None => Sink::Memory(zone.begin_body(length)?),
            Some(_) => match zone.writer(&entry) {
                Ok(writer) => Sink::File(writer),
                Err(failure) => {
                    log_write_failure(exchange, zone, &failure);
                    return Err(WhyNotStored::WriteFailed);
                }
            },
        };
        Ok(Taking { entry, sink })
    }

    /// A 304: what is stored is as good as new.
    fn renew(&mut self, exchange: &mut Exchange, stored: &Stored) -> RecorderDecision {
        let (question, stale) = (&self.question, &stored.variant);
        let update = exchange.upstream.head();
        if !validation::is_about(&stale.head, update) {
            return self.ask_again(exchange, "another response than the stored one");
        }
        let mut head = validation::freshened(&stale.head, update);
        let asked = self.asked(exchange);
        let rules = &question.settings.rules;
        let judged = decided(exchange).and_then(|()| judge(&asked, &head, rules));
        let renewed = judged.and_then(|timing| {
            remove_withheld(&mut head, rules);
            let entry = NewResponse {
                key: question.key.clone(),
                host: host_of(exchange),
                head,
                selection: stale.selection.clone(),
                for_head: stale.for_head,
                status_only: stale.status_only,
                timing,
                purge_sequence: self.purge_sequence,
            };
            question.zone.freshen(stale, entry)
        });
        let renewed_or_not = Stored {
            variant: Arc::clone(renewed.as_ref().unwrap_or(stale)),
            bytes: stored.bytes.clone(),
        };
        let Some(verdict) = self.give(exchange, &renewed_or_not, Use::Revalidated) else {
            return self.ask_again(exchange, "a response that is no longer stored");
        };
        let outcome = match &renewed {
            Ok(_) => FetchOutcome::Stored,
            Err(why) => {
                counts::not_stored(exchange, &self.question.zone, *why);
                FetchOutcome::NotStored
            }
        };
        note(&mut exchange.rooms).keeps = renewed.is_ok();
        self.end_fetch(outcome);
        RecorderDecision::Replace(verdict)
    }

    /// A 304 about something else than is stored, as servers of a farm send it that do not tag
    /// alike, or about what was removed meanwhile: only the whole response helps.
    fn ask_again(&mut self, exchange: &mut Exchange, about: &str) -> RecorderDecision {
        exchange.log(
            Level::Info,
            format_args!("upstream sent \"304\" for {about}, it is asked again without conditions"),
        );
        let note = note(&mut exchange.rooms);
        note.modified = None;
        note.etag.clear();
        self.mismatched = true;
        self.sent_ms = exchange.lane.clock.unix_ms();
        RecorderDecision::AskAgain
    }

    /// The answer to what was asked without conditions, since what is stored is something else.
    fn without_conditions(
        &self,
        exchange: &Exchange,
        stale: &Arc<Variant>,
    ) -> Option<RecorderDecision> {
        let question = &self.question;
        question.zone.discard(&question.key, stale);
        if exchange.upstream.head().status != 304 {
            return None;
        }
        exchange.log(
            Level::Error,
            format_args!("upstream sent \"304\" though it was asked without conditions"),
        );
        Some(RecorderDecision::Replace(Verdict::Status(502)))
    }

    /// Counts the request as one that the server answers.
    fn count(&self, exchange: &mut Exchange) {
        let question = &self.question;
        counts::used(exchange, &question.settings.hosts, &question.zone, self.one);
    }

    /// Answers with what is stored. `None`: its content is gone, and the response is as it was.
    fn give(&self, exchange: &mut Exchange, stored: &Stored, one: Use) -> Option<Verdict> {
        let (question, variant) = (&self.question, &stored.variant);
        let rules = &*question.rules;
        let giving = question.settings.giving;
        let content = match answer::content(exchange, giving, variant) {
            // The request has waited for a server already: it waits for the disk too.
            Err(Unanswered::Unchecked(opened)) if is_sound(variant, &opened) => {
                answer::content(exchange, giving, variant)
            }
            content => content,
        };
        let Ok(content) = content else {
            question.zone.discard(&question.key, variant);
            return None;
        };
        exchange.response.clear();
        answer::give_content(exchange, giving, rules, stored, content);
        counts::used(exchange, &question.settings.hosts, &question.zone, one);
        Some(Verdict::Respond)
    }

    /// Whether what is stored may be sent in place of a failure.
    fn stale_for(&self, exchange: &Exchange, failure: Failure) -> Option<Stored> {
        let stale = self
            .stale
            .as_ref()
            .filter(|_| exchange.purpose() != Purpose::Renewal)?;
        let timing = stale.variant.timing();
        let now_ms = exchange.lane.clock.unix_ms();
        let by_settings =
            self.question.settings.stale.allows(failure) && timing.configuration_may_serve_stale();
        let rules = &self.question.settings.rules;
        let is_failure = match failure {
            Failure::Status(status) => {
                may_replace_status(&stale.variant.head, &timing, rules, status)
            }
            _ => true,
        };
        let by_origin = is_failure && timing.may_serve_if_error(now_ms);
        (by_settings || by_origin).then(|| stale.clone())
    }

    /// Makes invalid what the success of a POST may have changed (RFC 9111 section 4.4).
    fn invalidate(&mut self, exchange: &Exchange) {
        let Some(post) = self.post.as_ref().filter(|post| post.invalidates) else {
            return;
        };
        invalidate(exchange, &self.question.zone, &post.target);
        // What it has brought itself is of after that.
        self.purge_sequence = self.question.zone.purge_sequence();
    }

    fn end_fetch(&mut self, outcome: FetchOutcome) {
        if let Some(turn) = self.turn.take() {
            turn.end_fetch(outcome);
        }
    }
}

impl Recorder for Storing {
    fn method(&self) -> Option<Method> {
        self.converted.then_some(Method::Get)
    }

    fn replaces_conditions(&self) -> bool {
        !self.of_range && self.post.is_none()
    }

    fn outlives_client(&self) -> bool {
        self.post.is_none()
    }

    fn fields(&self, _exchange: &Exchange, add: &mut dyn FnMut(Known, &[u8])) {
        let Some(Stored { variant: stale, .. }) = &self.stale else {
            return;
        };
        // A POST with a condition is refused where nothing has changed.
        let asks_whole = self.mismatched || self.post.is_some();
        if asks_whole || !is_conditional(&self.question, stale) {
            return;
        }
        if let Some(modified) = stale.head.value(b"last-modified") {
            add(Known::IfModifiedSince, modified);
        }
        if let Some(etag) = stale.head.value(b"etag") {
            add(Known::IfNoneMatch, etag);
        }
    }

    fn head(&mut self, exchange: &mut Exchange) -> RecorderDecision {
        let status = exchange.upstream.head().status;
        if let Some(stale) = self.stale_for(exchange, Failure::Status(status))
            && let Some(verdict) = self.give(exchange, &stale, Use::Stale)
        {
            return RecorderDecision::Replace(verdict);
        }
        if self.mismatched
            && let Some(stale) = &self.stale
        {
            if let Some(wish) = self.without_conditions(exchange, &stale.variant) {
                return wish;
            }
        } else if status == 304
            && self.post.is_none()
            && let Some(stale) = self.stale.clone()
            && is_conditional(&self.question, &stale.variant)
        {
            return self.renew(exchange, &stale);
        }
        self.count(exchange);
        self.invalidate(exchange);
        match self.take(exchange) {
            Ok(taking) => {
                note(&mut exchange.rooms).keeps = true;
                self.taking = Some(taking);
                // Until it is whole.
                note(&mut exchange.rooms).not_stored = WhyNotStored::Truncated.text();
                exchange.response.set_unconditional(false);
                exchange.response.set_ranges_allowed(true);
                if exchange.response.content_length().is_some() {
                    exchange.response.fields_mut().remove(b"Accept-Ranges");
                }
                RecorderDecision::Record
            }
            Err(why) => {
                counts::not_stored(exchange, &self.question.zone, why);
                self.end_fetch(FetchOutcome::NotStored);
                RecorderDecision::Pass
            }
        }
    }

    fn redirected(&mut self, exchange: &Exchange) {
        self.invalidate(exchange);
    }

    fn intercepted(&mut self, exchange: &mut Exchange) {
        let status = exchange.upstream.head().status;
        self.count(exchange);
        self.invalidate(exchange);
        exchange.response.set_content_length(Some(0));
        match self.take(exchange) {
            Ok(mut taking) => {
                let head = &mut taking.entry.head;
                head.fields.retain(|entry| is_label(entry.name));
                head.status = status;
                taking.entry.status_only = true;
                self.taking = Some(taking);
                self.whole(exchange);
            }
            Err(why) => {
                counts::not_stored(exchange, &self.question.zone, why);
                self.end_fetch(FetchOutcome::NotStored);
            }
        }
        exchange.response.set_content_length(None);
    }

    fn piece(&mut self, bytes: &[u8]) {
        let Some(taking) = &mut self.taking else {
            return;
        };
        let failed = match &mut taking.sink {
            Sink::Memory(body) => body.push(bytes).err().map(|why| (why, None)),
            Sink::File(writer) => match writer.write(bytes) {
                Ok(()) if self.question.zone.holds(writer.bytes()) => None,
                Ok(()) => Some((WhyNotStored::TooLarge, None)),
                Err(failure) => Some((WhyNotStored::WriteFailed, Some(failure))),
            },
            Sink::Failed(_) => None,
        };
        if let Some((why, failure)) = failed {
            taking.sink = Sink::Failed(NotStored { why, failure });
            // The others need not wait for what will not be stored.
            self.end_fetch(FetchOutcome::NotStored);
        }
    }

    fn whole(&mut self, exchange: &mut Exchange) {
        let Some(taking) = self.taking.take() else {
            return;
        };
        let zone = &self.question.zone;
        let stored = match taking.sink {
            Sink::Memory(body) => {
                let stored = zone.store_memory(taking.entry, body.bytes().into());
                stored.map_err(NotStored::from)
            }
            Sink::File(writer) => zone.store_file(taking.entry, writer),
            Sink::Failed(not_stored) => Err(not_stored),
        };
        match stored {
            Ok(_) => {
                note(&mut exchange.rooms).not_stored = "";
                self.end_fetch(FetchOutcome::Stored);
            }
            Err(NotStored { why, failure }) => {
                if let Some(failure) = failure {
                    log_write_failure(exchange, zone, &failure);
                }
                counts::not_stored(exchange, zone, why);
                self.end_fetch(FetchOutcome::NotStored);
            }
        }
    }

    fn broken(&mut self, exchange: &mut Exchange) {
        if self.taking.take().is_some() {
            counts::not_stored(exchange, &self.question.zone, WhyNotStored::Truncated);
        }
    }

    fn failed(&mut self, exchange: &mut Exchange, failure: Failure) -> Option<Verdict> {
        if let Some(stale) = self.stale_for(exchange, failure)
            && let Some(verdict) = self.give(exchange, &stale, Use::Stale)
        {
            return Some(verdict);
        }
        self.count(exchange);
        // Who must be asked and cannot be is a gateway that does not answer (RFC 9111 section
        // 5.2.2.2).
        let must_ask = |stale: &Stored| stale.variant.timing().staleness == Staleness::Never;
        let is_cut_off = !matches!(failure, Failure::Status(_) | Failure::InvalidHeader);
        (is_cut_off && self.stale.as_ref().is_some_and(must_ask)).then_some(Verdict::Status(504))
    }
}

/// A request that may change what is stored under its key (RFC 9111 section 4.4).
pub(super) struct Changing {
    pub(super) zone: Arc<Zone>,
    pub(super) key: Arc<[u8]>,
}

impl Recorder for Changing {
    fn replaces_conditions(&self) -> bool {
        false
    }

    fn outlives_client(&self) -> bool {
        false
    }

    fn head(&mut self, exchange: &mut Exchange) -> RecorderDecision {
        invalidate(exchange, &self.zone, &self.key);
        RecorderDecision::Pass
    }

    fn intercepted(&mut self, exchange: &mut Exchange) {
        invalidate(exchange, &self.zone, &self.key);
    }

    fn redirected(&mut self, exchange: &Exchange) {
        invalidate(exchange, &self.zone, &self.key);
    }

    fn piece(&mut self, _bytes: &[u8]) {}

    fn whole(&mut self, _exchange: &mut Exchange) {}
}

/// Empties a key where the server has answered with success: not before, since who may not change
/// what is there may not empty it either.
fn invalidate(exchange: &Exchange, zone: &Zone, key: &[u8]) {
    let status = exchange.upstream.head().status;
    if validation::invalidates(exchange.method_name(), status) {
        let now_ms = exchange.lane.clock.unix_ms();
        zone.purge(&Target::Key(key.to_vec()), PurgeKind::Hard, now_ms);
    }
}

/// Whether the response to a POST says that it is what GET would bring (RFC 9110 section 9.3.3).
fn is_of_target(exchange: &Exchange, head: &Head) -> bool {
    let mut places = head.values(b"content-location");
    let (Some(place), None) = (places.next(), places.next()) else {
        return false;
    };
    if !exchange.walk.target_holds() || head.status != 200 {
        return false;
    }
    let target = exchange.request().head().origin();
    let host = exchange.known_field(Known::Host).unwrap_or_default();
    let path = match place.strip_prefix(b"http://") {
        None => Some(place),
        Some(rest) => rest
            .split_at_checked(host.len())
            .filter(|(own, _)| own.eq_ignore_ascii_case(host))
            .map(|(_, path)| path),
    };
    path == Some(target)
}

/// The host by which a response can be purged.
fn host_of(exchange: &Exchange) -> Box<[u8]> {
    let mut host = Vec::new();
    exchange.append_host(&mut host);
    host.into()
}

/// Whether a field says by what a response can be purged.
fn is_label(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"surrogate-key") || name.eq_ignore_ascii_case(b"cache-tag")
}

/// Whether the configuration's rules for a response count. If a regular expression reached its
/// limits, the values that need it are empty, which could mean that everything may be stored.
fn decided(exchange: &Exchange) -> Result<(), WhyNotStored> {
    if exchange.is_undecided() {
        Err(WhyNotStored::Configured)
    } else {
        Ok(())
    }
}

/// Whether a stored response may be asked for on a condition: of other statuses the validators
/// mean something else, by nginx's rule.
fn is_conditional(question: &Question, stale: &Variant) -> bool {
    question.settings.revalidate && matches!(stale.head.status, 200 | 206)
}

fn is_sound(variant: &Variant, opened: &turnpike_lane::files::OpenFile) -> bool {
    let StoredBody::File(stored) = &variant.body else {
        return false;
    };
    let file = opened
        .descriptor()
        .and_then(|one| one.try_clone_to_owned().ok());
    file.is_some_and(|file| stored.check(&file.into()))
}

fn log_write_failure(exchange: &Exchange, zone: &Zone, failure: &WriteFailure) {
    let name = zone.name();
    let WriteFailure { call, path, error } = failure;
    let (path, errno) = (path.display(), Errno(error));
    exchange.log(
        Level::Crit,
        format_args!("cache \"{name}\" could not be written to: {call} \"{path}\" failed {errno}"),
    );
}
