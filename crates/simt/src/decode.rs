//! From an image to micro-operations: operands become rows, modifiers choose handlers.
//!
//! A warp's file: registers, zeros (what RZ reads), a place that swallows writes to RZ, scratch rows for operand
//! modifiers, convergence registers, uniform registers, and one row for every immediate and constant that operands name in
//! the code that the entry can reach; behind them the warp's tape. Constants that instructions load into registers have no
//! rows: all warps of a launch share their words.

use crate::lanes::{COMPLEMENT, DROPPED, PT};
use crate::level::{Isa, Levels, levels};
use crate::near::Near;
use crate::ops::{
    atomic, collective, control, convert, float, half, integer, memory, modify, moves, system, uniform,
};
use crate::prefetch::HOST_LINE;
use crate::program::Kernel;
use crate::tape;
use crate::uninitialised;
use crate::uop::{ROW, Uop};
use isa::field::{Field, SysFn, Width};
use isa::image::{Image, Symbol};
use isa::{Inst, Op, Operand, PredUse, Reg, Role, Src, UReg, Unit, abi};
use std::collections::HashMap;

/// Rows that the largest operand takes.
const WIDEST: u32 = 4;
/// Scratch rows for the modified sources of an instruction: three pairs.
const SCRATCH: u32 = 6;

/// What a row of constants holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pooled {
    Imm(u32),
    Const { bank: u8, offset: u32 },
}

/// Offsets of the parts of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    pub registers: u32,
    pub zeros: u32,
    pub swallow: u32,
    pub scratch: u32,
    pub converge: u32,
    pub uniform: u32,
    pub pool: u32,
    /// What a warp did in advance.
    pub tape: u32,
    pub end: u32,
}

impl Layout {
    /// There are so many rows of constants.
    fn close(&mut self, constants: usize) {
        self.tape = self.pool + constants as u32 * ROW;
        self.end = self.tape + tape::BYTES;
    }
}

/// Functions that an entry can reach.
fn reachable(image: &Image, entry: usize) -> Vec<bool> {
    let mut seen = vec![false; image.functions.len()];
    let mut work = vec![entry];
    let address_taken: Vec<usize> = image
        .loader_relocations
        .iter()
        .chain(image.variables.iter().flat_map(|v| &v.relocations))
        .filter_map(|r| match r.symbol {
            Symbol::Function(n) => Some(n as usize),
            _ => None,
        })
        .collect();
    while let Some(n) = work.pop() {
        if std::mem::replace(&mut seen[n], true) {
            continue;
        }
        let f = &image.functions[n];
        for inst in &image.code[f.start as usize..f.end as usize] {
            if let Some(pc) = inst.target() {
                work.extend(image.functions.iter().position(|f| f.start <= pc && pc < f.end));
            }
            if inst.op == Op::Callx {
                work.extend_from_slice(&address_taken);
            }
        }
    }
    seen
}

struct Decoder {
    layout: Layout,
    level: Isa,
    pool: Vec<Pooled>,
    /// First row of a run of constants.
    index: HashMap<(Pooled, u32), u32>,
    /// What loads from places known now take.
    loads: Vec<Pooled>,
    modified: Vec<modify::Modified>,
    hints: u32,
    /// Bytes of each constant bank that exist for certain.
    bank_bytes: [u32; 8],
    near: Near,
}

fn guard(p: PredUse) -> u8 {
    p.pred.0 + if p.neg { COMPLEMENT } else { 0 }
}

impl Decoder {
    fn pooled(&mut self, first: Pooled, rows: u32) -> u32 {
        let at = *self.index.entry((first, rows)).or_insert_with(|| {
            let at = self.pool.len() as u32;
            for k in 0..rows {
                self.pool.push(match first {
                    // An immediate double is its high word.
                    Pooled::Imm(_) if rows == 2 && k == 0 => Pooled::Imm(0),
                    Pooled::Imm(x) => Pooled::Imm(x),
                    Pooled::Const { bank, offset } => Pooled::Const { bank, offset: offset + 4 * k },
                });
            }
            at
        });
        self.layout.pool + at * ROW
    }

    fn register(&self, r: Reg) -> u32 {
        if r.is_zero() { self.layout.zeros } else { self.layout.registers + u32::from(r.0) * ROW }
    }

