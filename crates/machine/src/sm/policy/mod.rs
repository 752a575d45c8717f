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
mod two_level;
mod window;
pub mod youngest;

pub use program::Program;
pub use spec::{Accesses, Scheduler};

use super::code::Class;
use super::spec::{Policy, Spec};
use bits::Bits;
use credit::{Credit, Moment};
use grant::{Grants, TilePhaseTex};
use hold::Holds;
use oldest::Oldest;
use std::sync::Arc;
use two_level::TwoLevel;
use window::{At, Window};

/// What a warp's threads are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
#[derive(Clone, Debug)]
enum Order {
    /// One that the sub-core keeps no more state for than it has anyway.
    Plain,
    Oldest(Box<Oldest>),
    TwoLevel(Box<TwoLevel>),
    Credit(Box<Credit>),
    Window(Box<Window>),
}

#[derive(Clone, Debug)]
struct Pod {
    order: Order,
    /// Warps that the grant, and the window, keep from issuing.
    grant: Holds,
    window: Holds,
    /// Calls that each warp is in.
    depth: [u32; 64],
    /// Warps that could issue in the cycle of the last issue, until it is known who did.
    able: u64,
    /// That cycle, and the warps that issued in it.
    cycle: u64,
    issues: u32,
}

/// The policies of an SM's pods and the grant that they share.
#[derive(Clone, Debug)]
pub struct Policies {
    pods: Vec<Pod>,
    grants: Grants,
    program: Arc<Program>,
    long_wait: u64,
    /// CTAs that started so far.
    ctas: u64,
    /// Something happened that may let held warps of other pods go.
    changed: bool,
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
#[derive(Clone, PartialEq, Eq, Debug)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
            Policy::Oldest => Order::Oldest(Box::new(Oldest::new())),
            Policy::TwoLevel => Order::TwoLevel(Box::new(TwoLevel::new(s.active_warps))),
            Policy::Credit => Order::Credit(Box::new(Credit::new(&s.credit, &spec.pipes))),
            Policy::Window => Order::Window(Box::new(Window::new(&s.window))),
        };
        if matches!(order, Order::Plain) && !grants.is_on() && !records {
            return None;
        }
        let pod = Pod {
            order,
            grant: Holds::new(),
            window: Holds::new(),
            depth: [0; 64],
            able: 0,
            cycle: u64::MAX,
            issues: 0,
        };
        Some(Box::new(Policies {
            pods: vec![pod; spec.sub_cores as usize],
            grants,
            program: Arc::default(),
            long_wait: s.long_wait.into(),
            ctas: 0,
            changed: false,
            record: records.then(Vec::new),
        }))
    }

    pub fn begin_launch(&mut self, program: Arc<Program>) {
        self.program = program;
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
        (p.grant.forget(bit), p.window.forget(bit));
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

    /// The warp's next instruction was fetched; it can issue at `from`, or waits for something unknown. Whether others came into the window.
    #[inline]
    pub fn fetched(&mut self, pod: usize, bit: u32, pc: u32, from: Option<u64>, now: u64) -> bool {
        match &mut self.pods[pod] {
            Pod { order: Order::Window(w), depth, .. } => {
                let nesting = self.program.row(pc).nesting.into();
                let before = w.inside();
                w.fetch(bit, At { pc, depth: depth[bit as usize % 64], nesting }, now);
                return w.inside() & !before & !(1 << bit) != 0;
            }
            Pod { order: Order::TwoLevel(t), .. } => {
                if from.is_none_or(|from| from >= now + self.long_wait) {
                    t.leave(bit);
                }
            }
            _ => {}
        }
        false
    }

    /// The warp waits for nothing but a pipe, and for what only policies know.
    #[inline]
    pub fn ask(&mut self, pod: usize, bit: u32, pc: u32, class: Class) {
        if self.grants.is_on() {
            self.grants.ask(pod, bit, self.program.row(pc).is_access);
        }
        match &mut self.pods[pod].order {
            Order::Oldest(o) => o.ask(bit),
            Order::Credit(c) => c.ask(bit, class),
            _ => {}
        }
    }

    /// An access is replayed until a cycle.
    pub fn replay(&mut self, pod: usize, bit: u32, until: u64) {
        if let Order::Credit(c) = &mut self.pods[pod].order {
            c.replay(bit, until);
        }
    }

    /// One of the warps in `able` will issue; whether it is the pod's first of the cycle.
    #[inline]
    pub fn begin_issue(&mut self, pod: usize, able: u64, now: u64) -> bool {
        let p = &mut self.pods[pod];
        p.able = able;
        if p.cycle != now {
            (p.cycle, p.issues) = (now, 0);
        }
        p.issues += 1;
        p.issues == 1
    }

    /// Another warp of the pod may issue in this cycle.
    #[inline]
    pub fn has_room(&self, pod: usize, now: u64) -> bool {
        let p = &self.pods[pod];
        let width = match &p.order {
            Order::Window(w) => w.issue(),
            _ => 1,
        };
        p.cycle != now || p.issues < width
    }

    /// A warp issued the instruction at `pc`. The others that could have are victims of its first in a cycle.
    #[inline]
    pub fn issued(&mut self, pod: usize, bit: u32, pc: u32, now: u64) {
        let p = &mut self.pods[pod];
        let able = std::mem::take(&mut p.able);
        match &mut p.order {
            Order::Plain | Order::Oldest(_) => {}
            Order::TwoLevel(t) => t.issued(bit),
            Order::Credit(c) => c.issued(bit, able, now),
            Order::Window(w) => {
                w.leave(bit, now);
                let row = self.program.row(pc);
                let depth = &mut p.depth[bit as usize % 64];
                *depth = (*depth + u32::from(row.calls)).saturating_sub(row.returns.into());
            }
        }
        if self.grants.is_on() {
            let row = self.program.row(pc);
            if row.is_access {
                self.grants.issued(pod, bit, row.step, now);
                self.changed = true;
            }
        }
    }

    /// The issued instruction starts in a pipe. Classes, a bit each, of which no more may be issued before a cycle.
    #[inline]
    pub fn enter(&mut self, pod: usize, class: Class, start: u64, now: u64) -> Option<(u32, u64)> {
        match &mut self.pods[pod].order {
            Order::Credit(c) => c.enter(class, start, now),
            _ => None,
        }
    }

    /// Bits of a pod's warps changed: `old` are those that become 0, 1, ...
    pub fn remap(&mut self, pod: usize, old: &[u8]) {
        self.grants.remap(pod, old);
        let p = &mut self.pods[pod];
        p.grant.remap(old);
        p.window.remap(old);
        bits::remap(&mut p.depth, old);
        match &mut p.order {
            Order::Plain => {}
            Order::Oldest(o) => o.remap(old),
            Order::TwoLevel(t) => t.remap(old),
            Order::Credit(c) => c.remap(old),
            Order::Window(w) => w.remap(old),
        }
    }

    // --- who may go ---------------------------------------------------------------------------------------------

    /// Warps of a pod that may issue what they ask for. Asking again in the same cycle gives the same.
    #[inline]
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

    /// An instruction that would follow another of its warp in the same cycle may.
    pub fn may_follow(&self, pod: usize, bit: u32, pc: u32, now: u64) -> bool {
        let waits = self.grants.is_on() && self.program.row(pc).is_access;
        !waits || self.grants.is_free(now) || self.grants.granted(pod).value >> bit & 1 != 0
    }

    /// Keeps account of the warps that `allowed` holds among those that ask; `busy` counts cycles of a warp's pipes that
    /// have a reason of their own.
    #[inline]
    pub fn hold(
        &mut self,
        pod: usize,
        asking: u64,
        allowed: Allowed,
        now: u64,
        busy: impl Fn(u32) -> (u64, u64),
    ) {
        let p = &mut self.pods[pod];
        p.grant.set(asking & !allowed.grant, now, &busy);
        p.window.set(asking & allowed.grant & !allowed.window, now, &busy);
    }

    /// Cycles for which the grant, and the window, kept a warp from issuing; they are forgotten.
    pub fn held(&mut self, pod: usize, bit: u32) -> (u64, u64) {
        let p = &mut self.pods[pod];
        (p.grant.forget(bit), p.window.forget(bit))
    }

    /// When a warp of the pod may go that is held, although nothing else happens.
    #[inline]
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

    /// The warp that the policy chooses; none where the sub-core's own order does.
    #[inline]
    pub fn choose(&self, pod: usize, set: u64, newest: u32, now: u64) -> Option<u32> {
        match &self.pods[pod].order {
            Order::Plain => None,
            Order::Oldest(o) => Some(o.choose(set)),
            Order::TwoLevel(t) => Some(t.choose(set, newest)),
            Order::Credit(c) => Some(c.choose(set, &self.moment(pod, newest, now))),
            Order::Window(w) => Some(w.choose(set)),
        }
    }

    fn moment(&self, pod: usize, newest: u32, now: u64) -> Moment {
        Moment { now, ctas: self.ctas, granted: self.grants.granted(pod), newest }
    }

    /// Records a choice before it issues, where someone wants to know. `slot` says which warp slot a bit stands for.
    pub fn note(
        &mut self,
        (pod, bit, pc): (usize, u32, u32),
        (live, able): (u64, u64),
        newest: u32,
        now: u64,
        slot: impl Fn(u32) -> u16,
    ) {
        if self.record.is_none() {
            return;
        }
        let m = self.moment(pod, newest, now);
        let p = &self.pods[pod];
        let shown = |b: u32| {
            let is_able = able >> b & 1 != 0;
            let (credit, weight) = match &p.order {
                Order::Credit(c) => (c.ledger.credit(b), is_able.then(|| c.weight(b, &m))),
                _ => (0, None),
            };
            Shown {
                warp: slot(b),
                able: is_able,
                no_grant: p.grant.is_held(b),
                outside: p.window.is_held(b),
                credit,
                weight,
                value: self.grants.value(pod, b),
            }
        };
        let mut warps: Vec<Shown> = Bits(live).map(shown).collect();
        warps.sort_by_key(|w| w.warp);
        let fund = match &p.order {
            Order::Credit(c) => c.ledger.fund(),
            _ => 0,
        };
        let row = Choice { cycle: now, pod, warp: slot(bit), pc, warps, fund, grant: self.grants.grant() };
        if let Some(record) = &mut self.record {
            record.push(row);
        }
    }
}
