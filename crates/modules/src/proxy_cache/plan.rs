//! What the directives of this family mean for a location.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use turnpike_cache::freshness::{Heuristic, Rules};
use turnpike_cache::zone::{CopyHolder, Zone};
use turnpike_conf::{Complaint, ConfError, Entry, bytes_of, value};
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::FilterPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::variables::{Template, VariableTable};
use turnpike_wire::message::Method;

use super::answer::AnswerSettings;
use super::content::Sight;
use super::handler::Cache;
use super::hosts::Hosts;
use super::hot::HotFiles;
use super::purge::purge_location;
use super::purge_rules::PurgeRule;
use super::rows::STALE_WORDS;
use super::status::{self, StatusField};
use super::zones::Zones;
use crate::common::predicates;
use crate::common::published_copies::{Copies, is_same_for_all, is_same_without_cookies};
use crate::pass::Failure;
use crate::pass::response_store::{ResponseStore, ResponseStores};
use crate::pass::view::PassView;

/// Statuses that `..._cache_valid` means without naming one; nginx's.
const USUAL_STATUSES: &[u16] = &[200, 301, 302];

/// What `..._cache_heuristic` allows at most where it does not say so: a day. Longer guesses were
/// warned of by earlier editions of the standard.
const HEURISTIC_SECONDS_MAX: u64 = 24 * 60 * 60;

/// The ends of the directives without which a location has no cache, and no mistake in what is said
/// of one.
const DECISIVE: &[&str] = &[
    "cache",
    "cache_heuristic",
    "cache_invalidate",
    "cache_purge",
    "cache_status",
    "cache_valid",
];

/// The next number of a location, unique among all plans.
static OWNERS: AtomicU64 = AtomicU64::new(1);

/// What holds in a location.
pub(super) struct Settings {
    pub(super) zone: ZoneChoice,
    /// None: what is asked of the server.
    pub(super) key: Option<Template>,
    /// Whether POST is among the methods.
    pub(super) posts: bool,
    pub(super) rules: Rules,
    pub(super) uses_min: u32,
    pub(super) bypass: Vec<Template>,
    pub(super) no_store: Vec<Template>,
    pub(super) purge: PurgeRule,
    pub(super) stale: StaleUses,
    /// None: where the response itself allows to be used meanwhile.
    pub(super) background_update: Option<bool>,
    pub(super) lock: bool,
    pub(super) lock_timeout_ms: u64,
    pub(super) lock_age_ms: u64,
    pub(super) revalidate: bool,
    pub(super) early_hints: bool,
    pub(super) convert_head: bool,
    pub(super) range_offset_max: Option<u64>,
    pub(super) honor_request: Honor,
    pub(super) invalidation: Invalidation,
    /// What the names of the family's directives begin with.
    pub(super) prefix: &'static str,
    /// Whether `Cache-Status` is sent.
    pub(super) tells_status: bool,
    pub(super) giving: AnswerSettings,
    /// Where copies of answers are kept.
    pub(super) copies: Option<Arc<Copies>>,
    /// Whether requests for one host, path and query that have neither cookies nor passwords are
    /// answered alike while a response is fresh.
    pub(super) is_same_for_all: bool,
    /// Where requests are counted by their hosts.
    pub(super) hosts: Arc<Hosts>,
    /// See [`Settings::sight`].
    sight: OnceLock<Sight>,
}

/// Which directives of requests are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Honor {
    /// None.
    Off,
    /// `no-store` only, which costs nobody else anything.
    NoStore,
    /// All.
    On,
}

/// The clients whose unsafe requests make invalid what is stored (RFC 9111 section 4.4).
pub(super) enum Invalidation {
    /// Requests of every client.
    Always,
    /// No requests.
    Never,
    /// Requests for which one of these conditions holds.
    Where(Vec<Template>),
}

impl Invalidation {
    fn read(pass: PassView<'_>, builder: &mut Builder<'_>) -> Result<Self, ConfError> {
        let name = pass.name("cache_invalidate");
        let entries = pass.view.nearest_all(&name);
        let words: Vec<&str> = entries
            .iter()
            .flat_map(|entry| entry.arguments.iter())
            .map(|word| word.text.as_str())
            .collect();
        let is_word = |word: &&str| matches!(*word, "on" | "off");
        match (words.as_slice(), entries.last()) {
            ([] | ["on"], _) => Ok(Self::Always),
            (["off"], _) => Ok(Self::Never),
            (words, Some(entry)) if words.iter().any(is_word) => {
                let message = format!("\"{name}\" takes \"on\", \"off\" or conditions, not both");
                Err(pass.view.error(entry.span, message))
            }
            _ => Ok(Self::Where(predicates::read(pass.view, &name, builder)?)),
        }
    }

