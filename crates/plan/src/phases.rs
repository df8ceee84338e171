//! The order in which the handlers of a phase are asked, whatever protocol they are for.

/// Handlers by their phases: those of one phase in the order of their places, those of one place in
/// the order in which they were added. `phase` gives the number of a place's phase.
pub fn by_phase<P: Copy + Ord, H, const COUNT: usize>(
    mut handlers: Vec<(P, H)>,
    phase: impl Fn(P) -> usize,
) -> [Vec<H>; COUNT] {
    handlers.sort_by_key(|(place, _)| *place);
    let mut phases = [const { Vec::new() }; COUNT];
    for (place, handler) in handlers {
        phases[phase(place)].push(handler);
    }
    phases
}