    fn uniform(&self, r: UReg) -> u32 {
        if r == UReg::URZ { self.layout.zeros } else { self.layout.uniform + u32::from(r.0) * ROW }
    }

    fn source(&mut self, src: Src, rows: u32) -> u32 {
        match src.operand {
            Operand::None => self.layout.zeros,
            Operand::Reg(r) => self.register(r),
            Operand::UReg(r) => self.uniform(r),
            Operand::Imm(x) => self.pooled(Pooled::Imm(x), rows.max(1)),
            Operand::Const { bank, offset } => {
                self.pooled(Pooled::Const { bank, offset: offset.into() }, rows.max(1))
            }
        }
    }

    fn operands(&mut self, i: &Inst, u: &mut Uop) {
        for &role in i.op.row().roles {
            let rows = i.width(role);
            match role {
                Role::Addr | Role::CAddr => {
                    u.a = self.source(i.src[0], 1);
                    u.b = if i.flag(Field::E64) && u.a != self.layout.zeros {
                        u.a + ROW
                    } else {
                        self.layout.zeros
                    };
                    u.u = i.address_ureg().map_or(self.layout.zeros, |r| self.uniform(r));
                    u.imm = i.offset();
                }
                Role::A | Role::A2 | Role::AFrom => u.a = self.source(i.src[0], rows),
                Role::B | Role::B2 => u.b = self.source(i.src[1], rows),
                Role::C | Role::C2 | Role::CW | Role::CT => u.c = self.source(i.src[2], rows),
                Role::E | Role::E2 | Role::ET => u.e = self.register(i.e),
                Role::D | Role::D2 | Role::DW | Role::DT | Role::DTo | Role::DM => {
                    u.d = if i.dst.is_zero() { self.layout.swallow } else { self.register(i.dst) };
                }
                Role::U | Role::U2 => {
                    u.d = if i.dst.0 == UReg::URZ.0 {
                        self.layout.swallow
                    } else {
                        self.uniform(UReg(i.dst.0))
                    };
                }
                Role::Num(Field::Bar4) => {
                    let row = self.layout.converge + i.field(Field::Bar4) * ROW;
                    if matches!(i.op, Op::Bssy | Op::BmovB) { u.d = row } else { u.a = row }
                }
                Role::Target => u.imm = i.target().unwrap_or(0) as i32,
                Role::Pd0 | Role::Pd1 | Role::Ps0 | Role::Ps1 | Role::Ps2 | Role::Num(_) => {}
            }
        }
    }

    /// The first of the words that a load from a place known now takes, and how many: the launch has them from its begin on.
    fn known_constant(&mut self, i: &Inst) -> Option<(u32, u32)> {
        let rows = match i.op {
            Op::Uldc => 1,
            Op::Uldc64 => 2,
            Op::Ldc if i.get::<Width>() == Width::B32 => 1,
            Op::Ldc if i.get::<Width>() == Width::B64 => 2,
            _ => return None,
        };
        let at_zero =
            matches!(i.src[0].operand, Operand::None | Operand::Reg(Reg::RZ) | Operand::UReg(UReg::URZ));
        let (bank, offset) = (i.field(Field::Bank) as u8, i.offset() as u32);
        let end = offset.checked_add(4 * rows)?;
        let exists = offset % (4 * rows) == 0 && end <= self.bank_bytes[bank as usize & 7];
        (at_zero && exists).then(|| {
            let first = self.loads.len() as u32;
            self.loads.extend((0..rows).map(|k| Pooled::Const { bank, offset: offset + 4 * k }));
            (first, rows)
        })
    }