    /// Whether the request's success empties its key.
    pub(super) fn allows(&self, exchange: &Exchange) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Where(conditions) => predicates::any_holds(exchange, conditions),
        }
    }
}

/// Which zone.
pub(super) enum ZoneChoice {
    /// Always this.
    Fixed(Arc<Zone>),
    /// The one that a request names.
    Evaluated(Template, Zones),
}

/// `..._cache_use_stale`: a bit for each of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StaleUses(u32);

impl StaleUses {
    fn read(pass: PassView<'_>) -> Self {
        let entries = pass.nearest_all("cache_use_stale");
        let words = entries.iter().flat_map(|entry| entry.arguments.iter());
        Self::of(words.map(|word| word.text.as_str()))
    }

    pub(super) fn of<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut bits = 0;
        for word in words {
            if word.eq_ignore_ascii_case("off") {
                return Self(0);
            }
            bits |= bit(word);
        }
        Self(bits)
    }

    /// Whether a stale response is sent while another request asks for a new one.
    pub(super) fn updating(self) -> bool {
        self.0 & bit("updating") != 0
    }

    /// Whether it is sent in place of this failure.
    pub(super) fn allows(self, failure: Failure) -> bool {
        let word = match failure {
            Failure::Error
            | Failure::Unprocessed
            | Failure::NoLive
            | Failure::NoServers
            | Failure::NoConnection => "error".to_owned(),
            Failure::Timeout => "timeout".to_owned(),
            Failure::InvalidHeader => "invalid_header".to_owned(),
            Failure::Status(status) => format!("http_{status}"),
        };
        self.0 & bit(&word) != 0
    }
}

fn bit(word: &str) -> u32 {
    let found = STALE_WORDS
        .iter()
        .position(|own| own.eq_ignore_ascii_case(word));
    found.map_or(0, |index| 1 << index)
}

/// Whether a location may have a cache, or a mistake in what is said of one. Most configurations
/// have none, and all locations of all families are asked.
pub(super) fn is_wanted(pass: PassView<'_>) -> bool {
    DECISIVE.iter().any(|end| pass.is_written(end))
}

/// Gives the location its response store, where it has a cache.
pub(super) fn prepare(
    pass: PassView<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let rules = rules(pass)?;
    let invalidation = Invalidation::read(pass, builder)?;
    let status_field = status_field(pass)?;
    if purge_location(pass, builder).is_some() {
        return Ok(());
    }
    let purge = PurgeRule::read(pass, builder)?;
    let Some(zone) = zone(pass, builder)? else {
        return Ok(());
    };
    let conditions = |name: &str, builder: &mut Builder<'_>| {
        predicates::read(pass.view, &pass.name(name), builder)
    };
    let copies = Copies::of(builder);
    if let (Some(copies), ZoneChoice::Fixed(zone)) = (&copies, &zone) {
        let holder: Arc<dyn CopyHolder> = copies.clone();
        zone.add_copy_holder(&holder);
    }
    let mut settings = Settings {
        zone,
        key: pass.template("cache_key", builder)?,
        posts: has_word(pass, "cache_methods", "POST"),
        rules,
        uses_min: u32::try_from(pass.number("cache_min_uses")).unwrap_or(u32::MAX),
        bypass: conditions("cache_bypass", builder)?,
        no_store: conditions("no_cache", builder)?,
        purge,
        stale: StaleUses::read(pass),
        background_update: pass.view.try_flag(&pass.name("cache_background_update")),
        lock: pass.flag("cache_lock"),
        lock_timeout_ms: pass.milliseconds("cache_lock_timeout"),
        lock_age_ms: pass.milliseconds("cache_lock_age"),
        revalidate: pass.flag("cache_revalidate"),
        early_hints: pass.flag("cache_early_hints"),
        convert_head: converts_head(pass),
        range_offset_max: pass.view.try_offset(&pass.name("cache_max_range_offset")),
        honor_request: match pass.view.choice(&pass.name("cache_honor_request")) {
            "on" => Honor::On,
            "off" => Honor::Off,
            _ => Honor::NoStore,
        },
        invalidation,
        prefix: pass.prefix,
        tells_status: status_field.is_some(),
        giving: AnswerSettings {
            owner: OWNERS.fetch_add(1, Ordering::Relaxed),
            hot: HotFiles::slot(builder),
        },
        copies,
        is_same_for_all: false,
        hosts: builder.store::<Arc<Hosts>>().clone(),
        sight: OnceLock::new(),
    };
    settings.is_same_for_all = settings.answers_all_alike(&builder.variables);
    let settings = Arc::new(settings);
    let make = |rules| -> Arc<dyn ResponseStore> { Arc::new(Cache { settings, rules }) };
    builder
        .store::<ResponseStores>()
        .put(pass.prefix, draft.index, Box::new(make));
    if let Some(name) = status_field {
        draft.add_filter(FilterPlace::Headers, Arc::new(StatusField { name }));
    }
    Ok(())
}

