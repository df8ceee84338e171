//! Conditions of a page: which of its branches are shown, and the expressions that say so.

use std::rc::Rc;

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Waiting;
use turnpike_http::plan::Pattern;
use turnpike_http::regex::Settled;

use super::super::expression::lookup_name;
use super::TemplateBody;
use crate::ssi::expression::{self, Comparison};

/// `if` within `if`; more is no page that anybody writes.
const CONDITIONS_MAX: usize = 64;

/// What comes of what may match a regular expression: the inner error is nginx's words for what is
/// wrong, the outer one a match that has to be finished off the lane before it is tried again.
pub(super) type Settles<T> = Result<Result<T, String>, Box<dyn Waiting>>;

/// An `if` that has not ended.
pub(super) struct Condition {
    /// Whether the text where it stands is shown at all.
    pub(super) outer: bool,
    /// Whether the branch is shown.
    pub(super) shown: bool,
    /// Whether a branch was shown.
    chosen: bool,
    /// Whether this is its last branch.
    last: bool,
}

impl TemplateBody {
    pub(super) fn begin_condition(
        &mut self,
        exchange: &Exchange,
        text: &[u8],
        outer: bool,
    ) -> Settles<()> {
        let depth = self
            .templates
            .last()
            .map_or(0, |last| last.conditions.len());
        if depth >= CONDITIONS_MAX {
            let reason = "too many \"if\" commands within one another";
            return Ok(Err(reason.to_owned()));
        }
        let holds = if outer {
            self.holds(exchange, text)?
        } else {
            Ok(false)
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
        Ok(holds.map(|_| ()))
    }

    /// Goes to the next branch; without an expression it is the last.
    pub(super) fn next_condition(
        &mut self,
        exchange: &Exchange,
        text: Option<&[u8]>,
    ) -> Settles<()> {
        let condition = self
            .templates
            .last()
            .and_then(|last| last.conditions.last());
        let asks = match (condition, text) {
            (Some(condition), _) if !condition.last => condition.outer && !condition.chosen,
            (_, text) => {
                let name = text.map_or("else", |_| "elif");
                let reason = format!("invalid context of SSI command: \"{name}\"");
                return Ok(Err(reason));
            }
        };
        let holds = match text {
            Some(text) if asks => self.holds(exchange, text)?,
            Some(_) => Ok(false),
            None => Ok(asks),
        };
        let template = self.templates.last_mut();
        if let Some(condition) = template.and_then(|template| template.conditions.last_mut()) {
            condition.shown = *holds.as_ref().unwrap_or(&false);
            condition.chosen |= condition.shown;
            condition.last = text.is_none();
        }
        Ok(holds.map(|_| ()))
    }

    /// Whether an expression holds.
    fn holds(&mut self, exchange: &Exchange, text: &[u8]) -> Settles<bool> {
        let Some((left, comparison)) = expression::parse(text) else {
            let text = Quoted(text);
            return Ok(Err(format!("invalid expression in \"{text}\"")));
        };
        let [mut lower, mut value] = std::mem::take(&mut self.buffers.left);
        lower.clear();
        lower.extend(left.iter().map(u8::to_ascii_lowercase));
        value.clear();
        let holds = match self.value(exchange, &lower, &mut value) {
            Ok(()) => self.compare(exchange, &value, comparison),
            Err(reason) => Ok(Err(reason)),
        };
        self.buffers.left = [lower, value];
        holds
    }

    /// Whether a comparison with the value on its left side holds.
    fn compare(
        &mut self,
        exchange: &Exchange,
        left: &[u8],
        comparison: Comparison<'_>,
    ) -> Settles<bool> {
        let (right, is_regex, negated) = match comparison {
            Comparison::IsSet => return Ok(Ok(!left.is_empty())),
            Comparison::Text { right, negated } => (right, false, negated),
            Comparison::Regex { right, negated } => (right, true, negated),
        };
        let mut value = std::mem::take(&mut self.buffers.value);
        value.clear();
        let same = match self.value(exchange, right, &mut value) {
            Ok(()) if is_regex => self.matches(exchange, left, &value),
            Ok(()) => Ok(Ok(left == value)),
            Err(reason) => Ok(Err(reason)),
        };
        self.buffers.value = value;
        Ok(same?.map(|same| same != negated))
    }

    /// Whether a regular expression matches. Its groups are the page's then. The request's own are
    /// as they were.
    fn matches(&mut self, exchange: &Exchange, subject: &[u8], text: &[u8]) -> Settles<bool> {
        let pattern = match self.pattern(exchange, text) {
            Ok(pattern) => pattern,
            Err(reason) => return Ok(Err(reason)),
        };
        self.exchange_captures(exchange);
        exchange.begin_matching();
        let found = pattern.matches(exchange, subject);
        let found = match exchange.settle_matching() {
            Settled::Decided => found.ok(),
            Settled::Failed => None,
            Settled::Wait(waiting) => {
                self.exchange_captures(exchange);
                self.pattern = Some((text.to_vec(), pattern));
                return Err(waiting);
            }
        };
        self.exchange_captures(exchange);
        if found == Some(true) {
            let captures = &self.buffers.captures;
            let group = |number| captures.group(number).unwrap_or_default();
            let mut page = self.page.borrow_mut();
            page.set_groups((0..=pattern.regex.group_count()).map(group));
            for (number, name) in pattern.regex.names() {
                page.set_variable(&lookup_name(name.as_bytes()), group(*number));
            }
        }
        Ok(found.ok_or_else(|| "a regular expression reached its limits".to_owned()))
    }

    /// The compiled expression. A match that was waited for is known by the one that it was begun
    /// with.
    fn pattern(&mut self, exchange: &Exchange, text: &[u8]) -> Result<Rc<Pattern>, String> {
        if let Some((_, pattern)) = self.pattern.take_if(|(begun, _)| begun.as_slice() == text) {
            return Ok(pattern);
        }
        let patterns = exchange.plan.state(&self.settings.patterns);
        patterns.find(text, &self.settings.place)
    }

    /// Puts the page's groups in the place of the request's, or back.
    fn exchange_captures(&mut self, exchange: &Exchange) {
        let mut captures = exchange.evaluation.captures().borrow_mut();
        std::mem::swap(&mut *captures, &mut self.buffers.captures);
    }
}
