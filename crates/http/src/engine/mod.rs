//! Walks a request through the phases, and turns verdicts into what the connection does next.

pub(crate) mod walk;

use std::fmt;

use turnpike_lane::log::Level;
use turnpike_wire::message::{BodyLength, Method};
use turnpike_wire::target::{self, Escape};

use crate::client::Client;
use crate::exchange::{Action, Exchange};
use crate::phase::{Awaiting, Delay, Phase, Verdict, Waiting, Work};
use crate::plan::index::LocationIndex;
use crate::plan::locations::Found;
use crate::regex::Settled;
use crate::response::Body;
use crate::settings::Satisfy;
use turnpike_plan::Quoted;
pub use walk::{Purpose, Walk};

/// What the connection does next.
pub enum Outcome {
    /// Send the response of the exchange.
    Respond,
    /// Close without an answer.
    Close,
    /// Wait for this, then give its verdict to [`Exchange::resume`].
    Wait(Box<dyn Waiting>),
    /// Park until its watched socket has brought something, then give its verdict to
    /// [`Exchange::resume`].
    Await(Box<dyn Awaiting>),
}

/// How the walk of an exchange has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The response of the exchange is ready to be sent.
    Response,
    /// There is none, and none is sent.
    Nothing,
}

impl Exchange {
    /// Waits for whatever has to be waited for, until the walk has ended.
    pub async fn drive(&mut self, client: Client<'_>, mut outcome: Outcome) -> Answer {
        loop {
            let waiting = match outcome {
                Outcome::Respond => return Answer::Response,
                Outcome::Close => return Answer::Nothing,
                Outcome::Wait(waiting) => waiting,
                Outcome::Await(awaiting) => awaiting.into_waiting(),
            };
            let verdict = waiting.run(self, client).await;
            outcome = self.resume(verdict);
        }
    }

    /// Starts a request whose head is parsed, whose server is chosen and whose path is normal.
    pub fn run(&mut self) -> Outcome {
        self.account.set_action(Action::Processing);
        self.walk.set_location(self.server().root);
        self.enter(Phase::PostRead);
        match self.settle_matching() {
            Settled::Decided => self.proceed(),
            Settled::Wait(waiting) => Outcome::Wait(Box::new(ServerChoice(waiting))),
            Settled::Failed => self.resume(Verdict::Status(500)),
        }
    }

    /// On whose behalf this runs.
    pub fn purpose(&self) -> Purpose {
        self.walk.purpose()
    }

    /// The request is over: nothing but the log comes.
    pub(crate) fn enter_log(&mut self) {
        self.enter(Phase::Log);
    }

    /// Starts a subrequest: in its location, if it is in one, else as after an internal redirect.
    pub fn run_subrequest(&mut self) -> Outcome {
        self.account.set_action(Action::Processing);
        if self.walk.phase() == Phase::PostRead {
            self.enter(Phase::ServerRewrite);
        }
        self.proceed()
    }

    /// Has a subrequest begin in a named location.
    pub(crate) fn begin_in(&mut self, location: LocationIndex) {
        self.go_to(location);
    }

    /// Starts with the content of the location in force.
    pub(crate) fn run_content(&mut self) -> Outcome {
        self.account.set_action(Action::Processing);
        self.enter(Phase::Content);
        self.proceed()
    }

    /// Goes on with the verdict of something that had to wait.
    pub fn resume(&mut self, mut verdict: Verdict) -> Outcome {
        if self.take_match_failure() && !matches!(verdict, Verdict::Close) {
            verdict = Verdict::Status(500);
        }
        let step = match self.walk.phase() {
            Phase::Access => self.access(verdict),
            _ => self.apply(verdict),
        };
        match step {
            Some(outcome) => outcome,
            None => self.proceed(),
        }
    }

    /// Ends a request with a status before any phase, as for a head that cannot be read.
    pub fn refuse(&mut self, status: u16) -> Outcome {
        // Which server it would have been makes no difference.
        self.settle_matching();
        self.walk.set_location(self.server().root);
        self.sending.close_connection();
        match self.finalize(status) {
            Some(outcome) => outcome,
            None => self.proceed(),
        }
    }

