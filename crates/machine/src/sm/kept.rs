//! An SM that was read from a checkpoint: whether it can be one of this machine.

use super::core::Sm;
use super::warp::State;
use super::work::Work;

impl Sm {
    /// Takes the place of an SM that was built for the same machine; false where it cannot.
    pub fn replace(&mut self, other: Sm) -> bool {
        let is_alike = other.id == self.id && other.size() == self.size() && other.spec == self.spec;
        // All SMs of a machine share one specification.
        let spec = self.spec.clone();
        *self = other;
        self.spec = spec;
        let slots = self.warps.len();
        let cell = self.watcher.as_ref().and_then(|w| w.cell.as_ref());
        is_alike && self.log.is_sound() && cell.is_none_or(|cell| cell.is_sound(slots))
    }

    /// Whether the warps that were read from a file are where warps of these CTAs can be.
    pub fn is_sound(&self, work: &Work<'_>) -> bool {
        self.warps.iter().filter(|w| w.state != State::Empty).all(|w| {
            let Some(cta) = work.ctas.get(usize::from(w.cta)).filter(|c| c.is_used) else { return false };
            let context = &work.contexts[cta.context];
            let code = &context.code;
            usize::from(w.context) == cta.context
                && (w.rows, w.group) == (context.rows, context.group)
                && w.rows as usize + code.len() <= self.stalls.len()
                && usize::from(w.index) < cta.resident.warps()
                && (w.pc as usize) < code.len()
                && w.places.len() == code.warp_places()
                && usize::from(w.sub_core) < self.subs.len()
        }) && self.moving.iter().all(|m| m.is_sound(work))
    }
}
