//! Policies: which of the warps that could issue does.
//!
//! A scheduler has three parts. *Eligibility* finds the warps whose instruction could enter a pipe, and the reason of each
//! that cannot; grants and the window are part of it. A *policy* chooses one of a set of eligible warps. *Issue* is what
//! happens then. The policies here are state machines that know nothing else of the SM: they are told what happens to
//! warps and are asked to choose. A pod is a sub-core with its warps; pods share nothing but
//! the grant.
//!
//! | file | policy |
//! | --- | --- |
//! | `lrr.rs`, `gto.rs`, `youngest.rs` | plain orders, functions of the set, the last warp and the newest |
//! | `oldest.rs` | who has been able to issue for longest |
//! | `two_level.rs` | a few warps before the others |
//! | `credit/` | credits, weights, comparison, pipe thresholds |
//! | `window.rs` | the instruction window |
//! | `grant.rs` | TILE.PHASE.TEX and the grant, under any policy |
//! | `program.rs` | a program's instructions as policies see them |
//! | `spec.rs` | the configuration |

pub mod bits;
pub mod credit;
pub mod grant;
pub mod gto;
mod hold;
pub mod lrr;
mod oldest;
mod program;
pub mod spec;
#[cfg(test)]
mod tests;
mod two_level;
mod window;
pub mod youngest;

pub use program::Program;
pub use spec::{Accesses, Scheduler};

use super::code::Class;
use super::spec::{Policy, Spec};
use super::sub_core::{Bit, SubCore};
use super::warp::{State, WarpSlot};
use bits::Bits;
use credit::{Credit, Moment};
use grant::{Granted, Grants, TilePhaseTex};
use hold::Holds;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use two_level::TwoLevel;
use window::{At, Window};

/// What a warp's threads are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum ThreadType {
    Primitive,
    Vertex,
    Pixel,
    Compute,
}

impl ThreadType {
    pub const COUNT: usize = 4;
}

/// A pod's policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Order {
    /// One that the sub-core keeps no more state for than it has anyway.
    Plain,
    Oldest,
    TwoLevel(Box<TwoLevel>),
    Credit(Box<Credit>),
    Window(Box<Window>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pod {
    order: Order,
    /// Warps that ask, as far as was looked.
    asking: u64,
    /// Warps that the grant, and the window, keep from issuing.
    grant: Holds,
    window: Holds,
    /// Calls that each warp is in.
    #[serde(with = "simt::arrays")]
    depth: [u32; 64],
    /// Warps that could issue in the cycle of the last issue, until it is known who did.
    able: u64,
    /// That cycle, and the warps that issued in it.
    cycle: u64,
    issues: u32,
    /// A warp that waits for so long gives up its precedence.
    long_wait: u64,
}

impl Pod {
    #[inline(always)]
    fn choose(&self, sub: &SubCore, warps: &[WarpSlot], set: u64, m: &Moment) -> Bit {
        let warp = |bit: u32| &warps[usize::from(sub.slot(Bit(bit as u8)))];
        let bit = match &self.order {
            Order::Plain => return sub.choose(set),
            Order::Oldest => oldest::choose(set, m.newest, |b| warp(b).since),
            Order::TwoLevel(t) => t.choose(set, m.newest),
            Order::Credit(c) => c.choose(set, m, |b| warp(b).class),
            Order::Window(w) => w.choose(set),
        };
        Bit(bit as u8)
    }

    /// A warp issued, and its instruction starts in its pipe; `able` are all that could have.
    #[inline(always)]
    fn issued(&mut self, sub: &mut SubCore, bit: Bit, able: u64, (class, start): (Class, u64), now: u64) {
        match &mut self.order {
            Order::TwoLevel(t) => t.issued(bit.0.into()),
            Order::Credit(c) => {
                c.issued(bit.0.into(), able, now);
                if let Some((classes, until)) = c.enter(class, start, now) {
                    for c in Class::ALL.into_iter().filter(|&c| classes >> c as u32 & 1 != 0) {
                        sub.hold(c, now, until);
                    }
                }
            }
            Order::Plain | Order::Oldest | Order::Window(_) => {}
        }
    }

    /// The warp's next instruction waits for a cycle that is known, or for an answer.
    #[inline(always)]
    fn planned(&mut self, warp: &WarpSlot, now: u64) {
        if let Order::TwoLevel(t) = &mut self.order
            && (warp.state != State::Timed || warp.since >= now + self.long_wait)
        {
            t.leave(warp.bit.0.into());
        }
    }
}

/// A pod whose policy concerns nobody else.
pub struct Local<'a> {
    pod: &'a mut Pod,
    ctas: u64,
}

