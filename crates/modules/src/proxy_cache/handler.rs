//! Looking a request up: what is stored is the answer, or a server is asked and its answer stored.

use std::borrow::Cow;
use std::sync::Arc;

use turnpike_cache::control::CacheControl;
use turnpike_cache::fetch::{Turn, TurnAnswer};
use turnpike_cache::links;
use turnpike_cache::partial;
use turnpike_cache::stored::Variant;
use turnpike_cache::tally::Use;
use turnpike_cache::validation;
use turnpike_cache::why::WhyNotStored;
use turnpike_cache::zone::Zone;
use turnpike_http::body;
use turnpike_http::difference::Difference;
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Verdict;
use turnpike_http::rooms::Rooms;
use turnpike_lane::log::Level;
use turnpike_wire::message::{Fields, Known, Method, Strictness};

use super::answer::{self, Stored, Unanswered};
use super::content::Content;
use super::counts;
use super::note::{note, noted};
use super::plan::{Honor, Settings, ZoneChoice};
use super::purge;
use super::purge_rules::Ruling;
use super::recorder::{Changing, Post, Storing};
use super::waiting::{Checking, ReadingBody, Waited, Waiter};
use crate::common::predicates::any_holds;
use crate::common::published_copies::Original;
use crate::common::wanted_part;
use crate::pass::response::ResponseRules;
use crate::pass::response_store::{Lookup, ResponseStore};

/// The cache of a location.
pub(super) struct Cache {
    pub(super) settings: Arc<Settings>,
    /// How responses become ours.
    pub(super) rules: Arc<ResponseRules>,
}

/// What one request is looked up with.
pub(super) struct Question {
    pub(super) settings: Arc<Settings>,
    pub(super) rules: Arc<ResponseRules>,
    pub(super) zone: Arc<Zone>,
    pub(super) key: Arc<[u8]>,
}

impl ResponseStore for Cache {
    fn look_up(&self, exchange: &mut Exchange) -> Lookup {
        if self.settings.copies.is_some() {
            note(&mut exchange.rooms).is_original = false;
        }
        let mut key = exchange.lane.take_scratch();
        let lookup = self.look_up_key(exchange, &mut key);
        exchange.lane.keep_scratch(key);
        lookup
    }

    fn hints(&self, rooms: &mut Rooms) -> Option<Fields> {
        if !self.settings.early_hints {
            return None;
        }
        let note = note(rooms);
        let head = note.hinting.take()?;
        if std::mem::replace(&mut note.hinted, true) {
            return None;
        }
        let hint = links::hint(&head);
        let mut fields = Fields::default();
        if !hint.is_empty() {
            fields.add(b"Link", &hint);
        }
        Some(fields)
    }

    fn notes_originals(&self) -> bool {
        self.settings.copies.is_some()
    }

    fn difference(&self, exchange: &Exchange) -> Option<Difference> {
        if !self.settings.is_same_for_all {
            return Some(Difference::CacheRules);
        }
        let is_original = noted(exchange).is_some_and(|note| note.is_original);
        (!is_original).then_some(Difference::Uncached)
    }
}

impl Cache {
    fn look_up_key(&self, exchange: &mut Exchange, key: &mut Vec<u8>) -> Lookup {
        let settings = &*self.settings;
        let method = exchange.method();
        let reply = match settings.purge.ruling(exchange) {
            Ruling::No => None,
            Ruling::Purges(reply) => Some(reply),
            Ruling::Forbidden => return Lookup::Answer(Verdict::Status(403)),
        };
        let purges = reply.is_some();
        if !purges && !settings.caches(method) {
            return self.pass_uncached(exchange, key);
        }
        let content = match self.content(exchange, key) {
            Ok(content) => content,
            Err(lookup) => return lookup,
        };
        if !purges && method == Method::Post {
            return self.look_up_post(exchange, key, content);
        }
        if !purges && content == Content::Unseen && !self.ignores_content(exchange) {
            return self.pass_unseen(exchange);
        }
        let zone = match self.zone(exchange) {
            Ok(Some(zone)) => zone,
            Ok(None) => return Lookup::Pass,
            Err(status) => return Lookup::Answer(Verdict::Status(status)),
        };
        self.write_key(exchange, key);
        if let Some(reply) = reply {
            let template = self.settings.key.as_ref();
            let purge = purge::by_request(exchange, &zone, (template, key), reply);
            return Lookup::Answer(purge);
        }
        exchange.upstream.answered_from(None);
        self.look_up_in(exchange, &zone, key)
    }

