//! From directives to logs: what is written where, in which format, through which buffer.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use turnpike_conf::{Complaint, ConfError, Entry, View, Word, value};
use turnpike_http::plan::LocationDraft;
use turnpike_lane::log::{Errno, Syslog, SyslogSpec};
use turnpike_plan::builder::Builder;
use turnpike_plan::lane::LaneSlot;
use turnpike_plan::template::Template;
use turnpike_stream::plan::ServerDraft;

use super::files::CacheRules;
use super::format::Format;
use super::handler::{AccessLogger, Log, Output};
use super::lane::{AccessLogLane, BufferSpec};

/// Where requests are logged when no directive says so, below the prefix.
const PATH_DEFAULT: &str = "logs/access.log";

/// Largest line buffer of one log on one lane: every lane has its own, so that a slip of the pen
/// (`buffer=4096m`) must not take the machine's memory.
const BUFFER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Level and buffer of logs that are compressed, where none is given; nginx's.
const GZIP_LEVEL: u32 = 1;
const GZIP_BUFFER_BYTES: usize = 64 * 1024;

/// What the family remembers while a plan is built.
#[derive(Default)]
struct Store {
    slot: Option<LaneSlot<AccessLogLane>>,
    /// Each with its place in reading order: a log may use only those that stand before it.
    formats: HashMap<String, (u32, Arc<Format>)>,
    /// Logs by their directive's address, since a directive holds in many locations. `None`: it
    /// was reported.
    logs: HashMap<usize, Option<Arc<Log>>>,
    log_default: Option<Arc<Log>>,
    buffers: HashMap<PathBuf, BufferSpec>,
}

/// Defines the format that HTTP has without a directive.
pub(super) fn predefined<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<(), ConfError> {
    let place = |message| view.error(view.span(), message);
    let combined = Format::combined(&mut builder.variables).map_err(place)?;
    let formats = &mut builder.store::<Store>().formats;
    formats.insert("combined".to_owned(), (0, Arc::new(combined)));
    if is_json_used(view) {
        let json = Format::json(&mut builder.variables).map_err(place)?;
        let formats = &mut builder.store::<Store>().formats;
        formats.insert(JSON.to_owned(), (0, Arc::new(json)));
    }
    Ok(())
}

/// The format that is predefined here and not in nginx, so that a file may define it itself.
const JSON: &str = "json";

/// Whether the format of that name is ours: it is used, and the file does not define it. Its
/// variables are then the plan's.
fn is_json_used(view: View<'_>) -> bool {
    let defined = view
        .own_all("log_format")
        .any(|entry| entry.argument(0) == JSON);
    !defined && names_json(view)
}

/// Whether an `access_log` here or further in names the format.
fn names_json(view: View<'_>) -> bool {
    let mut entries = view.entries().iter();
    entries.any(|entry| {
        let here = entry.row.name == "access_log" && entry.arguments.len() > 1;
        (here && entry.argument(1) == JSON) || view.child(entry).is_some_and(names_json)
    })
}

/// Compiles the formats of the http or stream level and reserves the lanes' state.
pub(super) fn formats<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<(), ConfError> {
    let slot = builder.lane_state(AccessLogLane::default);
    builder.store::<Store>().slot = Some(slot);
    for entry in view.own_all("log_format") {
        let Some((name, words)) = entry.arguments.split_first() else {
            continue;
        };
        let formats = &builder.store::<Store>().formats;
        let is_known = formats.contains_key(&name.text);
        let format = if is_known {
            Err(format!("duplicate \"log_format\" name \"{}\"", name.text).into())
        } else {
            Format::compile(words, &mut builder.variables)
        };
        match format {
            Err(message) => builder.report(view.error(entry.span, message)),
            Ok(format) => {
                let formats = &mut builder.store::<Store>().formats;
                formats.insert(name.text.clone(), (entry.sequence, Arc::new(format)));
            }
        }
    }
    Ok(())
}

/// Adds the logs that hold in a location.
pub(super) fn location<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    draft: &mut LocationDraft,
) -> Result<(), ConfError> {
    let default = match view.nearest("access_log") {
        None => Some(log_default(builder)?),
        Some(_) => None,
    };
    if let Some(logger) = logger(view, builder, default)? {
        draft.add_logger(Arc::new(logger));
    }
    Ok(())
}

