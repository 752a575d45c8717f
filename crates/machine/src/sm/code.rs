//! A kernel's instructions as the scheduler sees them: what each waits for, which pipe it takes, how long it lasts.

mod entries;
mod straight;

use super::constants;
use super::core::LINE_INSTRUCTIONS;
use super::spec::Spec;
use super::waits::{self, FOR_READERS};
use crate::stall::Stall;
use crate::units::LINE;
use isa::field::{AtomOp, Cache, Field, From, Order, To};
use isa::image::Image;
use isa::{Effects, Inst, Op, Operand, Pred, Reg, Role, Special, Src, UReg, Unit};
use serde::{Deserialize, Serialize};
use simt::special::is_volatile;
use std::sync::Arc;

/// Kinds of instructions that compete for pipes. A pipe runs one or more of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Class {
    Alu,
    Fma,
    Imad,
    Half,
    Fp64,
    Xu,
    Uniform,
    Branch,
    Misc,
    Tensor,
    /// Through the queue for global and local memory.
    Global,
    /// Through the queue for shared memory and shuffles.
    Shared,
    /// Constants by register.
    Constant,
    Tex,
}

/// Number of classes.
pub const CLASSES: usize = 14;

impl Class {
    pub const ALL: [Class; CLASSES] = [
        Class::Alu,
        Class::Fma,
        Class::Imad,
        Class::Half,
        Class::Fp64,
        Class::Xu,
        Class::Uniform,
        Class::Branch,
        Class::Misc,
        Class::Tensor,
        Class::Global,
        Class::Shared,
        Class::Constant,
        Class::Tex,
    ];

    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Class::Alu => "alu",
            Class::Fma => "fma",
            Class::Imad => "imad",
            Class::Half => "half",
            Class::Fp64 => "fp64",
            Class::Xu => "xu",
            Class::Uniform => "uniform",
            Class::Branch => "branch",
            Class::Misc => "misc",
            Class::Tensor => "tensor",
            Class::Global => "global",
            Class::Shared => "shared",
            Class::Constant => "constant",
            Class::Tex => "tex",
        }
    }
}

impl Class {
    /// What it is called when a class has no room.
    #[inline(always)]
    pub const fn throttle(self) -> Stall {
        // Looked up, since hosts guess the class badly.
        const OF: [Stall; CLASSES] = {
            let mut of = [Stall::MathPipeThrottle; CLASSES];
            of[Class::Global as usize] = Stall::LgThrottle;
            of[Class::Shared as usize] = Stall::MioThrottle;
            of[Class::Constant as usize] = Stall::MioThrottle;
            of[Class::Tex as usize] = Stall::TexThrottle;
            of
        };
        OF[self as usize]
    }
}

/// What the core does with an instruction beyond executing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A result after a latency known at issue.
    Fixed,
    /// The same, by the load-store unit: a special register.
    Special,
    /// May go elsewhere.
    Branch,
    Exit,
    Barrier,
    /// Through the load-store unit.
    Load,
    Store,
    Atomic,
    Reduction,
    /// Between lanes, by the load-store unit's data path.
    Shuffle,
    Prefetch,
    /// A constant by register.
    Constant,
    Membar,
    /// Forgets the first-level cache.
    Invalidate,
    Sleep,
    /// Calls the system.
    System,
}

/// Who a result is waited for as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum Producer {
    /// A pipe of fixed latency.
    Fixed = 0,
    Long = 1,
    Short = 2,
    /// A multiply-add pipe: other pipes get its results later.
    Fma = 3,
}

/// Whom a result is waited for as, and the instruction that makes it: its place in the code above two bits of the producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Maker(pub u32);

impl Maker {
    /// Bits that it takes, for 262,143 instructions: of those behind, nobody who waits knows.
    pub const BITS: u32 = 20;
    /// The place of an instruction behind those.
    const NOWHERE: u32 = (1 << (Maker::BITS - 2)) - 1;

    fn new(producer: Producer, pc: usize) -> Maker {
        Maker((pc.min(Maker::NOWHERE as usize) as u32) << 2 | producer as u32)
    }

    /// The same waited for as something else.
    #[inline(always)]
    pub fn with(self, producer: Producer) -> Maker {
        Maker(self.0 & !3 | producer as u32)
    }

