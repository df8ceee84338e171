//! Running a program.

use std::sync::Arc;

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::plan::Pattern;
use turnpike_http::regex::{Position, Undecided};
use turnpike_http::response::Body;
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;

use crate::common::files;
use turnpike_wire::hex;

use super::plan::{After, Condition, FileTest, Program, Replacement, Return, Rule, Step, Written};

/// How a step ends.
enum Flow {
    Next,
    /// The program is over, with the phase's verdict.
    Over(Verdict),
    /// A match came to no verdict: the directive is to be taken again, or the request fails.
    Undecided,
}

impl From<Undecided> for Flow {
    fn from(_: Undecided) -> Flow {
        Flow::Undecided
    }
}

/// A program on its way through one request.
struct Run<'a> {
    program: &'a Program,
    exchange: &'a mut Exchange,
    /// Groups are escaped in values until a rewrite has been made: nginx's rule.
    escaping: bool,
    /// Where the program stood when a match had to be finished elsewhere first, outermost block
    /// last; empty from there on.
    resumed: Vec<usize>,
}

impl Handler for Program {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let position = exchange.take_position();
        let resumes = !position.steps.is_empty();
        if let (true, Some(location)) = (resumes, position.location) {
            exchange.walk.set_location(location);
        }
        let mut run = Run {
            program: self,
            exchange,
            escaping: !resumes || position.flag,
            resumed: position.steps,
        };
        let flow = run.steps(&self.steps);
        let position = Position {
            steps: std::mem::take(&mut run.resumed),
            flag: run.escaping,
            location: Some(run.exchange.walk.location()),
        };
        exchange.keep_position(position);
        match flow {
            Flow::Next => Verdict::Declined,
            Flow::Over(verdict) => verdict,
            Flow::Undecided => Verdict::Undecided,
        }
    }

    /// A constant answer, and nothing in front of it.
    fn is_same_for_all(&self) -> bool {
        match self.steps.first() {
            Some(Step::Return(answer)) => {
                let mut text = answer.text.iter();
                text.all(|text| text.constant().is_some())
            }
            _ => false,
        }
    }
}

