//! Requests that change files: what they ask for, checked before any file is touched.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Work};
use turnpike_lane::log::Level;
use turnpike_plan::background::run_blocking;
use turnpike_wire::date;
use turnpike_wire::message::{BodyLength, Method};
use turnpike_wire::target::{self, Escape};

use super::conditions::{Conditions, PRECONDITION_FAILED};
use super::extended::{allowed_by_locks, lock_is_missing, shown_tokens};
use super::failure::{Failure, LOCKED, Refusal};
use super::job::{Job, Source, Upload};
use super::locks::LockZone;
use super::uri::{NoPath, path_of, place, without_slash};
use crate::common::files::Files as FileRules;

/// What the directives of a location say.
pub(super) struct Settings {
    pub(super) methods: Vec<Method>,
    pub(super) makes_folders: bool,
    pub(super) mode: u32,
    pub(super) delete_depth_min: usize,
    /// Locks that requests have to mind.
    pub(super) locks: Option<Arc<LockZone>>,
    /// The links that are refused.
    pub(super) files: FileRules,
}

/// Changes the files of a location.
pub(super) struct Files(pub(super) Arc<Settings>);

/// `Depth` (RFC 4918 section 10.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    Zero,
    One,
    Infinity,
}

impl Handler for Files {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let method = exchange.method();
        if !self.0.methods.contains(&method) {
            return Verdict::Declined;
        }
        let job = match method {
            Method::Put => self.0.put(exchange),
            _ if !matches!(
                exchange.body_length(),
                BodyLength::None | BodyLength::Bytes(0)
            ) =>
            {
                Err((415, format!("{} with body is unsupported", method.name())))
            }
            Method::Delete => self.0.delete(exchange),
            Method::Mkcol => self.0.make_folder(exchange),
            _ => transfer(exchange, &self.0.files, method == Method::Move),
        };
        let prepared = job.and_then(|job| {
            let conditions = Conditions::of(exchange, self.0.locks.as_ref(), job.paths())?;
            Ok((job, conditions))
        });
        match prepared {
            // The client takes its lock for held, and it has ended.
            Ok((_, conditions)) if !conditions.may_hold() => Verdict::Status(PRECONDITION_FAILED),
            Ok((job, conditions)) => {
                if let Some(locks) = &self.0.locks
                    && !allowed_by_locks(exchange, locks, &job.changes())
                {
                    return lock_is_missing(&mut exchange.response);
                }
                Verdict::Wait(Box::new(Changing {
                    settings: Arc::clone(&self.0),
                    job,
                    conditions,
                }))
            }
            Err((status, message)) => {
                exchange.log(Level::Error, format_args!("{message}"));
                Verdict::Status(status)
            }
        }
    }
}

impl Settings {
    fn put(&self, exchange: &Exchange) -> Result<Job, Refusal> {
        if exchange.walk.path().ends_with(b"/") {
            return Err((409, "cannot PUT to a collection".to_owned()));
        }
        if exchange.fields().value(b"Content-Range").is_some() {
            return Err((501, "PUT with range is unsupported".to_owned()));
        }
        let modified = exchange.fields().value(b"Date").and_then(date::parse);
        Ok(Job::Put(Upload {
            place: place(exchange, &self.files, exchange.walk.path()),
            makes_folders: self.makes_folders,
            mode: self.mode,
            modified: modified.and_then(|seconds| u64::try_from(seconds).ok()),
            folder: Arc::clone(&exchange.location().settings.client_body_folder),
            file: None,
        }))
    }

    fn delete(&self, exchange: &Exchange) -> Result<Job, Refusal> {
        let depth = elements(exchange.walk.path());
        if depth < self.delete_depth_min {
            return Err((409, format!("insufficient URI depth:{depth} to DELETE")));
        }
        Ok(Job::Delete {
            source: source(exchange, &self.files),
            depth: depth_of(exchange, Depth::Infinity)?,
        })
    }

    fn make_folder(&self, exchange: &Exchange) -> Result<Job, Refusal> {
        if !exchange.walk.path().ends_with(b"/") {
            return Err((409, "MKCOL can create a collection only".to_owned()));
        }
        Ok(Job::MakeFolder {
            place: source(exchange, &self.files).place,
            mode: self.mode,
        })
    }

    /// The methods that a path has which is there.
    fn allowed(&self) -> Vec<u8> {
        let mut text = b"GET, HEAD".to_vec();
        for method in &self.methods {
            text.extend_from_slice(b", ");
            text.extend_from_slice(method.name().as_bytes());
        }
        text
    }
}

