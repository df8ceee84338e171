//! The order in which the handlers of a phase are asked, whatever protocol they are for.

/// Handlers by their phases: those of one phase in the order of their places, those of one place in
/// the order in which they were added.
pub struct ByPhase<H, const COUNT: usize> {
    /// The handlers of each phase stand together. Most phases of most blocks have none, so that a
    /// list for each would be larger than all that is in them.
    handlers: Box<[H]>,
    /// Where those of each phase begin and end.
    spans: [(u32, u32); COUNT],
}

impl<H, const COUNT: usize> ByPhase<H, COUNT> {
    /// The handlers with their places. `phase` gives the number of a place's phase, below `COUNT`.
    pub fn new<P: Copy + Ord>(mut handlers: Vec<(P, H)>, phase: impl Fn(P) -> usize) -> Self {
        handlers.sort_by_key(|(place, _)| (phase(*place), *place));
        let mut spans = [(0, 0); COUNT];
        let mut start = 0;
        for (number, span) in spans.iter_mut().enumerate() {
            let own = handlers.iter().filter(|(place, _)| phase(*place) == number);
            let end = start + own.count() as u32;
            *span = (start, end);
            start = end;
        }
        Self {
            handlers: handlers.into_iter().map(|(_, handler)| handler).collect(),
            spans,
        }
    }

    /// The handlers of the phase with this number, in order.
    pub fn of(&self, phase: usize) -> &[H] {
        let (start, end) = self.spans[phase];
        &self.handlers[start as usize..end as usize]
    }

    /// Whether the phase with this number has no handlers.
    pub fn is_empty(&self, phase: usize) -> bool {
        let (start, end) = self.spans[phase];
        start == end
    }
}

#[cfg(test)]
mod tests {
    use super::ByPhase;

    #[test]
    fn handlers_stand_by_phase_then_place_then_order() {
        // Places 10 to 19 are of phase 1, and so on.
        let added = [(31, 'a'), (12, 'b'), (30, 'c'), (12, 'd'), (10, 'e')];
        let handlers = ByPhase::<_, 5>::new(added.to_vec(), |place| place / 10);
        let of = |phase| handlers.of(phase).iter().collect::<String>();
        let phases: Vec<_> = (0..5).map(of).collect();
        assert_eq!(phases, ["", "ebd", "", "ca", ""]);
        let empty: Vec<_> = (0..5).map(|phase| handlers.is_empty(phase)).collect();
        assert_eq!(empty, [true, false, true, false, true]);
    }
}
