//! What an SM holds of a warp, as bytes: what goes to memory when the warp is suspended, and what comes back.
//!
//! Two parts, each in whole lines. The first is the register file: registers, predicates (a word a lane), convergence
//! barriers, uniform registers. The second is the control record, in little-endian words:
//!
//! | word | what |
//! | --- | --- |
//! | 0, 1, 2 | place of the lanes that run, those lanes, lanes that have not ended |
//! | 3 | splits that wait or are ready |
//! | 4, 5, 6 | what the issue stage knows: [`Issuing`] |
//! | 7 | instructions until another split gets its turn |
//! | 8 to 11 | instructions executed by the warp, and by its threads |
//! | then 4 a split | place, lanes, kind (and above bit 8 the barrier), instructions that it has waited |
//!
//! What a split waits for at a CTA barrier is the barrier's phase that goes on: before a warp is saved, lanes get what phases
//! that have ended gave.

use super::{SLICE, Split, State, Warp};
use crate::launch::Launch;
use crate::uop::ROW;

/// Words before the splits, and of a split.
const HEAD: usize = 12;
const SPLIT: usize = 4;
/// Splits that a warp can have: one a lane.
const SPLITS: usize = 32;

/// What the SM's issue stage knows of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Issuing {
    /// The next instruction to issue, and instructions from it on whose results are there already.
    pub pc: u32,
    pub ahead: u8,
    /// What it knows of loads among these: 24 bits.
    pub loaded: u32,
    /// It waits for other warps, or for child tasks.
    pub is_blocked: bool,
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn long(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Warp {
    /// Bytes of the register file.
    fn file_bytes(launch: &Launch) -> u64 {
        let l = &launch.kernel.layout;
        let rows = (l.zeros - l.registers) / ROW + 1 + (l.uniform - l.converge) / ROW;
        let uniforms = (l.pool - l.uniform) / ROW;
        u64::from(rows * ROW + (4 * uniforms).next_multiple_of(ROW))
    }

    fn control_bytes(splits: usize) -> u64 {
        (4 * (HEAD + SPLIT * splits) as u64).next_multiple_of(ROW.into())
    }

    /// Bytes that the state of any warp of a launch has room in.
    pub fn state_room(launch: &Launch) -> u64 {
        Warp::file_bytes(launch) + Warp::control_bytes(SPLITS)
    }

    /// Bytes of [`Warp::state`]: as many as its lanes' ways need.
    pub fn state_bytes(&self, launch: &Launch) -> u64 {
        Warp::file_bytes(launch) + Warp::control_bytes(self.splits.len())
    }

    /// Everything that the SM holds of the warp, between two instructions.
    pub fn state(&self, launch: &Launch, issuing: Issuing) -> Vec<u8> {
        let l = &launch.kernel.layout;
        let file = self.file.as_slice();
        let mut bytes = Vec::with_capacity(self.state_bytes(launch) as usize);
        bytes.extend_from_slice(&file[l.registers as usize..l.zeros as usize]);
        bytes.extend(self.lanes.preds.iter().flat_map(|p| p.to_le_bytes()));
        bytes.extend_from_slice(&file[l.converge as usize..l.uniform as usize]);
        // All lanes of a uniform register are the same.
        for row in file[l.uniform as usize..l.pool as usize].chunks_exact(ROW as usize) {
            bytes.extend_from_slice(&row[..4]);
        }
        bytes.resize(Warp::file_bytes(launch) as usize, 0);
        let left = self.rotate_at.saturating_sub(self.executed).min(SLICE) as u32;
        let head = [
            self.pc,
            self.lanes.active,
            self.lanes.live,
            self.splits.len() as u32,
            issuing.pc,
            u32::from(issuing.ahead) | issuing.loaded << 8,
            issuing.is_blocked.into(),
            left,
            self.executed as u32,
            (self.executed >> 32) as u32,
            self.thread_executed as u32,
            (self.thread_executed >> 32) as u32,
        ];
        bytes.extend(head.into_iter().flat_map(u32::to_le_bytes));
        for s in &self.splits {
            let (kind, waited) = match s.state {
                State::Ready => (0, 0),
                State::Converging { since } => (1, (self.executed - since).min(u32::MAX.into()) as u32),
                State::Gathering => (2, 0),
                State::Barrier { id, .. } => (3 | u32::from(id) << 8, 0),
                State::Children => (4, 0),
            };
            bytes.extend([s.pc, s.mask, kind, waited].into_iter().flat_map(u32::to_le_bytes));
        }
        bytes.resize(self.state_bytes(launch) as usize, 0);
        bytes
    }

    /// Makes a warp that has just been started what [`Warp::state`] saved, of which `bytes` has at least all; `None` where
    /// that cannot be one. Nothing is trusted that a handler relies on: the program can write to where it lay.
    pub fn set_state(&mut self, launch: &Launch, bytes: &[u8]) -> Option<Issuing> {
        let l = &launch.kernel.layout;
        let code = &launch.kernel.uops;
        let (rows, control) = bytes.split_at_checked(Warp::file_bytes(launch) as usize)?;
        let (head, rest) = control.split_at_checked(4 * HEAD)?;
        let head: Vec<u32> = words(head).collect();
        let [pc, active, live, splits, issue_pc, ahead, is_blocked, left, ..] = head[..] else { return None };
        let (executed, thread_executed) = (long(head[8], head[9]), long(head[10], head[11]));
        if pc as usize >= code.len() || splits as usize > SPLITS {
            return None;
        }
        let rest: Vec<u32> = words(rest).take(SPLIT * splits as usize).collect();
        self.splits.clear();
        for s in rest.chunks_exact(SPLIT) {
            let state = match s[2] & 0xff {
                0 => State::Ready,
                1 => State::Converging { since: executed.checked_sub(s[3].into())? },
                2 => State::Gathering,
                3 => State::Barrier { id: (s[2] >> 8) as u8, phase: 0 },
                4 => State::Children,
                _ => return None,
            };
            let split = Split { pc: s[0], mask: s[1], state };
            if !split.is_sound(code, executed) {
                return None;
            }
            self.splits.push(split);
        }
        if self.splits.len() != splits as usize {
            return None;
        }
        let file = self.file.as_mut_slice();
        let (registers, rest) = rows.split_at((l.zeros - l.registers) as usize);
        file[l.registers as usize..l.zeros as usize].copy_from_slice(registers);
        let (preds, rest) = rest.split_at(ROW as usize);
        self.lanes.preds.iter_mut().zip(words(preds)).for_each(|(p, word)| *p = word);
        let (converge, uniform) = rest.split_at((l.uniform - l.converge) as usize);
        file[l.converge as usize..l.uniform as usize].copy_from_slice(converge);
        let rows = file[l.uniform as usize..l.pool as usize].chunks_exact_mut(ROW as usize);
        for (row, word) in rows.zip(uniform.chunks_exact(4)) {
            row.chunks_exact_mut(4).for_each(|lane| lane.copy_from_slice(word));
        }
        (self.pc, self.lanes.active, self.lanes.live) = (pc, active, live);
        (self.executed, self.thread_executed) = (executed, thread_executed);
        self.rotate_at = executed + u64::from(left);
        // What issues has to be code, too; the guard behind it is none.
        let (ahead, loaded) = (ahead as u8, ahead >> 8);
        let is_code = u64::from(issue_pc) + u64::from(ahead.max(1)) < code.len() as u64;
        is_code.then_some(Issuing { pc: issue_pc, ahead, loaded, is_blocked: is_blocked != 0 })
    }

    /// Makes it a warp whose lanes have ended, after so many instructions of its own and of its threads.
    pub(crate) fn end(&mut self, executed: u64, thread_executed: u64) {
        (self.lanes.active, self.lanes.live) = (0, 0);
        (self.executed, self.thread_executed) = (executed, thread_executed);
    }
}
