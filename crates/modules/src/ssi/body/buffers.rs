//! The memory of a page, which later pages with the same exchange get.

use turnpike_http::client::Client;
use turnpike_http::exchange::Exchange;
use turnpike_http::regex::Captures;
use turnpike_http::response::{BodyFailed, BodyStream, LocalFuture};
use turnpike_wire::ssi::Command;

use super::condition::Condition;
use super::{Template, TemplateBody};

/// Bytes that a kept buffer may have: a piece of a page. The lane's pool counts them.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Buffers that are empty between two uses.
#[derive(Default)]
pub(in crate::ssi) struct Buffers {
    command: Command,
    conditions: Vec<Condition>,
    input: Vec<u8>,
    /// What was read of a part last.
    pub(super) piece: Vec<u8>,
    /// Text that is not shown.
    pub(super) text: Vec<u8>,
    /// The value of a parameter, or a side of a comparison.
    pub(super) value: Vec<u8>,
    /// The left side of a comparison: as written, and its value.
    pub(super) left: [Vec<u8>; 2],
    /// Path and query of a part.
    pub(super) target: Vec<u8>,
    /// Where a match leaves its groups, in place of the request's own.
    pub(super) captures: Captures,
}

impl Buffers {
    /// The template of the page.
    pub(super) fn template(&mut self, value_bytes_max: usize) -> Template {
        let mut template = Template::new(value_bytes_max, std::mem::take(&mut self.input));
        template.parser.reuse(std::mem::take(&mut self.command));
        template.conditions = std::mem::take(&mut self.conditions);
        template
    }

    /// Takes the memory of a template that has ended, unless there is that of another.
    pub(super) fn keep(&mut self, template: Template) {
        if self.input.capacity() > 0 {
            return;
        }
        self.input = emptied(template.input);
        self.command = template.parser.into_command();
        self.conditions = template.conditions;
        self.conditions.clear();
    }

    /// The buffers for another page.
    fn emptied(mut self) -> Self {
        self.command.clear();
        if self.command.held_bytes() > KEPT_BYTES_MAX {
            self.command = Command::default();
        }
        // The subject may be a value as long as a page may store.
        self.captures.clear();
        if self.captures.held_bytes() > KEPT_BYTES_MAX {
            self.captures = Captures::default();
        }
        Self {
            input: emptied(self.input),
            piece: emptied(self.piece),
            text: emptied(self.text),
            value: emptied(self.value),
            left: self.left.map(emptied),
            target: emptied(self.target),
            ..self
        }
    }

    /// The bytes of memory that the next page can use.
    fn held_bytes(&self) -> usize {
        let [left, left_value] = &self.left;
        let buffers = [
            &self.input,
            &self.piece,
            &self.text,
            &self.value,
            left,
            left_value,
            &self.target,
        ];
        let conditions_bytes = self.conditions.capacity() * size_of::<Condition>();
        let texts_bytes: usize = buffers.iter().map(|buffer| buffer.capacity()).sum();
        let matches_bytes = self.captures.held_bytes();
        texts_bytes + conditions_bytes + matches_bytes + self.command.held_bytes()
    }
}

fn emptied(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEPT_BYTES_MAX {
        return Vec::new();
    }
    buffer.clear();
    buffer
}

/// A page, in a box that later pages with the same exchange get.
#[derive(Default)]
pub(in crate::ssi) struct PageBody {
    making: Option<TemplateBody>,
    buffers: Buffers,
}

impl PageBody {
    /// Begins the page that `make` gives, with the memory of an earlier one.
    pub(in crate::ssi) fn begin(&mut self, make: impl FnOnce(Buffers) -> TemplateBody) {
        self.making = Some(make(std::mem::take(&mut self.buffers)));
    }

    fn making(&mut self) -> &mut TemplateBody {
        match &mut self.making {
            Some(making) => making,
            None => unreachable!("it is begun before it is a body"),
        }
    }
}

impl BodyStream for PageBody {
    fn next<'a>(
        &'a mut self,
        exchange: &'a mut Exchange,
        client: Client<'a>,
        out: &'a mut Vec<u8>,
    ) -> LocalFuture<'a, Result<bool, BodyFailed>> {
        Box::pin(self.making().next(exchange, client, out))
    }

    fn ready(
        &mut self,
        exchange: &mut Exchange,
        out: &mut Vec<u8>,
    ) -> Option<Result<bool, BodyFailed>> {
        self.making().ready(exchange, out)
    }

    fn may_end_at_once(&self) -> bool {
        let making = self.making.as_ref();
        making.is_none_or(TemplateBody::may_end_at_once)
    }

    fn is_of_parts(&self) -> bool {
        true
    }

    fn ended(&mut self, exchange: &mut Exchange) {
        self.making().ended(exchange);
    }

    fn recycle(mut self: Box<Self>, exchange: &mut Exchange) {
        if let Some(making) = self.making.take() {
            self.buffers = making.into_buffers().emptied();
        }
        let held_bytes = self.buffers.held_bytes();
        exchange.rooms.keep_spare(self, held_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buffers after a page whose longest texts have so many bytes.
    fn used(text_bytes: usize) -> Buffers {
        let mut buffers = Buffers::default();
        for buffer in [&mut buffers.input, &mut buffers.value, &mut buffers.left[1]] {
            buffer.resize(text_bytes, b'x');
        }
        let subject = vec![b'x'; text_bytes];
        buffers.captures.set(&subject, &[Some((0, text_bytes))]);
        buffers
    }

    #[test]
    fn nothing_of_a_page_stays_but_memory_within_limits() {
        let small = used(1_000).emptied();
        assert!((4_000..6_000).contains(&small.held_bytes()));
        assert!(small.captures.group(0).is_none() && small.value.is_empty());
        let large = used(KEPT_BYTES_MAX + 1).emptied();
        assert!(large.captures.group(0).is_none());
        assert_eq!(large.held_bytes(), 0);
    }
}
