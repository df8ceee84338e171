//! The body of a page: text and the results of commands, in order. What is at hand is made without
//! a wait; only what is not waits.

mod buffers;
mod condition;

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use turnpike_http::Quoted;
use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Waiting;
use turnpike_http::plan::Pattern;
use turnpike_http::response::{BodyFailed, BodyStream};
use turnpike_http::rooms::Rooms;
use turnpike_lane::log::Level;
use turnpike_wire::ssi::{Command, Event, Parser};
use turnpike_wire::target::{Escape, escape};

use self::buffers::Buffers;
pub(super) use self::buffers::PageBody;
use self::condition::Condition;
use super::command::{Encoding, Order};
use super::expression::{Scope, lookup_name};
use super::page::{Page, PageRoom};
use super::plan::Settings;
use crate::common::html;
use crate::common::safe_path::append_safe_path;
use crate::common::subrequest_body::{Begun, Part, PendingPart};

/// What is shown where a command is wrong.
const ERROR_MESSAGE: &[u8] = b"[an error occurred while processing the directive]";

/// What is shown of a variable that there is not.
const NO_VALUE: &[u8] = b"(none)";

/// Most bytes of a page that are made before they are sent: a piece is worth its turn, and does not
/// hold the lane.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// A body whose commands are carried out.
pub(super) struct TemplateBody {
    settings: Arc<Settings>,
    page: Rc<RefCell<Page>>,
    depth: u32,
    /// The template; `None`: it has ended.
    body: Option<Box<dyn BodyStream>>,
    /// The template first, then blocks that are shown in it.
    templates: SmallVec<[Template; 1]>,
    error_message: Cow<'static, [u8]>,
    time_format: Option<String>,
    next: Next,
    /// The regular expression whose match is waited for, with its text.
    pattern: Option<(Vec<u8>, Rc<Pattern>)>,
    buffers: Buffers,
    /// Whether the page was broken off, which is not told yet.
    failed: bool,
}

/// What a page goes on with.
enum Next {
    /// What was read of the template.
    Template,
    /// The next piece of the template, which is not at hand.
    Input,
    /// A command, when the match that it needs is finished.
    Command(Command, Box<dyn Waiting>),
    /// A part that is to be asked for.
    Part(Wanted),
    /// A part that was asked for, when it is answered.
    Answer(PendingPart, Wanted),
    /// The body of a part.
    Body(Taken),
}

/// How far a page has come.
enum Reached {
    /// There is enough to be sent.
    Piece,
    /// All is made.
    End,
    /// What comes next has to be waited for.
    Wait,
}

/// What is read of a template.
struct Template {
    parser: Parser,
    /// The piece of the page that was read last.
    input: Vec<u8>,
    /// The block that is read instead.
    stub: Option<Rc<[u8]>>,
    taken: usize,
    conditions: Vec<Condition>,
    /// The block that the template is in, and its content.
    block: Option<(Vec<u8>, Vec<u8>)>,
}

/// A part that a command asks for.
struct Wanted {
    /// Path and query, with nothing between them.
    target: Vec<u8>,
    path_bytes: usize,
    set: Option<Vec<u8>>,
    stub: Option<Rc<[u8]>>,
}

/// A part whose body is read.
struct Taken {
    part: Part,
    purpose: Purpose,
}

/// What becomes of a part.
enum Purpose {
    /// The part is shown; `stub`: the block that is shown if nothing comes.
    Shown { stub: Option<Rc<[u8]>> },
    /// A variable stores it.
    Stored { variable: Vec<u8>, value: Vec<u8> },
}