    /// What the key says of the request's content, which is read first where it has to be. `key`
    /// is used for the time being, and left empty.
    ///
    /// # Errors
    /// The content has to be waited for, or cannot be read.
    fn content(&self, exchange: &mut Exchange, key: &mut Vec<u8>) -> Result<Content, Lookup> {
        if !exchange.may_have_content() {
            return Ok(Content::Absent);
        }
        let sight = self.settings.sight(exchange);
        let is_post = exchange.method() == Method::Post;
        if is_post && !sight.at_all {
            // It is answered by nothing that is stored.
            return Ok(Content::Unseen);
        }
        let is_whole = match exchange.keep_buffered_body() {
            Ok(progress) => progress == body::Progress::Complete,
            Err(error) => return Err(Lookup::Answer(exchange.body_refused(error))),
        };
        let has_come = exchange.body.length() > 0;
        if is_whole && !has_come {
            return Ok(Content::Absent);
        }
        if !is_whole && (sight.at_all || !has_come) {
            let is_all_wanted = sight.at_all;
            return Err(Lookup::Wait(Box::new(ReadingBody { is_all_wanted })));
        }
        let uses = exchange.body.uses();
        self.write_key(exchange, key);
        key.clear();
        let body = &exchange.body;
        // A part of it may have left for a server before an internal redirect.
        let is_kept = is_whole
            && body.bytes().len() as u64 == body.length()
            && exchange.keeps_body_in_memory();
        Ok(if is_kept && body.uses() != uses {
            Content::InKey
        } else {
            Content::Unseen
        })
    }

    /// Whether a request with content that its key does not hold may still be answered from the
    /// cache: `http_strictness nginx` lets it, unless the key was written to hold content.
    fn ignores_content(&self, exchange: &Exchange) -> bool {
        exchange.strictness() == Strictness::Nginx && !self.settings.sight(exchange).by_key
    }

    /// A request for GET or HEAD with content that its key does not hold: it is passed on, and the
    /// answer is not stored.
    fn pass_unseen(&self, exchange: &mut Exchange) -> Lookup {
        match self.zone(exchange) {
            Ok(None) => {}
            Ok(Some(zone)) => {
                note(&mut exchange.rooms).forward = "bypass";
                counts::not_stored(exchange, &zone, WhyNotStored::Content);
            }
            Err(status) => return Lookup::Answer(Verdict::Status(status)),
        }
        Lookup::Pass
    }

    fn look_up_in(&self, exchange: &mut Exchange, zone: &Arc<Zone>, key: &[u8]) -> Lookup {
        let settings = &*self.settings;
        let method = exchange.method();
        if !settings.bypass.is_empty() && any_holds(exchange, &settings.bypass) {
            return self.fetch(exchange, zone, key, Use::Bypass, None, None);
        }
        let withdrawals = self.settings.copies.as_ref();
        let withdrawals = withdrawals.map(|copies| copies.withdrawals());
        let now_ms = exchange.lane.clock.unix_ms();
        let field = |name: &[u8], out: &mut Vec<u8>| request_field(exchange, name, out);
        let found = zone.find(key, method == Method::Head, &field, now_ms);
        let wish = match settings.honor_request {
            Honor::On => self.wish(exchange),
            Honor::NoStore | Honor::Off => None,
        };
        let found = match found {
            Some(variant) if self.is_usable(&variant, wish.as_ref(), now_ms) => {
                let stored = Stored::whole(&variant);
                let lookup = self.hit(exchange, zone, key, &stored, Use::Hit);
                if let (Some(withdrawals), Lookup::Answer(Verdict::Respond)) =
                    (withdrawals, &lookup)
                {
                    self.note_original(exchange, zone, key, &variant, withdrawals);
                }
                return lookup;
            }
            found => found,
        };
        let part = find_part(exchange, zone, key, now_ms);
        if let Some(part) = &part
            && self.is_usable(&part.variant, wish.as_ref(), now_ms)
        {
            // Whoever waited for the turn does not need it any more.
            drop(Waited::take(&mut exchange.rooms));
            return self.hit(exchange, zone, key, part, Use::Hit);
        }
        let stale = found.as_ref().map(Stored::whole).or(part);
        match stale {
            // only-if-cached: the client does not accept a stale response.
            _ if wish.as_ref().is_some_and(|wish| wish.only_if_cached) => {
                Lookup::Answer(Verdict::Status(504))
            }
            Some(stale) => self.stale(exchange, zone, key, stale, now_ms),
            None => self.miss(exchange, zone, key),
        }
    }