impl Run<'_> {
    fn steps(&mut self, steps: &[Step]) -> Flow {
        let first = self.resumed.pop().unwrap_or(0);
        for (index, step) in steps.iter().enumerate().skip(first) {
            let flow = match step {
                // Its condition held before.
                Step::If { steps, .. } if !self.resumed.is_empty() => self.steps(steps),
                step => {
                    self.exchange.begin_matching_step();
                    self.step(step)
                }
            };
            match flow {
                Flow::Next => {}
                Flow::Over(verdict) => return Flow::Over(verdict),
                Flow::Undecided => {
                    self.resumed.push(index);
                    return Flow::Undecided;
                }
            }
        }
        Flow::Next
    }

    fn step(&mut self, step: &Step) -> Flow {
        match step {
            Step::Set(variable, template) => {
                let value = self.value(template);
                if self.exchange.is_undecided() {
                    return Flow::Undecided;
                }
                self.exchange.set_variable(*variable, &value);
                Flow::Next
            }
            Step::Compute(variable, function, templates) => {
                let values = templates.iter().map(|template| self.value(template));
                let values: Vec<Vec<u8>> = values.collect();
                if self.exchange.is_undecided() {
                    return Flow::Undecided;
                }
                match function.compute(self.exchange, &values) {
                    Some(value) => self.exchange.set_variable(*variable, &value),
                    None => return Flow::Over(Verdict::Status(500)),
                }
                Flow::Next
            }
            Step::Return(answer) => {
                let verdict = self.answer(answer);
                if self.exchange.is_undecided() {
                    Flow::Undecided
                } else {
                    Flow::Over(verdict)
                }
            }
            Step::Rewrite(rule) => self.rewrite(rule),
            Step::Break => {
                self.exchange.walk.stay_in_location();
                Flow::Over(Verdict::Declined)
            }
            Step::Goto(name) => Flow::Over(Verdict::Named(name.clone())),
            Step::If {
                condition,
                steps,
                location,
            } => match self.condition(condition) {
                Ok(false) => Flow::Next,
                Ok(true) => {
                    if let Some(location) = location {
                        self.exchange.switch_location(*location);
                    }
                    self.steps(steps)
                }
                Err(Undecided) => Flow::Undecided,
            },
        }
    }

    fn value(&self, template: &Template) -> Vec<u8> {
        let mut value = Vec::new();
        if self.escaping && has_escapes(self.exchange) {
            template.evaluate_escaping(self.exchange, &mut value);
        } else {
            template.evaluate(self.exchange, &mut value);
        }
        value
    }

    fn answer(&mut self, answer: &Return) -> Verdict {
        let empty = answer
            .text
            .as_ref()
            .is_none_or(|text| text.constant() == Some(b""));
        if answer.status >= 400 && empty {
            return Verdict::Status(answer.status);
        }
        // The text may name it.
        self.exchange.response.set_status(answer.status);
        let is_redirect = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
        if let Some(text) = answer.constant.as_ref().filter(|_| !is_redirect) {
            self.exchange.choose_content_type();
            let response = &mut self.exchange.response;
            response.set_content_length(Some(text.len() as u64));
            response.set_body(Body::Shared(Arc::clone(text)));
            return Verdict::Respond;
        }
        let mut text = self.exchange.response.take_text();
        text.clear();
        if let Some(template) = &answer.text {
            template.evaluate(self.exchange, &mut text);
        }
        if self.exchange.is_undecided() {
            self.exchange.response.set_text(text);
            return Verdict::Undecided;
        }
        if is_redirect {
            self.exchange.response.set_location(text);
            return Verdict::Status(answer.status);
        }
        self.exchange.choose_content_type();
        let response = &mut self.exchange.response;
        response.set_text(text);
        response.send_text();
        Verdict::Respond
    }

    fn rewrite(&mut self, rule: &Rule) -> Flow {
        let path = std::mem::take(self.exchange.walk.path_mut());
        let matched = self.matches(&rule.pattern, &rule.written, &path);
        *self.exchange.walk.path_mut() = path;
        match matched {
            Ok(true) => {}
            Ok(false) => return Flow::Next,
            Err(undecided) => return undecided.into(),
        }
        self.exchange.walk.path_rewritten();
        if rule.after == After::Break {
            self.exchange.walk.stay_in_location();
        }
        self.escaping = false;
        let done = match &rule.replacement {
            Replacement::Redirect {
                status,
                url,
                has_query,
            } => {
                return match self.redirect(url, rule.keeps_query, *has_query) {
                    Ok(()) => Flow::Over(Verdict::Status(*status)),
                    Err(undecided) => undecided.into(),
                };
            }
            Replacement::Path(path, query) => self.replace(path, query.as_ref(), rule.keeps_query),
        };
        match (done, rule.after) {
            (Err(undecided), _) => undecided.into(),
            (Ok(false), _) => Flow::Over(Verdict::Status(500)),
            (Ok(true), After::Next) => Flow::Next,
            (Ok(true), After::Last | After::Break) => Flow::Over(Verdict::Declined),
        }
    }

    fn redirect(
        &mut self,
        url: &Template,
        keeps_query: bool,
        has_query: bool,
    ) -> Result<(), Undecided> {
        let mut text = Vec::new();
        if has_escapes(self.exchange) {
            url.evaluate_escaping(self.exchange, &mut text);
        } else {
            url.evaluate(self.exchange, &mut text);
        }
        self.decided()?;
        let mut location = Vec::with_capacity(text.len());
        unescape_redirect(&text, &mut location);
        if keeps_query && !self.exchange.walk.query().is_empty() {
            location.push(if has_query { b'&' } else { b'?' });
            location.extend_from_slice(self.exchange.walk.query());
        }
        if self.program.log {
            let text = Quoted(&location);
            self.exchange.log(
                Level::Notice,
                format_args!("rewritten redirect: \"{text}\""),
            );
        }
        self.exchange.response.set_location(location);
        Ok(())
    }

    /// Whether what was evaluated counts.
    fn decided(&self) -> Result<(), Undecided> {
        if self.exchange.is_undecided() {
            Err(Undecided)
        } else {
            Ok(())
        }
    }

    /// Puts a new path and query in place; `false` when the path is empty.
    fn replace(
        &mut self,
        path: &Template,
        query: Option<&Template>,
        keeps_query: bool,
    ) -> Result<bool, Undecided> {
        let mut new_path = self.exchange.lane.take_scratch();
        path.evaluate(self.exchange, &mut new_path);
        let mut new_query = Vec::new();
        if let Some(query) = query {
            if has_escapes(self.exchange) {
                query.evaluate_escaping(self.exchange, &mut new_query);
            } else {
                query.evaluate(self.exchange, &mut new_query);
            }
            if keeps_query && !self.exchange.walk.query().is_empty() {
                new_query.push(b'&');
                new_query.extend_from_slice(self.exchange.walk.query());
            }
        }
        self.decided()?;
        if query.is_some() {
            self.exchange.walk.set_query(&new_query);
        } else if !keeps_query {
            self.exchange.walk.clear_query();
        }
        std::mem::swap(self.exchange.walk.path_mut(), &mut new_path);
        self.exchange.lane.keep_scratch(new_path);
        if self.program.log {
            self.exchange.log(
                Level::Notice,
                format_args!(
                    "rewritten data: \"{}\", args: \"{}\"",
                    Quoted(self.exchange.walk.path()),
                    Quoted(self.exchange.walk.query())
                ),
            );
        }
        if self.exchange.walk.path().is_empty() {
            self.exchange.log(
                Level::Error,
                format_args!("the rewritten URI has a zero length"),
            );
            return Ok(false);
        }
        Ok(true)
    }

    fn matches(
        &self,
        pattern: &Pattern,
        written: &Written,
        subject: &[u8],
    ) -> Result<bool, Undecided> {
        let matched = pattern.matches(self.exchange, subject)?;
        if !matched {
            self.exchange.evaluation.captures().borrow_mut().clear();
        }
        if self.program.log {
            let verb = if matched { "matches" } else { "does not match" };
            let (written, subject) = (Quoted(&written.0), Quoted(subject));
            self.exchange.log(
                Level::Notice,
                format_args!("\"{written}\" {verb} \"{subject}\""),
            );
        }
        Ok(matched)
    }

    fn condition(&mut self, condition: &Condition) -> Result<bool, Undecided> {
        let mut value = Vec::new();
        let holds = match condition {
            Condition::True(variable) => {
                self.exchange.variable(*variable, &mut value);
                is_true(&value)
            }
            Condition::Equal(variable, template, negated) => {
                self.exchange.variable(*variable, &mut value);
                (value == self.value(template)) != *negated
            }
            Condition::Match(variable, pattern, written, negated) => {
                self.exchange.variable(*variable, &mut value);
                self.decided()?;
                self.matches(pattern, written, &value)? != *negated
            }
            Condition::File(test, template, negated) => {
                value = self.value(template);
                self.decided()?;
                self.file(*test, &value) != *negated
            }
        };
        self.decided()?;
        Ok(holds)
    }

    fn file(&self, test: FileTest, path: &[u8]) -> bool {
        let metadata = match self.program.files.inspect(self.exchange, path) {
            Ok(metadata) => metadata,
            Err(error) => {
                if !files::is_absence(error.errno) {
                    files::log_failure(self.exchange, Level::Crit, path, error);
                }
                return false;
            }
        };
        match test {
            FileTest::Plain => metadata.is_file(),
            FileTest::Directory => metadata.is_directory(),
            FileTest::Exists => metadata.is_file() || metadata.is_directory(),
            FileTest::Executable => metadata.mode & OWNER_MAY_EXECUTE != 0,
        }
    }
}

