//! What this family does with a request.

use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;

use crate::common::files::{self, Files};
use crate::common::internal_target::InternalTarget;

/// A `try_files` directive.
pub(super) struct Trial {
    pub(super) files: Files,
    pub(super) candidates: Vec<Candidate>,
    pub(super) resort: Resort,
}

/// A path to be looked for.
pub(super) struct Candidate {
    pub(super) name: Template,
    pub(super) folder: bool,
}

/// What is done when none is there.
pub(super) enum Resort {
    Status(u16),
    /// A path with or without a query, or `@name`.
    Path(Template),
}

impl Handler for Trial {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let mut path = exchange.lane.take_scratch();
        let verdict = self.choose(exchange, &mut path);
        exchange.lane.keep_scratch(path);
        verdict
    }
}

impl Trial {
    fn choose(&self, exchange: &mut Exchange, path: &mut Vec<u8>) -> Verdict {
        let root = exchange.location().settings.root.clone();
        root.folder(exchange, path);
        let folder_bytes = path.len();
        for candidate in &self.candidates {
            path.truncate(folder_bytes);
            candidate.name.evaluate(exchange, path);
            without_alias(exchange, &candidate.name, path, folder_bytes);
            if !self.is_there(exchange, candidate, path) {
                continue;
            }
            let name = path.get(folder_bytes..).unwrap_or_default();
            let alias_bytes = root.alias_bytes();
            if root.is_alias() && alias_bytes == 0 {
                if candidate.folder {
                    return Verdict::Declined;
                }
                exchange.walk.path_goes_below_alias();
            }
            exchange.walk.path_mut().truncate(alias_bytes);
            exchange.walk.path_mut().extend_from_slice(name);
            return Verdict::Declined;
        }
        match &self.resort {
            Resort::Status(status) => Verdict::Status(*status),
            Resort::Path(target) => {
                path.truncate(folder_bytes);
                target.evaluate(exchange, path);
                without_alias(exchange, target, path, folder_bytes);
                let target = path.get(folder_bytes..).unwrap_or_default();
                let verdict = InternalTarget::parse_as_written(target).redirect(&mut exchange.walk);
                if matches!(verdict, Verdict::Redirect) {
                    // A query that the directive leaves out is empty for nginx here.
                    exchange.walk.keep_empty_query();
                }
                verdict
            }
        }
    }

    fn is_there(&self, exchange: &Exchange, candidate: &Candidate, path: &[u8]) -> bool {
        match self.files.inspect(exchange, path) {
            Ok(metadata) => metadata.is_directory() == candidate.folder,
            Err(error) => {
                if !files::is_absence(error.errno) {
                    files::log_failure(exchange, Level::Crit, path, error);
                }
                false
            }
        }
    }
}

/// Takes the prefix that an alias stands for off a name made from variables, which usually begins
/// with the request's path.
fn without_alias(exchange: &Exchange, name: &Template, path: &mut Vec<u8>, folder_bytes: usize) {
    let alias_bytes = exchange.location().settings.root.alias_bytes();
    if alias_bytes == 0 || name.constant().is_some() {
        return;
    }
    let prefix = exchange.walk.path().get(..alias_bytes);
    let written = path.get(folder_bytes..folder_bytes + alias_bytes);
    if prefix.is_some() && prefix == written {
        path.drain(folder_bytes..folder_bytes + alias_bytes);
    }
}
