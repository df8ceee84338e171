//! Zones: memory that lanes share under a name, and the directives that name one.
//!
//! A zone is declared once and used by its name; it lives on over a reload while name, size and
//! key stay the same. What is in it is the business of the family that declares it.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{Complaint, value};
use turnpike_plan::builder::Builder;

/// Least size of a zone: eight pages, nginx's.
const ZONE_BYTES_MIN: u64 = 8 * 4096;

/// The directive that declared each name.
#[derive(Default)]
struct Names(HashMap<String, &'static str>);

/// Reads what stands behind `zone=` where a zone is declared: `NAME:SIZE`.
///
/// # Errors
/// nginx's message, without its place.
pub(crate) fn declaration(text: &str) -> Result<(&str, u64), Complaint> {
    let invalid = || format!("invalid zone size \"zone={text}\"");
    let (name, size) = text.split_once(':').ok_or_else(invalid)?;
    let size_bytes = value::size(size).ok_or_else(invalid)?;
    if size_bytes < ZONE_BYTES_MIN {
        return Err(format!("zone \"zone={text}\" is too small").into());
    }
    Ok((name, size_bytes))
}

/// Makes what a family keeps over reloads without a name in the configuration, or finds what an
/// earlier configuration made. It is in nobody's way, whatever users call their zones.
pub(crate) fn unnamed<T: Send + Sync + 'static, S>(
    builder: &mut Builder<'_, S>,
    owner: &'static str,
    make: impl Fn() -> T,
) -> Arc<T> {
    let make_any = || Arc::new(make()) as Arc<dyn Any + Send + Sync>;
    let kept = builder.environment.zone(&format!("{owner}::"), &make_any);
    // Nothing else has that key.
    kept.downcast().unwrap_or_else(|_| Arc::new(make()))
}

/// Makes a zone, or finds the one that an earlier configuration made.
///
/// # Errors
/// Where another family has a zone of that name.
pub(crate) fn open<T: Send + Sync + 'static, S>(
    builder: &mut Builder<'_, S>,
    owner: &'static str,
    name: &str,
    identity: &str,
    make: impl Fn() -> T,
) -> Result<Arc<T>, Complaint> {
    let names = &mut builder.store::<Names>().0;
    if *names.entry(name.to_owned()).or_insert(owner) != owner {
        return Err(format!(
            "the shared memory zone \"{name}\" is already declared for a different use"
        )
        .into());
    }
    let key = format!("{owner}:{name}:{identity}");
    let make = || Arc::new(make()) as Arc<dyn Any + Send + Sync>;
    match builder.environment.zone(&key, &make).downcast::<T>() {
        Ok(zone) => Ok(zone),
        Err(_) => Err(format!(
            "the shared memory zone \"{name}\" conflicts with declared elsewhere"
        )
        .into()),
    }
}
