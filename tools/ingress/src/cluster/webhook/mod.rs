//! The admission webhook: it answers the API server over HTTPS, by what the watches have told.

mod certificate;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use kube::Client;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::Cluster;
use super::health::Figures;
use super::store::Store;
use crate::admission::review;
use crate::options::Options;

use certificate::{Keeper, Pair};

/// The longest review: it holds an Ingress before and after a change, each of at most 1.5 MiB.
const REVIEW_BYTES_MAX: usize = 4 << 20;

/// The most connections at a time: the API server keeps a few.
const CONNECTIONS_MAX: usize = 64;

/// How long a client may take for a handshake, and for a body.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the API server may keep a connection without another review.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// How often the certificate is looked at, and how often while there is none.
const LOOK: Duration = Duration::from_mins(1);
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// The certificate that is used now.
#[derive(Debug, Default)]
struct Current(RwLock<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        current.clone()
    }
}

/// Where the certificate comes from.
enum Source {
    /// Files of the administrator's.
    Files(PathBuf, PathBuf),
    Own(Box<Keeper>),
}

/// Serves reviews.
///
/// # Errors
/// The address cannot be listened on, or only one of certificate and key is given.
pub(super) async fn serve(
    client: &Client,
    cluster: &Cluster,
    figures: &Figures,
    store: &Arc<Mutex<Store>>,
) -> Result<(), String> {
    let given = &cluster.options.cluster;
    let Some(address) = &given.webhook_address else {
        return Ok(());
    };
    let source = match (&given.webhook_certificate, &given.webhook_key) {
        (Some(certificate), Some(key)) => Source::Files(certificate.clone(), key.clone()),
        (None, None) => Source::Own(Box::new(Keeper::new(
            client,
            &cluster.namespace,
            &given.webhook_name,
        ))),
        _ => {
            return Err(
                "--validating-webhook-certificate and --validating-webhook-key need each other"
                    .to_owned(),
            );
        }
    };
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| format!("{address}: {error}"))?;
    let current = Arc::new(Current::default());
    tokio::spawn(follow(source, figures.clone(), Arc::clone(&current)));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS: {error}"))?
        .with_no_client_auth()
        .with_cert_resolver(current);
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    tokio::spawn(accept(
        listener,
        acceptor,
        Arc::clone(store),
        cluster.options.clone(),
    ));
    Ok(())
}

/// Keeps the certificate the newest one, for ever.
async fn follow(source: Source, figures: Figures, current: Arc<Current>) {
    let mut used = Pair::default();
    let mut told = String::new();
    loop {
        let found = match &source {
            Source::Files(certificate, key) => of_files(certificate, key),
            Source::Own(keeper) => keeper.pair(figures.is_leader()).await,
        };
        let taken = found.and_then(|found| match found {
            Some(pair) if pair != used => {
                let key = certified(&pair)?;
                *current.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
                used = pair;
                Ok(())
            }
            _ => Ok(()),
        });
        let error = taken.err().unwrap_or_default();
        if error != told && !error.is_empty() {
            eprintln!("certificate of the admission webhook: {error}");
        }
        told = error;
        sleep(if used == Pair::default() {
            FIRST_LOOK
        } else {
            LOOK
        })
        .await;
    }
}

fn of_files(certificate: &PathBuf, key: &PathBuf) -> Result<Option<Pair>, String> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok(Some(Pair {
        certificate: read(certificate)?,
        key: read(key)?,
        authorities: Vec::new(),
    }))
}

fn certified(pair: &Pair) -> Result<CertifiedKey, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pair.certificate).collect();
    let chain = chain.map_err(|error| format!("the certificate cannot be read: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(&pair.key)
        .map_err(|error| format!("the key cannot be read: {error}"))?;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    CertifiedKey::from_der(chain, key, &provider)
        .map_err(|error| format!("certificate and key cannot be used: {error}"))
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    store: Arc<Mutex<Store>>,
    options: Options,
) {
    let options = Arc::new(options);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return; // the semaphore is never closed
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await; // no descriptors are left
            continue;
        };
        let (acceptor, store) = (acceptor.clone(), Arc::clone(&store));
        let options = Arc::clone(&options);
        tokio::spawn(async move {
            connection(stream, acceptor, store, options).await;
            drop(place);
        });
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    store: Arc<Mutex<Store>>,
    options: Arc<Options>,
) {
    let Ok(Ok(stream)) = timeout(CLIENT_TIMEOUT, acceptor.accept(stream)).await else {
        return; // a probe, or a client that trusts another certificate
    };
    let service = service_fn(move |request| {
        let (store, options) = (Arc::clone(&store), Arc::clone(&options));
        async move { Ok::<_, Infallible>(answer(request, &store, &options).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let _ = served.await; // a client that goes away loses its answer, and nothing else
}

async fn answer(
    request: Request<Incoming>,
    store: &Mutex<Store>,
    options: &Options,
) -> Response<Full<Bytes>> {
    let body = Limited::new(request.into_body(), REVIEW_BYTES_MAX).collect();
    let (status, text) = match timeout(CLIENT_TIMEOUT, body).await {
        Err(_) => (
            StatusCode::REQUEST_TIMEOUT,
            "the review is too slow".to_owned(),
        ),
        Ok(Err(error)) => (StatusCode::BAD_REQUEST, format!("no review: {error}")),
        Ok(Ok(body)) => reviewed(&body.to_bytes(), store, options),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = if status == StatusCode::OK {
        "application/json"
    } else {
        "text/plain"
    };
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn reviewed(text: &[u8], store: &Mutex<Store>, options: &Options) -> (StatusCode, String) {
    let Ok(mut store) = store.lock() else {
        let text = "an earlier review has failed; the controller ends".to_owned();
        return (StatusCode::INTERNAL_SERVER_ERROR, text);
    };
    if !store.is_complete() {
        let text = "the objects of the cluster are not known yet".to_owned();
        return (StatusCode::SERVICE_UNAVAILABLE, text);
    }
    match review(&mut store.objects, options, text) {
        Ok(answer) => (StatusCode::OK, answer),
        Err(error) => (StatusCode::BAD_REQUEST, error),
    }
}
