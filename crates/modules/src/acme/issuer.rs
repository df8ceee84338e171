//! An issuer: the service in the background that orders the certificates of one `acme_issuer`.
//!
//! The issuer's state outlives a reload, and an order that is under way goes on.

use std::fs::File;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use instant_acme::Account;
use tokio::sync::Notify;
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::process::unix_s;
use turnpike_plan::background::{Running, Service, run_blocking};

use super::account::{self, Known};
use super::answers::Answers;
use super::certificate::{Certificate, Issued};
use super::client::Route;
use super::order::{self, Failure};
use super::renewal::{self, Suggestion};
use super::settings::{Challenge, IssuerSettings};
use super::state::{self, State};
use crate::common::own_request::Outlet;

/// The pause between two tries to take the lock that another process holds. Certificates that it
/// has ordered meanwhile are in force after as long.
const LOCK_PAUSE: Duration = Duration::from_secs(5);

/// The longest sleep: the clock of the machine may be set while one lasts.
const SLEEP_MAX: Duration = Duration::from_secs(60 * 60);

const SECONDS_OF_DAY: u64 = 24 * 60 * 60;

/// What the plan in force says beside the settings.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) outlet: Arc<Outlet>,
    pub(super) log: ErrorLog,
    pub(super) certificates: Vec<Arc<Certificate>>,
}

/// An issuer.
pub(super) struct Issuer {
    settings: IssuerSettings,
    state: Option<State>,
    live: Mutex<Option<Live>>,
    /// The account; `None`: it was not looked for yet.
    known: Mutex<Option<Result<Known, String>>>,
    /// The plan has changed.
    changed: Notify,
    /// What the authority has said of when it may be asked again.
    answers: Arc<Answers>,
    /// Until when the authority is asked nothing at all, in Unix seconds.
    silent_until_s: AtomicU64,
}

/// The service of an issuer in one plan; those of all plans run the same issuer.
pub(super) struct IssuerService {
    pub(super) issuer: Arc<Issuer>,
    /// What this plan says; filled while it is built.
    pub(super) live: Mutex<Live>,
}

impl IssuerService {
    /// Has the issuer order another certificate.
    pub(super) fn add(&self, certificate: &Arc<Certificate>) {
        let mut live = lock(&self.live);
        let known = live.certificates.iter();
        if !known
            .into_iter()
            .any(|known| Arc::ptr_eq(known, certificate))
        {
            live.certificates.push(Arc::clone(certificate));
        }
    }
}

impl Service for IssuerService {
    fn run(self: Arc<Self>) -> Running {
        let issuer = Arc::clone(&self.issuer);
        Box::pin(async move { issuer.run().await })
    }