    /// The instruction's place.
    pub fn pc(self) -> Option<u32> {
        Some(self.0 >> 2).filter(|&pc| pc != Maker::NOWHERE)
    }
}

/// Places of an SM for how lanes lie in shared memory: instructions take them in turn.
const LAYOUTS: u8 = NO_LAYOUT;
/// An instruction that has none.
pub const NO_LAYOUT: u8 = u8::MAX;

/// No constant operand.
pub const NO_CONSTANT: u32 = u32::MAX;

/// One instruction, in one line of the host's cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Timing {
    /// First of its places on the scoreboard in `Code::places`: those it writes, then those it reads.
    first: u32,
    /// First of the places in `Code::checks` whose time is looked up.
    first_check: u32,
    checks: u8,
    /// How many of the places that it reads are looked up by anyone who writes them: behind its checks.
    holds: u8,
    writes: u8,
    reads: u8,
    pub class: Class,
    pub kind: Kind,
    pub producer: Producer,
    /// The same with which instruction it is.
    pub maker: Maker,
    /// Cycles from the issue of the instruction before.
    pub wait: u8,
    /// Its operands are there when the instruction before it issues, as far as the code tells.
    pub is_paired: bool,
    /// Waits for nothing but that: looks up no place, reads no constant.
    pub is_simple: bool,
    /// Instructions from here on that concern nobody but their warp, and need nothing that is still on its way.
    pub run: u8,
    /// It, or the first instruction behind those, is a load from shared memory that can be executed with them.
    pub goes_on: bool,
    /// Needs the result of an atomic, which is not in its registers before it is here.
    pub is_late: bool,
    /// Its results are there after cycles that the code tells: nothing looks them up.
    pub is_static: bool,
    /// Cycles until registers, and predicates, can be used.
    pub latency: u16,
    pub predicate_latency: u16,
    pub guard_latency: u16,
    /// How many of the writes are registers, and predicates; the others are predicates as guards.
    pub registers: u8,
    pub predicates: u8,
    /// Runs in a multiply-add pipe.
    pub is_fma: bool,
    /// Writes that must not overtake earlier ones: registers and predicates.
    pub checked: u8,
    /// Registers to be read from each bank, 16 bits a bank.
    pub bank_reads: u64,
    /// Looks at a special register that time changes, and maybe at the one that counts nanoseconds.
    pub reads_time: bool,
    pub reads_timer: bool,
    /// 32-bit registers a lane that a memory operation moves.
    pub words: u8,
    /// Times that an atomic goes to the banks of shared memory for each lane.
    pub rounds: u8,
    /// Bank and offset of a constant operand.
    pub bank: u8,
    pub constant: u32,
    /// Where a constant load by register reads, if all lanes read one place that the code tells.
    pub place: u32,
    pub cache: Cache,
    /// The place for how its lanes lie in shared memory, or [`NO_LAYOUT`].
    pub layout: u8,
    /// Loads from shared memory: nobody but its warp sees when it executes.
    pub loads_shared: bool,
    /// Reads what does not change while its warp runs, or is in a sprint, so that it is executed with those before it; but
    /// through a unit that sub-cores share.
    pub is_known: bool,
}

const _: () = assert!(size_of::<Timing>() == 64);

impl Timing {
    /// Cycles until the k-th of its writes can be used.
    pub fn latency_of(&self, k: usize) -> u16 {
        let registers = self.registers as usize;
        match k {
            k if k < registers => self.latency,
            k if k < registers + self.predicates as usize => self.predicate_latency,
            _ => self.guard_latency,
        }
    }

    #[inline(always)]
    pub fn has_checks(&self) -> bool {
        self.checks != 0
    }

    /// The same with constants of a launch of that number.
    fn with_constants(mut self, number: u32) -> Timing {
        if self.constant != NO_CONSTANT {
            self.constant = constants::numbered(self.constant, number);
        }
        self
    }

    /// Lanes may go elsewhere, or end; if none does, nobody but the warp has to know.
    #[inline(always)]
    pub fn may_leave(&self) -> bool {
        matches!(self.kind, Kind::Branch | Kind::Exit)
    }

    /// Goes through the load-store unit.
    pub fn is_memory(&self) -> bool {
        use Kind::*;
        matches!(self.kind, Load | Store | Atomic | Reduction | Shuffle | Prefetch)
    }
}