    fn instruction(&mut self, pc: u32, i: &Inst, soft: bool) -> Uop {
        let zeros = self.layout.zeros;
        let mut u = Uop {
            handler: self.pick(levels::<control::Illegal>()),
            d: self.layout.swallow,
            a: zeros,
            b: zeros,
            c: zeros,
            e: zeros,
            u: zeros,
            imm: 0,
            aux: 0,
            guard: guard(i.guard),
            ps: i.ps.map(guard),
            pd: i.pd.map(|p| if p.0 == PT { DROPPED } else { p.0 }),
            op: i.op,
            soft,
            hint: pc,
        };
        self.operands(i, &mut u);
        if i.op.row().roles.contains(&Role::Addr) {
            u.hint = self.hints;
            self.hints += 1;
        }
        if let Some((first, rows)) = self.known_constant(i) {
            u.imm = first as i32;
            u.handler = self.pick(if i.op == Op::Ldc { moves::known(rows) } else { uniform::known(rows) });
            return u;
        }
        match handler(i, &mut u) {
            Some(levels) => u.handler = self.pick(levels),
            None => return u,
        }
        self.modify(i, u)
    }

    /// What an instruction reads and writes of the file, in lines of the host's caches, to ask for it; not what swallows.
    fn lines(&self, i: &Inst, u: &Uop) -> Vec<u32> {
        let mut rows = Vec::new();
        let mut uniform = None;
        for &role in i.op.row().roles {
            let (first, count) = match role {
                Role::CAddr if u.a == self.layout.zeros => continue,
                Role::Addr | Role::CAddr => {
                    rows.push(u.b);
                    // Of the uniform register, which may have two words, only the first lane is read.
                    uniform = Some([u.u, u.u + ROW]);
                    (u.a, 1)
                }
                Role::A | Role::A2 | Role::AFrom => (u.a, i.width(role)),
                Role::B | Role::B2 => (u.b, i.width(role)),
                Role::C | Role::C2 | Role::CW | Role::CT => (u.c, i.width(role)),
                Role::E | Role::E2 | Role::ET => (u.e, i.width(role)),
                Role::D | Role::D2 | Role::DW | Role::DT | Role::DTo | Role::DM | Role::U | Role::U2 => {
                    (u.d, i.width(role))
                }
                _ => continue,
            };
            rows.extend((0..count).map(|k| first + k * ROW));
        }
        rows.retain(|&row| row != self.layout.swallow);
        let lines = |row: u32| (row..row + ROW).step_by(HOST_LINE);
        rows.into_iter().flat_map(lines).chain(uniform.into_iter().flatten()).collect()
    }

    fn pick(&self, levels: Levels) -> crate::uop::Handler {
        levels[self.level as usize]
    }

    /// Puts scratch rows in the place of sources whose modifiers the handler does not apply.
    fn modify(&mut self, i: &Inst, u: Uop) -> Uop {
        if modify::is_inline(i) || i.src.iter().all(|s| !s.neg && !s.abs) {
            return u;
        }
        let mut inner = u;
        let mut changes = Vec::new();
        for &role in i.op.row().roles {
            let (n, field) = match role {
                Role::A | Role::A2 | Role::AFrom => (0, &mut inner.a),
                Role::B | Role::B2 => (1, &mut inner.b),
                Role::C | Role::C2 => (2, &mut inner.c),
                _ => continue,
            };
            let src = i.src[n as usize];
            if !src.neg && !src.abs {
                continue;
            }
            let to = self.layout.scratch + 2 * n * ROW;
            let change =
                modify::Change { from: *field, to, kind: modify::kind(i, role), neg: src.neg, abs: src.abs };
            *field = to;
            changes.push(change);
        }
        let imm = self.modified.len() as i32;
        self.modified.push(modify::Modified { changes, inner });
        // The rest stays as it is: the warp looks at it when lanes have to wait.
        Uop { handler: self.pick(levels::<modify::Run>()), imm, ..u }
    }
}

fn handler(i: &Inst, u: &mut Uop) -> Option<Levels> {
    if i.op.row().unit == Unit::Tex {
        return None;
    }
    let families: [fn(&Inst, &mut Uop) -> Option<Levels>; 10] = [
        moves::decode,
        integer::decode,
        float::decode,
        half::decode,
        convert::decode,
        memory::decode,
        atomic::decode,
        collective::decode,
        control::decode,
        uniform::decode,
    ];
    let keep = *u;
    for decode in families {
        if let Some(levels) = decode(i, u) {
            return Some(levels);
        }
        // Families that do not know the operation may have left their modifiers.
        u.aux = keep.aux;
    }
    system::decode(i, u)
}

/// Rows of a warp's file: general registers, uniform registers, convergence registers. Room for code that is made while a
/// launch runs, or what there is of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Room {
    pub registers: u32,
    pub uniforms: u32,
    pub barriers: u32,
}