impl Template {
    fn new(value_bytes_max: usize, input: Vec<u8>) -> Self {
        Self {
            parser: Parser::new(value_bytes_max),
            input,
            stub: None,
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
        mut buffers: Buffers,
        rooms: &mut Rooms,
    ) -> Self {
        let room = rooms.get_mut::<PageRoom>();
        let templates = smallvec![buffers.template(settings.value_bytes_max)];
        Self {
            page: Rc::clone(room.page()),
            depth: room.depth,
            settings,
            body: Some(body),
            templates,
            error_message: Cow::Borrowed(ERROR_MESSAGE),
            time_format: None,
            next: Next::Template,
            pattern: None,
            buffers,
            failed: false,
        }
    }

    /// The memory of a page that is over.
    fn into_buffers(mut self) -> Buffers {
        for template in self.templates.drain(..) {
            self.buffers.keep(template);
        }
        self.buffers
    }

    /// Goes on with what is at hand.
    fn go_on(&mut self, exchange: &mut Exchange, out: &mut Vec<u8>) -> Result<Reached, BodyFailed> {
        while out.len() < PIECE_BYTES_MAX {
            match std::mem::replace(&mut self.next, Next::Template) {
                Next::Template if self.templates.is_empty() => return Ok(Reached::End),
                Next::Template if self.page.borrow().is_turn_over() => return Ok(Reached::Wait),
                Next::Template => self.proceed(exchange, out)?,
                Next::Part(wanted) if self.page.borrow_mut().may_ask() => {
                    let (path, query) = wanted.target.split_at(wanted.path_bytes);
                    match Part::begin(exchange, path, query) {
                        Ok(Begun::Answered(part)) => self.answered(exchange, wanted, part),
                        Ok(Begun::Waits(asked)) => self.next = Next::Answer(asked, wanted),
                        Err(reason) => self.wrong(exchange, &reason, true, out),
                    }
                }
                Next::Body(mut taken) => {
                    self.buffers.piece.clear();
                    let more = taken.part.ready(&mut self.buffers.piece);
                    let Some(more) = more else {
                        self.next = Next::Body(taken);
                        return Ok(Reached::Wait);
                    };
                    self.take(exchange, taken, more, out)?;
                }
                waits => {
                    self.next = waits;
                    return Ok(Reached::Wait);
                }
            }
        }
        Ok(Reached::Piece)
    }

    /// Waits for what comes next.
    async fn wait(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), BodyFailed> {
        match std::mem::replace(&mut self.next, Next::Template) {
            Next::Template => self.leave_turn().await,
            Next::Input => self.read(exchange, client).await?,
            Next::Command(command, waiting) => {
                // Nobody can go away meanwhile.
                drop(waiting.run(exchange, Client::Nobody).await);
                self.carry_out(exchange, command, out);
            }
            Next::Part(wanted) => {
                self.next = Next::Part(wanted);
                self.leave_turn().await;
            }
            Next::Answer(asked, wanted) => {
                let part = asked.answer(exchange, client).await?;
                self.answered(exchange, wanted, part);
            }
            Next::Body(mut taken) => {
                self.buffers.piece.clear();
                let more = taken.part.next(client, &mut self.buffers.piece).await;
                self.take(exchange, taken, more, out)?;
            }
        }
        Ok(())
    }

    /// Others have their turn.
    async fn leave_turn(&self) {
        tokio::task::yield_now().await;
        self.page.borrow_mut().begin_turn();
    }

    /// Carries out the template up to its next command, or to the end of what was read.
    fn proceed(&mut self, exchange: &mut Exchange, out: &mut Vec<u8>) -> Result<(), BodyFailed> {
        let is_block = self.templates.len() > 1;
        let Some(template) = self.templates.last_mut() else {
            return Ok(());
        };
        let shown = template.is_shown();
        let input = template.stub.as_deref().unwrap_or(&template.input);
        let rest = input.get(template.taken..).unwrap_or_default();
        let (taken, event) = match &template.block {
            None if shown => template.parser.feed(rest, out),
            _ => {
                let text = &mut self.buffers.text;
                text.clear();
                let fed = template.parser.feed(rest, text);
                put_text(template, &self.page, text, out);
                fed
            }
        };
        template.taken += taken;
        self.page.borrow_mut().spend(taken);
        match event {
            Event::NeedsMore if is_block || self.body.is_none() => self.end_template(out),
            Event::NeedsMore => return self.read_at_hand(exchange),
            Event::Error(error) => self.wrong(exchange, &error.to_string(), shown, out),
            Event::Command(command) => {
                if let Some((_, content)) = &mut template.block
                    && command.name() != b"endblock"
                {
                    if content.len() < super::page::STORED_BYTES_MAX {
                        command.write(content);
                    }
                    template.parser.reuse(command);
                    return Ok(());
                }
                self.carry_out(exchange, command, out);
            }
        }
        Ok(())
    }

    /// Takes the next piece of the template, if it is at hand.
    fn read_at_hand(&mut self, exchange: &mut Exchange) -> Result<(), BodyFailed> {
        let (Some(body), Some(template)) = (&mut self.body, self.templates.first_mut()) else {
            return Ok(());
        };
        template.input.clear();
        template.taken = 0;
        match body.ready(exchange, &mut template.input) {
            Some(more) => self.was_read(exchange, more?),
            None => self.next = Next::Input,
        }
        Ok(())
    }

    /// Waits for the next piece of the template.
    async fn read(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
    ) -> Result<(), BodyFailed> {
        let (Some(body), Some(template)) = (&mut self.body, self.templates.first_mut()) else {
            return Ok(());
        };
        template.input.clear();
        template.taken = 0;
        let more = body.next(exchange, client, &mut template.input).await?;
        self.was_read(exchange, more);
        Ok(())
    }

    fn was_read(&mut self, exchange: &mut Exchange, more: bool) {
        if !more && let Some(mut body) = self.body.take() {
            body.ended(exchange);
            body.recycle(exchange);
        }
    }

    fn end_template(&mut self, out: &mut Vec<u8>) {
        if let Some(mut template) = self.templates.pop() {
            let text = &mut self.buffers.text;
            text.clear();
            template.parser.finish(text);
            put_text(&mut template, &self.page, text, out);
            self.buffers.keep(template);
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

    /// Carries out a command, or leaves it for when a match is finished.
    fn carry_out(&mut self, exchange: &Exchange, command: Command, out: &mut Vec<u8>) {
        let shown = self.templates.last().is_none_or(Template::is_shown);
        let done = match Order::read(&command) {
            Err(reason) => Ok(Err(reason)),
            Ok(Order::If(text)) => self.begin_condition(exchange, text, shown),
            Ok(Order::ElseIf(text)) => self.next_condition(exchange, Some(text)),
            Ok(Order::Else) => self.next_condition(exchange, None),
            Ok(order) => Ok(self.carry_out_at_once(exchange, order, shown, out)),
        };
        match done {
            Ok(Ok(())) => {}
            Ok(Err(reason)) => self.wrong(exchange, &reason, shown, out),
            Err(waiting) => {
                self.next = Next::Command(command, waiting);
                return;
            }
        }
        if let Some(template) = self.templates.last_mut() {
            template.parser.reuse(command);
        }
    }

    /// Carries out a command that matches nothing.
    fn carry_out_at_once(
        &mut self,
        exchange: &Exchange,
        order: Order<'_>,
        shown: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        match order {
            Order::If(_) | Order::ElseIf(_) | Order::Else => Ok(()),
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
                    template.block = Some((name.to_vec(), Vec::new()));
                }
                Ok(())
            }
            Order::Include { target, set, stub } => {
                self.next = Next::Part(self.wanted(exchange, target, set, stub)?);
                Ok(())
            }
            Order::Echo {
                variable,
                default,
                encoding,
            } => {
                self.echo(exchange, variable, default, encoding, out);
                Ok(())
            }
            Order::Set { variable, value } => {
                let mut stored = std::mem::take(&mut self.buffers.value);
                stored.clear();
                let valued = self.value(exchange, value, &mut stored);
                let set = valued.and_then(|()| self.store(variable, &stored));
                self.buffers.value = stored;
                set
            }
            Order::Config {
                error_message,
                time_format,
            } => {
                if let Some(text) = error_message {
                    self.error_message = Cow::Owned(text.to_vec());
                }
                if let Some(format) = time_format {
                    self.time_format = Some(String::from_utf8_lossy(format).into_owned());
                }
                Ok(())
            }
        }
    }

    fn value(&self, exchange: &Exchange, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let valued = {
            let scope = Scope {
                exchange,
                page: &self.page.borrow(),
                time_format: self.time_format.as_deref(),
            };
            scope.value(text, out)
        };
        self.page.borrow_mut().spend(out.len());
        valued
    }

    fn store(&self, variable: &[u8], value: &[u8]) -> Result<(), String> {
        let name = lookup_name(variable);
        if self.page.borrow_mut().set_variable(&name, value) {
            Ok(())
        } else {
            Err("the variables of a page are too large".to_owned())
        }
    }

    fn echo(
        &mut self,
        exchange: &Exchange,
        variable: &[u8],
        default: Option<&[u8]>,
        encoding: Encoding,
        out: &mut Vec<u8>,
    ) {
        let value = &mut self.buffers.value;
        value.clear();
        let scope = Scope {
            exchange,
            page: &self.page.borrow(),
            time_format: self.time_format.as_deref(),
        };
        let value = if scope.variable(variable, value) {
            value.as_slice()
        } else {
            default.unwrap_or(NO_VALUE)
        };
        match encoding {
            Encoding::None => out.extend_from_slice(value),
            Encoding::Url => escape(value, Escape::Html, out),
            Encoding::Entity => html::escape(value, out),
        }
    }

    fn end_block(&mut self) -> Result<(), String> {
        let block = self.templates.last_mut().and_then(|last| last.block.take());
        let Some((name, content)) = block else {
            return Err("invalid context of SSI command: \"endblock\"".to_owned());
        };
        if self.page.borrow_mut().set_block(name, content) {
            Ok(())
        } else {
            Err("the blocks of a page are too large".to_owned())
        }
    }

    /// The part that a command asks for.
    fn wanted(
        &mut self,
        exchange: &Exchange,
        target: &[u8],
        set: Option<&[u8]>,
        stub: Option<&[u8]>,
    ) -> Result<Wanted, String> {
        let mut written = std::mem::take(&mut self.buffers.value);
        written.clear();
        let mut whole = std::mem::take(&mut self.buffers.target);
        whole.clear();
        let valued = self.value(exchange, target, &mut written);
        let path_bytes = valued.and_then(|()| write_target(exchange, &written, &mut whole));
        self.buffers.value = written;
        let content = match stub {
            None => Ok(None),
            Some(name) => {
                let page = self.page.borrow();
                let block = page.block(name).map(Some);
                let name = Quoted(name);
                block.ok_or_else(|| format!("\"stub\"=\"{name}\" for \"include\" not found"))
            }
        };
        Ok(Wanted {
            path_bytes: path_bytes?,
            target: whole,
            set: set.map(<[u8]>::to_vec),
            stub: content?,
        })
    }

    /// A part is answered; `None`: nobody has. It is taken next.
    fn answered(&mut self, exchange: &Exchange, wanted: Wanted, part: Option<Part>) {
        let Wanted {
            target, set, stub, ..
        } = wanted;
        self.buffers.target = target;
        let part = match part {
            Some(part) if stub.is_some() && part.is_own_error() => {
                part.end(exchange);
                None
            }
            part => part,
        };
        let Some(part) = part else {
            self.show_stub(stub);
            return;
        };
        let purpose = match set {
            None => Purpose::Shown { stub },
            Some(variable) => Purpose::Stored {
                variable,
                value: Vec::new(),
            },
        };
        self.next = Next::Body(Taken { part, purpose });
    }

    fn show_stub(&mut self, stub: Option<Rc<[u8]>>) {
        if let Some(stub) = stub {
            let value_bytes_max = self.settings.value_bytes_max;
            let mut template = Template::new(value_bytes_max, Vec::new());
            template.stub = Some(stub);
            self.templates.push(template);
        }
    }

    /// Takes the piece that was read of a part, and says in the log what is wrong with it. What
    /// cannot be read of one breaks the page off, so that nobody takes it for whole.
    fn take(
        &mut self,
        exchange: &Exchange,
        mut taken: Taken,
        more: Result<bool, BodyFailed>,
        out: &mut Vec<u8>,
    ) -> Result<(), BodyFailed> {
        let mut more = more;
        match &mut taken.purpose {
            Purpose::Shown { stub } => {
                if !self.buffers.piece.is_empty() {
                    *stub = None;
                }
                out.extend_from_slice(&self.buffers.piece);
            }
            Purpose::Stored { value, .. } => {
                value.extend_from_slice(&self.buffers.piece);
                let part = taken.part.exchange();
                // One that is larger breaks the page off, as in nginx.
                if value.len() > part.location().settings.subrequest_output_bytes {
                    let message = "too big subrequest response";
                    part.log(Level::Error, format_args!("{message}"));
                    more = Err(BodyFailed);
                }
            }
        }
        if more == Ok(true) {
            self.next = Next::Body(taken);
            return Ok(());
        }
        let Taken { part, purpose } = taken;
        part.end(exchange);
        more?;
        match purpose {
            Purpose::Shown { stub } => self.show_stub(stub),
            Purpose::Stored { variable, value } => {
                if let Err(reason) = self.store(&variable, &value) {
                    self.wrong(exchange, &reason, true, out);
                }
            }
        }
        Ok(())
    }
}

/// Appends the path of a part, with its query behind it, as its place in the page means it; returns
/// the length of the path.
///
/// # Errors
/// What is wrong with the path, for the log.
fn write_target(exchange: &Exchange, target: &[u8], out: &mut Vec<u8>) -> Result<usize, String> {
    let cut = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at(cut);
    if !path.starts_with(b"/") {
        let own = exchange.walk.path();
        let folder = memchr::memrchr(b'/', own).map_or(0, |slash| slash + 1);
        out.extend_from_slice(&own[..folder]);
    }
    if !append_safe_path(path, out) {
        return Err(format!("unsafe URI \"{}\" was detected", Quoted(target)));
    }
    let path_bytes = out.len();
    out.extend_from_slice(query.get(1..).unwrap_or_default());
    Ok(path_bytes)
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

/// As of a [`BodyStream`].
impl TemplateBody {
    async fn next(
        &mut self,
        exchange: &mut Exchange,
        client: Client<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, BodyFailed> {
        // What is at hand is carried out without a wait: others have their turn between two pieces
        // of the page.
        if self.depth == 0 {
            self.leave_turn().await;
        }
        if self.failed {
            return Err(BodyFailed);
        }
        loop {
            match self.go_on(exchange, out)? {
                Reached::End => return Ok(false),
                Reached::Piece => return Ok(true),
                Reached::Wait if !out.is_empty() => return Ok(true),
                Reached::Wait => self.wait(exchange, client, out).await?,
            }
        }
    }

    fn ready(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        if self.failed {
            return None;
        }
        if self.depth == 0 {
            self.page.borrow_mut().begin_turn();
        }
        match self.go_on(exchange, out) {
            Ok(Reached::End) => return Some(Ok(false)),
            Ok(Reached::Piece | Reached::Wait) => {}
            // What was made before it is sent first.
            Err(BodyFailed) => self.failed = true,
        }
        (!out.is_empty()).then_some(Ok(true))
    }

    fn may_end_at_once(&self) -> bool {
        let body = self.body.as_ref();
        body.is_none_or(|body| body.may_end_at_once())
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        match std::mem::replace(&mut self.next, Next::Template) {
            Next::Body(taken) => taken.part.end(exchange),
            Next::Answer(asked, _) => asked.abandon(),
            Next::Template | Next::Input | Next::Command(..) | Next::Part(_) => {}
        }
        if let Some(mut body) = self.body.take() {
            body.ended(exchange);
        }
    }
}
