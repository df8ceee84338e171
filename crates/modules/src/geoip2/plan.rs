//! What `geoip2` blocks say.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnpike_conf::{Complaint, ConfError, Directive, View, Word, value};
use turnpike_plan::builder::Builder;
use turnpike_plan::template::Template;

use super::database::{Database, Stamp};
use super::handler::{About, Fact, Found};
use super::reloading::Reloading;
use crate::common::address::{Located, Network};

/// The proxies that may name the client's address.
#[derive(Default)]
pub(super) struct Proxies {
    pub(super) trusted: Vec<Network>,
    pub(super) recursive: bool,
}

/// The files that were named, each by one block of this kind of subject.
struct Named<S>(HashSet<PathBuf>, std::marker::PhantomData<S>);

impl<S> Default for Named<S> {
    fn default() -> Self {
        Self(HashSet::new(), std::marker::PhantomData)
    }
}

/// A place for a database among what a reload keeps, filled by who first reads the file.
type Kept = Mutex<Option<Arc<Database>>>;

/// `geoip2_proxy` and `geoip2_proxy_recursive`.
pub(super) fn proxies(view: View<'_>) -> Result<Arc<Proxies>, ConfError> {
    let mut trusted = Vec::new();
    for entry in view.own_all("geoip2_proxy") {
        let text = entry.argument(0);
        let network = Network::parse(text)
            .ok_or_else(|| view.error(entry.span, format!("invalid network \"{text}\"")))?;
        trusted.push(network);
    }
    Ok(Arc::new(Proxies {
        trusted,
        recursive: view.flag("geoip2_proxy_recursive"),
    }))
}

/// Defines the variables of all blocks.
pub(super) fn define<S: Located>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    proxies: &Arc<Proxies>,
) {
    for block in view.children("geoip2") {
        if let Err(error) = define_block(block, builder, proxies) {
            builder.report(error);
        }
    }
}

fn define_block<S: Located>(
    block: View<'_>,
    builder: &mut Builder<'_, S>,
    proxies: &Arc<Proxies>,
) -> Result<(), ConfError> {
    let place = |message: Complaint| block.error(block.span(), message);
    let written = block.argument(0);
    let path = builder.environment.conf_folder().join(written);
    if !builder.store::<Named<S>>().0.insert(path.clone()) {
        return Err(place(format!("Duplicate GeoIP2 mmdb - {written}").into()));
    }
    let interval = interval(block)?;
    let database = open(&path, interval, builder)
        .map_err(|error| place(format!("MMDB_open(\"{written}\") failed - {error}").into()))?;
    for line in block.data() {
        if line.name.text == "auto_reload" {
            continue;
        }
        if let Err(message) = variable(line, &database, builder, proxies) {
            builder.report(block.error(line.span, message));
        }
    }
    if let Some(interval) = interval {
        let log = builder.error_log(block)?;
        builder.service(Arc::new(Reloading {
            database,
            interval,
            log,
        }));
    }
    Ok(())
}

/// `auto_reload`: the time between two looks at the file.
fn interval(block: View<'_>) -> Result<Option<Duration>, ConfError> {
    let mut found = None;
    for line in block.data() {
        if line.name.text != "auto_reload" {
            continue;
        }
        let seconds = match &*line.arguments {
            [time] => value::seconds(&time.text).filter(|seconds| *seconds > 0),
            _ => None,
        };
        let seconds = seconds.ok_or_else(|| {
            let message = "\"auto_reload\" needs one time of at least a second";
            block.error(line.span, message)
        })?;
        found = Some(Duration::from_secs(seconds));
    }
    Ok(found)
}

/// The database of a file. A plan with the same unchanged file has the same one.
fn open<S>(
    path: &Path,
    interval: Option<Duration>,
    builder: &mut Builder<'_, S>,
) -> Result<Arc<Database>, Complaint> {
    let stamp = Stamp::of(path).map_err(|error| error.to_string())?;
    let key = format!("geoip2 {path:?} {stamp:?} {interval:?}");
    let zone = builder
        .environment
        .zone(&key, &|| Arc::new(Kept::default()));
    let Ok(kept) = zone.downcast::<Kept>() else {
        // No other family has a key like this one.
        return Ok(Database::open(path).map(Arc::new)?);
    };
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(database) = &*kept {
        return Ok(Arc::clone(database));
    }
    let database = Arc::new(Database::open(path)?);
    *kept = Some(Arc::clone(&database));
    Ok(database)
}

/// A line that defines a variable.
fn variable<S: Located>(
    line: &Directive,
    database: &Arc<Database>,
    builder: &mut Builder<'_, S>,
    proxies: &Arc<Proxies>,
) -> Result<(), Complaint> {
    let written = line.name.text.as_str();
    let name = written.strip_prefix('$').filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("invalid variable name \"{written}\""))?;
    let mut words = &*line.arguments;
    if let [first, rest @ ..] = words
        && first.text == "metadata"
    {
        let about = About {
            database: Arc::clone(database),
            what: fact(rest)?,
        };
        builder.variables.define_computed(name, Arc::new(about))?;
        return Ok(());
    }
    let (mut default, mut source) = (None, None);
    while let [word, rest @ ..] = words {
        if let Some(text) = word.text.strip_prefix("default=") {
            default = Some(turnpike_conf::bytes_of(text).into());
        } else if let Some(text) = word.text.strip_prefix("source=") {
            let text = turnpike_conf::bytes_of(text);
            source = Some(Template::compile(&text, &mut builder.variables)?);
        } else {
            break;
        }
        words = rest;
    }
    if words.is_empty() {
        return Err(format!(
            "\"{written}\" needs the path of a value, such as \"country iso_code\""
        )
        .into());
    }
    let found = Found {
        database: Arc::clone(database),
        source,
        path: words.iter().map(|word| word.text.as_str().into()).collect(),
        default,
        proxies: Arc::clone(proxies),
    };
    builder.variables.define_computed(name, Arc::new(found))?;
    Ok(())
}

fn fact(words: &[Word]) -> Result<Fact, Complaint> {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    match words.as_slice() {
        ["build_epoch"] => Ok(Fact::BuildEpoch),
        ["last_check"] => Ok(Fact::LastCheck),
        ["last_change"] => Ok(Fact::LastChange),
        _ => Err(
            "\"metadata\" needs one of \"build_epoch\", \"last_check\" and \"last_change\""
                .to_owned()
                .into(),
        ),
    }
}