impl Room {
    /// The larger of both, part by part.
    fn or(self, other: Room) -> Room {
        Room {
            registers: self.registers.max(other.registers),
            uniforms: self.uniforms.max(other.uniforms),
            barriers: self.barriers.max(other.barriers),
        }
    }

    fn holds(self, other: Room) -> bool {
        self.or(other) == self
    }
}

/// Rows that the code of a function needs.
fn needs(code: &[Inst]) -> Room {
    let (mut registers, mut uniforms, mut barriers) = (1, 0, 0);
    for i in code {
        for (r, n) in i.reads().chain(i.writes()) {
            registers = registers.max(u32::from(r.0) + n);
        }
        let mut uniform = |r: UReg| {
            if r != UReg::URZ {
                // A pair at most.
                uniforms = uniforms.max(u32::from(r.0) + 2);
            }
        };
        if let Some((r, _)) = i.writes_uniform() {
            uniform(r);
        }
        for s in i.src {
            if let Operand::UReg(r) = s.operand {
                uniform(r);
            }
        }
        if let Some(r) = i.address_ureg() {
            uniform(r);
        }
        if i.op.row().fields.contains(&Field::Bar4) {
            barriers = barriers.max(i.field(Field::Bar4) + 1);
        }
    }
    Room { registers, uniforms, barriers }
}

/// A BSYNC gives up soon when a BSSY of this code that names it says so.
fn mark_soft(code: &[Inst], soft: &mut [bool]) {
    for i in code {
        if let (Op::Bssy, true, Some(pc)) = (i.op, i.flag(Field::Soft), i.target())
            && let Some(soft) = soft.get_mut(pc as usize)
        {
            *soft = true;
        }
    }
}

/// Why code cannot be put behind a kernel's: it names registers that warps have no room for, or places that do not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

/// A kernel with instructions behind its own, from its end on. What was there stays where it was, the one that catches
/// whoever runs past the end of the kernel's own code too.
pub fn grown(old: &Kernel, code: &[Inst]) -> Result<Kernel, NoRoom> {
    let first = old.uops.len() as u32;
    let end = first + code.len() as u32;
    let is_inside = |i: &Inst| i.target().is_none_or(|pc| pc < end);
    if !old.room.holds(needs(code)) || !code.iter().all(is_inside) {
        return Err(NoRoom);
    }
    let mut decoder = Decoder {
        layout: old.layout,
        level: old.level,
        pool: old.pool.clone(),
        index: HashMap::new(),
        loads: old.loads.clone(),
        modified: old.modified.clone(),
        hints: old.hints,
        bank_bytes: old.bank_bytes,
        near: old.near.clone(),
    };
    let mut soft = vec![false; end as usize];
    mark_soft(code, &mut soft);
    let mut uops = old.uops.clone();
    for (pc, inst) in (first..).zip(code) {
        let u = decoder.instruction(pc, inst, soft[pc as usize]);
        decoder.near.set(pc as usize, decoder.lines(inst, &u));
        uops.push(u);
    }
    if !code.is_empty() {
        // Nobody runs past the end of this code either.
        uops.push(decoder.instruction(0, &Inst::new(Op::Tex), false));
    }
    decoder.layout.close(decoder.pool.len());
    Ok(Kernel {
        level: old.level,
        own: old.own,
        room: old.room,
        bank_bytes: old.bank_bytes,
        cleared: old.cleared.clone(),
        uops,
        modified: decoder.modified,
        watched: old.watched.clone(),
        openings: old.openings.clone(),
        function: old.function.clone(),
        layout: decoder.layout,
        pool: decoder.pool,
        loads: decoder.loads,
        near: decoder.near.joined(),
        hints: decoder.hints,
        uses_heap: old.uses_heap,
        uses_printf: old.uses_printf,
        launches: old.launches,
        pushes: old.pushes,
    })
}

