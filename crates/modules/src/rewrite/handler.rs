//! Running a program.

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::{Handler, Verdict};
use turnpike_http::plan::Pattern;
use turnpike_http::variables::Template;
use turnpike_lane::log::Level;

use crate::files;

use super::plan::{After, Condition, FileTest, Program, Replacement, Return, Rule, Step, Written};

/// How a step ends.
enum Flow {
    Next,
    /// The program is over, with the phase's verdict.
    Over(Verdict),
}

/// A program on its way through one request.
struct Run<'a> {
    program: &'a Program,
    exchange: &'a mut Exchange,
    /// Groups are escaped in values until a rewrite has been made: nginx's rule.
    escaping: bool,
}

impl Handler for Program {
    fn handle(&self, exchange: &mut Exchange) -> Verdict {
        let mut run = Run {
            program: self,
            exchange,
            escaping: true,
        };
        match run.steps(&self.steps) {
            Flow::Next => Verdict::Declined,
            Flow::Over(verdict) => verdict,
        }
    }
}

impl Run<'_> {
    fn steps(&mut self, steps: &[Step]) -> Flow {
        for step in steps {
            if let Flow::Over(verdict) = self.step(step) {
                return Flow::Over(verdict);
            }
        }
        Flow::Next
    }

    fn step(&mut self, step: &Step) -> Flow {
        match step {
            Step::Set(variable, template) => {
                let value = self.value(template);
                self.exchange.set_variable(*variable, &value);
                Flow::Next
            }
            Step::Return(answer) => Flow::Over(self.answer(answer)),
            Step::Rewrite(rule) => self.rewrite(rule),
            Step::Break => {
                if std::mem::take(&mut self.exchange.path_changed) {
                    self.exchange.location_holds = false;
                }
                Flow::Over(Verdict::Declined)
            }
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
                Err(status) => Flow::Over(Verdict::Status(status)),
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
        let mut text = std::mem::take(&mut self.exchange.response.text);
        text.clear();
        if let Some(template) = &answer.text {
            template.evaluate(self.exchange, &mut text);
        }
        if matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
            self.exchange.response.location = text;
            return Verdict::Status(answer.status);
        }
        self.exchange.choose_content_type();
        let response = &mut self.exchange.response;
        response.status = answer.status;
        response.text = text;
        response.send_text();
        Verdict::Respond
    }

    fn rewrite(&mut self, rule: &Rule) -> Flow {
        let path = std::mem::take(&mut self.exchange.path);
        let matched = self.matches(&rule.pattern, &rule.written, &path);
        self.exchange.path = path;
        if !matched {
            return Flow::Next;
        }
        self.exchange.internal = true;
        self.exchange.target_holds = false;
        match rule.after {
            After::Break => {
                self.exchange.path_changed = false;
                self.exchange.location_holds = false;
            }
            After::Next | After::Last => self.exchange.path_changed = true,
        }
        self.escaping = false;
        let done = match &rule.replacement {
            Replacement::Redirect {
                status,
                url,
                has_query,
            } => {
                self.redirect(url, rule.keeps_query, *has_query);
                return Flow::Over(Verdict::Status(*status));
            }
            Replacement::Path(path, query) => self.replace(path, query.as_ref(), rule.keeps_query),
        };
        match (done, rule.after) {
            (false, _) => Flow::Over(Verdict::Status(500)),
            (true, After::Next) => Flow::Next,
            (true, After::Last | After::Break) => Flow::Over(Verdict::Declined),
        }
    }

    fn redirect(&mut self, url: &Template, keeps_query: bool, has_query: bool) {
        let mut text = Vec::new();
        if has_escapes(self.exchange) {
            url.evaluate_escaping(self.exchange, &mut text);
        } else {
            url.evaluate(self.exchange, &mut text);
        }
        let mut location = Vec::with_capacity(text.len());
        unescape_redirect(&text, &mut location);
        if keeps_query && !self.exchange.query.is_empty() {
            location.push(if has_query { b'&' } else { b'?' });
            location.extend_from_slice(&self.exchange.query);
        }
        if self.program.log {
            let text = Quoted(&location);
            self.exchange.log(
                Level::Notice,
                format_args!("rewritten redirect: \"{text}\""),
            );
        }
        self.exchange.response.location = location;
    }

    /// Puts a new path and query in place; `false` when the path is empty.
    fn replace(&mut self, path: &Template, query: Option<&Template>, keeps_query: bool) -> bool {
        let mut new_path = Vec::new();
        path.evaluate(self.exchange, &mut new_path);
        let mut new_query = Vec::new();
        if let Some(query) = query {
            if has_escapes(self.exchange) {
                query.evaluate_escaping(self.exchange, &mut new_query);
            } else {
                query.evaluate(self.exchange, &mut new_query);
            }
            if keeps_query && !self.exchange.query.is_empty() {
                new_query.push(b'&');
                new_query.extend_from_slice(&self.exchange.query);
            }
            self.exchange.query = new_query;
        } else if !keeps_query {
            self.exchange.query.clear();
        }
        self.exchange.path = new_path;
        if self.program.log {
            self.exchange.log(
                Level::Notice,
                format_args!(
                    "rewritten data: \"{}\", args: \"{}\"",
                    Quoted(&self.exchange.path),
                    Quoted(&self.exchange.query)
                ),
            );
        }
        if self.exchange.path.is_empty() {
            self.exchange.log(
                Level::Error,
                format_args!("the rewritten URI has a zero length"),
            );
            return false;
        }
        true
    }

    fn matches(&self, pattern: &Pattern, written: &Written, subject: &[u8]) -> bool {
        let matched = pattern.matches(self.exchange, subject);
        if !matched {
            self.exchange.captures.borrow_mut().clear();
        }
        if self.program.log {
            let verb = if matched { "matches" } else { "does not match" };
            let (written, subject) = (Quoted(&written.0), Quoted(subject));
            self.exchange.log(
                Level::Notice,
                format_args!("\"{written}\" {verb} \"{subject}\""),
            );
        }
        matched
    }

    fn condition(&mut self, condition: &Condition) -> Result<bool, u16> {
        let mut value = Vec::new();
        Ok(match condition {
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
                self.matches(pattern, written, &value) != *negated
            }
            Condition::File(test, template, negated) => {
                value = self.value(template);
                self.file(*test, &value) != *negated
            }
        })
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
    let raw = exchange.head.path.of(exchange.head_bytes());
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
    let digit = |index: usize| {
        let byte = text.get(index).copied()?;
        char::from(byte).to_digit(16).map(|digit| digit as u8)
    };
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