/// `proxy_cache_convert_head`. Other families tell the application the client's method.
fn converts_head(pass: PassView<'_>) -> bool {
    pass.prefix == "proxy" && pass.flag("cache_convert_head")
}

/// `..._cache_status`: the name that this cache has in the field, as it is written there.
fn status_field(pass: PassView<'_>) -> Result<Option<Box<[u8]>>, ConfError> {
    let Some(entry) = pass.nearest("cache_status") else {
        return Ok(None);
    };
    let name = match entry.argument(0) {
        "off" => return Ok(None),
        "on" => "turnpike",
        name => name,
    };
    match status::identifier(name) {
        Some(identifier) => Ok(Some(identifier.into())),
        None => {
            let directive = pass.name("cache_status");
            let message = format!("\"{directive}\" name \"{name}\" must be visible ASCII");
            Err(pass.view.error(entry.span, message))
        }
    }
}

/// `..._cache_heuristic`: a share of the time since the last change, and the longest time.
fn heuristic(pass: PassView<'_>) -> Result<Option<Heuristic>, ConfError> {
    const MILLION: f64 = 1_000_000.0;
    let Some(entry) = pass.nearest("cache_heuristic") else {
        return Ok(None);
    };
    let text = entry.argument(0);
    if text == "off" && entry.arguments.len() == 1 {
        return Ok(None);
    }
    let (number, unit) = match text.strip_suffix('%') {
        Some(percent) => (percent, 0.01),
        None => (text, 1.0),
    };
    let is_plain = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let fraction = number.parse::<f64>().ok().map(|fraction| fraction * unit);
    let fraction = fraction.filter(|fraction| is_plain && (0.0..=1.0).contains(fraction));
    let Some(fraction) = fraction else {
        let name = pass.name("cache_heuristic");
        let message = format!(
            "invalid fraction \"{text}\" in \"{name}\", it must be between 0 and 1 \
             or 0% and 100%"
        );
        return Err(pass.view.error(entry.span, message));
    };
    let seconds_max = match entry.arguments.get(1) {
        None => HEURISTIC_SECONDS_MAX,
        Some(word) => value::seconds(&word.text).ok_or_else(|| {
            let message = format!("invalid time value \"{}\"", word.text);
            pass.view.error(entry.span, message)
        })?,
    };
    let fraction_ppm = (fraction * MILLION).round() as u32;
    Ok(Some(Heuristic {
        fraction_ppm,
        seconds_max,
    }))
}

fn zone(pass: PassView<'_>, builder: &mut Builder<'_>) -> Result<Option<ZoneChoice>, ConfError> {
    let Some(entry) = pass.nearest("cache") else {
        return Ok(None);
    };
    let name = entry.argument(0);
    if name == "off" {
        return Ok(None);
    }
    let zones = builder.store::<Zones>().clone();
    let template = builder.template(pass.view, entry, &bytes_of(name))?;
    if template.constant().is_none() {
        return Ok(Some(ZoneChoice::Evaluated(template, zones)));
    }
    match zones.find(pass.prefix, name) {
        Some(zone) => Ok(Some(ZoneChoice::Fixed(zone.clone()))),
        None => {
            let directive = pass.name("cache");
            let message = format!("\"{directive}\" zone \"{name}\" is unknown");
            Err(pass.view.error(entry.span, message))
        }
    }
}

