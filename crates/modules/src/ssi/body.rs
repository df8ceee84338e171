//! The body of a page: text and the results of commands, in order.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::regex::Settled;
use turnpike_http::response::{BodyFailed, BodyStream, LocalFuture};
use turnpike_lane::log::Level;
use turnpike_wire::ssi::{Event, Parser};
use turnpike_wire::target::{Escape, escape};

use super::command::{Encoding, Order};
use super::expression::{self, Comparison, Scope};
use super::page::{DEPTH_MAX, PARTS_MAX, Page, PageRoom};
use super::plan::Settings;
use crate::html;
use crate::part::Part;
use crate::safe_path::safe_path;

/// What is shown where a command is wrong.
const ERROR_MESSAGE: &[u8] = b"[an error occurred while processing the directive]";

/// What is shown of a variable that there is not.
const NO_VALUE: &[u8] = b"(none)";

/// `if` within `if`; more is no page that anybody writes.
const CONDITIONS_MAX: usize = 64;

/// A body whose commands are carried out.
pub(super) struct TemplateBody {
    settings: Arc<Settings>,
    page: Rc<RefCell<Page>>,
    depth: u32,
    /// The template; `None`: it has ended.
    body: Option<Box<dyn BodyStream>>,
    /// The template first, then blocks that are shown in it.
    templates: Vec<Template>,
    error_message: Vec<u8>,
    time_format: Option<String>,
    /// A part that is to be asked for.
    wanted: Option<Wanted>,
    shown: Option<Shown>,
}

/// What is read of a template.
struct Template {
    parser: Parser,
    input: Vec<u8>,
    taken: usize,
    conditions: Vec<Condition>,
    /// The block that the template is in, and its content.
    block: Option<(Vec<u8>, Vec<u8>)>,
}

/// An `if` that has not ended.
struct Condition {
    /// Whether the text where it stands is shown at all.
    outer: bool,
    /// Whether the branch is shown.
    shown: bool,
    /// Whether a branch was shown.
    chosen: bool,
    /// Whether this is its last branch.
    last: bool,
}

/// A part that a command asks for.
struct Wanted {
    path: Vec<u8>,
    query: Vec<u8>,
    set: Option<Vec<u8>>,
    stub: Option<Vec<u8>>,
}

/// A part whose body is sent.
struct Shown {
    part: Part,
    /// The block that is shown if nothing comes.
    stub: Option<Vec<u8>>,
}

impl Template {
    fn new(settings: &Settings, input: Vec<u8>) -> Self {
        Self {
            parser: Parser::new(settings.value_bytes_max),
            input,
            taken: 0,
            conditions: Vec::new(),
            block: None,
        }
    }

    fn is_shown(&self) -> bool {
        self.conditions
            .last()
            .is_none_or(|condition| condition.outer && condition.shown)
    }
}

impl TemplateBody {
    pub(super) fn new(
        body: Box<dyn BodyStream>,
        settings: Arc<Settings>,
        exchange: &mut Exchange,
    ) -> Self {
        let room = exchange.rooms.get_mut::<PageRoom>();
        let templates = vec![Template::new(&settings, Vec::new())];
        Self {
            page: Rc::clone(&room.page),
            depth: room.depth,
            settings,
            body: Some(body),
            templates,
            error_message: ERROR_MESSAGE.to_vec(),
            time_format: None,
            wanted: None,
            shown: None,
        }
    }

