//! What a `split_clients` block says.

use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, View, bytes_of};
use turnpike_plan::builder::Builder;
use turnpike_plan::template::Template;
use turnpike_plan::variables::Subject;

/// Hundredths of a percent that make the whole.
const WHOLE: u32 = 10_000;

/// A split, ready to be asked.
pub(super) struct Split {
    pub(super) key: Template,
    pub(super) parts: Vec<Part>,
}

/// The texts whose hash is below a limit and not below the limit before it.
pub(super) struct Part {
    /// `None` takes all that is left.
    pub(super) limit: Option<u32>,
    pub(super) value: Box<[u8]>,
}

/// Reads a block and defines its variable.
pub(super) fn define<S: Subject>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
) -> Result<(), ConfError> {
    let place = |message: Complaint| view.error(view.span(), message);
    let key = bytes_of(view.argument(0));
    let key = Template::compile(&key, &mut builder.variables);
    let key = key.map_err(|error| place(error.into()))?;
    let written = view.argument(1);
    let name = written
        .strip_prefix('$')
        .filter(|name| !name.is_empty())
        .ok_or_else(|| place(format!("invalid variable name \"{written}\"").into()))?;
    let mut shares = Vec::new();
    for line in view.data() {
        let text = line.name.text.as_str();
        let Some(share) = share(text) else {
            let message = format!("invalid percent value \"{text}\"");
            return Err(view.error(line.span, message));
        };
        let value = line.arguments.first();
        shares.push((share, value.map(|word| word.bytes()).unwrap_or_default()));
    }
    let parts = parts(shares).map_err(|message| view.error(view.end(), message))?;
    builder
        .variables
        .define_computed(name, Arc::new(Split { key, parts }))
        .map_err(|error| place(error.into()))?;
    Ok(())
}

/// A percentage with up to two decimals, in hundredths; `*` is 0.
pub(super) fn share(text: &str) -> Option<u32> {
    if text == "*" {
        return Some(0);
    }
    let text = text.strip_suffix('%')?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty() || decimals.len() > 2 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let number = format!("{whole}{decimals:0<2}").parse().ok()?;
    (number != 0).then_some(number)
}

/// Turns shares into limits. What brings the whole to 100 % takes all that is left.
pub(super) fn parts(shares: Vec<(u32, Vec<u8>)>) -> Result<Vec<Part>, Complaint> {
    let mut sum = 0_u32;
    let mut limit = 0_u32;
    let mut parts = Vec::with_capacity(shares.len());
    for (share, value) in shares {
        sum = match share {
            0 => WHOLE,
            share => sum.saturating_add(share),
        };
        if sum > WHOLE {
            return Err("percent total is greater than 100%".into());
        }
        let rest = sum == WHOLE;
        if !rest {
            let width = u64::from(share) * u64::from(u32::MAX) / u64::from(WHOLE);
            limit = limit.wrapping_add(width as u32);
        }
        parts.push(Part {
            limit: (!rest).then_some(limit),
            value: value.into(),
        });
    }
    Ok(parts)
}
