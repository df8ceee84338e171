//! `..._store`: responses are kept as plain files, under the names of the location's own files.
//!
//! Nothing is ever answered from them here: that is what `root` and `error_page` are for.

use std::fs::FileTimes;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use turnpike_conf::{ConfError, bytes_of};
use turnpike_http::exchange::Exchange;
use turnpike_http::plan::Builder;
use turnpike_http::variables::Template;
use turnpike_lane::log::{Errno, Level};
use turnpike_plan::temporary::{Removal, TemporaryFile, TemporaryFolder};
use turnpike_wire::message::{Method, Strictness};

use super::response_store::{Lookup, Recorder, RecorderDecision, ResponseStore};
use super::view::PassView;
use crate::common::{file_access, files};

/// A location's `..._store`.
pub(crate) struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    /// The file's name; `None`: that of the location's files.
    name: Option<Template>,
    mode: u32,
    folder: TemporaryFolder,
}

/// A response that is being stored.
struct Storing {
    shared: Arc<Shared>,
    path: PathBuf,
    file: Option<TemporaryFile>,
    /// Unix seconds.
    modified: Option<i64>,
    /// Bytes that must come, where that is known.
    length: Option<u64>,
    failure: Option<io::Error>,
}

impl Store {
    /// Reads the directives in force; `None` where nothing is stored.
    ///
    /// # Errors
    /// nginx's words for access that is none.
    pub(crate) fn read(
        pass: PassView<'_>,
        builder: &mut Builder<'_>,
    ) -> Result<Option<Arc<dyn ResponseStore>>, ConfError> {
        let Some(entry) = pass.nearest("store") else {
            return Ok(None);
        };
        let name = match entry.argument(0) {
            "off" => return Ok(None),
            "on" => None,
            text => Some(builder.template(pass.view, entry, &bytes_of(text))?),
        };
        let files = match &name {
            Some(_) => entry.argument(0).to_owned(),
            None => files::folder_of(pass.view),
        };
        let declared = builder.environment.files(entry.row.name, &files);
        declared.map_err(|message| pass.view.error(entry.span, message))?;
        let folder = pass.temporary_folder(builder.environment)?;
        let shared = Shared {
            name,
            mode: file_access::read(pass.view, pass.nearest("store_access"))?,
            folder,
        };
        Ok(Some(Arc::new(Store {
            shared: Arc::new(shared),
        })))
    }
}

impl ResponseStore for Store {
    fn look_up(&self, exchange: &mut Exchange) -> Lookup {
        let mut path = Vec::new();
        match &self.shared.name {
            Some(template) => template.evaluate(exchange, &mut path),
            None => exchange.file_path(&mut path),
        }
        if path.is_empty() || path.contains(&0) || path.ends_with(b"/") {
            return Lookup::Pass;
        }
        // The file answers those who ask without content, or with other content.
        let is_for_content = exchange.is_get_or_head() && exchange.may_have_content();
        if is_for_content && exchange.strictness() == Strictness::Rfc {
            return Lookup::Pass;
        }
        Lookup::Record(Box::new(Storing {
            shared: Arc::clone(&self.shared),
            path: std::ffi::OsString::from_vec(path).into(),
            file: None,
            modified: None,
            length: None,
            failure: None,
        }))
    }
}

impl Recorder for Storing {
    fn replaces_conditions(&self) -> bool {
        false
    }

    fn head(&mut self, exchange: &mut Exchange) -> RecorderDecision {
        let head = exchange.method() == Method::Head;
        if exchange.response.status() != 200 || head {
            return RecorderDecision::Pass;
        }
        self.modified = exchange.response.last_modified();
        self.length = exchange.response.content_length();
        match self.shared.folder.create(Removal::AtEnd) {
            Ok(file) => {
                self.file = Some(file);
                RecorderDecision::Record
            }
            Err((path, error)) => {
                let (path, errno) = (path.display(), Errno(&error));
                exchange.log(
                    Level::Crit,
                    format_args!("open() \"{path}\" failed {errno}"),
                );
                RecorderDecision::Pass
            }
        }
    }

    fn piece(&mut self, bytes: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        if let Some(file) = &mut self.file {
            self.failure = file.append(bytes).err();
        }
    }

    fn whole(&mut self, exchange: &mut Exchange) {
        let Some(file) = self.file.take() else {
            return;
        };
        let short = self
            .length
            .is_some_and(|length| length != file.size_bytes());
        let stored = match self.failure.take() {
            Some(error) => Err(error),
            None if short => return,
            None => self.keep(file),
        };
        if let Err(error) = stored {
            let (path, errno) = (self.path.display(), Errno(&error));
            exchange.log(
                Level::Crit,
                format_args!("\"{path}\" could not be stored {errno}"),
            );
        }
    }
}

impl Storing {
    fn keep(&self, file: TemporaryFile) -> io::Result<()> {
        if let Some(seconds) = self
            .modified
            .and_then(|seconds| u64::try_from(seconds).ok())
        {
            let modified = UNIX_EPOCH + Duration::from_secs(seconds);
            let times = FileTimes::new().set_modified(modified);
            file.file().set_times(times)?;
        }
        if let Some(folder) = self.path.parent() {
            file_access::make_folders(folder, self.shared.mode)?;
        }
        file.keep_as(&self.path, self.shared.mode)
    }
}
