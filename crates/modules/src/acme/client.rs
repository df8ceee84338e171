//! How an authority is reached: HTTP/1.1 over TLS, through our own connections and name servers.
//!
//! Connections belong to the services' thread, and the library wants futures that any thread may
//! run. So requests go to a task of that thread, which answers through a channel.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::own_request::{self, Outlet};

/// Requests that may wait: the library sends one after the other.
const REQUESTS_MAX: usize = 4;

type Sent = Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>>;

type Answer = Result<own_request::Answer, String>;

struct Asked {
    request: Request<Bytes>,
    answer: oneshot::Sender<Answer>,
}

/// A client for one account; its task ends with it.
pub(super) struct Client {
    requests: mpsc::Sender<Asked>,
    task: AbortHandle,
}

impl Client {
    /// A client; must be called on the services' thread.
    pub(super) fn new(outlet: Arc<Outlet>) -> Client {
        let (requests, mut asked) = mpsc::channel::<Asked>(REQUESTS_MAX);
        let task = tokio::task::spawn_local(async move {
            while let Some(Asked { request, answer }) = asked.recv().await {
                // Nobody waits for it any more where this fails.
                let _ = answer.send(outlet.send(&request).await);
            }
        });
        Client {
            requests,
            task: task.abort_handle(),
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
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(never) => match never {},
            };
            let (answer, answered) = oneshot::channel();
            let request = Request::from_parts(head, body);
            let gone = |_| Error::Str("the client has ended");
            let asked = Asked { request, answer };
            requests.send(asked).await.map_err(|_| gone(()))?;
            let answered = answered.await.map_err(|_| gone(()))?;
            response(answered.map_err(|why| Error::Other(why.into()))?)
        })
    }
}

fn response(answer: own_request::Answer) -> Result<BytesResponse, Error> {
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
    let response = response.body(Full::new(Bytes::from(answer.body)))?;
    Ok(BytesResponse::from(response))
}
