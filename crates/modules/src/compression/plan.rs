//! What the directives of this family mean for a location.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, View};
use turnpike_http::exchange::Exchange;
use turnpike_http::lane::{LaneSlot, LaneState};
use turnpike_http::phase::{FilterPlace, HandlerPlace};
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_http::regex::{Case, Regex};
use turnpike_http::variables::VariableRow;

use super::accept::{Acceptance, Proxied};
use super::compress::Compressed;
use super::encoder::{Coding, Encoder, Strength};
use super::handler::{Choice, CompressFilter, GunzipFilter, StaticForm, StaticForms};
use super::kept::Kept;
use crate::common::content_types::Types;
use crate::common::files::Files;

/// Compressors that a lane keeps for use again: each has a quarter of a megabyte, and setting a
/// new one up costs as much as a small response.
const SPARE_MAX: usize = 4;

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let acceptance = Arc::new(acceptance(view, builder)?);
    if view.flag("gunzip") {
        let (count, size) = view.buffers("gunzip_buffers");
        let filter = GunzipFilter {
            acceptance: Arc::clone(&acceptance),
            piece_bytes: piece_bytes(count, size),
        };
        draft.add_filter(FilterPlace::Expand, Arc::new(filter));
    }
    let mut choices = Vec::new();
    for coding in Coding::ALL {
        if view.flag(coding.directive()) {
            let compression = Compressing::read(view, coding)?;
            choices.push(Choice {
                state: State::of(compression.strength, builder),
                compression: Arc::new(compression),
            });
        }
    }
    if !choices.is_empty() {
        let filter = CompressFilter {
            acceptance: Arc::clone(&acceptance),
            choices: choices.into(),
        };
        draft.add_filter(FilterPlace::Transform, Arc::new(filter));
    }
    let forms = Coding::ALL.into_iter().filter_map(|coding| {
        let always = match view.choice(&format!("{}_static", coding.directive())) {
            "always" => true,
            "on" => false,
            _ => return None,
        };
        Some(StaticForm { coding, always })
    });
    let forms: Box<[StaticForm]> = forms.collect();
    if !forms.is_empty() {
        let handler = StaticForms {
            files: Files::of(view, builder)?,
            acceptance,
            forms,
        };
        draft.add_handler(HandlerPlace::CodedFile, Arc::new(handler));
    }
    Ok(())
}

/// How responses are compressed, and which.
pub(super) struct Compressing {
    pub(super) types: Types,
    pub(super) length_min: u64,
    /// Most bytes in one piece.
    pub(super) piece_bytes: usize,
    pub(super) strength: Strength,
}

impl Compressing {
    fn read(view: View<'_>, coding: Coding) -> Result<Self, ConfError> {
        let name = |end: &str| format!("{}_{end}", coding.directive());
        let (count, size) = view.buffers(&name("buffers"));
        let window_bits = match coding {
            Coding::Zstd => 0,
            Coding::Gzip | Coding::Brotli => window_bits(view, coding)?,
        };
        Ok(Self {
            types: Types::read(view, &name("types"), &["text/html"]),
            length_min: view.size(&name("min_length")),
            piece_bytes: piece_bytes(count, size),
            strength: Strength {
                coding,
                level: view.number(&name("comp_level")) as u32,
                window_bits,
            },
        })
    }
}

/// What a lane has for one coding, level and window.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) spare: LaneSlot<Spare>,
    pub(super) kept: LaneSlot<Kept>,
}

impl State {
    fn of(strength: Strength, builder: &mut Builder<'_>) -> Self {
        if let Some(state) = builder.store::<States>().0.get(&strength) {
            return *state;
        }
        let state = State {
            spare: builder.lane_state(Spare::default),
            kept: builder.lane_state(Kept::new),
        };
        builder.store::<States>().0.insert(strength, state);
        state
    }
}

/// A lane's encoders of one kind.
#[derive(Default)]
pub(super) struct Spare(RefCell<Vec<Encoder>>);

impl LaneState for Spare {}

impl Spare {
    pub(super) fn take(&self) -> Option<Encoder> {
        self.0.borrow_mut().pop()
    }

    pub(super) fn put(&self, encoder: Encoder) {
        let mut spare = self.0.borrow_mut();
        if spare.len() < SPARE_MAX
            && let Some(encoder) = encoder.reset()
        {
            spare.push(encoder);
        }
    }
}

/// States made so far.
#[derive(Default)]
struct States(HashMap<Strength, State>);

fn piece_bytes(count: u64, size: u64) -> usize {
    usize::try_from(count.saturating_mul(size)).unwrap_or(usize::MAX)
}

