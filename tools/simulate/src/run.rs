//! One run: builds the lane of a seed, lets it serve, and checks the results.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Weak};

use turnpike_conf::{ConfError, Entry, Registry};
use turnpike_http::Product;
use turnpike_http::plan::{Environment, Plan};
use turnpike_lane::event_loop::{AcceptSettings, LaneGate, Mailbox};
use turnpike_lane::gate::AcceptMode;
use turnpike_lane::log::{ErrorLog, Level, LogFile, LogSet, Spec, SpecError};
use turnpike_lane::sys::simulation::{self, Fault, Lookout};
use turnpike_lane::sys::socket::Kind;
use turnpike_lane::turns;
use turnpike_protocols::{Apply, Command, LaneHandler, Plans, Process};

use crate::client::Client;
use crate::expected::PAGE;
use crate::flows::FlowSockets;
use crate::handshake;
use crate::plan;
use crate::protocol::{ALL, ORIGINS};
use crate::quic::QuicSockets;
use crate::relays::RelaySockets;
use crate::scenario::{FILE_BYTES, FILE_NUMBER, Scenario, stream};
use crate::verdict;
use crate::world::{Shared, Start, World};

/// A folder with the common parts of runs: the gate, the files, the logs. One run at a time.
pub struct Bench {
    pub(crate) folder: PathBuf,
    gate: Arc<OwnedFd>,
    origins: Rc<Vec<UnixListener>>,
    pub(crate) relays: RelaySockets,
    pub(crate) flows: FlowSockets,
    pub(crate) quic: QuicSockets,
    pub(crate) registry: Registry,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The errors; empty if there are none.
    pub problems: Vec<String>,
    /// The actions of all peers, if they were requested.
    pub trace: Vec<String>,
    /// The requests that clients have sent completely.
    pub requests: u64,
    /// Requests whose answers were compared to the last byte.
    pub answered: u64,
    /// The number of times that the injected fault occurred.
    pub fault_hits: u64,
}

/// The options of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The fault to inject.
    pub fault: Option<Fault>,
    /// Whether to record a trace.
    pub is_traced: bool,
}

/// The lane's leftovers at its end.
pub(crate) struct Left {
    pub(crate) ended: io::Result<()>,
    pub(crate) connections: [usize; 4],
    pub(crate) event_loop: [usize; 3],
    /// Plans from before a reload that something still held.
    pub(crate) old_plans: usize,
    /// Polls that took turn after turn though no byte moved.
    pub(crate) spent_polls: u64,
    /// Holders of the lane's own objects after all of it was dropped: exchanges, with their
    /// buffers, that were not returned.
    pub(crate) holders: usize,
}