/// A kernel's instructions. Only what the kernel uses has places on the scoreboard: it is walked by every instruction.
#[derive(Clone)]
pub struct Code {
    timings: Arc<[Timing]>,
    places: Arc<[u16]>,
    /// Where warps keep each of these.
    entries: Arc<[u16]>,
    checks: Arc<[u16]>,
    /// Number of its first line in memory.
    pub first_line: u64,
    /// Places of the scoreboard, and entries that a warp has for them.
    pub scoreboard: usize,
    warp_places: usize,
    /// The first place of a general register.
    pub first_register: u16,
    /// Where warps start that can sprint, and where their sprints end.
    sprints: Arc<[(u32, u32)]>,
}

/// Scoreboard places: predicates as operands, predicates as guards, uniform registers, registers.
const PREDICATES: u16 = 0;
const GUARDS: u16 = 8;
const UNIFORMS: u16 = 16;

/// Conversions that have a place in the fast pipes: between 32-bit integers and single precision one way, between
/// half and single precision both ways.
fn fast_conversion(i: &Inst) -> Option<Class> {
    let (to, from) = match i.op {
        Op::I2f | Op::F2f => (i.get::<To>(), i.get::<From>()),
        _ => return None,
    };
    match (to, from) {
        (To::F32, From::S32 | From::U32) | (To::F16 | To::Bf16, From::F32) => Some(Class::Alu),
        (To::F32, From::F16 | From::Bf16) => Some(Class::Half),
        _ => None,
    }
}

fn class(i: &Inst) -> Class {
    if let Some(class) = fast_conversion(i) {
        return class;
    }
    match i.unit() {
        Unit::Alu => Class::Alu,
        Unit::Fma => Class::Fma,
        Unit::Imad => Class::Imad,
        Unit::Half => Class::Half,
        Unit::Fp64 => Class::Fp64,
        Unit::Xu => Class::Xu,
        Unit::Uniform => Class::Uniform,
        Unit::Const => Class::Constant,
        Unit::Tex => Class::Tex,
        Unit::Branch => Class::Branch,
        // What the system does concerns all SMs, as global memory does.
        Unit::Misc if i.op == Op::Syscall => Class::Global,
        Unit::Misc => Class::Misc,
        Unit::Lsu => match i.op {
            Op::Lds | Op::Sts | Op::Atoms | Op::Shfl => Class::Shared,
            _ => Class::Global,
        },
    }
}

fn kind(i: &Inst) -> Kind {
    let effects = i.op.row().effects;
    match i.op {
        Op::Ldg | Op::Lds | Op::Ldl | Op::Ld => Kind::Load,
        Op::Stg | Op::Sts | Op::Stl | Op::St => Kind::Store,
        Op::Atoms if i.get::<AtomOp>() == AtomOp::PopcInc => Kind::Reduction,
        Op::Atomg | Op::Atoms | Op::Atom => Kind::Atomic,
        Op::Redg | Op::Red => Kind::Reduction,
        Op::Shfl => Kind::Shuffle,
        Op::S2r => Kind::Special,
        Op::Cctl => Kind::Prefetch,
        Op::Ldc => Kind::Constant,
        Op::Membar => Kind::Membar,
        Op::CctlIvall => Kind::Invalidate,
        Op::Bar => Kind::Barrier,
        Op::Exit => Kind::Exit,
        Op::Nanosleep => Kind::Sleep,
        Op::Syscall => Kind::System,
        _ if effects.has(Effects::JUMPS) => Kind::Branch,
        Op::Bsync | Op::Warpsync | Op::Yield => Kind::Branch,
        _ => Kind::Fixed,
    }
}

fn is_fma(i: &Inst) -> bool {
    fast_conversion(i) == Some(Class::Half) || matches!(i.unit(), Unit::Fma | Unit::Imad | Unit::Half)
}

