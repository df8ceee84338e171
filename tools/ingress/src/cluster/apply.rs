//! From a snapshot of the objects to a server that serves them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use turnpike_agent::{Agent, Desired, Outcome, Ownership, Places, make_folder};

use super::Cluster;
use super::health::Figures;
use super::latest::Latest;
use crate::check::{judge, settle};
use crate::findings::{Finding, Subject};
use crate::objects::{Key, Objects};
use crate::options::Options;
use crate::render::{Rendering, render};

/// How long a wish that failed waits for another try, unless another one comes.
const AGAIN: Duration = Duration::from_secs(2);

/// What came of a snapshot.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// The objects, what of them does not work, the Ingresses that are served, and the error if
    /// nothing was changed.
    Tried {
        objects: Arc<Objects>,
        findings: Vec<Finding>,
        /// Objects that are left out, since the server refused what came of them.
        refused: BTreeSet<Subject>,
        served: Vec<Key>,
        error: Option<String>,
    },
    /// The server has ended; with the reason.
    Ended(String),
}

/// What applies snapshots.
pub(super) struct Applier {
    options: Options,
    program: PathBuf,
    places: Places,
    agent: Agent,
    server: Option<Child>,
    /// The last rendering that the server accepted, without what was left out, and what it came
    /// of.
    checked: Option<(String, Rendering)>,
    figures: Figures,
    reports: watch::Sender<Option<Report>>,
}

impl Applier {
    /// An applier; the server is started at once if an earlier run left a configuration.
    pub(super) fn new(
        cluster: &Cluster,
        figures: Figures,
        reports: watch::Sender<Option<Report>>,
    ) -> Result<Applier, String> {
        let folder = std::path::absolute(&cluster.folder).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let places = Places {
            configuration: folder.join("nginx.conf"),
            socket: folder.join("control"),
            state: folder.join("state"),
        };
        // The server wants the folder of its groups' files when it reads their configuration.
        make_folder(&places.state, Ownership::Server)
            .map_err(|error| format!("{}: {error}", places.state.display()))?;
        let options = Options {
            files: folder.join("files"),
            state: Some(places.state.clone()),
            control: Some(folder.clone()),
            ..cluster.options.clone()
        };
        let mut applier = Applier {
            options,
            program: cluster.program.clone(),
            agent: Agent::new(places.clone()),
            places,
            server: None,
            checked: None,
            figures,
            reports,
        };
        if applier.places.configuration.exists() {
            applier.start_server()?;
        }
        Ok(applier)
    }

    /// Applies snapshots as they come, always the newest.
    pub(super) fn work(mut self, snapshots: &Latest<Arc<Objects>>) {
        let mut failed: Option<Arc<Objects>> = None;
        loop {
            let looks_again = failed.is_some() || self.server.is_some();
            let newest = snapshots.take(looks_again.then_some(AGAIN));
            // One that failed is tried again only if there is none newer.
            let newest = newest.or(failed.take());
            if let Some(text) = self.ended() {
                self.reports.send_replace(Some(Report::Ended(text)));
                return;
            }
            let Some(objects) = newest else {
                continue;
            };
            let report = self.tried(objects);
            if let Report::Tried {
                objects,
                served,
                error,
                ..
            } = &report
            {
                self.figures.note_applied(error.is_none(), served.len());
                if error.is_some() {
                    failed = Some(Arc::clone(objects));
                }
            }
            self.reports.send_replace(Some(report));
        }
    }

    /// Brings the server to what the objects say, and tells what came of it.
    fn tried(&mut self, objects: Arc<Objects>) -> Report {
        let rendering = self.rendering(&objects);
        let (rendering, error) = match rendering {
            Ok(rendering) => {
                let error = self.bring(&rendering).err();
                (Some(rendering), error)
            }
            Err(error) => (None, Some(error)),
        };
        let (findings, refused, served) = rendering
            .map(|rendering| (rendering.findings, rendering.refused, rendering.served))
            .unwrap_or_default();
        Report::Tried {
            objects,
            findings,
            refused,
            served,
            error,
        }
    }

    /// The rendering that the server accepts. One that differs only in servers needs no check.
    fn rendering(&mut self, objects: &Objects) -> Result<Rendering, String> {
        let plain = render(objects, &self.options)?;
        if let Some((text, checked)) = &self.checked
            && *text == plain.configuration
            && checked.configuration == plain.configuration
        {
            return Ok(plain);
        }
        let draft = self.places.configuration.with_extension("draft");
        let program = self.program.clone();
        let settled = settle(objects, &self.options, |rendering| {
            rendering.write_files()?;
            std::fs::write(&draft, &rendering.configuration)
                .map_err(|error| format!("{}: {error}", draft.display()))?;
            judge(&program, &draft)
        })?;
        self.checked = Some((plain.configuration, settled.clone()));
        Ok(settled)
    }

    /// Brings the server to a rendering, or starts it.
    fn bring(&mut self, rendering: &Rendering) -> Result<(), String> {
        rendering.write_files()?;
        let desired = Desired {
            configuration: rendering.configuration.clone(),
            groups: rendering.groups.clone(),
        };
        if self.server.is_none() {
            self.agent
                .prepare(&desired)
                .map_err(|error| error.to_string())?;
            return self.start_server();
        }
        match self
            .agent
            .apply(&desired)
            .map_err(|error| error.to_string())?
        {
            Outcome::Reloaded { .. } => self.figures.note_reload(),
            Outcome::Servers(_) | Outcome::Unchanged => {}
        }
        Ok(())
    }

    fn start_server(&mut self) -> Result<(), String> {
        let child = Command::new(&self.program)
            .arg("-c")
            .arg(&self.places.configuration)
            .args(["-e", "stderr", "-g", "daemon off;"])
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        self.server = Some(child);
        Ok(())
    }

    /// Why the server has ended, if it has.
    fn ended(&mut self) -> Option<String> {
        let status = self.server.as_mut()?.try_wait().ok().flatten()?;
        Some(format!("the server has ended: {status}"))
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill(); // it may have ended
            let _ = server.wait();
        }
    }
}
