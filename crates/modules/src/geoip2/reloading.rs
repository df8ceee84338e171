//! `auto_reload`: looking from time to time whether a file has changed.

use std::sync::Arc;
use std::time::Duration;

use turnpike_lane::log::{ErrorLog, Level};
use turnpike_plan::background::{Running, Service, run_blocking};

use super::database::Database;

/// The service of one database.
pub(super) struct Reloading {
    pub(super) database: Arc<Database>,
    pub(super) interval: Duration,
    pub(super) log: ErrorLog,
}

impl Reloading {
    async fn check(&self) {
        let database = Arc::clone(&self.database);
        // With no thread free, the next time is soon enough.
        let Ok(checking) = run_blocking(move || database.check()) else {
            return;
        };
        let path = self.database.path().display();
        match checking.await {
            Some(Ok(true)) => {
                let words = format_args!("geoip2 \"{path}\" has changed and was read again");
                self.log.write(Level::Notice, None, words);
            }
            Some(Err(error)) => {
                let words = format_args!(
                    "geoip2 \"{path}\" cannot be read again ({error}), the old content stays in \
                     use"
                );
                self.log.write(Level::Error, None, words);
            }
            Some(Ok(false)) | None => {}
        }
    }
}

impl Service for Reloading {
    fn run(self: Arc<Self>) -> Running {
        Box::pin(async move {
            loop {
                tokio::time::sleep(self.interval).await;
                self.check().await;
            }
        })
    }

    /// A plan with the same database goes on with the same service.
    fn identity(&self) -> usize {
        Arc::as_ptr(&self.database).addr()
    }
}
