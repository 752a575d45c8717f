//! Answers that come to an SM: what each of them changes for the warps that wait.

use super::code::Class;
use super::core::Sm;
use super::incoming::Incoming;
use super::load_store::{Done, Kind, LoadStore, Path};
use super::outgoing::is_code;
use super::plan::Supply;
use super::quick::Shared;
use super::sub_core::SubCore;
use super::warp::{Owner, State, WarpSlot};
use super::watch::Watch;
use super::work::{Context, Work};
use crate::ports::{RequestKind, Response};
use crate::stall::Stall;
use crate::units::Cycle;

/// What has to be done when an access is done, besides what its warp noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    Nothing,
    /// The warp's next instruction may have a cycle now.
    Plan(u16),
    /// The warp waited until all that it stored can be seen.
    Visible(u16),
    /// The last that an ended warp waited for.
    Leave(u16),
    /// The warp's CTA leaves the SM and waits until nothing of it is under way.
    Drained(u16),
    /// A part of the state of a CTA that leaves or comes back; whether it was loaded.
    State(Owner, bool),
}

impl After {
    /// The warp of an access that is done takes note.
    #[inline(always)]
    fn of(d: &Done, warps: &mut [WarpSlot]) -> After {
        let owner = Owner::unpack(d.owner);
        if matches!(d.kind, Kind::Store | Kind::Reduction) {
            After::stored(owner, warps)
        } else {
            After::loaded(owner, d.at, warps)
        }
    }

    /// A result will be there in a cycle that is known now.
    #[inline(always)]
    fn loaded(owner: Owner, at: Cycle, warps: &mut [WarpSlot]) -> After {
        let n = owner.warp;
        let Some(warp) = warps.get_mut(usize::from(n)) else { return After::State(owner, true) };
        if warp.generation != owner.generation {
            return After::Nothing;
        }
        let places = owner.first..owner.first + u16::from(owner.places);
        warp.complete(places, at.0, owner.producer);
        match warp.state {
            State::Pending(Stall::LongScoreboard | Stall::ShortScoreboard) => After::Plan(n),
            State::Draining if warp.loads == 0 => After::Leave(n),
            State::Moving => After::Drained(n),
            _ => After::Nothing,
        }
    }

    /// A store or reduction is visible to all.
    #[inline(always)]
    fn stored(owner: Owner, warps: &mut [WarpSlot]) -> After {
        if owner == Owner::NOBODY {
            return After::Nothing;
        }
        if owner.is_state() {
            return After::State(owner, false);
        }
        let n = owner.warp;
        let warp = &mut warps[usize::from(n)];
        if warp.generation != owner.generation {
            return After::Nothing;
        }
        warp.stores -= 1;
        match warp.state {
            State::Pending(Stall::Membar) if warp.stores == 0 => After::Visible(n),
            State::Moving => After::Drained(n),
            _ => After::Nothing,
        }
    }
}

/// Whether an answer is what an access to memory waits for.
#[inline(always)]
pub(super) fn is_data(r: &Response) -> bool {
    !r.kind.is_code()
}

/// Answers that are due, inside the turns of sub-cores, which have all come to their cycle.
pub(super) struct Answers<'a> {
    pub inbox: &'a mut Incoming,
    pub done: &'a mut Vec<Done>,
}

/// How far that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answered {
    All,
    /// The same, and code or constants were asked for: how far the SM may run has to be found again.
    Asked,
    /// This, as of a cycle, takes all that the SM has. More may be done.
    Rest(After, u64),
}

