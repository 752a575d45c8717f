//! Launches and their child tasks: who waits for whom.

use serde::{Deserialize, Serialize};
use simt::cta::ChildOrder;
use simt::{Launch, Memory, launch};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// When a launch ran, in cycles since its batch's start, and what it did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LaunchTimed {
    pub kernel: String,
    /// Its parent among the launches, where it is a child task.
    pub parent: Option<usize>,
    pub depth: u32,
    /// When the machine had its metadata, when its first CTA started, when it and its child tasks had ended.
    pub known: u64,
    pub begun: u64,
    pub ended: u64,
    pub ctas: u64,
    pub warp_instructions: u64,
    pub thread_instructions: u64,
    /// Times that CTAs of it were suspended.
    pub suspended: u64,
    /// Versions of its code that were made while it ran, or taken over.
    pub versions: u32,
}

/// A launch, of the host or of a kernel.
#[derive(Clone)]
pub struct Job {
    pub launch: Arc<Launch>,
    pub priority: u8,
    /// Its number on the machine while it runs.
    pub number: Option<u32>,
    /// Parent, and the CTA that started it.
    pub parent: Option<(usize, u64)>,
    pub order: ChildOrder,
    /// Child tasks that have not ended, and those that run when all else has.
    children: u32,
    tails: VecDeque<usize>,
    /// Child tasks that each CTA started in turn: the last one.
    last: BTreeMap<u64, usize>,
    /// Child tasks that wait for this one.
    next: Vec<usize>,
    /// All of its CTAs have ended.
    own_ended: bool,
    pub is_done: bool,
    pub timed: LaunchTimed,
}

/// A launch as a checkpoint has it.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedJob {
    /// Of what has ended nobody needs it.
    launch: Option<launch::Saved>,
    priority: u8,
    number: Option<u32>,
    parent: Option<(usize, u64)>,
    order: ChildOrder,
    children: u32,
    tails: VecDeque<usize>,
    last: BTreeMap<u64, usize>,
    next: Vec<usize>,
    own_ended: bool,
    is_done: bool,
    timed: LaunchTimed,
}

impl Jobs {
    /// All of them; `keeps` says which launches of those that have ended somebody may still look at.
    pub(super) fn save(&self, memory: &Memory, keeps: impl Fn(usize) -> bool) -> Vec<SavedJob> {
        let save = |(n, j): (usize, &Job)| SavedJob {
            launch: (!j.is_done || keeps(n)).then(|| j.launch.save(memory)),
            priority: j.priority,
            number: j.number,
            parent: j.parent,
            order: j.order,
            children: j.children,
            tails: j.tails.clone(),
            last: j.last.clone(),
            next: j.next.clone(),
            own_ended: j.own_ended,
            is_done: j.is_done,
            timed: j.timed.clone(),
        };
        self.list.iter().enumerate().map(save).collect()
    }

    /// What was saved, of a batch with these launches; `None` where it cannot be.
    pub(super) fn restore(saved: Vec<SavedJob>, host: &[Arc<Launch>], memory: &Memory) -> Option<Jobs> {
        let count = saved.len();
        if count < host.len() {
            return None;
        }
        let mut list: Vec<Job> = Vec::with_capacity(count);
        for (n, j) in saved.into_iter().enumerate() {
            let mut named = j.tails.iter().chain(j.last.values()).chain(&j.next);
            // Children come after their parents, so there is no circle.
            let is_child = j.parent.is_some_and(|(parent, _)| parent < n);
            if named.any(|&k| k >= count) || is_child != (n >= host.len()) {
                return None;
            }
            let other = match j.parent {
                Some((parent, _)) => list[parent].launch.clone(),
                None => host[n].clone(),
            };
            let launch = match j.launch {
                Some(saved) => Arc::new(Launch::restore(&other, saved, memory)?),
                None if j.is_done => other.clone(),
                None => return None,
            };
            let is_same = launch.kernel().function().name == other.kernel().function().name
                && (launch.grid, launch.block) == (other.grid, other.block);
            if j.parent.is_none() && !is_same {
                return None;
            }
            list.push(Job {
                launch,
                priority: j.priority,
                number: j.number,
                parent: j.parent,
                order: j.order,
                children: j.children,
                tails: j.tails,
                last: j.last,
                next: j.next,
                own_ended: j.own_ended,
                is_done: j.is_done,
                timed: j.timed,
            });
        }
        Some(Jobs { list })
    }
}

/// All launches of a batch.
#[derive(Clone, Default)]
pub struct Jobs {
    pub list: Vec<Job>,
}

/// What a launch that ended leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A child task can start.
    Start(usize),
    /// A launch has ended with all its child tasks.
    Done(usize),
}

impl Jobs {
    pub fn add(
        &mut self,
        launch: Arc<Launch>,
        priority: u8,
        parent: Option<(usize, u64)>,
        order: ChildOrder,
    ) -> usize {
        let timed = LaunchTimed {
            kernel: launch.kernel().function().name.clone(),
            parent: parent.map(|(job, _)| job),
            depth: launch.depth,
            known: 0,
            begun: u64::MAX,
            ended: 0,
            ctas: 0,
            warp_instructions: 0,
            thread_instructions: 0,
            suspended: 0,
            versions: 0,
        };
        self.list.push(Job {
            launch,
            priority,
            number: None,
            parent,
            order,
            children: 0,
            tails: VecDeque::new(),
            last: BTreeMap::new(),
            next: Vec::new(),
            own_ended: false,
            is_done: false,
            timed,
        });
        self.list.len() - 1
    }

    /// A CTA of a launch starts a child task; its number, and whether it can run now.
    pub fn start_child(
        &mut self,
        parent: usize,
        linear: u64,
        launch: Arc<Launch>,
        order: ChildOrder,
    ) -> (usize, bool) {
        let priority = self.list[parent].priority;
        let job = self.add(launch, priority, Some((parent, linear)), order);
        match order {
            ChildOrder::FireAndForget => {
                self.list[parent].children += 1;
                (job, true)
            }
            ChildOrder::InTurn => {
                self.list[parent].children += 1;
                let before = self.list[parent].last.insert(linear, job);
                let waits = before.filter(|&b| !self.list[b].is_done);
                if let Some(before) = waits {
                    self.list[before].next.push(job);
                }
                (job, waits.is_none())
            }
            ChildOrder::Tail => {
                self.list[parent].tails.push_back(job);
                (job, false)
            }
        }
    }

    /// All CTAs of a launch have ended: what that leads to.
    pub fn ended(&mut self, job: usize, next: &mut Vec<Next>) {
        self.list[job].own_ended = true;
        self.settle(job, next);
    }

    fn settle(&mut self, job: usize, next: &mut Vec<Next>) {
        let own = &mut self.list[job];
        if !own.own_ended || own.children > 0 || own.is_done {
            return;
        }
        if let Some(tail) = own.tails.pop_front() {
            own.children += 1;
            next.push(Next::Start(tail));
            return;
        }
        own.is_done = true;
        next.push(Next::Done(job));
        next.extend(std::mem::take(&mut own.next).into_iter().map(Next::Start));
        if let Some((parent, _)) = own.parent {
            self.list[parent].children = self.list[parent].children.saturating_sub(1);
            self.settle(parent, next);
        }
    }

    /// Child tasks that wait to run or run.
    pub fn children(&self) -> u32 {
        self.list.iter().filter(|j| j.parent.is_some() && !j.is_done).count() as u32
    }
}