/// Latency of registers, of predicates, and what waiting for them is called.
fn latency(i: &Inst, spec: &Spec) -> (u32, u32, Producer) {
    let l = &spec.latency;
    let fixed = |n: u32| (n, l.predicate, if is_fma(i) { Producer::Fma } else { Producer::Fixed });
    let short = |n: u32| (n, n, Producer::Short);
    match i.op {
        Op::Vote | Op::Elect | Op::Actmask => (l.vote, l.vote, Producer::Fixed),
        Op::S2r => short(l.special_register),
        Op::S2ur => short(l.special_register),
        Op::R2ur => short(l.uniform_crossing),
        Op::ImadWide => fixed(l.imad_wide),
        _ if fast_conversion(i).is_some() => fixed(l.conversion),
        _ => match i.unit() {
            Unit::Alu => fixed(l.alu),
            Unit::Fma => fixed(l.fma),
            Unit::Imad => fixed(l.imad),
            Unit::Half => fixed(l.half),
            Unit::Fp64 => (l.fp64, l.fp64, Producer::Fixed),
            Unit::Xu => short(l.xu),
            Unit::Uniform => fixed(l.uniform),
            Unit::Branch | Unit::Misc => fixed(l.alu),
            Unit::Lsu if i.op == Op::Shfl || matches!(i.op, Op::Lds | Op::Atoms) => (0, 0, Producer::Short),
            Unit::Const => (0, 0, Producer::Short),
            Unit::Lsu | Unit::Tex => (0, 0, Producer::Long),
        },
    }
}

/// Most register banks that a sub-core can have.
pub const BANKS: usize = 4;

/// Registers that an instruction reads from each bank. One that it names twice is read once, and what the reuse cache
/// holds is not read again: a source that the instruction before marked, in the same place.
fn bank_reads(i: &Inst, before: Option<&Inst>, spec: &Spec) -> u64 {
    let banks = spec.register_banks.clamp(1, BANKS as u32);
    let mut reads = 0;
    let mut seen: [Option<Reg>; 12] = [None; 12];
    let mut n = 0;
    for &role in i.op.row().roles {
        let Some(Src { operand: Operand::Reg(first), .. }) = i.source(role) else { continue };
        let place = match role {
            Role::A | Role::A2 | Role::AFrom | Role::Addr | Role::CAddr => Some(0),
            Role::B | Role::B2 => Some(1),
            Role::C | Role::C2 | Role::CW | Role::CT => Some(2),
            _ => None,
        };
        let kept =
            place.zip(before).is_some_and(|(p, b)| b.src[p].reuse && b.src[p].operand == i.src[p].operand);
        if first == Reg::RZ || kept {
            continue;
        }
        for k in 0..i.width(role) {
            let r = Reg(first.0.wrapping_add(k as u8));
            if n < seen.len() && !seen[..n].contains(&Some(r)) {
                seen[n] = Some(r);
                n += 1;
                reads += 1 << (16 * (u32::from(r.0) % banks));
            }
        }
    }
    reads
}

/// The constant operand of an instruction that reads one by a fixed place.
fn constant(i: &Inst) -> Option<(u8, u32)> {
    if matches!(i.op, Op::Uldc | Op::Uldc64) {
        let fixed =
            matches!(i.src[0].operand, Operand::None | Operand::UReg(UReg::URZ) | Operand::Reg(Reg::RZ));
        return fixed.then(|| (i.field(Field::Bank) as u8, i.offset() as u32));
    }
    i.src.iter().find_map(|s| match s.operand {
        Operand::Const { bank, offset } => Some((bank, u32::from(offset))),
        _ => None,
    })
}

/// The place of a constant that all lanes load, where the code tells it.
fn loaded_place(i: &Inst) -> Option<u32> {
    let by_register = matches!(i.src[0].operand, Operand::Reg(r) if !r.is_zero());
    (i.op == Op::Ldc && !by_register).then(|| constants::numbered(i.offset() as u32, 0))
}

/// Whether an instruction looks at a special register that time changes.
fn reads_time(i: &Inst) -> bool {
    matches!(i.op, Op::S2r | Op::Cs2r | Op::S2ur) && is_volatile(i.field(Field::Sr))
}

/// Whether an instruction may look at the special register that counts nanoseconds.
fn reads_timer(i: &Inst) -> bool {
    match i.op {
        Op::S2r | Op::S2ur => {
            let register = Special::from_bits(i.field(Field::Sr));
            matches!(register, Some(Special::GlobalTimerLo | Special::GlobalTimerHi))
        }
        op => op == Op::Cs2r,
    }
}

