//! What an instruction computes from known operands: it is executed, so a folded value is what the engine would have computed.

use crate::graph::{Node, Slot};
use isa::field::{Field, Width};
use isa::image::{Function, Image};
use isa::{Effects, Inst, Op, Operand, Pred, PredUse, Reg, Src};
use simt::{Memory, Options, Program, Shape};
use std::collections::HashMap;
use std::sync::Arc;

/// Known results: registers in a row, and predicates.
pub type Results = (Vec<u32>, [Option<bool>; 2]);

/// Where operands are put, and results: groups of up to four registers.
const OPERANDS: [u8; 4] = [8, 12, 16, 20];
const RESULT: u8 = 24;
const ADDRESS: u8 = 2;
const SCRATCH: u8 = 4;
/// Words that results take.
const WORDS: usize = 8;

pub struct Evaluator {
    memory: Memory,
    out: u64,
    seen: HashMap<(Inst, Vec<Vec<u32>>), Option<Results>>,
}

impl Evaluator {
    pub fn new() -> Option<Evaluator> {
        let memory = Memory::new(1 << 20).ok()?;
        let out = memory.alloc(4 * WORDS as u64).ok()?;
        Some(Evaluator { memory, out, seen: HashMap::new() })
    }

    /// Executes a node that only computes, with these words for its operands; predicates are 0 or 1.
    pub fn run(&mut self, node: &Node, operands: &[Vec<u32>]) -> Option<Results> {
        let inst = &node.inst;
        let row = inst.op.row();
        let other = inst.src.iter().any(|s| matches!(s.operand, Operand::UReg(_) | Operand::Const { .. }));
        if row.effects != Effects::NONE
            || other
            || inst.guard != PredUse::TRUE
            || row.fields.contains(&Field::Bar4)
            || matches!(inst.op, Op::Ldc | Op::Nop | Op::Pmtrig | Op::Qspc)
        {
            return None;
        }
        let (code, placed) = self.program(node, operands)?;
        let key = (placed, operands.to_vec());
        if let Some(known) = self.seen.get(&key) {
            return known.clone();
        }
        let results = self.execute(node, code);
        self.seen.insert(key, results.clone());
        results
    }

    fn program(&self, node: &Node, operands: &[Vec<u32>]) -> Option<(Vec<Inst>, Inst)> {
        let mut code = Vec::new();
        let mut set = |r: u8, x: u32| {
            let mut mov = Inst::new(Op::Mov);
            mov.dst = Reg(r);
            mov.src[1] = Src::imm(x);
            code.push(mov.canonical());
        };
        set(ADDRESS, self.out as u32);
        set(ADDRESS + 1, (self.out >> 32) as u32);
        let mut inst = node.inst;
        let mut preds = Vec::new();
        let mut next = OPERANDS.iter();
        for ((slot, _), words) in node.reads.iter().zip(operands) {
            match *slot {
                Slot::Source(k) => {
                    let first = *next.next()?;
                    (0u8..).zip(words).for_each(|(n, &x)| set(first + n, x));
                    inst.src[k].operand = Operand::Reg(Reg(first));
                }
                Slot::E => {
                    let first = *next.next()?;
                    (0u8..).zip(words).for_each(|(n, &x)| set(first + n, x));
                    inst.e = Reg(first);
                }
                Slot::Pred(k) => {
                    inst.ps[k].pred = Pred(k as u8);
                    preds.push((k as u8, words[0] != 0));
                }
                Slot::Guard => return None,
            }
        }
        set(SCRATCH, 1);
        for (p, holds) in preds {
            let mut i = Inst::new(Op::Plop3).with_num(Field::Lut, 0xf0);
            i.pd[0] = Pred(p);
            i.ps[0] = if holds { PredUse::TRUE } else { PredUse::FALSE };
            code.push(i.canonical());
        }
        if !node.dst.is_empty() {
            inst.dst = Reg(RESULT);
        }
        for k in 0..2 {
            if node.pd[k].is_some() {
                inst.pd[k] = Pred(4 + k as u8);
            }
        }
        code.push(inst);
        for k in 0..2u8 {
            if node.pd[k as usize].is_some() {
                let mut sel = Inst::new(Op::Sel);
                sel.dst = Reg(RESULT + 4 + k);
                sel.src[0] = Src::reg(Reg(SCRATCH));
                sel.ps[0] = PredUse::new(Pred(4 + k));
                code.push(sel.canonical());
            }
        }
        for k in 0..6u8 {
            let mut store = Inst::new(Op::Stg).with(Width::B32).with_flag(Field::E64, true);
            store.src[0] = Src::reg(Reg(ADDRESS));
            store.src[1] = Src::imm(4 * u32::from(k));
            store.src[2] = Src::reg(Reg(RESULT + k));
            code.push(store.canonical());
        }
        code.push(Inst::new(Op::Exit).canonical());
        Some((code, inst))
    }

    fn execute(&self, node: &Node, code: Vec<Inst>) -> Option<Results> {
        let function = Function { is_visible: false, ..Function::entry("fold", 0..code.len() as u32, 32) };
        let image = Image { code, functions: vec![function], ..Image::default() };
        let program = Program::load(Arc::new(image), &self.memory, &|_| None).ok()?;
        let options = Options { threads: 1, ..Options::default() };
        simt::run(&program, "fold", &Shape::new([1; 3], [1; 3]), &[], &self.memory, &options).ok()?;
        let mut bytes = [0; 4 * WORDS];
        self.memory.read(self.out, &mut bytes).ok()?;
        let word = |k: usize| bytes[4 * k..4 * k + 4].iter().rev().fold(0, |x, &b| x << 8 | u32::from(b));
        let registers = (0..node.dst.len()).map(word).collect();
        Some((registers, [0, 1].map(|k| node.pd[k].map(|_| word(4 + k) != 0))))
    }
}
