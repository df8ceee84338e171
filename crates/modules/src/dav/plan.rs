//! What the directives of this family mean for a location.

use std::collections::HashMap;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View, value};
use turnpike_http::phase::HandlerPlace;
use turnpike_http::plan::{Builder, LocationDraft};
use turnpike_plan::temporary::Removal;
use turnpike_wire::message::Method;

use super::extended::{Extended, ExtendedSettings};
use super::handler::{Files, Settings};
use super::locks::LockZone;
use crate::common::{file_access, files, limits, zone};

/// How long a lock holds unless `timeout` says otherwise; the module's.
const LOCK_TIMEOUT_MS: u64 = 60_000;

/// Reads what stands at the http level.
pub(super) fn http(view: View<'_>, builder: &mut Builder<'_>) -> Result<(), ConfError> {
    for entry in view.own_all("dav_ext_lock_zone") {
        if let Err(message) = declare(entry, builder) {
            builder.report(view.error(entry.span, message));
        }
    }
    Ok(())
}

/// Adds to a location what the directives in force there ask for.
pub(super) fn location(
    view: View<'_>,
    builder: &mut Builder<'_>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let (methods, extended) = (
        methods(view, "dav_methods"),
        methods(view, "dav_ext_methods"),
    );
    let names = [("dav_methods", &methods), ("dav_ext_methods", &extended)];
    let Some((name, _)) = names.iter().find(|(_, methods)| !methods.is_empty()) else {
        return Ok(());
    };
    let folder = files::folder_of(view);
    if let Some(entry) = view.nearest(name) {
        let declared = builder.environment.files(entry.row.name, &folder);
        declared.map_err(|message| view.error(entry.span, message))?;
    }
    let mode = file_access::read(view, view.nearest("dav_access"))?;
    let locks = locks(view, builder)?;
    let rules = files::Files::of(view, builder)?;
    if !extended.is_empty() {
        let settings = ExtendedSettings {
            methods: extended,
            allowed: methods.clone(),
            mode,
            locks: locks.clone(),
            files: rules.clone(),
        };
        let handler = Extended(Arc::new(settings));
        draft.add_handler(HandlerPlace::Answer, Arc::new(handler));
    }
    if methods.is_empty() {
        return Ok(());
    }
    if methods.contains(&Method::Put) {
        // The file is the body's then.
        Arc::make_mut(&mut draft.settings)
            .client_body_in_file
            .get_or_insert(Removal::AtEnd);
    }
    let settings = Settings {
        methods,
        makes_folders: view.flag("create_full_put_path"),
        mode,
        delete_depth_min: usize::try_from(view.number("min_delete_depth")).unwrap_or(0),
        locks,
        files: rules,
    };
    draft.add_handler(HandlerPlace::Answer, Arc::new(Files(Arc::new(settings))));
    Ok(())
}

/// The methods that a directive allows.
fn methods(view: View<'_>, name: &str) -> Vec<Method> {
    let words = view.nearest(name).into_iter();
    let words = words.flat_map(|entry| entry.arguments.iter());
    words
        .map(|word| Method::of(word.text.to_ascii_uppercase().as_bytes()))
        .filter(|method| *method != Method::Other)
        .collect()
}

/// Zones of locks by name.
#[derive(Default)]
struct Store(HashMap<String, Arc<LockZone>>);

/// Reads `zone=name:size [timeout=time]`.
fn declare(entry: &Entry, builder: &mut Builder<'_>) -> Result<(), Complaint> {
    let (mut zone, mut timeout_ms) = (None, LOCK_TIMEOUT_MS);
    for word in entry.arguments.iter() {
        let text = word.text.as_str();
        let invalid = || format!("invalid parameter \"{text}\"");
        match text.split_once('=').ok_or_else(invalid)? {
            ("zone", text) => zone = Some(zone::declaration(text)?),
            ("timeout", text) => timeout_ms = value::milliseconds(text).ok_or_else(invalid)?,
            _ => return Err(invalid().into()),
        }
    }
    let Some((name, size_bytes)) = zone.filter(|(name, _)| !name.is_empty()) else {
        return Err("\"dav_ext_lock_zone\" must have \"zone\" parameter".into());
    };
    let identity = format!("{size_bytes}:{timeout_ms}");
    let locks = zone::open(builder, "dav_ext", name, &identity, || {
        LockZone::new(size_bytes, timeout_ms)
    })?;
    builder.store::<Store>().0.insert(name.to_owned(), locks);
    Ok(())
}

/// The locks that hold in a location.
fn locks(view: View<'_>, builder: &mut Builder<'_>) -> Result<Option<Arc<LockZone>>, ConfError> {
    let Some(entry) = view.nearest("dav_ext_lock") else {
        return Ok(None);
    };
    let text = entry.argument(0);
    let found = match text.strip_prefix("zone=") {
        None => Err(format!("invalid parameter \"{text}\"")),
        Some(name) => {
            let zone = builder.store::<Store>().0.get(name).map(Arc::clone);
            zone.ok_or_else(|| limits::undeclared(name))
        }
    };
    let found = found.map_err(|message| view.error(entry.span, message));
    found.map(Some)
}
