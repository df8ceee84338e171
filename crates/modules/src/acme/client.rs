//! How an authority is reached: HTTP/1.1 over TLS, through our own connections and name servers.
//!
//! Connections belong to the services' thread, and the library wants futures that any thread may
//! run. So requests go to a task of that thread, which answers through a channel.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient, Problem};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use turnpike_lane::sys::process::unix_s;

use super::answers::Answers;
use crate::common::own_request::{self, Outlet};

/// Requests that may wait: the library sends one after the other.
const REQUESTS_MAX: usize = 4;

type Sent = Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>>;

type Answer = Result<own_request::Answer, String>;

struct PendingRequest {
    request: Request<Bytes>,
    answer: oneshot::Sender<Answer>,
}

/// How an authority is reached.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) outlet: Arc<Outlet>,
    /// Where it is noted what answers say beside their content.
    pub(super) answers: Arc<Answers>,
    /// Whether only addresses that begin with `https` are asked: the directory has such a one, and
    /// what it names must not be less protected (RFC 8555 section 6.1).
    pub(super) is_secure: bool,
}

/// A client for one account; its task ends with it.
pub(super) struct Client {
    requests: mpsc::Sender<PendingRequest>,
    task: AbortHandle,
    answers: Arc<Answers>,
    is_secure: bool,
}

impl Client {
    /// A client; must be called on the services' thread.
    pub(super) fn new(route: Route) -> Client {
        let outlet = route.outlet;
        let (requests, mut asked) = mpsc::channel::<PendingRequest>(REQUESTS_MAX);
        let task = tokio::task::spawn_local(async move {
            while let Some(PendingRequest { request, answer }) = asked.recv().await {
                // Nobody waits for it any more where this fails.
                let _ = answer.send(outlet.send(&request).await);
            }
        });
        Client {
            requests,
            task: task.abort_handle(),
            answers: route.answers,
            is_secure: route.is_secure,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HttpClient for Client {
    fn request(&self, request: Request<BodyWrapper<Bytes>>) -> Sent {
        let requests = self.requests.clone();
        let answers = Arc::clone(&self.answers);
        let is_secure = self.is_secure;
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let (uri, is_post) = (head.uri.clone(), head.method == Method::POST);
            if is_secure && uri.scheme_str() != Some("https") {
                let why = format!("{uri} is not used: the authority's directory uses https");
                return Err(Error::Other(why.into()));
            }
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(never) => match never {},
            };
            let (answer, answered) = oneshot::channel();
            let request = Request::from_parts(head, body);
            let gone = |_| Error::Str("the client has ended");
            let asked = PendingRequest { request, answer };
            requests.send(asked).await.map_err(|_| gone(()))?;
            let answered = answered.await.map_err(|_| gone(()))?;
            let answered = answered.map_err(|why| Error::Other(why.into()))?;
            let checked = check(&uri, is_post, &answered);
            let response = response(answered, &answers)?;
            checked.map(|()| response)
        })
    }
}

/// Checks that an answer can be read: otherwise its status would not be in the log. The library
/// looks for problems in the answers to POST alone.
fn check(uri: &Uri, is_post: bool, answer: &own_request::Answer) -> Result<(), Error> {
    let status = answer.head.status;
    let body = answer.body.trim_ascii();
    // All that authorities say is an object, but for certificates; some say nothing.
    let is_answer = status < 400 && (body.is_empty() || body.starts_with(b"{") || is_pem(body));
    match serde_json::from_slice::<Problem>(body) {
        _ if is_answer => Ok(()),
        Ok(_) if status >= 400 && is_post => Ok(()),
        Ok(problem) if status >= 400 => Err(Error::Api(problem)),
        _ => Err(Error::Other(
            format!("{uri}: status {status}, and an unexpected body").into(),
        )),
    }
}

fn is_pem(body: &[u8]) -> bool {
    memchr::memmem::find(body, b"-----BEGIN ").is_some()
}

fn response(answer: own_request::Answer, answers: &Answers) -> Result<BytesResponse, Error> {
    let mut response = Response::builder().status(answer.head.status);
    for (name, value) in answer.head.fields.iter() {
        // What is no field of HTTP for the library is none that it needs.
        if let (Ok(name), Ok(value)) = (
            header::HeaderName::from_bytes(name),
            HeaderValue::from_bytes(value),
        ) {
            response = response.header(name, value);
        }
    }
    let mut response = response.body(Full::new(Bytes::from(answer.body)))?;
    answers.note(response.status(), response.headers_mut(), unix_s());
    Ok(BytesResponse::from(response))
}