    /// Reads the certificates that are kept, so that lanes have them from the beginning.
    fn prepare(&self) {
        let live = lock(&self.live).clone();
        for certificate in &live.certificates {
            if certificate.issued().is_none() {
                self.issuer.read_kept(certificate, &live.log);
            }
        }
        let issuer = &self.issuer;
        // What could not be read is read again.
        lock(&issuer.known).take_if(|known| known.is_err());
        lock(&issuer.known)
            .get_or_insert_with(|| Known::read(&issuer.settings, issuer.state.as_ref()));
        *lock(&issuer.live) = Some(live);
        issuer.changed.notify_one();
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.issuer).addr()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Issuer {
    pub(super) fn new(settings: IssuerSettings) -> Issuer {
        Issuer {
            state: settings.state_path.as_deref().map(State::new),
            settings,
            live: Mutex::default(),
            known: Mutex::default(),
            changed: Notify::new(),
            answers: Arc::default(),
            silent_until_s: AtomicU64::new(0),
        }
    }

    /// Whether names are shown by records of DNS, which wildcards need.
    pub(super) fn shows_by_dns(&self) -> bool {
        matches!(self.settings.challenge, Challenge::Dns(_))
    }

    /// Puts the certificate that is kept in force if it is another one. It blocks.
    fn read_kept(&self, certificate: &Certificate, log: &ErrorLog) {
        let Some(state) = &self.state else {
            return;
        };
        let name = certificate.file_name();
        let read = match state.read(&name) {
            Ok(None) => return,
            Ok(Some(text)) => state::parts(&text).ok_or_else(|| "it has no certificate".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let in_force = certificate.issued();
        let read = read.and_then(|(chain, key)| match in_force {
            Some(issued) if issued.chain_pem == chain => Ok(None),
            _ => Issued::read(chain, key).map(Some),
        });
        match read {
            Ok(Some(issued)) => certificate.put_in_force(issued),
            Ok(None) => {}
            Err(why) => {
                let path = state.path().join(name);
                let path = path.display();
                self.log(
                    log,
                    Level::Error,
                    format_args!("cannot use \"{path}\": {why}"),
                );
            }
        }
    }

    fn log(&self, log: &ErrorLog, level: Level, what: std::fmt::Arguments<'_>) {
        let name = &self.settings.name;
        log.event(level, format_args!("acme issuer \"{name}\": {what}"));
    }

    async fn run(self: Arc<Self>) {
        let mut holding = Holding::default();
        loop {
            let live = lock(&self.live).clone();
            let Some(live) = live else {
                self.changed.notified().await;
                continue;
            };
            let pause = if self.hold(&mut holding, &live).await {
                self.order_due(&live).await
            } else {
                LOCK_PAUSE
            };
            // A change of the plan ends the pause.
            let _ = tokio::time::timeout(pause, self.changed.notified()).await;
        }
    }

    /// Whether this process is the one that orders. If not, certificates that the other one has
    /// ordered are taken from the files.
    async fn hold(self: &Arc<Self>, holding: &mut Holding, live: &Live) -> bool {
        let Some(state) = &self.state else {
            return true;
        };
        if holding.file.is_some() {
            return true;
        }
        let (own, state_of, live_of) = (Arc::clone(self), state.clone(), live.clone());
        let locked = run_blocking(move || {
            let locked = state_of.lock();
            for certificate in &live_of.certificates {
                own.read_kept(certificate, &live_of.log);
            }
            locked
        });
        let Ok(locked) = locked else {
            return false;
        };
        let path = state.path().display();
        let told = match locked.await {
            Some(Ok(Some(file))) => {
                holding.file = Some(file);
                let what =
                    format_args!("this process orders certificates: it has locked \"{path}\"");
                self.log(&live.log, Level::Notice, what);
                return true;
            }
            Some(Ok(None)) => format!(
                "another process has locked \"{path}\" and orders certificates; this one takes \
                 them from there"
            ),
            Some(Err(error)) => format!("cannot lock \"{path}\", nothing is ordered: {error}"),
            None => return false,
        };
        if holding.told != told {
            self.log(&live.log, Level::Notice, format_args!("{told}"));
            holding.told = told;
        }
        false
    }

    /// Orders the certificates that are due; returns the time until the next one is.
    async fn order_due(self: &Arc<Self>, live: &Live) -> Duration {
        for certificate in &live.certificates {
            if self.silent_until_s() > unix_s() {
                break;
            }
            self.ask(certificate, live).await;
            if certificate
                .schedule()
                .order_at_s()
                .max(self.silent_until_s())
                > unix_s()
            {
                continue;
            }
            self.answers.begin();
            if let Err(why) = self.order(certificate, live).await {
                let retry_at_s = self.answers.retry_at_s();
                let pause_s = certificate.schedule().failed(unix_s(), retry_at_s);
                let what = format_args!(
                    "ordering a certificate for {certificate} failed: {why}; the next try is in \
                     {pause_s} s"
                );
                self.log(&live.log, Level::Error, what);
                if self.answers.is_unavailable() {
                    self.be_silent(live);
                }
            }
        }
        let next = live.certificates.iter();
        let next = next.map(|certificate| certificate.schedule().next_at_s());
        let next_s = next.min();
        let pause = next_s.map_or(SLEEP_MAX, |at_s| {
            let at_s = at_s.max(self.silent_until_s());
            Duration::from_secs(at_s.saturating_sub(unix_s()))
        });
        pause.min(SLEEP_MAX)
    }

    fn silent_until_s(&self) -> u64 {
        self.silent_until_s.load(Relaxed)
    }

    /// Asks the authority nothing, for as long as it wants.
    fn be_silent(&self, live: &Live) {
        let until_s = self.answers.retry_at_s();
        let wait_s = until_s.saturating_sub(unix_s());
        if wait_s > 0 {
            self.silent_until_s.store(until_s, Relaxed);
            let what = format_args!("the authority asks for a pause of {wait_s} s");
            self.log(&live.log, Level::Notice, what);
        }
    }

    /// Asks the authority when it wants a certificate renewed, if it is time to ask.
    async fn ask(&self, certificate: &Certificate, live: &Live) {
        let Some(issued) = certificate.issued() else {
            return;
        };
        let ask_at_s = certificate.schedule().ask_at_s();
        if ask_at_s.is_none_or(|at_s| at_s > unix_s()) {
            return;
        }
        self.answers.begin();
        let suggestion = match self.account(live).await {
            Ok(account) => renewal::ask(&account, &issued).await,
            Err(_) => Suggestion::later(),
        };
        if self.answers.is_unavailable() {
            self.be_silent(live);
        }
        let suggestion = suggestion.not_before(self.answers.retry_at_s());
        let before_s = certificate.schedule().order_at_s();
        certificate.schedule().suggested(suggestion);
        let after_s = certificate.schedule().order_at_s();
        if after_s < before_s {
            let in_s = after_s.saturating_sub(unix_s());
            let what = format_args!(
                "the authority suggests to renew the certificate for {certificate} in {in_s} s"
            );
            self.log(&live.log, Level::Notice, what);
        }
    }

    /// The account with the authority.
    async fn account(&self, live: &Live) -> Result<Account, String> {
        let known = lock(&self.known).clone();
        let known = match known {
            Some(known) => known?,
            None => Known::default(),
        };
        let state = self.state.as_ref();
        let route = Route {
            outlet: Arc::clone(&live.outlet),
            answers: Arc::clone(&self.answers),
            is_secure: self.settings.is_secure(),
        };
        let opened = account::open(&self.settings, state, known, &route).await;
        if opened.is_err() {
            // Nothing can be asked without it.
            self.be_silent(live);
        }
        let (account, known) = opened?;
        *lock(&self.known) = Some(Ok(known));
        Ok(account)
    }

    async fn order(&self, certificate: &Certificate, live: &Live) -> Result<(), String> {
        let what = format_args!("ordering a certificate for {certificate}");
        self.log(&live.log, Level::Notice, what);
        let account = self.account(live).await?;
        let issued = match order::obtain(&self.settings, &account, certificate).await {
            Ok(issued) => issued,
            Err(Failure::Other(why)) => return Err(why),
            Err(Failure::UnknownAccount) => {
                if let Some(Ok(known)) = &mut *lock(&self.known) {
                    known.forget_url();
                }
                return Err(
                    "the authority does not know the account any more, its key will be \
                            registered again"
                        .to_owned(),
                );
            }
        };
        self.keep(certificate, &issued, live).await;
        let days = issued.not_after_s.saturating_sub(unix_s()) / SECONDS_OF_DAY;
        certificate.put_in_force(issued);
        certificate.schedule().ordered(unix_s());
        let what = format_args!("a certificate for {certificate} is in force for {days} days");
        self.log(&live.log, Level::Notice, what);
        Ok(())
    }

    /// Writes a certificate to its file. Without it, it is in force all the same.
    async fn keep(&self, certificate: &Certificate, issued: &Issued, live: &Live) {
        let Some(state) = &self.state else {
            return;
        };
        let name = certificate.file_name();
        let path = state.path().join(&name);
        let text = format!("{}{}", issued.key_pem, issued.chain_pem);
        let state = state.clone();
        let written = match run_blocking(move || state.write(&name, &text)) {
            Ok(written) => written.await,
            Err(_) => None,
        };
        let why = match written {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => "too much other work is queued".to_owned(),
        };
        let path = path.display();
        let what = format_args!(
            "cannot write \"{path}\": {why}; after a restart the certificate is ordered again"
        );
        self.log(&live.log, Level::Error, what);
    }
}

/// What a process knows of the lock.
#[derive(Default)]
struct Holding {
    /// The locked file.
    file: Option<File>,
    /// The last line about it in the log.
    told: String,
}