/// Uniform registers that an instruction reads.
fn uniform_reads(i: &Inst) -> impl Iterator<Item = (UReg, u32)> + '_ {
    let sources = i.op.row().roles.iter().filter_map(|&role| match i.source(role)?.operand {
        Operand::UReg(u) if u != UReg::URZ => Some((u, i.width(role).max(1))),
        _ => None,
    });
    // An address takes a pair.
    sources.chain(i.address_ureg().map(|u| (u, 2)))
}

/// How an access uses caches. Accesses that other SMs take part in go past the first level.
fn cache(i: &Inst) -> Cache {
    let fields = i.op.row().fields;
    if fields.contains(&Field::Order) && i.get::<Order>() != Order::Weak {
        return Cache::Cv;
    }
    if fields.contains(&Field::Cache) { i.get() } else { Cache::Default }
}

/// Uniform registers up to the highest that an instruction names.
fn uniforms(i: &Inst) -> u32 {
    let written = i.writes_uniform().map_or(0, |(u, n)| u32::from(u.0) + n);
    uniform_reads(i).map(|(u, n)| u32::from(u.0) + n).fold(written, u32::max).min(64)
}

/// Registers that a scoreboard has places for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    pub registers: u32,
    pub uniforms: u32,
}

impl Code {
    pub fn new(image: &Image, registers: u32, spec: &Spec) -> Code {
        let uniforms = image.code.iter().map(uniforms).max().unwrap_or(0);
        Code::build(image, Room { registers, uniforms }, (&[], true), spec)
    }

    /// The same with a scoreboard of this size, for code that more is put behind. Warps may go from the first of each pair of places to
    /// the second, beside what the code says.
    pub fn with_room(image: &Image, room: Room, ways: &[(u32, u32)], spec: &Spec) -> Code {
        Code::build(image, room, (ways, false), spec)
    }

    /// Whether the code is all that there will be, too.
    fn build(image: &Image, room: Room, (ways, is_all): (&[(u32, u32)], bool), spec: &Spec) -> Code {
        let Room { registers, uniforms } = room;
        let first_register = UNIFORMS + uniforms as u16;
        let mut places = Places {
            list: Vec::new(),
            first_register,
            scoreboard: usize::from(first_register) + registers as usize,
        };
        let mut timings = Vec::with_capacity(image.code.len() + 1);
        let mut before = None;
        for i in &image.code {
            timings.push(places.timing(i, before, spec));
            before = Some(i);
        }
        // Behind the last instruction stands the engine's guard, which faults.
        timings.push(places.timing(&Inst::new(Op::Nop), None, spec));
        let scoreboard = places.scoreboard;
        let mut code = Code {
            timings: timings.as_slice().into(),
            entries: places.list.as_slice().into(),
            places: places.list.into(),
            checks: Arc::new([]),
            first_line: 0,
            scoreboard,
            warp_places: 2 * scoreboard,
            first_register,
            sprints: Arc::new([]),
        };
        let waits = waits::analyse(&code, image, ways, spec);
        // Places that somebody writes who looks at their readers.
        let mut is_held = vec![!is_all; scoreboard];
        for p in waits.checks.iter().filter(|&&p| p & FOR_READERS != 0) {
            is_held[usize::from(p & !FOR_READERS)] = true;
        }
        let (mut from, mut checks) = (0, Vec::new());
        let readers = |p: u16| p + scoreboard as u16;
        for (n, t) in timings.iter_mut().enumerate() {
            t.maker = Maker::new(t.producer, n);
            // At least one cycle always passes between two issues of a warp that issues one at a time.
            (t.wait, t.is_paired) = (waits.cycles[n].max(1), waits.cycles[n] == 0);
            (t.run, t.is_late) = (waits.runs[n], waits.is_late[n]);
            (t.first_check, t.checks) = (checks.len() as u32, (waits.ends[n] - from) as u8);
            let own = waits.checks[from as usize..waits.ends[n] as usize].iter();
            checks.extend(own.map(|&p| match p & FOR_READERS {
                0 => p,
                _ => readers(p & !FOR_READERS),
            }));
            t.is_simple = t.checks == 0 && t.constant == NO_CONSTANT;
            from = waits.ends[n];
            if t.is_memory() {
                let before = checks.len();
                let held = code.places(t).1.iter().filter(|&&p| is_held[usize::from(p)]);
                checks.extend(held.map(|&p| readers(p)));
                t.holds = (checks.len() - before) as u8;
            }
        }
        let in_shared = |i: &Inst| matches!(i.op, Op::Lds | Op::Sts);
        let in_shared = image.code.iter().zip(&mut timings).filter(|(i, _)| in_shared(i));
        for (n, (_, t)) in in_shared.enumerate() {
            t.layout = (n % usize::from(LAYOUTS)) as u8;
            t.loads_shared = t.kind == Kind::Load;
        }
        let entries = image.functions.iter().filter(|f| f.is_entry && !f.order_dependent && is_all);
        code.sprints =
            entries.filter_map(|f| Some((f.start, straight::sprint(f, image, &timings)?))).collect();
        for &(start, end) in code.sprints.iter() {
            let sprinted = &mut timings[start as usize..end as usize];
            sprinted.iter_mut().filter(|t| t.is_memory()).for_each(|t| t.is_known = true);
        }
        for n in 0..timings.len() {
            let behind = usize::from(timings[n].run);
            let next = timings.get(n + behind);
            timings[n].goes_on = next.is_some_and(|t| t.loads_shared && (behind == 0 || !t.is_late));
        }
        code.timings = timings.into();
        // Two instructions of a warp that issue at once look at what is not among their checks, too.
        if is_all && spec.dispatch_units == 1 {
            code.pack(&mut checks);
        }
        code.checks = checks.into();
        code
    }