impl Local<'_> {
    #[inline(always)]
    pub fn choose(&self, sub: &SubCore, warps: &[WarpSlot], set: u64, now: u64) -> Bit {
        let m = Moment { now, ctas: self.ctas, granted: Granted::default(), newest: sub.newest() };
        self.pod.choose(sub, warps, set, &m)
    }

    #[inline(always)]
    pub fn issued(&mut self, sub: &mut SubCore, bit: Bit, able: u64, entered: (Class, u64), now: u64) {
        self.pod.issued(sub, bit, able, entered, now);
    }

    #[inline(always)]
    pub fn planned(&mut self, warp: &WarpSlot, now: u64) {
        self.pod.planned(warp, now);
    }
}

/// The policies of an SM's pods and the grant that they share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Policies {
    pods: Vec<Pod>,
    grants: Grants,
    #[serde(skip)]
    program: Arc<Program>,
    /// CTAs that started so far.
    ctas: u64,
    /// Something happened that may let held warps of other pods go.
    changed: bool,
    is_local: bool,
    /// What was chosen, where someone wants to know.
    pub record: Option<Vec<Choice>>,
}

/// Two sets of warps that may issue as far as grants, and the window, are concerned.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    pub grant: u64,
    pub window: u64,
}

/// A choice, with what it was made from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Choice {
    pub cycle: u64,
    pub pod: usize,
    /// Warp slot that issued, and its place.
    pub warp: u16,
    pub pc: u32,
    /// Every warp of the pod, in the order of slots.
    pub warps: Vec<Shown>,
    pub fund: i64,
    /// The grant before the issue.
    pub grant: Option<TilePhaseTex>,
}

/// A warp in a [`Choice`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shown {
    pub warp: u16,
    /// Could issue.
    pub able: bool,
    /// Is kept from it by the grant, by the window.
    pub no_grant: bool,
    pub outside: bool,
    pub credit: i32,
    /// Where the policy has weights and the warp could issue.
    pub weight: Option<i64>,
    pub value: TilePhaseTex,
}

impl Policies {
    /// The policies of an SM; none where the sub-cores' own are enough, unless choices are recorded.
    pub fn new(spec: &Spec, records: bool) -> Option<Box<Policies>> {
        let s = &spec.scheduler;
        let grants = Grants::new(&s.grants, spec.sub_cores as usize);
        let order = match spec.policy {
            Policy::Lrr | Policy::Gto | Policy::Youngest => Order::Plain,
            Policy::Oldest => Order::Oldest,
            Policy::TwoLevel => Order::TwoLevel(Box::new(TwoLevel::new(s.active_warps))),
            Policy::Credit => Order::Credit(Box::new(Credit::new(&s.credit, &spec.pipes))),
            Policy::Window => Order::Window(Box::new(Window::new(&s.window))),
        };
        if matches!(order, Order::Plain) && !grants.is_on() && !records {
            return None;
        }
        let is_local = !grants.is_on() && !records && !matches!(order, Order::Window(_));
        let pod = Pod {
            order,
            asking: 0,
            grant: Holds::new(),
            window: Holds::new(),
            depth: [0; 64],
            able: 0,
            cycle: u64::MAX,
            issues: 0,
            long_wait: s.long_wait.into(),
        };
        Some(Box::new(Policies {
            pods: vec![pod; spec.sub_cores as usize],
            grants,
            program: Arc::default(),
            ctas: 0,
            changed: false,
            is_local,
            record: records.then(Vec::new),
        }))
    }

    pub fn begin_launch(&mut self, program: Arc<Program>) {
        self.program = program;
    }