    fn proceed(&mut self) -> Outcome {
        loop {
            let step = match self.walk.phase() {
                Phase::FindLocation => self.find_location(),
                Phase::PostRewrite => self.after_rewrite(),
                phase => self.handlers(phase),
            };
            if let Some(outcome) = step {
                return outcome;
            }
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.walk.enter(phase);
    }

    fn handlers(&mut self, phase: Phase) -> Option<Outcome> {
        if phase == Phase::PreContent && self.asks_whole_server() {
            return self.whole_server_options();
        }
        let location = self.plan.location(self.walk.location());
        if location.is_passed(phase) {
            self.walk.note_difference(location.difference);
            return self.phase_ended(phase);
        }
        let plan = self.plan.clone();
        let location = plan.location(self.walk.location());
        if phase == Phase::PreContent
            && self.method() == Method::Connect
            && !location.allows_connect
        {
            return self.finalize(405);
        }
        self.walk.note_difference(location.difference);
        let (asked_in, asked) = (self.walk.location(), self.walk.handler());
        if let (Phase::Content, Some(content)) = (phase, &location.content) {
            self.begin_matching();
            let verdict = content.handle(self);
            return match (self.settle_matching(), verdict) {
                (Settled::Wait(waiting), _) => self.ask_again(asked_in, asked, waiting),
                (Settled::Failed, _) => self.finalize(500),
                (Settled::Decided, Verdict::Declined) => self.no_content(),
                (Settled::Decided, verdict) => self.apply(verdict),
            };
        }
        let Some(handler) = location.handlers(phase).get(asked) else {
            return self.phase_ended(phase);
        };
        self.walk.go_to_handler(asked + 1);
        self.begin_matching();
        let verdict = handler.handle(self);
        match self.settle_matching() {
            Settled::Decided => {}
            Settled::Wait(waiting) => return self.ask_again(asked_in, asked, waiting),
            Settled::Failed => return self.finalize(500),
        }
        if phase == Phase::Access {
            self.access(verdict)
        } else {
            self.apply(verdict)
        }
    }

    /// A regular expression came to no verdict on the lane: what the handler said does not count,
    /// and it is asked again when the match is finished.
    fn ask_again(
        &mut self,
        location: LocationIndex,
        handler: usize,
        waiting: Box<dyn Waiting>,
    ) -> Option<Outcome> {
        self.walk.set_location(location);
        self.walk.go_to_handler(handler);
        Some(Outcome::Wait(waiting))
    }

    fn phase_ended(&mut self, phase: Phase) -> Option<Outcome> {
        let next = match phase {
            Phase::PostRead => Phase::ServerRewrite,
            Phase::ServerRewrite => Phase::FindLocation,
            Phase::FindLocation => Phase::Rewrite,
            Phase::Rewrite => Phase::PostRewrite,
            Phase::PostRewrite => Phase::PreAccess,
            // The request that made it was let through.
            Phase::PreAccess if self.walk.purpose() != Purpose::Request => Phase::PreContent,
            Phase::PreAccess => Phase::Access,
            Phase::Access => {
                if self.walk.access_status() != 0 {
                    return self.refused_by_access();
                }
                Phase::PreContent
            }
            Phase::PreContent => Phase::Content,
            Phase::Content | Phase::Log => return self.no_content(),
        };
        self.enter(next);
        None
    }

    fn refused_by_access(&mut self) -> Option<Outcome> {
        let status = self.walk.access_status();
        self.walk.set_access_status(0);
        if status == 403 {
            self.log(Level::Error, format_args!("access forbidden by rule"));
        }
        self.unauthorized(status)
    }

    /// Refuses after `auth_delay`, which makes guessing slow.
    fn unauthorized(&mut self, status: u16) -> Option<Outcome> {
        let delay_ms = self.location().settings.auth_delay_ms;
        if delay_ms == 0 || !matches!(status, 401 | 407) {
            return self.finalize(status);
        }
        self.log(Level::Info, format_args!("delaying unauthorized request"));
        // The access phase has decided: what comes after the delay is not asked about again.
        self.enter(Phase::PreContent);
        Some(Outcome::Wait(Box::new(Delay {
            delay_ms,
            verdict: Verdict::Status(status),
        })))
    }

    /// `satisfy all` refuses at the first refusal; `satisfy any` grants at the first grant.
    fn access(&mut self, verdict: Verdict) -> Option<Outcome> {
        let any = self.location().settings.satisfy == Satisfy::Any;
        match verdict {
            Verdict::Finished if any => {
                self.walk.set_access_status(0);
                for challenge in [&b"WWW-Authenticate"[..], b"Proxy-Authenticate"] {
                    self.response.fields_mut().remove(challenge);
                }
                self.enter(Phase::PreContent);
                None
            }
            Verdict::Status(status @ (401 | 403 | 407)) if any => {
                if !matches!(self.walk.access_status(), 401 | 407) {
                    self.walk.set_access_status(status);
                }
                None
            }
            Verdict::Finished => None,
            Verdict::Status(status @ (401 | 407)) => self.unauthorized(status),
            verdict => self.apply(verdict),
        }
    }

    /// Acts on a verdict. `None`: the walk goes on.
    fn apply(&mut self, verdict: Verdict) -> Option<Outcome> {
        match verdict {
            // A renewal has no client, so no error page is made.
            Verdict::Status(_) | Verdict::Redirect | Verdict::Named(_) | Verdict::Undecided
                if self.walk.purpose() == Purpose::Renewal =>
            {
                Some(Outcome::Close)
            }
            Verdict::Declined => None,
            Verdict::Finished => self.phase_ended(self.walk.phase()),
            Verdict::Respond => self.respond(),
            Verdict::Status(status) => self.finalize(status),
            Verdict::Redirect => self.internal_redirect(),
            Verdict::Named(name) => self.go_to_named(&name),
            Verdict::Rewritten => {
                self.walk.set_path_changed(true);
                None
            }
            // Pending work cannot be repeated.
            Verdict::Undecided => self.finalize(500),
            Verdict::Close => Some(Outcome::Close),
            Verdict::Wait(waiting) => Some(Outcome::Wait(waiting)),
            Verdict::Await(awaiting) => Some(Outcome::Await(awaiting)),
        }
    }

    /// Lets the location's filters see the response. One of them may replace it by an error.
    pub(crate) fn respond(&mut self) -> Option<Outcome> {
        let error_status = self.walk.error_status();
        if error_status != 0 && error_status != self.response.status() {
            self.response.set_status(error_status);
            self.response.reason_mut().clear();
        }
        self.debug(format_args!(
            "answering with status {}",
            self.response.status()
        ));
        // What an origin says of a 204 without a body is metadata (RFC 9110 section 15.3.5); what a
        // handler made for a body that is not sent means nothing.
        if self.response.status() == 204 && !matches!(self.response.body(), Body::Empty) {
            self.response.clear_body();
        }
        if self.response.status() == 205 {
            self.leave_out_content();
        }
        self.response.set_head_only(
            self.method() == Method::Head || matches!(self.response.status(), 204 | 205 | 304),
        );
        let is_part = match self.walk.purpose() {
            Purpose::Request => false,
            Purpose::Part => true,
            Purpose::Subrequest | Purpose::Renewal => return Some(Outcome::Respond),
        };
        let plan = self.plan.clone();
        for (_, filter) in plan.location(self.walk.location()).filters() {
            if is_part && !filter.filters_parts() {
                continue;
            }
            if let Some(status) = filter.filter(self) {
                self.response.clear_body();
                self.response.location_mut().clear();
                return self.finalize(status);
            }
        }
        if self.take_match_failure() {
            self.response.clear();
            return self.finalize(500);
        }
        Some(Outcome::Respond)
    }

    /// Removes the content of a 205, whose length is 0 (RFC 9110 section 15.3.6). A stream ends
    /// when the head is sent.
    fn leave_out_content(&mut self) {
        self.response.set_content_length(Some(0));
        if !matches!(self.response.body(), Body::Stream(_)) {
            self.response.set_body(Body::Empty);
        }
    }

    fn find_location(&mut self) -> Option<Outcome> {
        self.walk.set_path_changed(false);
        let plan = self.plan.clone();
        let server = plan.server(self.walk.server());
        self.begin_matching();
        let found = plan.find_location(&server.tree, self, self.walk.path());
        match self.settle_matching() {
            Settled::Decided => {}
            Settled::Wait(waiting) => return Some(Outcome::Wait(waiting)),
            Settled::Failed => return self.finalize(500),
        }
        // A settled match always has a verdict; this is only for the compiler.
        let Ok(found) = found else {
            return self.finalize(500);
        };
        let location = match found {
            _ if self.asks_whole_server() => server.root,
            Found::Prefix(location) | Found::Decided(location) => location,
            Found::Redirect(location) => return self.redirect_to_location(location),
            Found::Nothing => server.root,
        };
        self.walk.set_location(location);
        self.debug(format_args!(
            "using location \"{}\" for \"{}\"",
            Quoted(&plan.location(location).name),
            Quoted(self.walk.path())
        ));
        if plan.location(location).settings.internal && !self.walk.is_internal() {
            return self.finalize(404);
        }
        self.location_chosen();
        if self.has_too_large_body() {
            self.body.expect_answered();
            // From here on it is thrown away, and does not refuse the page of the error too. Only
            // a chunked body can be malformed.
            let _ = self.drop_buffered_body();
            return self.finalize(413);
        }
        self.enter(Phase::Rewrite);
        None
    }

    /// The path is that of a location but for its slash.
    fn redirect_to_location(&mut self, location: LocationIndex) -> Option<Outcome> {
        self.walk.set_location(location);
        let plan = self.plan.clone();
        let target = self.response.location_mut();
        target.clear();
        target::escape(&plan.location(location).name, Escape::Path, target);
        if !self.walk.query().is_empty() {
            target.push(b'?');
            target.extend_from_slice(self.walk.query());
        }
        self.finalize(301)
    }

    /// Whether the body is larger than the location allows: by what its head says, or as it was
    /// read before there was a location.
    fn has_too_large_body(&self) -> bool {
        let body_bytes_max = self.location().settings.client_max_body_bytes;
        let was_read_early = self.body.is_finished() && !self.walk.is_internal();
        let length = match self.body_length() {
            BodyLength::Bytes(length) if self.body.is_untouched() || was_read_early => length,
            BodyLength::Unknown if was_read_early => self.body.length(),
            _ => return false,
        };
        if body_bytes_max == 0 || length <= body_bytes_max {
            return false;
        }
        self.log(
            Level::Error,
            format_args!("client intended to send too large body: {length} bytes"),
        );
        true
    }

    /// Puts another location in force without looking at its rewrite directives, as `if` does.
    pub fn switch_location(&mut self, location: LocationIndex) {
        self.walk.set_location(location);
        self.location_chosen();
    }

    /// What the location says of methods and of keeping the connection.
    fn location_chosen(&mut self) {
        let plan = self.plan.clone();
        if let Some(limit) = &plan.location(self.walk.location()).limit_except {
            let method = self.method_name();
            if !limit.methods.iter().any(|allowed| allowed == method) {
                self.walk.set_location(limit.location);
            }
        }
        if !self.sending.keeps_connection() {
            return;
        }
        let settings = &plan.location(self.walk.location()).settings;
        let age_ms = self
            .lane
            .clock
            .now_ms()
            .saturating_sub(self.requester.accepted_ms());
        let used_up = settings.keepalive_timeout_ms == 0
            || self.requester.requests() >= settings.keepalive_requests
            || age_ms > settings.keepalive_time_ms;
        self.sending
            .keep_connection(!used_up && !self.keep_alive_disabled());
    }

    /// `keepalive_disable`: old browsers that keep connections badly.
    fn keep_alive_disabled(&self) -> bool {
        let settings = &self.location().settings;
        if !settings.keepalive_disable_msie6 && !settings.keepalive_disable_safari {
            return false;
        }
        let Some(agent) = self.known_field(turnpike_wire::message::Known::UserAgent) else {
            return false;
        };
        let has = |text: &[u8]| memchr::memmem::find(agent, text).is_some();
        let post = self.method() == Method::Post;
        (settings.keepalive_disable_msie6 && post && is_old_msie(agent))
            || (settings.keepalive_disable_safari
                && has(b"Mac OS X")
                && has(b"Safari/")
                && !has(b"Chrome/"))
    }

    fn after_rewrite(&mut self) -> Option<Outcome> {
        if !self.walk.is_path_changed() {
            self.enter(Phase::PreAccess);
            return None;
        }
        if !self.walk.take_redirect() {
            let path = Quoted(self.walk.path()).to_string();
            return self.cycle("processing", &path);
        }
        self.enter(Phase::FindLocation);
        self.walk.set_location(self.server().root);
        None
    }

    pub(crate) fn internal_redirect(&mut self) -> Option<Outcome> {
        if !self.walk.take_redirect() {
            let path = Quoted(self.walk.path()).to_string();
            return self.cycle("internally redirecting to", &path);
        }
        self.walk.redirected();
        self.walk.set_location(self.server().root);
        self.debug(format_args!(
            "internal redirect to \"{}\"",
            Quoted(self.walk.path())
        ));
        self.enter(Phase::ServerRewrite);
        None
    }

    pub(crate) fn go_to_named(&mut self, name: &str) -> Option<Outcome> {
        if !self.walk.take_redirect() {
            let name = format!("@{}", name.trim_start_matches('@'));
            return self.cycle("redirect to named location", &name);
        }
        let Some(location) = self.server().named.get(name).copied() else {
            self.log(
                Level::Error,
                format_args!("could not find named location \"{name}\""),
            );
            return self.finalize(500);
        };
        self.go_to(location);
        None
    }

    fn go_to(&mut self, location: LocationIndex) {
        self.walk.sent_to_named();
        self.walk.set_location(location);
        self.location_chosen();
        self.enter(Phase::Rewrite);
    }

    /// Ends a loop of redirects. No page is taken in place of this error: it would go on there.
    fn cycle(&mut self, doing: &str, target: &dyn fmt::Display) -> Option<Outcome> {
        self.log(
            Level::Error,
            format_args!("rewrite or internal redirection cycle while {doing} \"{target}\""),
        );
        self.finalize(500)
    }

    fn no_content(&mut self) -> Option<Outcome> {
        if self.walk.path().last() != Some(&b'/') {
            return self.finalize(404);
        }
        let mut folder = Vec::new();
        self.file_path(&mut folder);
        let folder = String::from_utf8_lossy(&folder);
        self.log(
            Level::Error,
            format_args!("directory index of \"{folder}\" is forbidden"),
        );
        self.finalize(403)
    }
}

/// Chooses the server again, once the regular expression of a name has come to its verdict.
struct ServerChoice(Box<dyn Waiting>);

impl Work for ServerChoice {
    async fn run(self, exchange: &mut Exchange, client: Client<'_>) -> Verdict {
        let mut waiting = self.0;
        loop {
            match waiting.run(exchange, client).await {
                Verdict::Declined => {}
                verdict => return verdict,
            }
            if let Err(status) = exchange.choose_server_again() {
                return Verdict::Status(status);
            }
            match exchange.settle_matching() {
                Settled::Decided => return Verdict::Declined,
                Settled::Wait(next) => waiting = next,
                Settled::Failed => return Verdict::Status(500),
            }
        }
    }
}

/// Whether a User-Agent field is that of MSIE up to 6 (but for 6 with SV1), by nginx's rules. Such
/// a browser keeps connections badly and cannot read gzip.
pub fn is_old_msie(agent: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(agent, b"MSIE ") else {
        return false;
    };
    match agent.get(at + 5..at + 7) {
        Some([b'4' | b'5', _]) => true,
        Some([b'6', _]) => memchr::memmem::find(agent, b"SV1").is_none(),
        _ => false,
    }
}
