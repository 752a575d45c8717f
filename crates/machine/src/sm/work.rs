//! What an SM works on: launches, the CTAs that it holds, those that left and those that come back.

use super::code::{Code, Kind};
use super::preemption::Saved;
use isa::image::Image;
use simt::cta::Child;
use simt::files::Files;
use simt::resident::Resident;
use simt::{Launch, Memory};
use std::sync::Arc;

/// A launch as its SMs see it.
#[derive(Clone)]
pub struct Context<'l> {
    pub launch: Arc<Launch>,
    pub memory: &'l Memory,
    pub image: Arc<Image>,
    pub code: Code,
    /// Number of the grid, for programs that ask.
    pub grid_id: u64,
    /// Address of local memory of the machine's first warp slot, and bytes a slot.
    pub local_base: u64,
    pub local_stride: u64,
    /// Whom it is counted with where several run at once, and the row of its first instruction in the tables of that.
    pub group: u16,
    pub rows: u32,
}

/// A CTA slot.
pub struct CtaSlot<'l> {
    pub resident: Resident<'l>,
    pub context: usize,
    pub linear: u64,
    /// Warps that have not ended, those of them that are blocked, and those that have not left.
    pub alive: u32,
    pub blocked: u32,
    pub staying: u32,
    /// Ended barrier phases that the blocked warps have been woken for.
    pub phases: u64,
    /// When the last of the ended warps is gone.
    pub end: u64,
    pub is_used: bool,
    pub warps: Vec<u16>,
    /// Times that it was suspended.
    pub times: u32,
}

impl<'l> CtaSlot<'l> {
    /// Room for CTAs of a launch.
    pub fn new(resident: Resident<'l>, context: usize) -> CtaSlot<'l> {
        CtaSlot {
            resident,
            context,
            linear: 0,
            alive: 0,
            staying: 0,
            blocked: 0,
            phases: 0,
            end: 0,
            is_used: false,
            warps: Vec::new(),
            times: 0,
        }
    }
}

/// What an SM works on: the CTAs that it holds.
pub struct Work<'l> {
    pub contexts: Arc<Vec<Context<'l>>>,
    pub ctas: Vec<CtaSlot<'l>>,
    /// CTAs that left unfinished, and those that come back.
    pub saved: Vec<Saved>,
    pub arriving: Vec<Saved>,
    /// Register files that are left from earlier launches, for those of this one.
    pub files: Files,
    /// Lines of register files that warps of the first launch need when they start.
    pub first_lines: Vec<u32>,
}

/// Instructions of a warp that starts whose registers are asked of the host's caches.
const FIRST: usize = 12;

/// The slot's CTAs were those of a launch that is gone.
pub const NO_CONTEXT: usize = usize::MAX;

impl<'l> Work<'l> {
    /// What an SM works on at first: nothing.
    pub fn new(contexts: Arc<Vec<Context<'l>>>) -> Work<'l> {
        let first_lines = |c: &Context<'_>| {
            let start = c.launch.kernel().function().start;
            c.launch.first_lines(FIRST, c.code.sprint_from(start).is_some())
        };
        let first_lines = contexts.first().map(first_lines).unwrap_or_default();
        Work {
            contexts,
            ctas: Vec::new(),
            saved: Vec::new(),
            arriving: Vec::new(),
            files: Files::default(),
            first_lines,
        }
    }

    /// The same with register files that are left from earlier launches.
    pub fn with_files(contexts: Arc<Vec<Context<'l>>>, mut files: Files) -> Work<'l> {
        if let Some(context) = contexts.first() {
            files.begin(&context.launch);
        }
        Work { files, ..Work::new(contexts) }
    }

    /// All is done: register files for later launches.
    pub fn into_files(mut self) -> Files {
        self.ctas.into_iter().for_each(|slot| slot.resident.give_back(&mut self.files));
        self.files
    }

    /// A slot with room for a CTA of a launch, made where there is none.
    pub fn free_slot(&mut self, context: usize) -> usize {
        let free = self.ctas.iter().position(|s| !s.is_used && s.context == context);
        free.unwrap_or_else(|| {
            let c = &self.contexts[context];
            let resident = Resident::with_files(&c.launch, c.memory, &mut self.files);
            self.put(resident, context)
        })
    }

    /// Puts room for CTAs of a launch into a slot; which.
    fn put(&mut self, resident: Resident<'l>, context: usize) -> usize {
        let slot = CtaSlot::new(resident, context);
        match self.ctas.iter().position(|s| !s.is_used && s.context == NO_CONTEXT) {
            Some(n) => {
                self.ctas[n] = slot;
                n
            }
            None => {
                self.ctas.push(slot);
                self.ctas.len() - 1
            }
        }
    }

    /// The launch of this number is gone: another one may have its number.
    pub fn give_up(&mut self, context: usize) {
        for slot in self.ctas.iter_mut().filter(|s| !s.is_used && s.context == context) {
            slot.context = NO_CONTEXT;
        }
    }
}

/// Child tasks that a CTA started, and where.
pub struct Spawned {
    pub launch: u32,
    pub linear: u64,
    pub cta: [u32; 3],
    pub pc: u32,
    pub children: Vec<Child>,
}

/// What an SM has to know before launches begin.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// Classes of instructions in the programs, a bit each, and whether there are barriers among them.
    pub classes: u32,
    pub meets: bool,
    /// Instructions of the longest, and how many launches are counted by themselves: none where there is one only.
    pub instructions: usize,
    pub launches: usize,
    pub constant_base: u64,
    pub shared_split: u32,
}

impl Begin {
    pub fn new<'c>(codes: impl Iterator<Item = &'c Code>, constant_base: u64, shared_split: u32) -> Begin {
        let mut begin =
            Begin { classes: 0, meets: false, instructions: 0, launches: 0, constant_base, shared_split };
        for code in codes {
            begin.classes |= code.classes();
            begin.meets |= code.timings().iter().any(|t| t.kind == Kind::Barrier);
            begin.instructions = begin.instructions.max(code.len());
        }
        begin
    }
}
