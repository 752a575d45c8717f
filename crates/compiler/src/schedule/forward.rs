//! List scheduling of a region from its start to its end, cycle by cycle.
//!
//! At every cycle one instruction is issued whose operands are there and whose pipe is free: of those the one with the longest
//! way to the end. So independent chains run side by side and fill each other's waits. An instruction that would make more
//! values live than may waits until others have ended some; loads, whose results come late and stay until
//! they are worked on, leave a reserve of registers to those that do the work.
//!
//! Where many like chains want more registers than there are, the longest way to the end says nothing: it would begin all of them
//! and finish none. There an attempt looks no further ahead in the source than a window: chains that stand behind each other
//! then overlap, as many as find room, and each is finished before one far behind it begins.

use super::latency::PIPES;
use super::order::Pressure;
use super::plan::Plan;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Registers that an attempt keeps to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    pub most: Pressure,
    /// Registers of those that loads leave to others.
    pub reserve: i32,
    /// Instructions of the source that may be looked at, from the first that is not placed.
    pub window: usize,
}

/// Instructions that are looked at when the best does not fit.
const COMPARED: usize = 24;

struct State<'a> {
    plan: &'a Plan,
    budget: Budget,
    now: Pressure,
    /// Readers of each value that are not placed yet.
    readers: Vec<u32>,
    /// Instructions whose operands are there, by pipe: the way to the end, the place in the source.
    available: [BinaryHeap<(u32, Reverse<u32>)>; PIPES],
    free: [u32; PIPES],
    cycle: u32,
}

/// An order for a region above which `start` values live; it keeps to the budget where it can.
pub fn order(plan: &Plan, start: Pressure, budget: Budget) -> Vec<usize> {
    let count = plan.len();
    let mut needs = plan.needs.clone();
    let mut earliest = vec![0u32; count];
    let mut coming: BinaryHeap<(Reverse<u32>, u32)> = BinaryHeap::new();
    coming.extend((0..count).filter(|&n| needs[n] == 0).map(|n| (Reverse(0), n as u32)));
    let mut state = State {
        plan,
        budget,
        now: start,
        readers: plan.readers.clone(),
        available: Default::default(),
        free: [0; PIPES],
        cycle: 0,
    };
    let mut placed = Vec::with_capacity(count);
    let mut window = Window::new(count, budget.window);
    while placed.len() < count {
        while let Some(&(Reverse(at), n)) = coming.peek()
            && at <= state.cycle
        {
            coming.pop();
            if window.has(n as usize) {
                state.add(n as usize);
            }
        }
        let next = state.pick();
        let Some(n) = next.or_else(|| {
            // Time passes until something changes; when nothing will, the budget cannot be kept.
            let change = coming.peek().map(|c| c.0.0).into_iter().chain(state.next_free()).min();
            state.cycle = change.unwrap_or(state.cycle);
            if change.is_none() { state.force() } else { None }
        }) else {
            continue;
        };
        let at = state.cycle;
        state.place(n);
        placed.push(n);
        window.place(n, |n| state.add(n));
        for e in plan.after(n) {
            let waits = e.from as usize;
            earliest[waits] = earliest[waits].max(at + e.cycles);
            needs[waits] -= 1;
            if needs[waits] == 0 {
                coming.push((Reverse(earliest[waits]), e.from));
            }
        }
    }
    placed
}

/// How far ahead in the source instructions are looked at.
struct Window {
    size: usize,
    /// The first instruction that is not placed.
    first: usize,
    placed: Vec<bool>,
    /// Instructions behind the window whose operands are there.
    waiting: BinaryHeap<Reverse<usize>>,
}

impl Window {
    fn new(count: usize, size: usize) -> Window {
        Window { size, first: 0, placed: vec![false; count], waiting: BinaryHeap::new() }
    }

    /// The window has reached an instruction whose operands are there; otherwise it waits here.
    fn has(&mut self, n: usize) -> bool {
        let has = n - self.first < self.size;
        if !has {
            self.waiting.push(Reverse(n));
        }
        has
    }

    /// Moves on behind a placed instruction, and hands over what the window reaches.
    fn place(&mut self, n: usize, mut add: impl FnMut(usize)) {
        self.placed[n] = true;
        while self.placed.get(self.first) == Some(&true) {
            self.first += 1;
        }
        while let Some(&Reverse(n)) = self.waiting.peek()
            && n - self.first < self.size
        {
            self.waiting.pop();
            add(n);
        }
    }
}

impl State<'_> {
    fn add(&mut self, n: usize) {
        self.available[self.plan.pipe[n].0].push((self.plan.height[n], Reverse(n as u32)));
    }

    /// By how much placing an instruction changes what lives.
    fn change(&self, n: usize) -> Pressure {
        let mut change = self.plan.made[n];
        for &value in self.plan.reads(n) {
            if self.readers[value as usize] == 1 {
                change.count(self.plan.file[value as usize], -1);
            }
        }
        change
    }

    fn fits(&self, n: usize) -> bool {
        let change = self.change(n);
        let mut most = self.budget.most;
        if self.plan.is_load[n] {
            most.registers -= self.budget.reserve;
        }
        (change.registers <= 0 || self.now.registers + change.registers <= most.registers)
            && (change.preds <= 0 || self.now.preds + change.preds <= most.preds)
    }

    /// The pipe whose best instruction is the best of all, among those that `is_open`.
    fn best(&self, is_open: impl Fn(usize) -> bool) -> Option<usize> {
        (0..PIPES)
            .filter(|&p| is_open(p) && !self.available[p].is_empty())
            .max_by_key(|&p| self.available[p].peek().copied())
    }

    /// Takes the best instruction that can be issued now.
    fn pick(&mut self) -> Option<usize> {
        let mut aside = Vec::new();
        let mut found = None;
        while aside.len() < COMPARED
            && let Some(p) = self.best(|p| self.free[p] <= self.cycle)
            && let Some((_, Reverse(n))) = self.available[p].pop()
        {
            if self.fits(n as usize) {
                found = Some(n as usize);
                break;
            }
            aside.push(n as usize);
        }
        aside.into_iter().for_each(|n| self.add(n));
        found
    }

    /// When the next pipe is free that something waits for.
    fn next_free(&self) -> Option<u32> {
        let waits = |&p: &usize| !self.available[p].is_empty() && self.free[p] > self.cycle;
        (0..PIPES).filter(waits).map(|p| self.free[p]).min()
    }

    /// Takes the instruction that passes the budget least.
    fn force(&mut self) -> Option<usize> {
        let mut aside = Vec::new();
        while aside.len() < COMPARED
            && let Some(p) = self.best(|_| true)
            && let Some((_, Reverse(n))) = self.available[p].pop()
        {
            aside.push(n as usize);
        }
        let cost = |&n: &usize| {
            let change = self.change(n);
            (change.registers + change.preds, Reverse(self.plan.height[n]), n)
        };
        let best = aside.iter().copied().min_by_key(cost);
        aside.into_iter().filter(|&n| Some(n) != best).for_each(|n| self.add(n));
        best
    }

    fn place(&mut self, n: usize) {
        self.now = self.now.plus(self.change(n));
        for &value in self.plan.reads(n) {
            self.readers[value as usize] -= 1;
        }
        let (pipe, takes) = self.plan.pipe[n];
        self.free[pipe] = self.cycle + takes;
        self.cycle += 1;
    }
}