    /// The same code in memory from `base` on, for a launch whose constants are those of this number.
    pub fn placed(&self, base: u64, constants: u32) -> Code {
        let mut code = self.clone();
        code.first_line = base / LINE;
        if constants != 0 {
            code.timings = self.timings.iter().map(|&t| t.with_constants(constants)).collect();
        }
        code
    }

    /// The same code with this first line.
    pub fn at_line(mut self, first_line: u64) -> Code {
        self.first_line = first_line;
        self
    }

    /// Number of the line in memory that an instruction is in.
    pub fn line_of(&self, pc: u32) -> u64 {
        self.first_line + u64::from(pc / LINE_INSTRUCTIONS)
    }

    pub fn timings(&self) -> &[Timing] {
        &self.timings
    }

    /// Places of a warp's [`WarpSlot::places`](super::warp::WarpSlot) that an instruction looks up.
    #[inline(always)]
    pub fn checks(&self, t: &Timing) -> &[u16] {
        let first = t.first_check as usize;
        &self.checks[first..first + t.checks as usize]
    }

    /// Those that learn when a memory operation has read its operands.
    #[inline(always)]
    pub fn holds(&self, t: &Timing) -> &[u16] {
        let first = t.first_check as usize + t.checks as usize;
        &self.checks[first..first + t.holds as usize]
    }

    #[inline(always)]
    pub fn timing_of(&self, pc: u32) -> &Timing {
        &self.timings[pc as usize]
    }

    /// Where a sprint of a warp ends that starts at a place.
    #[inline(always)]
    pub fn sprint_from(&self, pc: u32) -> Option<u32> {
        self.sprints.iter().find(|sprint| sprint.0 == pc).map(|sprint| sprint.1)
    }

    /// Entries of a warp's scoreboard that an instruction writes.
    #[inline(always)]
    pub fn writes(&self, t: &Timing) -> &[u16] {
        let first = t.first as usize;
        &self.entries[first..first + t.writes as usize]
    }

    /// Places that an instruction writes, then those that it reads.
    #[inline(always)]
    pub fn places(&self, t: &Timing) -> (&[u16], &[u16]) {
        let first = t.first as usize;
        let (w, r) = (t.writes as usize, t.reads as usize);
        (&self.places[first..first + w], &self.places[first + w..first + w + r])
    }

    /// Entries of a warp's scoreboard: when a place can be used, and when it has been read.
    pub fn warp_places(&self) -> usize {
        self.warp_places
    }

    /// Classes that the program has instructions of, a bit each.
    pub fn classes(&self) -> u32 {
        self.timings.iter().fold(0, |set, t| set | 1 << t.class as u32)
    }

    pub fn len(&self) -> usize {
        self.timings.len()
    }

    pub fn is_empty(&self) -> bool {
        self.timings.is_empty()
    }
}

/// Places on the scoreboard, as they are found.
struct Places {
    list: Vec<u16>,
    first_register: u16,
    scoreboard: usize,
}