    /// Pods concern nobody but themselves: no grant, no window, nobody who looks on.
    #[inline(always)]
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    #[inline(always)]
    pub fn local(&mut self, pod: usize) -> Local<'_> {
        Local { pod: &mut self.pods[pod], ctas: self.ctas }
    }

    // --- what happens to warps ----------------------------------------------------------------------------------

    /// A CTA starts; its number.
    pub fn begin_cta(&mut self) -> u64 {
        self.ctas += 1;
        self.ctas - 1
    }

    /// A warp of a CTA starts.
    pub fn add(&mut self, pod: usize, bit: u32, cta: u64, thread: ThreadType) {
        self.grants.add(pod, bit, cta);
        let p = &mut self.pods[pod];
        p.depth[bit as usize % 64] = 0;
        match &mut p.order {
            Order::Credit(c) => c.add(bit, cta, thread),
            Order::Window(w) => w.add(bit, thread),
            _ => {}
        }
    }

    pub fn remove(&mut self, pod: usize, bit: u32, now: u64) {
        self.grants.remove(pod, bit);
        self.changed = true;
        let p = &mut self.pods[pod];
        p.asking &= !(1 << bit);
        p.grant.forget(bit);
        p.window.forget(bit);
        match &mut p.order {
            Order::TwoLevel(t) => t.leave(bit),
            Order::Credit(c) => c.remove(bit),
            Order::Window(w) => w.leave(bit, now),
            _ => {}
        }
    }

    /// The warp sleeps or waits at a barrier.
    pub fn rest(&mut self, pod: usize, bit: u32) {
        self.grants.rest(pod, bit);
        self.changed = true;
        if let Order::TwoLevel(t) = &mut self.pods[pod].order {
            t.leave(bit);
        }
    }

    /// A warp that rested goes on.
    pub fn wake(&mut self, pod: usize, bit: u32) {
        self.grants.wake(pod, bit);
    }

    /// The warp's next instruction was fetched; it waits for a cycle that is known, or for an answer.
    pub fn planned(&mut self, sub: &mut SubCore, warp: &WarpSlot, now: u64) {
        let p = &mut self.pods[sub.number as usize];
        p.planned(warp, now);
        if let Pod { order: Order::Window(w), depth, .. } = p {
            let bit = u32::from(warp.bit.0);
            let nesting = self.program.row(warp.pc).nesting.into();
            let before = w.inside();
            w.fetch(bit, At { pc: warp.pc, depth: depth[bit as usize % 64], nesting }, now);
            if w.inside() & !before & !(1 << bit) != 0 {
                // Others came in.
                sub.next = sub.next.min(now);
            }
        }
    }

    /// An access is replayed until a cycle.
    pub fn replay(&mut self, pod: usize, bit: u32, until: u64) {
        if let Order::Credit(c) = &mut self.pods[pod].order {
            c.replay(bit, until);
        }
    }

    /// One of the warps in `able` will issue; whether it is the pod's first of the cycle.
    pub fn begin_issue(&mut self, pod: usize, able: u64, now: u64) -> bool {
        let p = &mut self.pods[pod];
        p.able = able;
        if p.cycle != now {
            (p.cycle, p.issues) = (now, 0);
        }
        p.issues += 1;
        p.issues == 1
    }

    /// A warp issued the instruction at `pc`. The others that could have are victims of its first in a cycle.
    pub fn issued(&mut self, sub: &mut SubCore, bit: Bit, pc: u32, entered: (Class, u64), now: u64) {
        let pod = sub.number as usize;
        let p = &mut self.pods[pod];
        let able = std::mem::take(&mut p.able);
        p.asking &= !(1 << bit.0);
        p.issued(sub, bit, able, entered, now);
        let bit = u32::from(bit.0);
        let row = self.program.row(pc);
        if let Pod { order: Order::Window(w), depth, .. } = p {
            w.leave(bit, now);
            let depth = &mut depth[bit as usize % 64];
            *depth = (*depth + u32::from(row.calls)).saturating_sub(row.returns.into());
        }
        if self.grants.is_on() && row.is_access {
            self.grants.issued(pod, bit, row.step, now);
            self.changed = true;
        }
    }

    /// Bits of a pod's warps changed: `old` are those that become 0, 1, ...
    pub fn remap(&mut self, pod: usize, old: &[u8]) {
        self.grants.remap(pod, old);
        let p = &mut self.pods[pod];
        p.grant.remap(old);
        p.window.remap(old);
        bits::remap(&mut p.depth, old);
        bits::remap_set(&mut p.asking, old);
        match &mut p.order {
            Order::Plain | Order::Oldest => {}
            Order::TwoLevel(t) => t.remap(old),
            Order::Credit(c) => c.remap(old),
            Order::Window(w) => w.remap(old),
        }
    }

    // --- who may go ---------------------------------------------------------------------------------------------

    /// Warps of a pod that may issue what they ask for. Asking again in the same cycle gives the same.
    pub fn allowed(&mut self, pod: usize, now: u64) -> Allowed {
        let window = match &mut self.pods[pod].order {
            Order::Window(w) => {
                w.pass(now);
                w.inside()
            }
            _ => u64::MAX,
        };
        let grant = if self.grants.is_on() { self.grants.allowed(pod, now) } else { u64::MAX };
        Allowed { grant, window }
    }

    /// Warps of a pod that can issue now. Keeps account of those that are held.
    pub fn able(&mut self, pod: usize, sub: &SubCore, warps: &[WarpSlot], now: u64) -> u64 {
        let asking = sub.asking();
        let warp = |bit: u32| &warps[usize::from(sub.slot(Bit(bit as u8)))];
        if self.grants.is_on() {
            for bit in Bits(asking & !self.pods[pod].asking) {
                self.grants.ask(pod, bit, self.program.row(warp(bit).pc).is_access);
            }
        }
        self.pods[pod].asking = asking;
        let allowed = self.allowed(pod, now);
        let p = &mut self.pods[pod];
        let busy = |bit: u32| sub.busy(warp(bit).class, now);
        p.grant.set(asking & !allowed.grant, now, busy);
        p.window.set(asking & allowed.grant & !allowed.window, now, busy);
        let width = match &p.order {
            Order::Window(w) => w.issue(),
            _ => 1,
        };
        if p.cycle == now && p.issues >= width {
            return 0;
        }
        sub.eligible(now) & allowed.grant & allowed.window
    }

    /// An instruction that would follow another of its warp in the same cycle may.
    pub fn may_follow(&self, pod: usize, bit: u32, pc: u32, now: u64) -> bool {
        let waits = self.grants.is_on() && self.program.row(pc).is_access;
        !waits || self.grants.is_free(now) || self.grants.granted(pod).value >> bit & 1 != 0
    }

    /// Cycles of those in which a warp could have issued, had not the grant, or the window, kept it from it; they are
    /// taken from `rest`, and forgotten.
    pub fn held(&mut self, pod: usize, bit: u32, rest: &mut u64) -> (u64, u64) {
        let p = &mut self.pods[pod];
        let grant = p.grant.forget(bit).min(*rest);
        let window = p.window.forget(bit).min(*rest - grant);
        *rest -= grant + window;
        (grant, window)
    }

    /// When a warp of the pod may go that is held, although nothing else happens.
    pub fn next(&self, pod: usize, now: u64) -> u64 {
        let window = match &self.pods[pod].order {
            Order::Window(w) if self.pods[pod].window.is_any() => w.next(),
            _ => u64::MAX,
        };
        if self.grants.is_on() { window.min(self.grants.next(pod, now)) } else { window }
    }

    /// Whether pods that have held warps should be looked at again; said once.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed) && self.grants.is_on()
    }

    /// A warp of the pod may be held by the grant.
    pub fn is_held(&self, pod: usize) -> bool {
        self.grants.is_asked(pod)
    }

    // --- who goes -----------------------------------------------------------------------------------------------

    /// The warp that the policy chooses.
    pub fn choose(&self, pod: usize, sub: &SubCore, warps: &[WarpSlot], set: u64, now: u64) -> Bit {
        self.pods[pod].choose(sub, warps, set, &self.moment(pod, sub, now))
    }

    fn moment(&self, pod: usize, sub: &SubCore, now: u64) -> Moment {
        Moment { now, ctas: self.ctas, granted: self.grants.granted(pod), newest: sub.newest() }
    }

    /// Records a choice before it issues, where someone wants to know.
    pub fn note(
        &mut self,
        (pod, bit, pc): (usize, Bit, u32),
        sub: &SubCore,
        warps: &[WarpSlot],
        able: u64,
        now: u64,
    ) {
        if self.record.is_none() {
            return;
        }
        let m = self.moment(pod, sub, now);
        let p = &self.pods[pod];
        let shown = |b: u32| {
            let slot = sub.slot(Bit(b as u8));
            let is_able = able >> b & 1 != 0;
            let class = warps[usize::from(slot)].class;
            let (credit, weight) = match &p.order {
                Order::Credit(c) => (c.ledger.credit(b), is_able.then(|| c.weight(b, &m, class))),
                _ => (0, None),
            };
            Shown {
                warp: slot,
                able: is_able,
                no_grant: p.grant.is_held(b),
                outside: p.window.is_held(b),
                credit,
                weight,
                value: self.grants.value(pod, b),
            }
        };
        let mut list: Vec<Shown> = Bits(sub.used()).map(shown).collect();
        list.sort_by_key(|w| w.warp);
        let fund = match &p.order {
            Order::Credit(c) => c.ledger.fund(),
            _ => 0,
        };
        let choice = Choice {
            cycle: now,
            pod,
            warp: sub.slot(bit),
            pc,
            warps: list,
            fund,
            grant: self.grants.grant(),
        };
        if let Some(record) = &mut self.record {
            record.push(choice);
        }
    }
}