/// Opens the logs of the stream level, though every server may have logs of its own.
pub(super) fn stream<S>(view: View<'_>, builder: &mut Builder<'_, S>) -> Result<(), ConfError> {
    formats(view, builder)?;
    for entry in view.own_all("access_log") {
        has_format(view, entry)?;
        if first(entry) != "off" {
            log(view, entry, builder)?;
        }
    }
    Ok(())
}

/// Adds the logs that hold in a server of stream, which has none without a directive.
pub(super) fn server<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    draft: &mut ServerDraft,
) -> Result<(), ConfError> {
    for entry in view.own_all("access_log") {
        has_format(view, entry)?;
    }
    if let Some(logger) = logger(view, builder, None)? {
        draft.add_logger(Arc::new(logger));
    }
    Ok(())
}

/// There is no predefined format in stream.
fn has_format(view: View<'_>, entry: &Entry) -> Result<(), ConfError> {
    if entry.arguments.len() == 1 && first(entry) != "off" {
        Err(view.error(entry.span, "log format is not specified"))
    } else {
        Ok(())
    }
}

fn logger<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    default: Option<Arc<Log>>,
) -> Result<Option<AccessLogger>, ConfError> {
    let Some(slot) = builder.store::<Store>().slot else {
        return Ok(None);
    };
    let mut logs: Vec<Arc<Log>> = default.into_iter().collect();
    let mut is_off = false;
    for entry in view.nearest_all("access_log") {
        if first(entry) == "off" {
            is_off = true;
            if let Some(second) = entry.arguments.get(1) {
                let message = format!("invalid parameter \"{}\"", second.text);
                return Err(view.error(entry.span, message));
            }
        } else if let Some(log) = log(view, entry, builder)? {
            logs.push(log);
        }
    }
    let files = match view.nearest("open_log_file_cache") {
        None => None,
        Some(entry) => {
            CacheRules::read(&entry.arguments).map_err(|message| view.error(entry.span, message))?
        }
    };
    let wanted = !is_off && !logs.is_empty();
    Ok(wanted.then_some(AccessLogger { slot, logs, files }))
}

fn first(entry: &Entry) -> &str {
    entry
        .arguments
        .first()
        .map_or("", |word| word.text.as_str())
}

fn log_default<S>(builder: &mut Builder<'_, S>) -> Result<Arc<Log>, ConfError> {
    if let Some(log) = &builder.store::<Store>().log_default {
        return Ok(Arc::clone(log));
    }
    let path = builder.environment.default_place(PATH_DEFAULT);
    let file = open(builder, &path).map_err(ConfError::unplaced)?;
    let store = builder.store::<Store>();
    let combined = store.formats.get("combined");
    let format = combined.map(|(_, format)| Arc::clone(format));
    let log = Arc::new(Log {
        output: Output::File { file, buffer: None },
        format: format.ok_or_else(|| ConfError::unplaced("unknown log format \"combined\""))?,
        condition: None,
    });
    store.log_default = Some(Arc::clone(&log));
    Ok(log)
}

fn log<S>(
    view: View<'_>,
    entry: &Entry,
    builder: &mut Builder<'_, S>,
) -> Result<Option<Arc<Log>>, ConfError> {
    let key = std::ptr::from_ref(entry).addr();
    if let Some(known) = builder.store::<Store>().logs.get(&key) {
        return Ok(known.clone());
    }
    let log = read(entry, builder);
    let known = log.as_ref().ok().map(Arc::clone);
    builder.store::<Store>().logs.insert(key, known);
    match log {
        Ok(log) => Ok(Some(log)),
        Err(message) => Err(view.error(entry.span, message)),
    }
}

/// The parameters behind a log's format.
#[derive(Default)]
struct Parameters {
    buffer_bytes: Option<usize>,
    flush_ms: Option<u64>,
    gzip_level: Option<u32>,
    condition: Option<Template>,
}

fn read<S>(entry: &Entry, builder: &mut Builder<'_, S>) -> Result<Arc<Log>, Complaint> {
    let target = entry.arguments.first().map(Word::bytes).unwrap_or_default();
    let text = first(entry);
    let name = entry
        .arguments
        .get(1)
        .map_or("combined", |word| word.text.as_str());
    let mut output = output(text, &target, builder)?;
    let formats = &builder.store::<Store>().formats;
    let format = formats
        .iter()
        .find(|(known, (sequence, _))| {
            known.eq_ignore_ascii_case(name) && *sequence <= entry.sequence
        })
        .map(|(_, (_, format))| Arc::clone(format))
        .ok_or_else(|| format!("unknown log format \"{name}\""))?;
    let parameters = parameters(entry.arguments.get(2..).unwrap_or_default(), builder)?;
    let gzip_bytes = parameters.gzip_level.map(|_| GZIP_BUFFER_BYTES);
    let buffer_bytes = parameters.buffer_bytes.or(gzip_bytes);
    if parameters.flush_ms.is_some() && buffer_bytes.is_none() {
        return Err(format!("no buffer is defined for access_log \"{text}\"").into());
    }
    if let Some(bytes_max) = buffer_bytes {
        buffered(&mut output, text, bytes_max, &parameters, builder)?;
    }
    Ok(Arc::new(Log {
        output,
        format,
        condition: parameters.condition,
    }))
}