/// Decodes an entry and all it can reach; other places are illegal instructions. Warps have at least this room.
pub fn kernel(image: &Image, entry: usize, level: Isa, room: Room) -> Kernel {
    let seen = reachable(image, entry);
    let reached: Vec<_> = image.functions.iter().zip(&seen).filter(|(_, s)| **s).map(|(f, _)| f).collect();
    let room = reached
        .iter()
        .map(|f| needs(&image.code[f.start as usize..f.end as usize]))
        .fold(room.or(Room { registers: 1, uniforms: 0, barriers: 0 }), Room::or);
    let Room { registers, uniforms, barriers } = room;
    let mut layout = Layout::default();
    let mut end = 0;
    for (part, rows) in [
        (&mut layout.registers, registers),
        (&mut layout.zeros, WIDEST),
        (&mut layout.swallow, WIDEST),
        (&mut layout.scratch, SCRATCH),
        (&mut layout.converge, barriers),
        (&mut layout.uniform, uniforms),
        (&mut layout.pool, 0),
    ] {
        *part = end;
        end += rows * ROW;
    }
    let mut bank_bytes = [0; 8];
    bank_bytes[abi::BANK_LAUNCH as usize] =
        u32::from(abi::launch::PARAMS) + image.functions[entry].param_bytes;
    bank_bytes[abi::BANK_CONST as usize] = image.const_bytes;
    bank_bytes[abi::BANK_LOADER as usize] = image.loader_bank.len() as u32;
    let mut decoder = Decoder {
        layout,
        level,
        pool: Vec::new(),
        index: HashMap::new(),
        loads: Vec::new(),
        modified: Vec::new(),
        hints: 0,
        bank_bytes,
        near: Near::default(),
    };
    let nothing = decoder.instruction(0, &Inst::new(Op::Tex), false);
    let mut uops = vec![nothing; image.code.len() + 1];
    let (mut uses_heap, mut uses_printf, mut launches, mut pushes) = (false, false, false, false);
    let mut soft = vec![false; image.code.len()];
    for f in &reached {
        mark_soft(&image.code[f.start as usize..f.end as usize], &mut soft);
    }
    for f in &reached {
        for pc in f.start..f.end {
            let inst = &image.code[pc as usize];
            let u = decoder.instruction(pc, inst, soft[pc as usize]);
            decoder.near.set(pc as usize, decoder.lines(inst, &u));
            uops[pc as usize] = u;
            uses_printf |= inst.op == Op::Syscall && inst.get::<SysFn>() == SysFn::Vprintf;
            uses_heap |= inst.op == Op::Syscall && matches!(inst.get::<SysFn>(), SysFn::Malloc | SysFn::Free);
            pushes |= inst.op == Op::Syscall && inst.get::<SysFn>() == SysFn::QueuePush;
            launches |= inst.op == Op::Syscall
                && matches!(
                    inst.get::<SysFn>(),
                    SysFn::LaunchDevice | SysFn::WaitChildren | SysFn::QueuePush
                );
        }
    }
    decoder.layout.close(decoder.pool.len());
    let f = &image.functions[entry];
    // Whoever runs past the end of the entry falls into other code.
    let alone = reached.len() == 1;
    let read_first = if alone { uninitialised::registers(&image.code, f.start, f.end) } else { None };
    let row = |first: u32, r: u32| first + r * ROW;
    // Who waits for whom is looked at by others, so convergence registers always begin as zeros.
    let converge = (0..barriers).map(|r| row(layout.converge, r));
    let cleared = match read_first {
        Some(first) => {
            let own = first.registers.into_iter().map(|r| row(layout.registers, r.into()));
            let uniform = first.uniforms.into_iter().map(|r| row(layout.uniform, r.into()));
            own.chain(converge).chain(uniform).collect()
        }
        None => {
            let own = (0..registers).map(|r| row(layout.registers, r));
            own.chain(converge).chain((0..uniforms).map(|r| row(layout.uniform, r))).collect()
        }
    };
    Kernel {
        level,
        own: image.code.len() as u32,
        room,
        bank_bytes,
        cleared,
        uops,
        watched: Vec::new(),
        openings: Vec::new(),
        modified: decoder.modified,
        function: image.functions[entry].clone(),
        layout: decoder.layout,
        pool: decoder.pool,
        loads: decoder.loads,
        near: decoder.near.joined(),
        hints: decoder.hints,
        uses_heap,
        uses_printf,
        launches,
        pushes,
    }
}
