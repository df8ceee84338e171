//! Live OCSP stapling: a service in the background asks the responder of a certificate for its
//! state (RFC 6960), and handshakes show the answer (RFC 6066 section 8).
//!
//! Handshakes never wait for it: without a good answer there is none in them.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use turnpike_conf::{ConfError, View};
use turnpike_lane::log::{ErrorLog, Level};
use turnpike_lane::sys::process::unix_s;
use turnpike_lane::trust;
use turnpike_plan::background::{Running, Service};
use turnpike_plan::builder::Builder;
use turnpike_plan::tls::Certificates;
use turnpike_wire::certificate::Certificate;
use turnpike_wire::hex;
use turnpike_wire::ocsp::State;

use super::clients;
use super::ocsp::{self, CLOCK_SLACK_S, Question, Signers};
use crate::common::own_request::Outlet;

/// The longest time for which an answer is not asked for again, and the shortest, in seconds;
/// nginx's numbers.
const REFRESH_S_MAX: u64 = 3600;
const REFRESH_S_MIN: u64 = 300;

/// The pauses after answers that cannot be used, in seconds: they double from the first to the
/// last.
const RETRY_S_MIN: u64 = 1;
const RETRY_S_MAX: u64 = 300;

/// A certificate whose state is asked for.
pub(super) struct Staple {
    /// As it is shown: with the answer in force, or without one.
    shown: ArcSwap<CertifiedKey>,
    question: Question,
    responder: String,
    /// Whether the responder must be the issuer or have a certificate of the issuer, which is
    /// trusted; else any certificate in the answer may have signed it, as in nginx.
    trusted: Option<Vec<CertificateDer<'static>>>,
    live: Mutex<Option<Live>>,
}

/// What the plan in force says.
#[derive(Clone)]
struct Live {
    outlet: Arc<Outlet>,
    log: ErrorLog,
}

/// The service of a certificate in one plan; those of all plans ask for the same certificate.
struct StapleService {
    staple: Arc<Staple>,
    live: Live,
}

/// The certificates of a server, some of them with answers.
#[derive(Debug)]
pub(super) struct StapledCertificates(Vec<Shown>);

/// A certificate in a handshake.
enum Shown {
    Fixed(Arc<CertifiedKey>),
    Live(Arc<Staple>),
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Shown")
    }
}

impl ResolvesServerCert for StapledCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = self.0.iter().map(|shown| match shown {
            Shown::Fixed(key) => Arc::clone(key),
            Shown::Live(staple) => staple.shown.load_full(),
        });
        Certificates(shown.collect()).resolve(hello)
    }
}

/// What shows the certificates of a server, and has their states asked for where that is wanted.
///
/// # Errors
/// Files that cannot be read.
pub(super) fn resolver<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    keys: Vec<Arc<CertifiedKey>>,
) -> Result<Arc<dyn ResolvesServerCert>, ConfError> {
    if !view.flag("ssl_stapling") || view.nearest("ssl_stapling_file").is_some() {
        return Ok(Arc::new(Certificates(keys)));
    }
    let trusted = clients::trusted(view, builder)?;
    let mut shown = Vec::new();
    for key in keys {
        shown.push(match staple(view, builder, &key, trusted.anchors())? {
            Some(staple) => Shown::Live(staple),
            None => Shown::Fixed(key),
        });
    }
    Ok(Arc::new(StapledCertificates(shown)))
}