fn output<S>(text: &str, target: &[u8], builder: &mut Builder<'_, S>) -> Result<Output, Complaint> {
    if let Some(text) = text.strip_prefix("syslog:") {
        let spec = SyslogSpec::parse(text).map_err(String::from)?;
        return Ok(Output::Syslog(Arc::new(Syslog::new(spec))));
    }
    let path = if target.is_empty() {
        // A file without a name is standard error, as for nginx.
        PathBuf::from("/dev/stderr")
    } else {
        builder.environment.prefix().join(path_of(target))
    };
    if !target.contains(&b'$') {
        let file = open(builder, &path)?;
        return Ok(Output::File { file, buffer: None });
    }
    builder.environment.files("access_log", text)?;
    use std::os::unix::ffi::OsStrExt;
    let path = Template::compile(path.as_os_str().as_bytes(), &mut builder.variables)?;
    Ok(Output::Path(path))
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

fn open<S>(
    builder: &mut Builder<'_, S>,
    path: &std::path::Path,
) -> Result<Arc<turnpike_lane::log::LogFile>, Complaint> {
    builder.environment.log_file(path).map_err(|error| {
        let path = path.display();
        format!("open() \"{path}\" failed {}", Errno(&error)).into()
    })
}

fn parameters<S>(words: &[Word], builder: &mut Builder<'_, S>) -> Result<Parameters, Complaint> {
    let mut parameters = Parameters::default();
    for word in words {
        let text = word.text.as_str();
        if let Some(size) = text.strip_prefix("buffer=") {
            let bytes = value::size(size).filter(|bytes| (1..=BUFFER_BYTES_MAX).contains(bytes));
            let bytes = bytes.ok_or_else(|| format!("invalid buffer size \"{size}\""))?;
            parameters.buffer_bytes = Some(bytes as usize);
        } else if let Some(time) = text.strip_prefix("flush=") {
            let time_ms = value::milliseconds(time).filter(|time_ms| *time_ms > 0);
            let invalid = || format!("invalid flush time \"{time}\"");
            parameters.flush_ms = Some(time_ms.ok_or_else(invalid)?);
        } else if text == "gzip" {
            parameters.gzip_level = Some(GZIP_LEVEL);
        } else if let Some(level) = text.strip_prefix("gzip=") {
            let level = value::number(level).filter(|level| (1..=9).contains(level));
            let level = level.ok_or_else(|| "invalid compression level".to_owned())?;
            parameters.gzip_level = Some(level as u32);
        } else if text.starts_with("if=") {
            let condition = &word.bytes()[3..];
            let condition = Template::compile(condition, &mut builder.variables)?;
            parameters.condition = Some(condition);
        } else {
            return Err(format!("invalid parameter \"{text}\"").into());
        }
    }
    Ok(parameters)
}

/// Gives a log its buffer. All logs of one file share one, so that their lines keep their order.
fn buffered<S>(
    output: &mut Output,
    text: &str,
    bytes_max: usize,
    parameters: &Parameters,
    builder: &mut Builder<'_, S>,
) -> Result<(), Complaint> {
    let (file, buffer) = match output {
        Output::File { file, buffer } => (file, buffer),
        Output::Path(_) => return Err("buffered logs cannot have variables in name".into()),
        Output::Syslog(_) => return Err("logs to syslog cannot be buffered".into()),
    };
    let buffers = &mut builder.store::<Store>().buffers;
    let spec = BufferSpec {
        index: buffers.len(),
        bytes_max,
        flush_ms: parameters.flush_ms,
        gzip_level: parameters.gzip_level,
    };
    let known = *buffers.entry(file.path().to_path_buf()).or_insert(spec);
    if (BufferSpec {
        index: known.index,
        ..spec
    }) != known
    {
        return Err(
            format!("access_log \"{text}\" already defined with conflicting parameters").into(),
        );
    }
    *buffer = Some(known);
    Ok(())
}