impl Answers<'_> {
    /// Takes the answers of a cycle that accesses to memory wait for, up to the first one of another kind.
    #[inline(never)]
    pub fn take<W: Watch>(
        &mut self,
        contexts: &[Context<'_>],
        warps: &mut [WarpSlot],
        subs: &mut [SubCore],
        shared: &mut Shared<'_>,
        supply: &mut Supply<'_, W>,
        now: u64,
    ) -> Answered {
        let asked = shared.out.len();
        while let Some(r) = self.inbox.front().copied().filter(|r| r.at.0 <= now && is_data(r)) {
            self.inbox.pop_front();
            shared.load_store.respond(&r, self.done, supply.counters);
            // Most answers complete nothing.
            if !self.done.is_empty()
                && let Some(rest) = self.follow(contexts, warps, subs, shared, supply, now)
            {
                return rest;
            }
            open_global(subs, shared.load_store, now);
        }
        if shared.out[asked..].iter().any(is_code) { Answered::Asked } else { Answered::All }
    }

    /// Does what has to be done after accesses that are done, up to what takes all that the SM has, if there is such.
    #[inline(never)]
    fn follow<W: Watch>(
        &mut self,
        contexts: &[Context<'_>],
        warps: &mut [WarpSlot],
        subs: &mut [SubCore],
        shared: &mut Shared<'_>,
        supply: &mut Supply<'_, W>,
        now: u64,
    ) -> Option<Answered> {
        for k in 0..self.done.len() {
            let d = self.done[k];
            match After::of(&d, warps) {
                After::Nothing => {}
                After::Plan(n) => {
                    let warp = &mut warps[usize::from(n)];
                    let code = &contexts[usize::from(warp.context)].code;
                    if !warp.still_waits(code.checks(code.timing_of(warp.pc))) {
                        let sub = &mut subs[usize::from(warp.sub_core)];
                        supply.plan_all(sub, warp, code, n, shared.out, now);
                    }
                }
                rest => {
                    self.done.drain(..=k);
                    return Some(Answered::Rest(rest, d.at.0));
                }
            }
        }
        self.done.clear();
        None
    }
}

/// Accesses to global memory can issue again where there is room for them.
#[inline(always)]
fn open_global(subs: &mut [SubCore], load_store: &LoadStore, now: u64) {
    // All are looked at before any is acted on: one guess for the host and not one each.
    if subs.iter().fold(false, |any, sub| any | sub.is_closed(Class::Global)) {
        open_closed(subs, load_store, now);
    }
}

/// The same where some cannot.
#[inline(never)]
fn open_closed(subs: &mut [SubCore], load_store: &LoadStore, now: u64) {
    for sub in subs.iter_mut().filter(|sub| sub.is_closed(Class::Global)) {
        let room = load_store.room(sub.number, Path::Global);
        if room != Cycle::NEVER {
            sub.open(Class::Global, now, room.0);
        }
    }
}

impl Sm {
    /// Answers of all kinds that are due.
    pub(super) fn answers(&mut self, work: &mut Work<'_>, now: u64) {
        while let Some(r) = self.inbox.front().copied().filter(|r| r.at.0 <= now) {
            self.inbox.pop_front();
            match r.kind {
                RequestKind::Instruction => {
                    let mut lines = std::mem::take(&mut self.lines);
                    self.fetch.respond(&r, &mut lines);
                    let contexts = work.contexts.clone();
                    for (line, _) in lines.drain(..) {
                        self.wake(work, now, |w| {
                            w.state == State::Pending(Stall::NoInstruction)
                                && contexts[usize::from(w.context)].code.line_of(w.pc) == line
                        });
                    }
                    self.lines = lines;
                }
                RequestKind::Constant => {
                    let mut done = std::mem::take(&mut self.constant_done);
                    self.constants.respond(&r, &mut self.out, &mut done, &mut self.counters);
                    for (owner, at) in done.drain(..) {
                        let after = After::loaded(Owner::unpack(owner), at, &mut self.warps);
                        self.follow(work, after, at.0, now);
                    }
                    self.constant_done = done;
                    self.wake(work, now, |w| w.state == State::Pending(Stall::ImcMiss));
                }
                _ => {
                    self.load_store.respond(&r, &mut self.done, &mut self.counters);
                    self.take_done(work, now);
                }
            }
        }
    }

    /// Accesses are done.
    pub(super) fn take_done(&mut self, work: &mut Work<'_>, now: u64) {
        let mut done = std::mem::take(&mut self.done);
        for d in done.drain(..) {
            let after = After::of(&d, &mut self.warps);
            self.follow(work, after, d.at.0, now);
        }
        self.done = done;
        if !self.moving.is_empty() {
            self.state_answered(now);
        }
        open_global(&mut self.subs, &self.load_store, now);
    }

    /// Does what has to be done after an access was, as of `at`.
    pub(super) fn follow(&mut self, work: &mut Work<'_>, after: After, at: u64, now: u64) {
        match after {
            After::Nothing => {}
            After::Plan(n) => self.plan_again(work, n.into(), now),
            After::Visible(n) => {
                let until = at.max(now) + u64::from(self.spec.latency.membar);
                self.charge_until(n.into(), Stall::Membar, until);
                self.plan(work, n.into(), now);
            }
            After::Leave(n) => self.leave(work, n.into(), at.max(now)),
            After::Drained(n) => {
                let slot = usize::from(self.warps[usize::from(n)].cta);
                self.check_drained(work, slot, now);
            }
            After::State(owner, is_load) => self.state_moved(owner, is_load, at, now),
        }
    }

    /// Looks again at all warps that wait for this.
    fn wake(&mut self, work: &mut Work<'_>, now: u64, which: impl Fn(&WarpSlot) -> bool) {
        for w in 0..self.warps.len() {
            if which(&self.warps[w]) {
                self.plan(work, w, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::Producer;
    use super::*;

    /// What has to be done when an access of a warp in this state is done, with so many loads and stores under way.
    fn after(kind: Kind, state: State, (loads, stores): (u32, u32), generation: u16) -> After {
        let mut warps = [WarpSlot::new(), WarpSlot::new()];
        let warp = &mut warps[1];
        (warp.state, warp.loads, warp.stores, warp.generation) = (state, loads, stores, 7);
        let owner = Owner { warp: 1, generation, first: 0, places: 0, producer: Producer::Long };
        let after = After::of(&Done { owner: owner.pack(), at: Cycle(9), kind }, &mut warps);
        let is_its = generation == 7;
        let is_load = matches!(kind, Kind::Load | Kind::Atomic);
        let left = (loads - u32::from(is_its && is_load), stores - u32::from(is_its && !is_load));
        assert_eq!((warps[1].loads, warps[1].stores), left);
        after
    }

    #[test]
    fn what_an_answer_changes_depends_on_what_its_warp_waits_for() {
        let pending = State::Pending;
        assert_eq!(after(Kind::Load, pending(Stall::LongScoreboard), (2, 0), 7), After::Plan(1));
        assert_eq!(after(Kind::Atomic, pending(Stall::ShortScoreboard), (1, 1), 7), After::Plan(1));
        assert_eq!(after(Kind::Load, State::Timed, (1, 0), 7), After::Nothing);
        assert_eq!(after(Kind::Load, State::Draining, (2, 0), 7), After::Nothing);
        assert_eq!(after(Kind::Load, State::Draining, (1, 0), 7), After::Leave(1));
        assert_eq!(after(Kind::Load, State::Moving, (1, 0), 7), After::Drained(1));
        assert_eq!(after(Kind::Store, pending(Stall::Membar), (0, 2), 7), After::Nothing);
        assert_eq!(after(Kind::Reduction, pending(Stall::Membar), (0, 1), 7), After::Visible(1));
        assert_eq!(after(Kind::Store, State::Moving, (0, 1), 7), After::Drained(1));
        // An answer to the warp that had the slot before is nobody's.
        assert_eq!(after(Kind::Load, pending(Stall::LongScoreboard), (1, 0), 6), After::Nothing);
    }

    #[test]
    fn answers_to_nobody_and_to_what_moves_are_told_apart() {
        let done = |owner: Owner, kind| Done { owner: owner.pack(), at: Cycle(9), kind };
        assert_eq!(After::of(&done(Owner::NOBODY, Kind::Store), &mut []), After::Nothing);
        let piece = Owner::state(3, 4);
        assert_eq!(After::of(&done(piece, Kind::Store), &mut []), After::State(piece, false));
        assert_eq!(After::of(&done(piece, Kind::Load), &mut []), After::State(piece, true));
    }
}