fn acceptance(view: View<'_>, builder: &mut Builder<'_>) -> Result<Acceptance, ConfError> {
    let mut disabled = Vec::new();
    let mut disabled_msie6 = false;
    for entry in view.nearest_all("gzip_disable") {
        for word in entry.arguments.iter() {
            if word.text == "msie6" {
                disabled_msie6 = true;
                continue;
            }
            let (place, programs) = (view.place(entry.span), &mut builder.variables.programs);
            let regex = Regex::shared(&word.text, Case::Ignored, &place, programs)
                .map_err(|message| view.error(entry.span, message))?;
            disabled.push(regex);
        }
    }
    Ok(Acceptance {
        vary: view.flag("gzip_vary"),
        http10: view.choice("gzip_http_version") == "1.0",
        proxied: proxied(view),
        disabled,
        disabled_msie6,
    })
}

fn proxied(view: View<'_>) -> Proxied {
    let entries = view.nearest_all("gzip_proxied");
    let has = |name: &str| {
        let mut words = entries.iter().flat_map(|entry| entry.arguments.iter());
        words.any(|word| word.text.eq_ignore_ascii_case(name))
    };
    Proxied {
        off: entries.is_empty() || has("off"),
        expired: has("expired"),
        no_cache: has("no-cache"),
        no_store: has("no-store"),
        private: has("private"),
        no_last_modified: has("no_last_modified"),
        no_etag: has("no_etag"),
        auth: has("auth"),
        any: has("any"),
    }
}

fn window_bits(view: View<'_>, coding: Coding) -> Result<u8, ConfError> {
    let name = format!("{}_window", coding.directive());
    let bytes = view.size(&name);
    if is_window(coding, bytes) {
        return Ok(bytes.trailing_zeros() as u8);
    }
    let span = view.nearest(&name);
    let span = span.map_or_else(|| view.end(), |entry| entry.span);
    Err(view.error(span, window_refused(coding)))
}

fn window_refused(coding: Coding) -> &'static str {
    match coding {
        Coding::Brotli => {
            "value must be 1k, 2k, 4k, 8k, 16k, 32k, 64k, 128k, 256k, 512k, 1m, 2m, 4m, 8m or 16m"
        }
        Coding::Gzip | Coding::Zstd => "value must be 512, 1k, 2k, 4k, 8k, 16k, or 32k",
    }
}

fn is_window(coding: Coding, bytes: u64) -> bool {
    let range = match coding {
        Coding::Brotli => 1024..=16 * 1024 * 1024,
        Coding::Gzip | Coding::Zstd => 512..=32 * 1024,
    };
    bytes.is_power_of_two() && range.contains(&bytes)
}

pub(super) const VARIABLES: &[VariableRow] = &[
    VariableRow {
        name: "gzip_ratio",
        get: |exchange, out| ratio(exchange, Coding::Gzip, out),
        set: None,
        summary: "The compression ratio that `gzip` achieved for the response.",
    },
    VariableRow {
        name: "brotli_ratio",
        get: |exchange, out| ratio(exchange, Coding::Brotli, out),
        set: None,
        summary: "The compression ratio that `brotli` achieved for the response.",
    },
    VariableRow {
        name: "zstd_ratio",
        get: |exchange, out| ratio(exchange, Coding::Zstd, out),
        set: None,
        summary: "The compression ratio that `zstd` achieved for the response.",
    },
];

fn ratio(exchange: &Exchange, coding: Coding, out: &mut Vec<u8>) -> bool {
    let compressed = exchange.rooms.get::<Compressed>();
    let compressed = compressed
        .filter(|compressed| compressed.coding == Some(coding) && compressed.given_bytes > 0);
    let Some(compressed) = compressed else {
        return false;
    };
    let taken_bytes = u128::from(compressed.taken_bytes);
    let hundredths = (taken_bytes * 1000 / u128::from(compressed.given_bytes) + 5) / 10;
    // Writing to a vector cannot fail.
    let _ = std::io::Write::write_fmt(
        out,
        format_args!("{}.{:02}", hundredths / 100, hundredths % 100),
    );
    true
}

/// `gzip_window`.
pub(super) fn check_gzip_window(name: &str, words: &[&str]) -> Result<(), Complaint> {
    check_window(Coding::Gzip, name, words)
}

/// `brotli_window`.
pub(super) fn check_brotli_window(name: &str, words: &[&str]) -> Result<(), Complaint> {
    check_window(Coding::Brotli, name, words)
}

fn check_window(coding: Coding, name: &str, words: &[&str]) -> Result<(), Complaint> {
    let text = words.first().copied().unwrap_or_default();
    let bytes = turnpike_conf::value::size(text)
        .ok_or_else(|| format!("\"{name}\" directive invalid value"))?;
    if is_window(coding, bytes) {
        Ok(())
    } else {
        Err(window_refused(coding).to_owned().into())
    }
}

/// `gzip_disable`.
pub(super) fn check_disable(_: &str, words: &[&str]) -> Result<(), Complaint> {
    let mut patterns = words.iter().filter(|word| **word != "msie6");
    patterns.try_for_each(|word| Ok(Regex::check(word, Case::Ignored).map(drop)?))
}