    /// POST, where it is among the methods (RFC 9110 section 9.3.3).
    fn look_up_post(&self, exchange: &mut Exchange, key: &mut Vec<u8>, content: Content) -> Lookup {
        let settings = &*self.settings;
        let in_key = content == Content::InKey;
        if !in_key && settings.sight(exchange).by_key {
            // No content, or one that is in a file: the key cannot tell it from others.
            return self.pass_uncached(exchange, key);
        }
        let zone = match self.zone(exchange) {
            Ok(Some(zone)) => zone,
            Ok(None) => return Lookup::Pass,
            Err(status) => return Lookup::Answer(Verdict::Status(status)),
        };
        let content = std::mem::take(exchange.body.bytes_mut());
        self.write_key(exchange, key);
        *exchange.body.bytes_mut() = content;
        let invalidates = settings.invalidation.allows(exchange);
        let target: Arc<[u8]> = key.as_slice().into();
        let post = Post {
            target: target.clone(),
            invalidates,
        };
        post.leave(&mut exchange.rooms);
        if !in_key {
            note(&mut exchange.rooms).forward = "method";
            let question = self.question(&zone, key);
            let storing = Storing::begin(exchange, question, Use::Miss, None, None);
            return Lookup::Record(Box::new(storing));
        }
        key.clear();
        self.write_key(exchange, key);
        exchange.upstream.answered_from(None);
        match self.look_up_in(exchange, &zone, key) {
            // Not stored, and yet it may change what is.
            Lookup::Pass if invalidates => Lookup::Record(Box::new(Changing {
                zone: zone.into_owned(),
                key: target,
            })),
            found => found,
        }
    }

    /// A method that is not answered from the cache. One that may change what is stored makes it
    /// invalid, if the server has no error to report (RFC 9111 section 4.4).
    fn pass_uncached(&self, exchange: &mut Exchange, key: &mut Vec<u8>) -> Lookup {
        let name = exchange.method_name();
        if !validation::is_unsafe(name) {
            return Lookup::Pass;
        }
        let Ok(Some(zone)) = self.zone(exchange) else {
            return Lookup::Pass;
        };
        note(&mut exchange.rooms).forward = "method";
        counts::not_stored(exchange, &zone, WhyNotStored::Method);
        if !self.settings.invalidation.allows(exchange) {
            return Lookup::Pass;
        }
        self.write_key(exchange, key);
        Lookup::Record(Box::new(Changing {
            zone: zone.into_owned(),
            key: key.as_slice().into(),
        }))
    }

