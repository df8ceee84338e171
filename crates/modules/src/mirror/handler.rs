//! What this family does with a request.

use std::sync::Arc;

use turnpike_http::body::Progress;
use turnpike_http::client::Client;
use turnpike_http::engine::Purpose;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Work};
use turnpike_http::subrequest::Content;
use turnpike_lane::log::Level;

/// Where copies of a request go.
pub(super) struct Copies {
    pub(super) paths: Arc<[Vec<u8>]>,
    pub(super) with_body: bool,
}

impl Handler for Copies {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        if exchange.purpose() != Purpose::Request {
            return Verdict::Declined;
        }
        if !self.with_body {
            send(exchange, &self.paths, Content::Method);
            return Verdict::Declined;
        }
        match exchange.keep_whole_body() {
            Ok(Progress::Complete) => {
                send(exchange, &self.paths, Content::Body);
                Verdict::Declined
            }
            Ok(Progress::Incomplete) => Verdict::Wait(Box::new(AfterBody(Arc::clone(&self.paths)))),
            Err(error) => exchange.body_refused(error),
        }
    }
}

/// Sends the copies once the body is read.
struct AfterBody(Arc<[Vec<u8>]>);

impl Work for AfterBody {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        match client.read_body(exchange).await {
            Ok(()) => {
                send(exchange, &self.0, Content::Body);
                Verdict::Declined
            }
            Err(verdict) => verdict,
        }
    }
}

fn send(exchange: &Exchange, paths: &[Vec<u8>], content: Content) {
    for path in paths {
        let copy = exchange.subrequest(path, exchange.walk.query(), content);
        if !copy.start_in_background() {
            exchange.log(
                Level::Error,
                format_args!("too many requests are in the background: a mirror is left out"),
            );
        }
    }
}