impl Bench {
    /// Prepares an empty folder, which the caller removes.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new(folder: &Path) -> io::Result<Bench> {
        let files = folder.join("files");
        std::fs::create_dir_all(&files)?;
        for (number, length) in FILE_BYTES.iter().enumerate() {
            let body = crate::content::body(FILE_NUMBER + number as u64, *length);
            std::fs::write(files.join(number.to_string()), body)?;
        }
        for protocol in ALL {
            std::fs::create_dir_all(folder.join(format!("{}_temp", protocol.name())))?;
        }
        let pages = folder.join("pages");
        std::fs::create_dir_all(&pages)?;
        std::fs::write(pages.join("page"), PAGE.concat())?;
        std::fs::write(folder.join("certificate.pem"), handshake::CERTIFICATE)?;
        std::fs::write(folder.join("key.pem"), handshake::KEY)?;
        let gate = UnixListener::bind(folder.join("gate"))?;
        gate.set_nonblocking(true)?;
        let origins = (0..ORIGINS)
            .map(|number| {
                let listener = UnixListener::bind(folder.join(format!("origin{number}")))?;
                listener.set_nonblocking(true)?;
                Ok(listener)
            })
            .collect::<io::Result<Vec<_>>>()?;
        // Its file stays, and refuses connections.
        drop(UnixListener::bind(folder.join("dead"))?);
        Ok(Bench {
            folder: folder.to_path_buf(),
            gate: Arc::new(gate.into()),
            origins: Rc::new(origins),
            relays: RelaySockets::new(folder)?,
            flows: FlowSockets::new()?,
            quic: QuicSockets::new()?,
            registry: plan::registry(),
        })
    }

    /// Runs a seed.
    ///
    /// # Errors
    /// An error of the machine, not of the lane.
    pub fn run(&self, seed: u64, options: Options) -> Result<Report, String> {
        let mut report = self.run_http(seed, options)?;
        report.problems.extend(self.leftover_files()?);
        self.run_stream(seed, options, &mut report)?;
        Ok(report)
    }

    /// The part of a run that is about HTTP.
    fn run_http(&self, seed: u64, options: Options) -> Result<Report, String> {
        let scenario = Scenario::new(seed);
        let folder = self.folder.display().to_string();
        let mut logs = self.logs(&scenario)?;
        let plans = self.plans(&scenario, &folder, &mut logs)?;
        let weak = |plans: &Plans| Arc::downgrade(&plans.http);
        let old_plans: Vec<_> = plans.iter().map(weak).collect();
        let mut applies = plans.into_iter().map(|plans| self.apply(plans));
        let first = applies.next().ok_or("no plan")?;
        let times_ms = scenario.reloads_ms.iter().copied();
        let reloads: VecDeque<_> = times_ms.zip(applies).collect();
        let process = Process::default();
        let counters = process.http.clone();
        let mailbox = Mailbox::new().map_err(|error| format!("no mailbox: {error}"))?;
        let mailbox = Arc::new(mailbox);
        let clients = scenario.scripts.into_iter().map(Client::new).collect();
        let start = Start {
            random: stream(seed, 2),
            weather: scenario.weather,
            fault: options.fault,
            clients,
            origins: scenario.origins,
            folder: self.folder.clone(),
            listeners: self.origins.clone(),
            lookout: Lookout::new().map_err(|error| format!("no epoll instance: {error}"))?,
            reloads,
            is_traced: options.is_traced,
        };
        let world = World::new(start, mailbox.clone());
        let world = Rc::new(RefCell::new(world));
        simulation::enter(Some(Box::new(Shared(world.clone()))));
        let served = AssertUnwindSafe(|| serve(first, &old_plans, &world, &process, &mailbox));
        let left = catch_unwind(served);
        simulation::enter(None);
        let mut world = Rc::into_inner(world)
            .ok_or("the world is still held")?
            .into_inner();
        self.clear_queues();
        let mut report = Report {
            trace: world.trace.take().unwrap_or_default(),
            fault_hits: world.fault_hits,
            ..Report::default()
        };
        if options.is_traced {
            let errors = logs.errors.contents()?;
            let text = scenario.settings.configuration(&folder, 1);
            let texts = [
                format!("configuration:\n{text}"),
                format!("error log:\n{errors}"),
            ];
            report.trace.extend(texts);
        }
        match left {
            Ok(Ok(left)) => {
                let access = logs.access.contents()?;
                let counters = &counters.lanes()[0];
                verdict::judge(
                    &scenario.settings,
                    &world,
                    &left,
                    counters,
                    &access,
                    &mut report,
                );
            }
            Ok(Err(error)) => return Err(format!("no lane: {error}")),
            Err(_) => report.problems.push("a panic ended the lane".to_owned()),
        }
        Ok(report)
    }

    /// The temporary files that a run has left, as an error; they are removed.
    fn leftover_files(&self) -> Result<Option<String>, String> {
        let failed = |error| format!("temporary files: {error}");
        let mut files = 0;
        for protocol in ALL {
            let folder = self.folder.join(format!("{}_temp", protocol.name()));
            for entry in std::fs::read_dir(folder).map_err(failed)? {
                let path = entry.map_err(failed)?.path();
                std::fs::remove_file(path).map_err(failed)?;
                files += 1;
            }
        }
        Ok((files > 0).then(|| format!("{files} temporary files were left")))
    }

    /// The logs of a run, whose cache is empty.
    fn logs(&self, scenario: &Scenario) -> Result<Logs, String> {
        if scenario.settings.proxy.caches_on_disk {
            self.empty_cache()
                .map_err(|error| format!("the cache: {error}"))?;
        }
        Logs::new(&self.folder)
    }

    /// Makes the cache's folder anew: no run finds answers of another one.
    fn empty_cache(&self) -> io::Result<()> {
        let cache = self.folder.join("cache");
        match std::fs::remove_dir_all(&cache) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => std::fs::create_dir(&cache),
        }
    }

    /// Removes the leftovers of a run from the queues of the listening sockets.
    fn clear_queues(&self) {
        for listener in self.origins.iter() {
            while listener.accept().is_ok() {}
        }
        while turnpike_lane::sys::socket::accept(self.gate.as_fd()).is_ok() {}
    }

    /// The plans of a run: the first, and one for each reload.
    fn plans(
        &self,
        scenario: &Scenario,
        folder: &str,
        logs: &mut Logs,
    ) -> Result<Vec<Plans>, String> {
        let numbers = 1..=scenario.reloads_ms.len() as u64 + 1;
        let build = |number| {
            let text = scenario.settings.configuration(folder, number);
            plan::build(&self.registry, &text, number, logs)
        };
        numbers.map(build).collect()
    }

    /// Plans for the lane, with its gate.
    fn apply(&self, plans: Plans) -> Apply {
        let gate = plans.gate_number(0).map(|number| LaneGate {
            number,
            socket: self.gate.clone(),
            mode: AcceptMode::Shared,
            kind: Kind::Stream,
        });
        Apply {
            accept: AcceptSettings {
                connections_max: plans.http.events.connections_max,
                multi_accept: plans.http.events.multi_accept,
                ..AcceptSettings::default()
            },
            plans,
            gates: gate.into_iter().collect(),
            heartbeat: None,
            cpus: None,
            // Nobody waits for it.
            done: sync_channel(1).0,
        }
    }
}