    /// Carries out what is at hand until there is something to send or a part is to be asked for.
    /// `false`: the template has ended.
    async fn proceed(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, BodyFailed> {
        loop {
            let is_block = self.templates.len() > 1;
            let Some(template) = self.templates.last_mut() else {
                return Ok(false);
            };
            let mut text = Vec::new();
            let rest = template.input.get(template.taken..).unwrap_or_default();
            let (taken, event) = template.parser.feed(rest, &mut text);
            template.taken += taken;
            put_text(template, &self.page, &text, out);
            let shown = template.is_shown();
            match event {
                Event::NeedsMore if is_block => self.end_template(out),
                Event::NeedsMore if !out.is_empty() => return Ok(true),
                Event::NeedsMore => {
                    if !self.read(exchange, client).await? {
                        self.end_template(out);
                        return Ok(!out.is_empty());
                    }
                }
                Event::Error(error) => self.wrong(exchange, &error.to_string(), shown, out),
                Event::Command(command) => {
                    if let Some((_, content)) = &mut template.block
                        && command.name != b"endblock"
                    {
                        if content.len() < super::page::STORED_BYTES_MAX {
                            command.write(content);
                        }
                        continue;
                    }
                    let done = match Order::read(&command) {
                        Ok(order) => self.carry_out(exchange, order, out).await,
                        Err(reason) => Err(reason),
                    };
                    if let Err(reason) = done {
                        self.wrong(exchange, &reason, shown, out);
                    }
                    if self.wanted.is_some() {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Reads the next piece of the template. `false`: there is none.
    async fn read(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
    ) -> Result<bool, BodyFailed> {
        let (Some(body), Some(template)) = (&mut self.body, self.templates.first_mut()) else {
            return Ok(false);
        };
        template.input.clear();
        template.taken = 0;
        if !body.next(exchange, client, &mut template.input).await? {
            body.ended(exchange);
            self.body = None;
        }
        Ok(true)
    }

    fn end_template(&mut self, out: &mut Vec<u8>) {
        if let Some(mut template) = self.templates.pop() {
            let mut text = Vec::new();
            template.parser.finish(&mut text);
            put_text(&mut template, &self.page, &text, out);
        }
    }

    /// A command is wrong: the log says why, and the page shows it if the text there is shown.
    fn wrong(&self, exchange: &Exchange, reason: &str, shown: bool, out: &mut Vec<u8>) {
        if !shown {
            return;
        }
        exchange.log(Level::Error, format_args!("{reason}"));
        if !self.settings.silent_errors {
            out.extend_from_slice(&self.error_message);
        }
    }

    async fn carry_out(
        &mut self,
        exchange: &mut Exchange,
        order: Order,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let shown = self.templates.last().is_none_or(Template::is_shown);
        match order {
            Order::If(text) => self.begin_condition(exchange, &text, shown).await,
            Order::ElseIf(text) => self.next_condition(exchange, Some(&text)).await,
            Order::Else => self.next_condition(exchange, None).await,
            Order::EndIf => {
                let ended = self
                    .templates
                    .last_mut()
                    .and_then(|last| last.conditions.pop());
                let misplaced = || "invalid context of SSI command: \"endif\"".to_owned();
                ended.map(|_| ()).ok_or_else(misplaced)
            }
            Order::EndBlock => self.end_block(),
            _ if !shown => Ok(()),
            Order::Block(name) => {
                if let Some(template) = self.templates.last_mut() {
                    template.block = Some((name, Vec::new()));
                }
                Ok(())
            }
            Order::Include { target, set, stub } => {
                self.wanted = Some(self.wanted(exchange, &target, set, stub)?);
                Ok(())
            }
            Order::Echo {
                variable,
                default,
                encoding,
            } => {
                self.echo(exchange, &variable, default, encoding, out);
                Ok(())
            }
            Order::Set { variable, value } => {
                let value = self.value(exchange, &value)?;
                self.store(variable, value)
            }
            Order::Config {
                error_message,
                time_format,
            } => {
                if let Some(text) = error_message {
                    self.error_message = text;
                }
                if let Some(format) = time_format {
                    self.time_format = Some(String::from_utf8_lossy(&format).into_owned());
                }
                Ok(())
            }
        }
    }

    fn value(&self, exchange: &Exchange, text: &[u8]) -> Result<Vec<u8>, String> {
        let scope = Scope {
            exchange,
            page: &self.page.borrow(),
            time_format: self.time_format.as_deref(),
        };
        scope.value(text)
    }

    fn store(&self, variable: Vec<u8>, value: Vec<u8>) -> Result<(), String> {
        let mut page = self.page.borrow_mut();
        if !page.has_room(variable.len() + value.len()) {
            return Err("the variables of a page are too large".to_owned());
        }
        page.variables.insert(variable, value);
        Ok(())
    }

    fn echo(
        &self,
        exchange: &Exchange,
        variable: &[u8],
        default: Option<Vec<u8>>,
        encoding: Encoding,
        out: &mut Vec<u8>,
    ) {
        let mut value = Vec::new();
        let scope = Scope {
            exchange,
            page: &self.page.borrow(),
            time_format: self.time_format.as_deref(),
        };
        if !scope.variable(variable, &mut value) {
            value = default.unwrap_or_else(|| NO_VALUE.to_vec());
        }
        match encoding {
            Encoding::None => out.extend_from_slice(&value),
            Encoding::Url => escape(&value, Escape::Html, out),
            Encoding::Entity => html::escape(&value, out),
        }
    }

    async fn begin_condition(
        &mut self,
        exchange: &mut Exchange,
        text: &[u8],
        outer: bool,
    ) -> Result<(), String> {
        let depth = self
            .templates
            .last()
            .map_or(0, |last| last.conditions.len());
        if depth >= CONDITIONS_MAX {
            return Err("too many \"if\" commands within one another".to_owned());
        }
        let holds = match outer {
            true => self.holds(exchange, text).await,
            false => Ok(false),
        };
        if let Some(template) = self.templates.last_mut() {
            let shown = *holds.as_ref().unwrap_or(&false);
            template.conditions.push(Condition {
                outer,
                shown,
                chosen: shown,
                last: false,
            });
        }
        holds.map(|_| ())
    }

    /// Goes to the next branch; without an expression it is the last.
    async fn next_condition(
        &mut self,
        exchange: &mut Exchange,
        text: Option<&[u8]>,
    ) -> Result<(), String> {
        let condition = self
            .templates
            .last()
            .and_then(|last| last.conditions.last());
        let asks = match (condition, text) {
            (Some(condition), _) if !condition.last => condition.outer && !condition.chosen,
            (_, text) => {
                let name = text.map_or("else", |_| "elif");
                return Err(format!("invalid context of SSI command: \"{name}\""));
            }
        };
        let holds = match text {
            Some(text) if asks => self.holds(exchange, text).await,
            Some(_) => Ok(false),
            None => Ok(asks),
        };
        let template = self.templates.last_mut();
        if let Some(condition) = template.and_then(|template| template.conditions.last_mut()) {
            condition.shown = *holds.as_ref().unwrap_or(&false);
            condition.chosen |= condition.shown;
            condition.last = text.is_none();
        }
        holds.map(|_| ())
    }

    /// Whether an expression holds.
    async fn holds(&mut self, exchange: &mut Exchange, text: &[u8]) -> Result<bool, String> {
        let Some((left, comparison)) = expression::parse(text) else {
            let text = Quoted(text);
            return Err(format!("invalid expression in \"{text}\""));
        };
        let left = self.value(exchange, &left)?;
        match comparison {
            Comparison::IsSet => Ok(!left.is_empty()),
            Comparison::Text { right, negated } => {
                Ok((left == self.value(exchange, right)?) != negated)
            }
            Comparison::Regex { right, negated } => {
                let right = self.value(exchange, right)?;
                Ok(self.matches(exchange, &left, &right).await? != negated)
            }
        }
    }

    /// Whether a regular expression matches. Its groups are the page's then. The request's own are
    /// as they were.
    async fn matches(
        &mut self,
        exchange: &mut Exchange,
        subject: &[u8],
        pattern: &[u8],
    ) -> Result<bool, String> {
        let pattern = expression::compile(pattern, &self.settings.place)?;
        let before = exchange.evaluation.captures().borrow().clone();
        let found = loop {
            exchange.begin_matching();
            let found = pattern.matches(exchange, subject);
            match exchange.settle_matching() {
                Settled::Decided => break found.ok(),
                Settled::Failed => break None,
                // Nobody can go away meanwhile.
                Settled::Wait(waiting) => drop(waiting.run(exchange, Client::Nobody).await),
            }
        };
        if found == Some(true) {
            let captures = exchange.evaluation.captures().borrow();
            let group = |number| captures.group(number).unwrap_or_default().to_vec();
            let mut page = self.page.borrow_mut();
            page.groups = (0..=pattern.regex.group_count()).map(group).collect();
            for (number, name) in pattern.regex.names() {
                let value = page.groups.get(*number).cloned().unwrap_or_default();
                page.variables
                    .insert(name.to_ascii_lowercase().into_bytes(), value);
            }
        }
        *exchange.evaluation.captures().borrow_mut() = before;
        found.ok_or_else(|| "a regular expression came to no verdict".to_owned())
    }

    fn end_block(&mut self) -> Result<(), String> {
        let block = self.templates.last_mut().and_then(|last| last.block.take());
        let Some((name, content)) = block else {
            return Err("invalid context of SSI command: \"endblock\"".to_owned());
        };
        let mut page = self.page.borrow_mut();
        if !page.has_room(name.len() + content.len()) {
            return Err("the blocks of a page are too large".to_owned());
        }
        page.blocks.insert(name, content);
        Ok(())
    }

    /// The part that a command asks for.
    fn wanted(
        &self,
        exchange: &Exchange,
        target: &[u8],
        set: Option<Vec<u8>>,
        stub: Option<Vec<u8>>,
    ) -> Result<Wanted, String> {
        let target = self.value(exchange, target)?;
        let cut = memchr::memchr(b'?', &target);
        let (path, query) = match cut {
            Some(cut) => (&target[..cut], &target[cut + 1..]),
            None => (&target[..], &b""[..]),
        };
        let mut whole = Vec::new();
        if !path.starts_with(b"/") {
            let folder = memchr::memrchr(b'/', exchange.walk.path()).map_or(0, |slash| slash + 1);
            whole.extend_from_slice(&exchange.walk.path()[..folder]);
        }
        let shown = || Quoted(&target).to_string();
        let safe = safe_path(path);
        let path = safe.ok_or_else(|| format!("unsafe URI \"{}\" was detected", shown()))?;
        whole.extend_from_slice(&path);
        let content = match &stub {
            None => None,
            Some(name) => {
                let page = self.page.borrow();
                let block = page.blocks.get(name).cloned();
                let name = Quoted(name);
                let missing = || format!("\"stub\"=\"{name}\" for \"include\" not found");
                Some(block.ok_or_else(missing)?)
            }
        };
        let mut page = self.page.borrow_mut();
        if self.depth >= DEPTH_MAX || page.parts >= PARTS_MAX {
            let target = shown();
            return Err(format!("subrequests cycle while processing \"{target}\""));
        }
        page.parts += 1;
        Ok(Wanted {
            path: whole,
            query: query.to_vec(),
            set,
            stub: content,
        })
    }

    /// Asks for a part. It is sent next, unless a variable stores it.
    async fn ask(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        wanted: Wanted,
        out: &mut Vec<u8>,
    ) -> Result<(), BodyFailed> {
        let part = Part::ask(exchange, client, &wanted.path, &wanted.query).await?;
        let replaces = |part: &Part| wanted.stub.is_some() && part.is_own_error();
        let part = match part {
            Some(part) if replaces(&part) => {
                part.end(exchange);
                None
            }
            part => part,
        };
        let Some(part) = part else {
            self.show_stub(wanted.stub);
            return Ok(());
        };
        match wanted.set {
            None => {
                let stub = wanted.stub;
                self.shown = Some(Shown { part, stub });
            }
            Some(variable) => {
                if let Err(reason) = self.store_part(exchange, client, part, variable).await? {
                    self.wrong(exchange, &reason, true, out);
                }
            }
        }
        Ok(())
    }

    fn show_stub(&mut self, stub: Option<Vec<u8>>) {
        if let Some(stub) = stub {
            self.templates.push(Template::new(&self.settings, stub));
        }
    }

    /// Stores a part in a variable. One that is larger than `subrequest_output_buffer_size` breaks
    /// the page off, as in nginx.
    async fn store_part(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        mut part: Part,
        variable: Vec<u8>,
    ) -> Result<Result<(), String>, BodyFailed> {
        let settings = &part.exchange().location().settings;
        let bytes_max = settings.subrequest_output_bytes;
        let (mut value, mut piece) = (Vec::new(), Vec::new());
        let read = loop {
            piece.clear();
            let more = part.next(client, &mut piece).await;
            value.extend_from_slice(&piece);
            if value.len() > bytes_max {
                let message = "too big subrequest response";
                part.exchange().log(Level::Error, format_args!("{message}"));
                break Err(BodyFailed);
            }
            match more {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(BodyFailed) => break Err(BodyFailed),
            }
        };
        part.end(exchange);
        read.map(|()| self.store(variable, value))
    }

    /// Sends the next piece of a part. What cannot be read of one breaks the page off, so that
    /// nobody takes it for whole.
    async fn relay(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        mut shown: Shown,
        out: &mut Vec<u8>,
    ) -> Result<(), BodyFailed> {
        let more = shown.part.next(client, out).await;
        if !out.is_empty() {
            shown.stub = None;
        }
        if more == Ok(true) {
            self.shown = Some(shown);
            return Ok(());
        }
        shown.part.end(exchange);
        more.map(|_| self.show_stub(shown.stub))
    }
}

/// Shows a text, or adds it to the block that it is in.
fn put_text(template: &mut Template, page: &RefCell<Page>, text: &[u8], out: &mut Vec<u8>) {
    let shown = template.is_shown();
    match &mut template.block {
        Some((_, content)) if page.borrow().has_room(content.len() + text.len()) => {
            content.extend_from_slice(text);
        }
        None if shown => out.extend_from_slice(text),
        Some(_) | None => {}
    }
}

impl BodyStream for TemplateBody {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(async move {
            // What is at hand is carried out without a wait: others have their turn between two
            // pieces of the page.
            if self.depth == 0 {
                tokio::task::yield_now().await;
            }
            loop {
                if !out.is_empty() {
                    return Ok(true);
                }
                if let Some(shown) = self.shown.take() {
                    self.relay(exchange, client, shown, out).await?;
                } else if let Some(wanted) = self.wanted.take() {
                    self.ask(exchange, client, wanted, out).await?;
                } else if !self.proceed(exchange, client, out).await? {
                    return Ok(false);
                }
            }
        })
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        if let Some(shown) = self.shown.take() {
            shown.part.end(exchange);
        }
        if let Some(mut body) = self.body.take() {
            body.ended(exchange);
        }
    }
}