/// `S_IXUSR`: what nginx takes for executable.
const OWNER_MAY_EXECUTE: u32 = 0o100;

/// What an `if` takes for true.
pub(super) fn is_true(value: &[u8]) -> bool {
    !value.is_empty() && value != b"0"
}

/// Whether the path came with escapes or plus signs, so that groups have to be escaped again.
fn has_escapes(exchange: &Exchange) -> bool {
    let raw = exchange.request().head().path();
    raw.iter().any(|byte| matches!(byte, b'%' | b'+'))
}

/// Undoes the escapes in the path of a URL that need not be there. Those of bytes that may not
/// stand in a URL stay, and so does all that follows a question mark.
pub(super) fn unescape_redirect(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'?' => break,
            b'%' => at += unescape_one(&text[at..], out),
            byte => {
                out.push(byte);
                at += 1;
            }
        }
        if out.last() == Some(&b'?') {
            break;
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
}

/// Reads an escape at the start of `text`; returns how many bytes were read. A percent sign
/// without two digits behind it is dropped, as nginx drops it.
fn unescape_one(text: &[u8], out: &mut Vec<u8>) -> usize {
    let digit = |index: usize| hex::digit(text.get(index).copied()?);
    let Some(high) = digit(1) else {
        out.extend(text.get(1));
        return text.len().min(2);
    };
    let Some(low) = digit(2) else {
        return text.len().min(3);
    };
    match high << 4 | low {
        byte @ (b'&'..0x7f) => out.push(byte),
        _ => out.extend_from_slice(&text[..3]),
    }
    3
}
