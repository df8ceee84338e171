//! Bodies that are made command by command, or have lines around them.

use std::sync::Arc;
use std::time::Duration;

use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::response::{BodyFailed, BodyStream, LocalFuture};
use turnpike_lane::log::Level;

use super::copies::Copies;
use super::handler::write;
use super::plan::{Command, Line};
use crate::common::internal_target::InternalTarget;
use crate::common::subrequest_body::Part;

/// Longest `echo_sleep` in seconds: a client that waits longer has gone.
const SLEEP_S_MAX: f64 = 3600.0;

/// What commands say, one after the other.
pub(super) struct Carried {
    commands: Arc<[Command]>,
    next: usize,
    /// What a location answers, while it is sent.
    part: Option<Part>,
    /// Copies that are too many for one piece, while they are sent.
    copies: Option<Copies>,
}

impl Carried {
    pub(super) fn new(commands: Arc<[Command]>) -> Self {
        Self {
            commands,
            next: 0,
            part: None,
            copies: None,
        }
    }

    async fn produce(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, BodyFailed> {
        loop {
            if let Some(mut copies) = self.copies.take() {
                copies.write(out);
                self.copies = Some(copies).filter(|copies| !copies.are_written());
                return Ok(true);
            }
            if let Some(mut part) = self.part.take() {
                match part.next(client, out).await {
                    Ok(true) => self.part = Some(part),
                    more => {
                        part.end(exchange);
                        more?;
                    }
                }
                if !out.is_empty() {
                    return Ok(true);
                }
                continue;
            }
            let commands = Arc::clone(&self.commands);
            let Some(command) = commands.get(self.next) else {
                return Ok(!out.is_empty());
            };
            if !write(exchange, command, out) {
                if !out.is_empty() {
                    // What is written is sent first.
                    return Ok(true);
                }
                self.carry_out(exchange, client, command).await?;
            }
            self.next += 1;
        }
    }

    async fn carry_out(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        command: &Command,
    ) -> Result<(), BodyFailed> {
        match command {
            Command::Sleep(seconds) => {
                let seconds = seconds.value(exchange);
                let seconds = std::str::from_utf8(&seconds).ok();
                let seconds = seconds.and_then(|seconds| seconds.parse::<f64>().ok());
                let seconds = seconds.filter(|seconds| (0.0..=SLEEP_S_MAX).contains(seconds));
                let pause = Duration::from_secs_f64(seconds.unwrap_or_default());
                let slept = client.unless_gone(tokio::time::sleep(pause)).await;
                slept.ok_or(BodyFailed)
            }
            Command::Location(path, query) => {
                let target = path.value(exchange);
                let query = query.as_ref().map(|query| query.value(exchange));
                let target = InternalTarget::parse_untrusted(exchange, &target);
                let (path, own) = match target.ok_or(BodyFailed)? {
                    InternalTarget::Path { path, query } => (path, query),
                    InternalTarget::Named(name) => {
                        let name = Quoted(name);
                        exchange.log(
                            Level::Error,
                            format_args!(
                                "\"echo_location\" cannot request \"{name}\": it is not a path"
                            ),
                        );
                        return Err(BodyFailed);
                    }
                };
                let query = query.as_deref().or(own).unwrap_or_default();
                self.part = Part::ask(exchange, client, &path, query).await?;
                Ok(())
            }
            Command::Copies(count, text) => {
                self.copies = Copies::evaluate(exchange, count, text);
                Ok(())
            }
            // Whatever is written leaves before this is asked.
            _ => Ok(()),
        }
    }
}

impl BodyStream for Carried {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(self.produce(exchange, client, out))
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        if let Some(part) = self.part.take() {
            part.end(exchange);
        }
    }
}

/// A body with lines around it.
pub(super) struct Surrounded {
    before: Option<Arc<[Line]>>,
    body: Option<Box<dyn BodyStream>>,
    after: Option<Arc<[Line]>>,
}

impl Surrounded {
    pub(super) fn new(before: Arc<[Line]>, body: Box<dyn BodyStream>, after: Arc<[Line]>) -> Self {
        Self {
            before: Some(before),
            body: Some(body),
            after: Some(after),
        }
    }
}

impl BodyStream for Surrounded {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async move {
            let mut write = |lines: Option<Arc<[Line]>>, exchange: &Exchange| {
                for line in lines.iter().flat_map(|lines| lines.iter()) {
                    line.write(exchange, out);
                }
            };
            if let Some(before) = self.before.take() {
                write(Some(before), exchange);
                return Ok(true);
            }
            let Some(body) = &mut self.body else {
                write(self.after.take(), exchange);
                return Ok(false);
            };
            if !body.next(exchange, client, out).await? {
                body.ended(exchange);
                self.body = None;
            }
            Ok(true)
        })
    }

    fn is_of_parts(&self) -> bool {
        let body = self.body.as_ref();
        body.is_some_and(|body| body.is_of_parts())
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        if let Some(mut body) = self.body.take() {
            body.ended(exchange);
        }
    }
}