/// `..._cache_valid`, in the order in which they are written.
fn valid(pass: PassView<'_>) -> Result<Vec<(u16, u64)>, ConfError> {
    let mut valid = Vec::new();
    for entry in pass.nearest_all("cache_valid") {
        read_valid(entry, &mut valid).map_err(|message| pass.view.error(entry.span, message))?;
    }
    Ok(valid)
}

fn read_valid(entry: &Entry, valid: &mut Vec<(u16, u64)>) -> Result<(), Complaint> {
    let Some((time, statuses)) = entry.arguments.split_last() else {
        return Ok(());
    };
    let time = time.text.as_str();
    let seconds = value::seconds(time).ok_or_else(|| format!("invalid time value \"{time}\""))?;
    if statuses.is_empty() {
        valid.extend(USUAL_STATUSES.iter().map(|status| (*status, seconds)));
    }
    for word in statuses {
        let status = status(&word.text)?;
        valid.push((status, seconds));
    }
    Ok(())
}

/// `..._ignore_headers`, as far as it is a cache's.
fn rules(pass: PassView<'_>) -> Result<Rules, ConfError> {
    let ignored = |name: &str| has_word(pass, "ignore_headers", name);
    Ok(Rules {
        ignore_accel_expires: ignored("X-Accel-Expires"),
        ignore_expires: ignored("Expires"),
        ignore_cache_control: ignored("Cache-Control"),
        ignore_set_cookie: ignored("Set-Cookie"),
        ignore_cdn_cache_control: ignored("CDN-Cache-Control"),
        ignore_vary: ignored("Vary"),
        valid: valid(pass)?,
        heuristic: heuristic(pass)?,
    })
}

/// Whether one of the directives of that name has a word.
fn has_word(pass: PassView<'_>, directive: &str, word: &str) -> bool {
    let entries = pass.nearest_all(directive);
    let mut words = entries.iter().flat_map(|entry| entry.arguments.iter());
    words.any(|own| own.text.eq_ignore_ascii_case(word))
}

impl Settings {
    /// See [`Settings::is_same_for_all`]. Whoever sends copies does not see a request's own
    /// Cache-Control.
    fn answers_all_alike(&self, variables: &VariableTable) -> bool {
        let looks_at_request = match &self.purge {
            PurgeRule::Conditions(conditions) => !conditions.is_empty(),
            PurgeRule::Method(_) => false,
        };
        matches!(self.zone, ZoneChoice::Fixed(_))
            && self
                .key
                .as_ref()
                .is_none_or(|key| is_same_for_all(key, variables))
            && self
                .bypass
                .iter()
                .all(|value| is_same_without_cookies(value, variables))
            && self.honor_request != Honor::On
            && !looks_at_request
    }

    /// The directives that may see the content of requests. Variables may be defined behind the
    /// location, so that this is found out at its first request with content.
    pub(super) fn sight(&self, exchange: &Exchange) -> Sight {
        let conditions = self.bypass.iter().chain(&self.no_store);
        let variables = exchange.plan.variables();
        let find = || Sight::of(self.key.as_ref(), conditions, variables);
        *self.sight.get_or_init(find)
    }

    /// Whether requests of this method are answered from the cache.
    pub(super) fn caches(&self, method: Method) -> bool {
        match method {
            Method::Get | Method::Head => true,
            Method::Post => self.posts,
            _ => false,
        }
    }
}

/// `[code ...] time`.
pub(crate) fn check_valid(_: &str, words: &[&str]) -> Result<(), Complaint> {
    let Some((time, statuses)) = words.split_last() else {
        return Ok(());
    };
    value::seconds(time).ok_or_else(|| format!("invalid time value \"{time}\""))?;
    let statuses = statuses.iter().map(|word| status(word).map(|_| ()));
    statuses.collect()
}

/// A status, 0 for any.
fn status(text: &str) -> Result<u16, Complaint> {
    let status = match text {
        "any" => Some(0),
        _ => text
            .parse()
            .ok()
            .filter(|status| (100..600).contains(status)),
    };
    status.ok_or_else(|| format!("invalid status \"{text}\"").into())
}
