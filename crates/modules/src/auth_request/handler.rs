//! What this family does with a request.

use std::sync::Arc;

use turnpike_http::client::Client;
use turnpike_http::engine::Answer;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict, Work};
use turnpike_http::variables::{Template, VariableId};
use turnpike_lane::log::Level;
use turnpike_wire::message::Fields;

const CHALLENGE: &[u8] = b"WWW-Authenticate";

/// What a location asks, and what it keeps of the answer.
pub(super) struct Question {
    pub(super) path: Vec<u8>,
    pub(super) sets: Vec<(VariableId, Template)>,
}

/// Asks before the request may go on.
pub(super) struct Asks(pub(super) Arc<Question>);

impl Handler for Asks {
    fn handle(&self, _: &mut Exchange) -> Verdict {
        Verdict::Wait(Box::new(Asking(Arc::clone(&self.0))))
    }
}

struct Asking(Arc<Question>);

impl Work for Asking {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let mut asked = exchange.subrequest_to_decide(&self.0.path);
        let verdict = match client.unless_gone(asked.answer_subrequest()).await {
            Some(Answer::Response) => self.answered(exchange, &mut asked).await,
            Some(Answer::Nothing) => Verdict::Close,
            None => {
                asked.client_closed_request();
                exchange.client_went_away()
            }
        };
        asked.end_subrequest();
        verdict
    }
}

impl Asking {
    /// Takes the values, which hold whatever the status is, and judges.
    async fn answered(&self, exchange: &mut Exchange, asked: &mut Exchange) -> Verdict {
        for (id, template) in &self.0.sets {
            let Some(value) = asked.evaluate_waiting(template).await else {
                return Verdict::Status(500);
            };
            asked.set_variable_of(exchange, *id, &value);
        }
        asked.share_values(exchange);
        match asked.response.status() {
            200..=299 => Verdict::Finished,
            401 => {
                challenge(exchange.response.fields_mut(), asked);
                Verdict::Status(401)
            }
            403 => Verdict::Status(403),
            status => {
                exchange.log(
                    Level::Error,
                    format_args!("auth request unexpected status: {status}"),
                );
                Verdict::Status(500)
            }
        }
    }
}

/// Passes on how the client is to say who it is: as the answer has it, else as an upstream server
/// had it, whose field may be hidden.
fn challenge(fields: &mut Fields, asked: &Exchange) {
    let mut found = false;
    for value in asked.response.fields().values(CHALLENGE) {
        fields.add(CHALLENGE, value);
        found = true;
    }
    if found {
        return;
    }
    for value in asked.upstream.head().values(CHALLENGE) {
        fields.add(CHALLENGE, value);
    }
}