fn staple<S>(
    view: View<'_>,
    builder: &mut Builder<'_, S>,
    key: &Arc<CertifiedKey>,
    trusted: &[CertificateDer<'static>],
) -> Result<Option<Arc<Staple>>, ConfError> {
    let made = match make(view, key, trusted) {
        Ok(made) => Arc::new(made),
        Err(why) => {
            if let Some(entry) = view.nearest("ssl_stapling") {
                builder.warn(view, entry, format!("\"ssl_stapling\" ignored, {why}"));
            }
            return Ok(None);
        }
    };
    let make = || Arc::clone(&made) as Arc<dyn Any + Send + Sync>;
    let kept = builder.environment.zone(&made.zone_key(key), &make);
    let staple = kept.downcast().unwrap_or_else(|_| Arc::clone(&made));
    let failed = |message: String| view.error(view.span(), message);
    let entries = view.nearest_all("error_log");
    let log = builder.environment.error_log(&entries);
    let log = log.map_err(|error| failed(error.into()))?;
    let outlet = Arc::new(ocsp::outlet(view, builder)?);
    builder.service(Arc::new(StapleService {
        staple: Arc::clone(&staple),
        live: Live { outlet, log },
    }));
    Ok(Some(staple))
}

/// The reason is nginx's.
fn make(
    view: View<'_>,
    key: &CertifiedKey,
    trusted: &[CertificateDer<'static>],
) -> Result<Staple, String> {
    let end = key.cert.first().and_then(|end| Certificate::read(end));
    let end = end.ok_or("the certificate cannot be read")?;
    let mut subject = Vec::new();
    end.subject.write_oneline(&mut subject);
    let name = String::from_utf8_lossy(&subject).into_owned();
    let candidates = key.cert.iter().skip(1).chain(trusted);
    let mut issuers = candidates.filter(|der| {
        let read = Certificate::read(der);
        read.is_some_and(|read| {
            read.subject == end.issuer && trust::is_signed(&read.key, end.signed, &end.signature)
        })
    });
    let issuer = issuers
        .next()
        .ok_or_else(|| format!("issuer certificate not found for certificate \"{name}\""))?;
    let responder = match view.try_text("ssl_stapling_responder") {
        Some(url) => url.to_owned(),
        None => {
            let url = end.extensions.ocsp_responder();
            let url = url.and_then(|url| std::str::from_utf8(url).ok());
            url.ok_or_else(|| format!("no OCSP responder URL in the certificate \"{name}\""))?
                .to_owned()
        }
    };
    let parsed: Result<http::Uri, _> = responder.parse();
    if !parsed.is_ok_and(|uri| uri.scheme_str() == Some("http")) {
        return Err(format!(
            "invalid URL prefix in OCSP responder \"{responder}\" in the certificate \"{name}\""
        ));
    }
    let question = Question::new(&end, issuer).ok_or("its issuer's cannot be read")?;
    Ok(Staple {
        shown: ArcSwap::from_pointee(CertifiedKey::new(key.cert.clone(), Arc::clone(&key.key))),
        question,
        responder,
        trusted: view.flag("ssl_stapling_verify").then(|| trusted.to_vec()),
        live: Mutex::default(),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service for StapleService {
    fn run(self: Arc<Self>) -> Running {
        let staple = Arc::clone(&self.staple);
        Box::pin(async move { staple.run().await })
    }

    fn prepare(&self) {
        *lock(&self.staple.live) = Some(self.live.clone());
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.staple).addr()
    }
}

/// An answer, and until when it is shown, in Unix seconds.
struct Answer {
    der: Vec<u8>,
    valid_until_s: u64,
}

impl Staple {
    /// What sets a certificate apart from others: a reload keeps the answer of one that stays.
    fn zone_key(&self, key: &CertifiedKey) -> String {
        let mut all = Vec::new();
        let trusted = self.trusted.iter().flatten();
        for der in key.cert.iter().chain(trusted) {
            all.extend_from_slice(digest(&SHA256, der).as_ref());
        }
        let sum = hex::text(digest(&SHA256, &all).as_ref());
        let verifies = self.trusted.is_some();
        format!("ocsp:{}:{verifies}:{sum}", self.responder)
    }

    async fn run(&self) {
        let mut retry_s = RETRY_S_MIN;
        loop {
            let live = lock(&self.live).clone();
            let Some(live) = live else {
                return;
            };
            let asked = self.ask(&live.outlet).await;
            let now_s = unix_s();
            let pause_s = match asked {
                Ok(answer) => {
                    retry_s = RETRY_S_MIN;
                    let latest_s = answer.valid_until_s.saturating_sub(CLOCK_SLACK_S);
                    let pause_s = latest_s.saturating_sub(now_s).min(REFRESH_S_MAX);
                    self.show(Some(answer));
                    pause_s.max(REFRESH_S_MIN)
                }
                Err(why) => {
                    let url = &self.responder;
                    let what =
                        format_args!("{why} while requesting certificate status, responder: {url}");
                    live.log.event(Level::Error, what);
                    let pause_s = retry_s;
                    retry_s = (retry_s * 2).min(RETRY_S_MAX);
                    pause_s
                }
            };
            tokio::time::sleep(Duration::from_secs(pause_s)).await;
            self.hide_old();
        }
    }

    fn show(&self, answer: Option<Answer>) {
        let mut key = CertifiedKey::clone(&self.shown.load());
        key.ocsp = answer.map(|answer| answer.der);
        self.shown.store(Arc::new(key));
    }

    /// Takes an answer away whose time is over.
    fn hide_old(&self) {
        let shown = self.shown.load();
        let Some(der) = &shown.ocsp else {
            return;
        };
        if self.judge(der, unix_s()).is_err() {
            self.show(None);
        }
    }

    async fn ask(&self, outlet: &Outlet) -> Result<Answer, String> {
        let der = self.question.ask(outlet, &self.responder).await?;
        let valid_until_s = self.judge(&der, unix_s())?;
        Ok(Answer { der, valid_until_s })
    }

    /// Until when an answer may be shown.
    fn judge(&self, der: &[u8], now_s: u64) -> Result<u64, String> {
        let issuer = self.question.issuer();
        let signers = match &self.trusted {
            None => Signers::Anyone,
            Some(trusted) if trusted.iter().any(|der| der.as_ref() == issuer) => Signers::Issuer,
            Some(_) => return Err("the issuer is not in \"ssl_trusted_certificate\"".to_owned()),
        };
        let verdict = self.question.judge(der, signers, now_s)?;
        let state = match verdict.state {
            State::Good => return Ok(verdict.until_s.unwrap_or(u64::MAX)),
            State::Revoked => "revoked",
            State::Unknown => "unknown",
        };
        Err(format!(
            "certificate status \"{state}\" in the OCSP response"
        ))
    }
}
