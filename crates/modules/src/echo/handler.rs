//! What this family does with a request.

use std::sync::Arc;

use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Filter, Handler, Verdict, Work};
use turnpike_http::response::Body;
use turnpike_http::variables::Template;

use super::body::{Carried, Surrounded};
use super::copies::Copies;
use super::plan::{Command, Line};
use crate::common::changed_entity::{change_text, is_coded};
use crate::common::internal_target::InternalTarget;

/// Has another location answer.
pub(super) struct Goto(pub(super) Template, pub(super) Option<Template>);

impl Handler for Goto {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let target = self.0.value(exchange);
        let query = self.1.as_ref().map(|query| query.value(exchange));
        if exchange.is_undecided() {
            return Verdict::Undecided;
        }
        let Some(mut target) = InternalTarget::parse_untrusted(exchange, &target) else {
            return Verdict::Status(500);
        };
        if let (InternalTarget::Path { query: own, .. }, Some(query)) = (&mut target, &query) {
            *own = Some(query);
        }
        target.redirect(&mut exchange.walk)
    }
}

/// Carries out the commands of a location.
pub(super) struct Commands {
    pub(super) status: u16,
    pub(super) commands: Arc<[Command]>,
}

impl Handler for Commands {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let reads_body = |command: &Command| matches!(command, Command::ReadBody);
        if self.commands.iter().any(reads_body) && !exchange.body.is_finished() {
            // It is read before the head is sent: an error has an answer then.
            Verdict::Wait(Box::new(ReadFirst {
                status: self.status,
                commands: Arc::clone(&self.commands),
            }))
        } else {
            answer(exchange, self.status, &self.commands)
        }
    }
}

struct ReadFirst {
    status: u16,
    commands: Arc<[Command]>,
}

impl Work for ReadFirst {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        match client.read_body(exchange).await {
            Ok(()) => answer(exchange, self.status, &self.commands),
            Err(verdict) => verdict,
        }
    }
}

fn answer(exchange: &mut Exchange, status: u16, commands: &Arc<[Command]>) -> Verdict {
    exchange.choose_content_type();
    let mut text = exchange.response.take_text();
    text.clear();
    let is_text = commands
        .iter()
        .all(|command| write(exchange, command, &mut text));
    if exchange.is_undecided() {
        return Verdict::Undecided;
    }
    let response = &mut exchange.response;
    response.set_status(status);
    if is_text {
        response.set_text(text);
        response.send_text();
        // The module does not know it when it sends the head.
        response.set_content_length(None);
    } else {
        let body = Carried::new(Arc::clone(commands));
        response.set_body(Body::Stream(Box::new(body)));
    }
    Verdict::Respond
}

/// Writes what a command says, if it says it at once. `false`: it has to be carried out.
pub(super) fn write(exchange: &Exchange, command: &Command, out: &mut Vec<u8>) -> bool {
    match command {
        Command::Line(line) => line.write(exchange, out),
        Command::Copies(count, text) => match Copies::evaluate(exchange, count, text) {
            Some(copies) if !copies.fit_behind(out) => return false,
            Some(mut copies) => copies.write(out),
            None => {}
        },
        Command::Body => out.extend_from_slice(exchange.body.bytes()),
        Command::ReadBody => {}
        Command::Flush | Command::Sleep(_) | Command::Location(..) => return false,
    }
    true
}

impl Line {
    pub(super) fn write(&self, exchange: &Exchange, out: &mut Vec<u8>) {
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                out.push(b' ');
            }
            word.evaluate(exchange, out);
        }
        if self.has_end {
            out.push(b'\n');
        }
    }
}

/// Puts lines around the body of a response.
pub(super) struct Around {
    pub(super) before: Arc<[Line]>,
    pub(super) after: Arc<[Line]>,
}

impl Around {
    pub(super) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

impl Filter for Around {
    fn filter(&self, exchange: &mut Exchange) -> Option<u16> {
        let response = &mut exchange.response;
        if is_coded(response) {
            return None;
        }
        change_text(response, true);
        if !response.is_head_only() {
            let body = response.take_stream();
            let (before, after) = (Arc::clone(&self.before), Arc::clone(&self.after));
            let body = Surrounded::new(before, body, after);
            response.set_body(Body::Stream(Box::new(body)));
        }
        None
    }
}