/// COPY or MOVE.
fn transfer(exchange: &Exchange, files: &FileRules, is_move: bool) -> Result<Job, Refusal> {
    let destination = destination(exchange)?;
    if destination.ends_with(b"/") != exchange.walk.path().ends_with(b"/") {
        let message = "both URI and \"Destination\" URI should be either collections or \
                       non-collections";
        return Err((409, message.to_owned()));
    }
    let depth = depth_of(exchange, Depth::Infinity)?;
    match (is_move, depth) {
        (_, Depth::Infinity) | (false, Depth::Zero) => {}
        (false, Depth::One) => {
            return Err((400, "\"Depth\" header must be 0 or infinity".to_owned()));
        }
        (true, _) => return Err((400, "\"Depth\" header must be infinity".to_owned())),
    }
    let overwrites = match exchange.fields().value(b"Overwrite") {
        None | Some(b"T" | b"t") => true,
        Some(b"F" | b"f") => false,
        Some(value) => {
            let value = Quoted(value);
            let message = format!("client sent invalid \"Overwrite\" header: \"{value}\"");
            return Err((400, message));
        }
    };
    Ok(Job::Transfer {
        source: source(exchange, files),
        destination: place(exchange, files, without_slash(&destination)),
        overwrites,
        is_move,
        is_whole: depth == Depth::Infinity,
    })
}

/// The path that `Destination` names, which is one of this location's.
fn destination(exchange: &Exchange) -> Result<Vec<u8>, Refusal> {
    let Some(text) = exchange.fields().value(b"Destination") else {
        return Err((400, "client sent no \"Destination\" header".to_owned()));
    };
    path_of(exchange, text).map_err(|why| {
        let text = Quoted(text);
        let message = match why {
            NoPath::Invalid => format!("client sent invalid \"Destination\" header: \"{text}\""),
            NoPath::Elsewhere => format!(
                "\"Destination\" URI \"{text}\" is handled by different repository than the \
                 source URI"
            ),
        };
        (400, message)
    })
}

/// `Depth`.
pub(super) fn depth_of(exchange: &Exchange, default: Depth) -> Result<Depth, Refusal> {
    match exchange.fields().value(b"Depth") {
        None => Ok(default),
        Some(b"0") => Ok(Depth::Zero),
        Some(b"1") => Ok(Depth::One),
        Some(text) if text.eq_ignore_ascii_case(b"infinity") => Ok(Depth::Infinity),
        Some(text) => {
            let text = Quoted(text);
            Err((
                400,
                format!("client sent invalid \"Depth\" header: \"{text}\""),
            ))
        }
    }
}

/// How many elements a path has.
pub(super) fn elements(path: &[u8]) -> usize {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .count()
}

/// What the request is for.
pub(super) fn source(exchange: &Exchange, files: &FileRules) -> Source {
    Source {
        place: place(exchange, files, without_slash(exchange.walk.path())),
        is_folder: exchange.walk.path().ends_with(b"/"),
    }
}

/// A change that is made off the lane.
struct Changing {
    settings: Arc<Settings>,
    job: Job,
    conditions: Conditions,
}

impl Work for Changing {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let (mut job, conditions) = (self.job, self.conditions);
        if let Job::Put(upload) = &mut job {
            if let Err(verdict) = client.read_body(exchange).await {
                return verdict;
            }
            let file = exchange.body.take_file();
            upload.file = file.and_then(|file| Rc::try_unwrap(file).ok());
        }
        let gone = job.removes().map(Path::to_path_buf);
        // Somebody may have locked it while the body was read.
        let locks = self.settings.locks.clone();
        let tokens = shown_tokens(exchange);
        let now_ms = exchange.lane.clock.now_ms();
        // It is done whether or not the client waits.
        let done = match run_blocking(move || match locks {
            Some(locks) => job.run_unless_locked(&conditions, &locks, &tokens, now_ms),
            None => job.run(&conditions),
        }) {
            Ok(done) => done.await,
            Err(refusal) => {
                exchange.log(
                    Level::Error,
                    format_args!("files cannot be changed: {refusal}"),
                );
                return Verdict::Status(503);
            }
        };
        match done {
            Some(Ok(status)) => {
                if let (Some(locks), Some(gone)) = (&self.settings.locks, gone) {
                    locks.removed(gone);
                }
                answer(exchange, status)
            }
            Some(Err(Failure {
                status,
                level,
                text,
            })) => {
                exchange.log(level, format_args!("{text}"));
                if status == LOCKED {
                    return lock_is_missing(&mut exchange.response);
                }
                if status == 405 {
                    let allowed = self.settings.allowed();
                    exchange.response.fields_mut().set(b"Allow", &allowed);
                }
                Verdict::Status(status)
            }
            None => Verdict::Status(500),
        }
    }
}

/// Names the resource that was created. After COPY and MOVE it is the one of the client's
/// Destination, and nginx names none.
fn answer(exchange: &mut Exchange, status: u16) -> Verdict {
    let method = exchange.method();
    let response = &mut exchange.response;
    response.set_status(status);
    if status == 201 {
        response.set_content_length(Some(0));
        response.location_mut().clear();
        if !matches!(method, Method::Copy | Method::Move) {
            target::escape(exchange.walk.path(), Escape::Path, response.location_mut());
        }
    } else {
        response.set_head_only(true);
    }
    Verdict::Respond
}