    fn zone(&self, exchange: &Exchange) -> Result<Option<Cow<'_, Arc<Zone>>>, u16> {
        match &self.settings.zone {
            ZoneChoice::Fixed(zone) => Ok(Some(Cow::Borrowed(zone))),
            ZoneChoice::Evaluated(template, zones) => {
                let name = template.value(exchange);
                if name.is_empty() || name == b"off" {
                    return Ok(None);
                }
                let name = String::from_utf8_lossy(&name);
                match zones.find(self.settings.prefix, &name) {
                    Some(zone) => Ok(Some(Cow::Owned(zone.clone()))),
                    None => {
                        exchange.log(Level::Error, format_args!("cache \"{name}\" not found"));
                        Err(500)
                    }
                }
            }
        }
    }

    fn write_key(&self, exchange: &Exchange, key: &mut Vec<u8>) {
        match &self.settings.key {
            Some(template) => template.evaluate(exchange, key),
            None => key.extend_from_slice(exchange.upstream.target()),
        }
    }

    /// Whether nothing of what is answered may be stored (RFC 9111 section 5.2.1.5).
    fn forbids_storing(&self, exchange: &Exchange) -> bool {
        self.settings.honor_request != Honor::Off
            && exchange.known_field(Known::CacheControl).is_some()
            && self.wish(exchange).is_some_and(|wish| wish.no_store)
    }

    /// The request's own Cache-Control, where it has one (RFC 9111 section 5.2.1).
    fn wish(&self, exchange: &Exchange) -> Option<CacheControl> {
        let mut text = Vec::new();
        request_field(exchange, b"cache-control", &mut text)
            .then(|| CacheControl::parse(std::iter::once(text.as_slice())))
    }

    fn is_usable(&self, variant: &Variant, wish: Option<&CacheControl>, now_ms: u64) -> bool {
        let timing = variant.timing();
        match wish {
            Some(wish) => validation::request_allows(wish, &timing, now_ms),
            None => timing.is_fresh(now_ms),
        }
    }

    /// Notes that the answer is what is stored, if every request for the key would get it.
    /// `withdrawals` was read before it was looked up.
    fn note_original(
        &self,
        exchange: &mut Exchange,
        zone: &Zone,
        key: &[u8],
        variant: &Arc<Variant>,
        withdrawals: u64,
    ) {
        if !self.settings.is_same_for_all || !zone.answers_all(key, variant) {
            return;
        }
        let (timing, now_ms) = (variant.timing(), exchange.lane.clock.unix_ms());
        // Age is another one then.
        let until_ms = timing.fresh_until_ms.min(timing.age_changes_ms(now_ms));
        Original::note_stored(
            &mut exchange.rooms,
            withdrawals,
            (zone.name(), key),
            until_ms,
        );
        note(&mut exchange.rooms).is_original = true;
    }

    /// Answers with what is stored.
    fn hit(
        &self,
        exchange: &mut Exchange,
        zone: &Arc<Zone>,
        key: &[u8],
        stored: &Stored,
        one: Use,
    ) -> Lookup {
        let variant = &stored.variant;
        if variant.status_only {
            counts::used(exchange, &self.settings.hosts, zone, one);
            return Lookup::Answer(Verdict::Status(variant.head.status));
        }
        let (rules, giving) = (&*self.rules, self.settings.giving);
        match answer::give(exchange, giving, rules, stored) {
            Ok(()) => {
                counts::used(exchange, &self.settings.hosts, zone, one);
                Lookup::Answer(Verdict::Respond)
            }
            Err(Unanswered::Unchecked(opened)) => {
                let question = self.question(zone, key);
                let variant = variant.clone();
                Lookup::Wait(Box::new(Checking {
                    question,
                    variant,
                    opened,
                }))
            }
            Err(Unanswered::Gone) => {
                zone.discard(key, variant);
                self.miss(exchange, zone, key)
            }
        }
    }

    /// What is stored is stale: it is asked for anew, by one at a time, and may do meanwhile.
    fn stale(
        &self,
        exchange: &mut Exchange,
        zone: &Arc<Zone>,
        key: &[u8],
        stored: Stored,
        now_ms: u64,
    ) -> Lookup {
        let settings = &*self.settings;
        if settings.early_hints {
            note(&mut exchange.rooms).hinting = Some(Arc::clone(&stored.variant.head));
        }
        let timing = stored.variant.timing();
        let by_settings = settings.stale.updating() && timing.configuration_may_serve_stale();
        let by_origin = timing.may_serve_while_revalidating(now_ms);
        let does_meanwhile = by_settings || by_origin;
        let background = settings.background_update.unwrap_or(by_origin);
        if self.forbids_storing(exchange) {
            // Others would wait for what will not be stored.
            return self.fetch(exchange, zone, key, Use::Expired, Some(stored), None);
        }
        let waited = Waited::take(&mut exchange.rooms);
        let (turn, gave_up) = match waited {
            Some(Waited { turn, why }) => (turn, why),
            None => (None, None),
        };
        let asked = match turn {
            Some(turn) => TurnAnswer::Ours(turn),
            None => {
                let mono_ms = exchange.lane.clock.now_ms();
                zone.fetches().ask(key, mono_ms, settings.lock_age_ms)
            }
        };
        match asked {
            TurnAnswer::Ours(turn) => {
                // A copy of the request has no content.
                let repeatable = !exchange.may_have_content()
                    && exchange.method() != Method::Post
                    && exchange.purpose() != Purpose::Renewal;
                if does_meanwhile && background && repeatable {
                    let guard = Waited {
                        turn: Some(turn),
                        why: None,
                    };
                    if exchange.renew_in_background(guard) {
                        return self.hit(exchange, zone, key, &stored, Use::Stale);
                    }
                    return self.fetch(exchange, zone, key, Use::Expired, Some(stored), None);
                }
                self.fetch(exchange, zone, key, Use::Expired, Some(stored), Some(turn))
            }
            TurnAnswer::Theirs(_) if exchange.purpose() == Purpose::Renewal => {
                Lookup::Answer(Verdict::Close)
            }
            TurnAnswer::Theirs(_) if does_meanwhile => {
                self.hit(exchange, zone, key, &stored, Use::Updating)
            }
            TurnAnswer::Theirs(fetch) if settings.lock && gave_up.is_none() => {
                Lookup::Wait(Box::new(Waiter {
                    question: self.question(zone, key),
                    fetch,
                }))
            }
            TurnAnswer::Theirs(_) => {
                self.fetch(exchange, zone, key, Use::Expired, Some(stored), None)
            }
        }
    }

    /// Nothing is stored.
    fn miss(&self, exchange: &mut Exchange, zone: &Arc<Zone>, key: &[u8]) -> Lookup {
        let settings = &*self.settings;
        if self.forbids_storing(exchange) {
            self.note_forward(&mut exchange.rooms, zone, key, Use::Miss);
            counts::used(exchange, &self.settings.hosts, zone, Use::Miss);
            counts::not_stored(exchange, zone, WhyNotStored::RequestNoStore);
            return Lookup::Pass;
        }
        if settings.uses_min > 1 && zone.count_use(key) < settings.uses_min {
            self.note_forward(&mut exchange.rooms, zone, key, Use::Miss);
            counts::used(exchange, &self.settings.hosts, zone, Use::Miss);
            counts::not_stored(exchange, zone, WhyNotStored::MinUses);
            return Lookup::Pass;
        }
        if !settings.lock {
            return self.fetch(exchange, zone, key, Use::Miss, None, None);
        }
        let turn = match Waited::take(&mut exchange.rooms) {
            Some(Waited {
                turn: Some(turn), ..
            }) => turn,
            Some(Waited { why, .. }) => {
                self.note_forward(&mut exchange.rooms, zone, key, Use::Miss);
                counts::used(exchange, &self.settings.hosts, zone, Use::Miss);
                if let Some(why) = why {
                    counts::not_stored(exchange, zone, why);
                }
                return Lookup::Pass;
            }
            None => {
                let mono_ms = exchange.lane.clock.now_ms();
                match zone.fetches().ask(key, mono_ms, settings.lock_age_ms) {
                    TurnAnswer::Ours(turn) => turn,
                    TurnAnswer::Theirs(fetch) => {
                        return Lookup::Wait(Box::new(Waiter {
                            question: self.question(zone, key),
                            fetch,
                        }));
                    }
                }
            }
        };
        self.fetch(exchange, zone, key, Use::Miss, None, Some(turn))
    }

    /// A server is asked.
    fn fetch(
        &self,
        exchange: &mut Exchange,
        zone: &Arc<Zone>,
        key: &[u8],
        one: Use,
        stale: Option<Stored>,
        turn: Option<Turn>,
    ) -> Lookup {
        note(&mut exchange.rooms).status = one.text();
        self.note_forward(&mut exchange.rooms, zone, key, one);
        let question = self.question(zone, key);
        let is_part = wanted_part::range_of(exchange).is_some();
        if is_part || !is_far_range(exchange, self.settings.range_offset_max) {
            let storing = Storing::begin(exchange, question, one, stale, turn);
            return Lookup::Record(Box::new(storing));
        }
        if exchange.method() == Method::Get {
            // Nobody waits for a part: whoever had the turn lets the next one go.
            let storing = Storing::begin(exchange, question, one, None, None);
            return Lookup::Record(Box::new(storing.of_range()));
        }
        counts::used(exchange, &self.settings.hosts, zone, one);
        counts::not_stored(exchange, zone, WhyNotStored::RangeOffset);
        Lookup::Pass
    }

    /// Why a server is asked (RFC 9211 section 2.2).
    fn note_forward(&self, rooms: &mut Rooms, zone: &Zone, key: &[u8], one: Use) {
        if !self.settings.tells_status {
            return;
        }
        note(rooms).forward = match one {
            Use::Bypass => "bypass",
            Use::Expired => "stale",
            _ if zone.has_key(key) => "vary-miss",
            _ => "uri-miss",
        };
    }

    fn question(&self, zone: &Arc<Zone>, key: &[u8]) -> Question {
        Question {
            settings: self.settings.clone(),
            rules: Arc::clone(&self.rules),
            zone: zone.clone(),
            key: key.into(),
        }
    }
}

