//! Conditions of a page: which of its branches are shown, and the expressions that say so.

use turnpike_http::Quoted;
use turnpike_http::exchange::Exchange;
use turnpike_http::phase::Waiting;
use turnpike_http::regex::Settled;

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
        exchange: &mut Exchange,
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
        let holds = match outer {
            true => self.holds(exchange, text)?,
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
        Ok(holds.map(|_| ()))
    }

    /// Goes to the next branch; without an expression it is the last.
    pub(super) fn next_condition(
        &mut self,
        exchange: &mut Exchange,
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
    fn holds(&mut self, exchange: &mut Exchange, text: &[u8]) -> Settles<bool> {
        let Some((left, comparison)) = expression::parse(text) else {
            let text = Quoted(text);
            return Ok(Err(format!("invalid expression in \"{text}\"")));
        };
        let left = match self.value(exchange, &left) {
            Ok(left) => left,
            Err(reason) => return Ok(Err(reason)),
        };
        let (right, is_regex, negated) = match comparison {
            Comparison::IsSet => return Ok(Ok(!left.is_empty())),
            Comparison::Text { right, negated } => (right, false, negated),
            Comparison::Regex { right, negated } => (right, true, negated),
        };
        let right = match self.value(exchange, right) {
            Ok(right) => right,
            Err(reason) => return Ok(Err(reason)),
        };
        let same = match is_regex {
            true => self.matches(exchange, &left, right)?,
            false => Ok(left == right),
        };
        Ok(same.map(|same| same != negated))
    }

    /// Whether a regular expression matches. Its groups are the page's then. The request's own are
    /// as they were.
    fn matches(
        &mut self,
        exchange: &mut Exchange,
        subject: &[u8],
        pattern: Vec<u8>,
    ) -> Settles<bool> {
        // A match that had to be waited for is known by the pattern that it was begun with.
        if self
            .pattern
            .as_ref()
            .is_none_or(|(text, _)| *text != pattern)
        {
            match expression::compile(&pattern, &self.settings.place) {
                Ok(compiled) => self.pattern = Some((pattern, compiled)),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        let Some((_, pattern)) = &self.pattern else {
            return Ok(Ok(false));
        };
        let before = exchange.evaluation.captures().borrow().clone();
        exchange.begin_matching();
        let found = pattern.matches(exchange, subject);
        let found = match exchange.settle_matching() {
            Settled::Decided => found.ok(),
            Settled::Failed => None,
            Settled::Wait(waiting) => {
                *exchange.evaluation.captures().borrow_mut() = before;
                return Err(waiting);
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
        Ok(found.ok_or_else(|| "a regular expression came to no verdict".to_owned()))
    }
}