impl Places {
    fn timing(&mut self, i: &Inst, before: Option<&Inst>, spec: &Spec) -> Timing {
        let first = self.list.len() as u32;
        let (limit, registers_at) = (self.scoreboard as u16, self.first_register);
        let mut registers = 0;
        let put = |places: &mut Vec<u16>, from: u16, n: u32| {
            for k in 0..n as u16 {
                if from + k < limit {
                    places.push(from + k);
                }
            }
        };
        if let Some((r, n)) = i.writes() {
            put(&mut self.list, registers_at + u16::from(r.0), n);
        }
        if let Some((u, n)) = i.writes_uniform() {
            put(&mut self.list, UNIFORMS + u16::from(u.0), n);
        }
        registers += (self.list.len() as u32 - first) as u8;
        let mut predicates = 0;
        for p in i.pred_writes() {
            put(&mut self.list, PREDICATES + u16::from(p.0), 1);
            predicates += 1;
        }
        for p in i.pred_writes() {
            put(&mut self.list, GUARDS + u16::from(p.0), 1);
        }
        let writes = (self.list.len() as u32 - first) as u8;
        for (r, n) in i.reads() {
            put(&mut self.list, registers_at + u16::from(r.0), n);
        }
        for (u, n) in uniform_reads(i) {
            put(&mut self.list, UNIFORMS + u16::from(u.0), n);
        }
        // The guard comes first. Votes look at predicates where guards are looked at.
        let guard = u32::from(i.guard.pred != Pred::PT);
        for (k, p) in i.pred_reads().enumerate() {
            let first = if (k as u32) < guard || i.op == Op::Vote { GUARDS } else { PREDICATES };
            put(&mut self.list, first + u16::from(p.0), 1);
        }
        let reads = (self.list.len() as u32 - first) as u8 - writes;
        let (latency, predicate_latency, producer) = latency(i, spec);
        let moved = i.op.row().roles.iter().find(|r| matches!(r, Role::DW | Role::CW | Role::DT | Role::CT));
        let (operand, place) = (constant(i), loaded_place(i));
        let (class, kind) = (class(i), kind(i));
        // A pipe with a queue begins later than the issue.
        let waits_in_queue =
            spec.pipes.iter().any(|p| p.queue > 0 && p.runs.iter().any(|r| r == class.name()));
        let is_fixed = matches!(producer, Producer::Fixed | Producer::Fma);
        let guard_more = match kind {
            Kind::Shuffle => spec.load_store.shared.shuffle_guard_latency,
            _ => spec.latency.guard.saturating_sub(spec.latency.predicate),
        };
        let is_swap = i.op == Op::Atoms && i.get::<AtomOp>() == AtomOp::Cas;
        Timing {
            first,
            first_check: 0,
            checks: 0,
            holds: 0,
            writes,
            reads,
            class,
            kind,
            producer,
            maker: Maker::default(),
            wait: 1,
            is_paired: false,
            is_simple: false,
            run: 0,
            is_late: false,
            goes_on: false,
            is_static: kind == Kind::Fixed && is_fixed && !waits_in_queue,
            latency: latency as u16,
            predicate_latency: predicate_latency as u16,
            guard_latency: (predicate_latency + guard_more) as u16,
            registers,
            predicates,
            is_fma: is_fma(i),
            checked: registers + predicates,
            // Memory operations send their operands on their own time.
            bank_reads: if i.op.row().unit == Unit::Lsu { 0 } else { bank_reads(i, before, spec) },
            reads_time: reads_time(i),
            reads_timer: reads_timer(i),
            words: moved.map_or(1, |&r| i.width(r)) as u8,
            rounds: if is_swap { spec.load_store.shared.cas_rounds as u8 } else { 1 },
            bank: operand.map_or(if i.op == Op::Ldc { i.field(Field::Bank) as u8 } else { 0 }, |c| c.0),
            constant: operand.map_or(NO_CONSTANT, |c| c.1),
            place: place.unwrap_or(NO_CONSTANT),
            cache: cache(i),
            layout: NO_LAYOUT,
            loads_shared: false,
            is_known: match kind {
                Kind::Special => !reads_time(i),
                Kind::Constant => place.is_some(),
                _ => false,
            },
        }
    }
}
