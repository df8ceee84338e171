//! What this family does with a request.

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;
use turnpike_wire::message::Method;

use crate::common::files::{self, Files};

/// Leads a folder's path on to the file that stands for it.
pub(super) struct FolderIndex {
    pub(super) files: Files,
    pub(super) names: Box<[Template]>,
}

/// What a look at one file, or at the folder, says.
enum Look {
    Found,
    Absent,
    Ended(Verdict),
}

impl Handler for FolderIndex {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let method = exchange.method();
        let asked = matches!(method, Method::Get | Method::Head | Method::Post);
        if exchange.walk.path().last() != Some(&b'/') || !asked {
            return Verdict::Declined;
        }
        files::with_file_path(exchange, |exchange, path| self.choose(exchange, path))
    }

    fn is_same_for_all(&self) -> bool {
        self.names.iter().all(|name| name.constant().is_some())
    }
}

impl FolderIndex {
    fn choose(&self, exchange: &mut Exchange, path: &mut Vec<u8>) -> Verdict {
        let folder_bytes = path.len();
        let mut folder_tested = false;
        for name in &self.names {
            path.truncate(folder_bytes);
            name.evaluate(exchange, path);
            let name = path.get(folder_bytes..).unwrap_or_default();
            if name.first() == Some(&b'/') {
                exchange.walk.path_mut().clear();
                exchange.walk.path_mut().extend_from_slice(name);
                return Verdict::Redirect;
            }
            match self.look(exchange, path, folder_bytes, &mut folder_tested) {
                Look::Absent => {}
                Look::Ended(verdict) => return verdict,
                Look::Found => {
                    let name = path.get(folder_bytes..).unwrap_or_default();
                    exchange.walk.path_mut().extend_from_slice(name);
                    return Verdict::Redirect;
                }
            }
        }
        Verdict::Declined
    }

    fn look(
        &self,
        exchange: &Exchange,
        path: &[u8],
        folder_bytes: usize,
        folder_tested: &mut bool,
    ) -> Look {
        let error = match self.files.inspect(exchange, path) {
            Ok(_) => return Look::Found,
            Err(error) => error,
        };
        match error.errno {
            errno if files::is_refused_link(errno) => {
                return Look::Ended(Verdict::Status(403));
            }
            libc::ENOTDIR | libc::ENAMETOOLONG | libc::EACCES => {
                return Look::Ended(refuse(exchange, path, error.errno));
            }
            _ => {}
        }
        if !*folder_tested {
            let folder = folder_of(path, folder_bytes);
            if let Some(verdict) = self.test_folder(exchange, folder, path) {
                return Look::Ended(verdict);
            }
            *folder_tested = true;
        }
        if error.errno == libc::ENOENT {
            return Look::Absent;
        }
        files::log_failure(exchange, Level::Crit, path, error);
        Look::Ended(Verdict::Status(500))
    }

    /// Whether the folder itself is there; when it is not, how the request ends.
    fn test_folder(&self, exchange: &Exchange, folder: &[u8], path: &[u8]) -> Option<Verdict> {
        match self.files.inspect(exchange, folder) {
            Ok(metadata) if metadata.is_directory() => None,
            Ok(_) => {
                let folder = Quoted(folder);
                exchange.log(
                    Level::Alert,
                    format_args!("\"{folder}\" is not a directory"),
                );
                Some(Verdict::Status(500))
            }
            Err(error) => match error.errno {
                errno if files::is_refused_link(errno) => Some(Verdict::Status(403)),
                libc::ENOENT => Some(refuse(exchange, path, libc::ENOENT)),
                // The look at the file was allowed, so the folder may be searched.
                libc::EACCES => None,
                _ => {
                    files::log_failure(exchange, Level::Crit, folder, error);
                    Some(Verdict::Status(500))
                }
            },
        }
    }
}

/// The folder without its slash; of an alias that has none, what was put before the name.
fn folder_of(path: &[u8], folder_bytes: usize) -> &[u8] {
    let folder = path.get(..folder_bytes).unwrap_or_default();
    match folder {
        [] | [b'/'] => folder,
        [head @ .., b'/'] => head,
        _ => folder,
    }
}

fn refuse(exchange: &Exchange, path: &[u8], errno: i32) -> Verdict {
    let (path, words) = (Quoted(path), files::in_words(errno));
    if errno == libc::EACCES {
        exchange.log(
            Level::Error,
            format_args!("\"{path}\" is forbidden {words}"),
        );
        return Verdict::Status(403);
    }
    if exchange.location().settings.log_not_found {
        exchange.log(
            Level::Error,
            format_args!("\"{path}\" is not found {words}"),
        );
    }
    Verdict::Status(404)
}