/// The request's field of that name, its lines joined.
pub(super) fn request_field(exchange: &Exchange, name: &[u8], out: &mut Vec<u8>) -> bool {
    if exchange.is_connection_option(name) {
        // The server does not see it, so that it cannot have chosen by it.
        return false;
    }
    let mut found = false;
    for value in exchange.fields().values(name) {
        if found {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(value);
        found = true;
    }
    found
}

/// The stored part with which the request can be answered. One with a condition other than that
/// its range is still of the same bytes is not: what it asks for may be no part at all.
fn find_part(exchange: &Exchange, zone: &Zone, key: &[u8], now_ms: u64) -> Option<Stored> {
    let of_part = |(variant, bytes)| Stored {
        variant,
        bytes: Some(bytes),
    };
    let has = |name| exchange.known_field(name).is_some();
    let field = |name: &[u8], out: &mut Vec<u8>| request_field(exchange, name, out);
    if let Some(range) = wanted_part::range_of(exchange) {
        return zone.find_part(key, range, &field, now_ms).map(of_part);
    }
    let range = exchange.known_field(Known::Range)?;
    let is_conditional = [
        Known::IfMatch,
        Known::IfNoneMatch,
        Known::IfModifiedSince,
        Known::IfUnmodifiedSince,
    ];
    if exchange.method() != Method::Get || is_conditional.into_iter().any(has) {
        return None;
    }
    let (part, bytes) = zone.find_part(key, range, &field, now_ms)?;
    let unchanged = match exchange.known_field(Known::IfRange) {
        None => true,
        Some(tag) => partial::strong_tag(&part.head) == Some(tag),
    };
    unchanged.then(|| of_part((part, bytes)))
}

/// `proxy_cache_max_range_offset`: nginx's rules for what a Range field asks.
fn is_far_range(exchange: &Exchange, offset_max: Option<u64>) -> bool {
    let (Some(offset_max), Some(range)) = (offset_max, exchange.known_field(Known::Range)) else {
        return false;
    };
    if offset_max == 0 {
        return true;
    }
    let Some((unit, ranges)) = range.split_at_checked(6) else {
        return false;
    };
    if !unit.eq_ignore_ascii_case(b"bytes=") || ranges.is_empty() {
        return false;
    }
    let ranges = ranges.trim_ascii_start();
    if ranges.first() == Some(&b'-') {
        return true;
    }
    let digits = ranges.iter().take_while(|byte| byte.is_ascii_digit());
    let offset = digits.fold(0_u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    offset >= offset_max
}
