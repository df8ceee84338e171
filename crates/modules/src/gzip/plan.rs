//! What the directives of this family mean for a location.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use flate2::{Compress, Compression};
use turnpike_conf::{ConfError, Row, View};
use turnpike_http::exchange::Exchange;
use turnpike_http::lane::{LaneSlot, LaneState};
use turnpike_http::phase::{FilterPlace, HandlerPlace};
use turnpike_http::plan::{Builder, Family, LocationDraft};
use turnpike_http::regex::Regex;
use turnpike_http::variables::VariableRow;

use super::accept::{Acceptance, Proxied};
use super::compress::Compressed;
use super::handler::{GunzipFilter, GzipFilter, GzipStatic};
use super::kept::Kept;
use super::rows;
use crate::files::Files;
use crate::types::Types;

/// Compressors that a lane keeps for use again: each has a quarter of a megabyte, and setting a
/// new one up costs as much as a small response.
const SPARE_MAX: usize = 4;

/// The family.
pub(crate) struct Gzip;

impl Family for Gzip {
    fn name(&self) -> &'static str {
        "gzip"
    }

    fn rows(&self) -> &'static [Row] {
        rows::ROWS
    }

    fn variables(&self) -> &'static [VariableRow] {
        VARIABLES
    }

    fn location(
        &self,
        view: View<'_>,
        builder: &mut Builder<'_>,
        draft: &mut LocationDraft,
    ) -> Result<(), ConfError> {
        let compression = Compressing::read(view)?;
        let acceptance = Arc::new(acceptance(view)?);
        if view.flag("gunzip") {
            let (count, size) = view.buffers("gunzip_buffers");
            let filter = GunzipFilter {
                acceptance: Arc::clone(&acceptance),
                piece_bytes: piece_bytes(count, size),
            };
            draft.add_filter(FilterPlace::Expand, Arc::new(filter));
        }
        if view.flag("gzip") {
            let state = compression.state(builder);
            let filter = GzipFilter {
                acceptance: Arc::clone(&acceptance),
                compression: Arc::new(compression),
                state,
            };
            draft.add_filter(FilterPlace::Transform, Arc::new(filter));
        }
        let always = view.choice("gzip_static") == "always";
        if always || view.choice("gzip_static") == "on" {
            let handler = GzipStatic {
                files: Files::of(view, builder, draft),
                acceptance,
                always,
            };
            draft.add_handler(HandlerPlace::CodedFile, Arc::new(handler));
        }
        Ok(())
    }
}

/// How responses are compressed, and which.
pub(super) struct Compressing {
    pub(super) types: Types,
    pub(super) length_min: u64,
    /// Most bytes in one piece.
    pub(super) piece_bytes: usize,
    level: u32,
    window_bits: u8,
}

impl Compressing {
    fn read(view: View<'_>) -> Result<Self, ConfError> {
        let level = match view.number("gzip_comp_level") {
            level @ 1..=9 => level as u32,
            _ => {
                let span = view.nearest("gzip_comp_level");
                let span = span.map_or_else(|| view.end(), |entry| entry.span);
                return Err(view.error(span, "value must be between 1 and 9"));
            }
        };
        let (count, size) = view.buffers("gzip_buffers");
        Ok(Self {
            types: Types::read(view, "gzip_types", &["text/html"]),
            length_min: view.size("gzip_min_length"),
            piece_bytes: piece_bytes(count, size),
            level,
            window_bits: window_bits(view)?,
        })
    }

    /// A new compressor.
    pub(super) fn compressor(&self) -> Compress {
        // zlib-rs's first level is for speed alone: zlib's first, which users know, is nearer to
        // its second.
        let level = Compression::new(self.level.max(2));
        Compress::new_gzip(level, self.window_bits)
    }

    fn state(&self, builder: &mut Builder<'_>) -> State {
        let key = (self.level, self.window_bits);
        if let Some(state) = builder.store::<States>().0.get(&key) {
            return *state;
        }
        let state = State {
            spare: builder.lane_state(Spare::default),
            kept: builder.lane_state(Kept::new),
        };
        builder.store::<States>().0.insert(key, state);
        state
    }
}

/// What a lane has for one level and window.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) spare: LaneSlot<Spare>,
    pub(super) kept: LaneSlot<Kept>,
}

/// A lane's compressors of one kind.
#[derive(Default)]
pub(super) struct Spare(RefCell<Vec<Compress>>);

impl LaneState for Spare {}

impl Spare {
    pub(super) fn take(&self) -> Option<Compress> {
        self.0.borrow_mut().pop()
    }

    pub(super) fn put(&self, mut compress: Compress) {
        let mut spare = self.0.borrow_mut();
        if spare.len() < SPARE_MAX {
            compress.reset();
            spare.push(compress);
        }
    }
}

/// States made so far, by level and window.
#[derive(Default)]
struct States(HashMap<(u32, u8), State>);

fn piece_bytes(count: u64, size: u64) -> usize {
    usize::try_from(count.saturating_mul(size)).unwrap_or(usize::MAX)
}

fn acceptance(view: View<'_>) -> Result<Acceptance, ConfError> {
    let mut disabled = Vec::new();
    let mut disabled_msie6 = false;
    for entry in view.nearest_all("gzip_disable") {
        for word in &entry.arguments {
            if word.text == "msie6" {
                disabled_msie6 = true;
                continue;
            }
            let regex = Regex::new(&word.text, true, &view.place(entry.span))
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
        let mut words = entries.iter().flat_map(|entry| &entry.arguments);
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

fn window_bits(view: View<'_>) -> Result<u8, ConfError> {
    let bytes = view.size("gzip_window");
    if is_window(bytes) {
        return Ok(bytes.trailing_zeros() as u8);
    }
    let span = view.nearest("gzip_window");
    let span = span.map_or_else(|| view.end(), |entry| entry.span);
    Err(view.error(span, WINDOW_REFUSED))
}

const WINDOW_REFUSED: &str = "value must be 512, 1k, 2k, 4k, 8k, 16k, or 32k";

fn is_window(bytes: u64) -> bool {
    bytes.is_power_of_two() && (512..=32 * 1024).contains(&bytes)
}

const VARIABLES: &[VariableRow] = &[VariableRow {
    name: "gzip_ratio",
    get: ratio,
    set: None,
    summary: "The compression ratio that `gzip` achieved for the response.",
}];

fn ratio(exchange: &Exchange, out: &mut Vec<u8>) -> bool {
    let compressed = exchange.rooms.get::<Compressed>();
    let Some(compressed) = compressed.filter(|compressed| compressed.given_bytes > 0) else {
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
pub(super) fn check_window(name: &str, words: &[&str]) -> Result<(), String> {
    let text = words.first().copied().unwrap_or_default();
    let bytes = turnpike_conf::value::size(text)
        .ok_or_else(|| format!("\"{name}\" directive invalid value"))?;
    match is_window(bytes) {
        true => Ok(()),
        false => Err(WINDOW_REFUSED.to_owned()),
    }
}

/// `gzip_disable`.
pub(super) fn check_disable(_: &str, words: &[&str]) -> Result<(), String> {
    let mut patterns = words.iter().filter(|word| **word != "msie6");
    patterns.try_for_each(|word| Regex::new(word, true, "").map(drop))
}
