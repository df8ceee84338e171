//! From the bytes of a connection to a request.

use turnpike_lane::log::Level;
use turnpike_wire::h1::HeadStep;
use turnpike_wire::message::{HeadRules, Strictness, Version};

use super::input::{Input, Refused};
use crate::exchange::{Action, Exchange};
use crate::routing;
use turnpike_plan::Quoted;

/// What became of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadRead {
    /// A request that can be run.
    Complete,
    /// More bytes are needed.
    Incomplete,
    /// The request cannot be run: this status is the answer.
    Refused(u16),
}

/// Reads the head that stands next in the input, and what has come of the body behind it.
pub(crate) fn read(input: &mut Input, exchange: &mut Exchange) -> HeadRead {
    exchange.leave_location();
    let plan = exchange.plan.clone();
    let rules = &plan.server(exchange.walk.server()).settings.head_rules;
    let before = input.bytes().len();
    match exchange.read_request(|request| input.read_head(rules, request.head_mut())) {
        Ok(HeadStep::Complete) => {
            let head_bytes = before - input.bytes().len();
            exchange.account.head_received(head_bytes as u64);
            routing::choose_server(exchange);
            if let Err(refused) = read_strictly(input, exchange, rules) {
                return refuse(exchange, &refused);
            }
            let (length, strictness) = (exchange.body_length(), exchange.strictness());
            input.read_body(length, strictness, exchange.body.arrived());
            let head = exchange.request().head();
            let keeps = head.keep_alive() && head.version != Version::Http09;
            exchange.sending.keep_connection(keeps);
            match routing::settle(exchange) {
                Ok(()) => HeadRead::Complete,
                Err(status) => HeadRead::Refused(status),
            }
        }
        Ok(HeadStep::Incomplete { .. }) => HeadRead::Incomplete,
        Err(refused) => {
            exchange.account.head_received(refused.bytes as u64);
            refuse(exchange, &refused)
        }
    }
}

/// Notes what is known of a request whose head will not come whole, and the server that it names.
pub(crate) fn give_up(input: &mut Input, exchange: &mut Exchange) {
    exchange.leave_location();
    let plan = exchange.plan.clone();
    let rules = &plan.server(exchange.walk.server()).settings.head_rules;
    exchange.read_request(|request| input.give_up_head(rules, request.head_mut()));
    if exchange.request().head().host().is_some() {
        routing::choose_server(exchange);
    }
    routing::note_target(exchange);
}

/// Reads the head once more by the RFC, where the server that it names wants that and the default
/// one, by whose rules it was read, does not (`http_strictness`).
fn read_strictly(
    input: &mut Input,
    exchange: &mut Exchange,
    read_by: &HeadRules,
) -> Result<(), Refused> {
    let strictness = exchange.strictness();
    if strictness == read_by.strictness || strictness == Strictness::Nginx {
        return Ok(());
    }
    let rules = HeadRules {
        strictness,
        ..*read_by
    };
    exchange.read_request(|request| input.read_again(&rules, request.head_mut()))
}

fn refuse(exchange: &mut Exchange, refused: &Refused) -> HeadRead {
    let action = if refused.has_target {
        routing::choose_server(exchange);
        if exchange.request().host().is_empty() && !refused.is_for_missing_host {
            // The host is in what was not read.
            routing::return_to_server_of_connection(exchange);
        }
        Action::ReadingHeaders
    } else {
        // A request line that cannot be read names no host.
        routing::return_to_server_of_connection(exchange);
        Action::ReadingRequestLine
    };
    routing::note_target(exchange);
    exchange.account.set_action(action);
    exchange.log(Level::Info, format_args!("{}", Quoted(&refused.message)));
    HeadRead::Refused(refused.status)
}