/// Lets a lane serve from its first plan to its end.
fn serve(
    first: Apply,
    plans: &[Weak<Plan>],
    world: &RefCell<World>,
    process: &Process,
    mailbox: &Arc<Mailbox<Command>>,
) -> io::Result<Left> {
    let (mut handler, mut event_loop) = LaneHandler::begin(0, process, mailbox, first)?;
    let shared = handler.protocols().http.shared();
    world.borrow_mut().counters = Some(shared.counters.clone());
    let spent_polls = turns::spent_polls();
    let ended = handler.run(&mut event_loop);
    let spent_polls = turns::spent_polls() - spent_polls;
    let (held, watched) = (handler.protocols().http.left(), event_loop.left());
    let reloads = world.borrow().reloaded_ms.len();
    let is_held = |plan: &&Weak<Plan>| plan.strong_count() > 0;
    let old_plans = plans[..reloads].iter().filter(is_held).count();
    drop(handler);
    drop(event_loop);
    shared.forget_exchanges();
    Ok(Left {
        ended,
        connections: held,
        event_loop: watched,
        old_plans,
        spent_polls,
        holders: Rc::strong_count(&shared) - 1,
    })
}

/// A log in a file of its own, emptied for each run.
pub(crate) struct Log {
    file: File,
    log: Arc<LogFile>,
}

impl Log {
    fn new(path: &Path) -> Result<Log, String> {
        let failed = |error| format!("{}: {error}", path.display());
        let options = || {
            let mut options = File::options();
            options.create(true).append(true).read(true).clone()
        };
        let file = options().open(path).map_err(failed)?;
        file.set_len(0).map_err(failed)?;
        let writer = file.try_clone().map_err(failed)?;
        let log = Arc::new(LogFile::adopt(path, writer.into()));
        Ok(Log { file, log })
    }

    pub(crate) fn contents(&mut self) -> Result<String, String> {
        let mut text = String::new();
        self.file
            .rewind()
            .and_then(|()| self.file.read_to_string(&mut text))
            .map_err(|error| format!("a log: {error}"))?;
        Ok(text)
    }
}

/// The environment of the lane's plan: its logs.
pub(crate) struct Logs {
    folder: PathBuf,
    pub(crate) access: Log,
    errors: Log,
    zones: HashMap<String, Arc<dyn Any + Send + Sync>>,
}

impl Logs {
    pub(crate) fn new(folder: &Path) -> Result<Logs, String> {
        Ok(Logs {
            folder: folder.to_path_buf(),
            access: Log::new(&folder.join("access"))?,
            errors: Log::new(&folder.join("errors"))?,
            zones: HashMap::new(),
        })
    }
}

impl Environment for Logs {
    fn prefix(&self) -> &Path {
        &self.folder
    }

    fn conf_folder(&self) -> &Path {
        &self.folder
    }

    /// nginx's pages are plain, and written down among what is expected.
    fn product(&self) -> Product {
        Product::Nginx
    }

    fn log_file(&mut self, _: &Path) -> io::Result<Arc<LogFile>> {
        Ok(self.access.log.clone())
    }

    fn secret_log_file(&mut self, path: &Path) -> io::Result<Arc<LogFile>> {
        self.log_file(path)
    }

    fn error_log(&mut self, _: &[&Entry]) -> Result<ErrorLog, SpecError> {
        let path = self.folder.join("errors");
        let spec = Spec::parse(&[&path.display().to_string(), Level::Info.name()], &path)?;
        let mut files = LogSet::new();
        files.insert(self.errors.log.clone());
        Ok(ErrorLog::from_specs(&[spec], &files))
    }

    fn file(&mut self, path: &Path) -> io::Result<Arc<[u8]>> {
        Ok(std::fs::read(path)?.into())
    }

    fn warn(&mut self, _: ConfError) {}

    fn shared(
        &mut self,
        _: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        make()
    }

    fn zone(
        &mut self,
        key: &str,
        make: &dyn Fn() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        let zone = self.zones.entry(key.to_owned()).or_insert_with(make);
        zone.clone()
    }
}
