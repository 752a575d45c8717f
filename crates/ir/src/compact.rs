//! Numbers what a function holds anew, in the order of its layout, and drops what is no longer part of it.
//!
//! Passes keep tables by number and walk the layout: without gaps and in order the tables are short and are read from front
//! to back, however much was made and removed before.

use crate::entity::{Block, InstId, LocId, Value};
use crate::function::{BlockData, Function, InstData, Terminator, ValueDef};
use crate::op::Op;
use smallvec::SmallVec;

/// New numbers by old ones.
struct Numbers {
    blocks: Vec<Option<Block>>,
    values: Vec<Option<Value>>,
    /// By new number.
    kept: Vec<Value>,
}

impl Numbers {
    /// The new number of a value; one that nothing defines gets the next.
    fn value(&mut self, v: Value) -> Value {
        *self.values[v.index()].get_or_insert_with(|| {
            self.kept.push(v);
            Value::new(self.kept.len() - 1)
        })
    }

    fn block(&self, b: Block) -> Block {
        self.blocks[b.index()].unwrap_or(b)
    }
}

impl Function {
    /// A quarter of a table is out of use, or more.
    pub fn is_sparse(&self) -> bool {
        let params: usize = self.layout.iter().map(|&b| self.block(b).params.len()).sum();
        let insts: usize = self.layout.iter().map(|&b| self.block(b).insts.len()).sum();
        let has_gaps = |used: usize, all: usize| 4 * used < 3 * all;
        has_gaps(self.param_values.len() + params + insts, self.values.len())
            || has_gaps(insts, self.insts.len())
            || has_gaps(self.layout.len(), self.blocks.len())
    }

    /// Numbers blocks, instructions and values as the layout has them and drops all others. The new numbers of blocks by
    /// their old ones; `None`: the block is gone.
    pub fn compact(&mut self) -> Vec<Option<Block>> {
        let mut numbers = Numbers {
            blocks: vec![None; self.blocks.len()],
            values: vec![None; self.values.len()],
            kept: Vec::new(),
        };
        for (n, b) in self.layout.iter().enumerate() {
            numbers.blocks[b.index()] = Some(Block::new(n));
        }
        // Values that are defined come first, in order.
        self.param_values.iter_mut().for_each(|v| *v = numbers.value(*v));
        let mut insts = Vec::with_capacity(self.layout.iter().map(|&b| self.block(b).insts.len()).sum());
        let mut blocks = Vec::with_capacity(self.layout.len());
        let layout = std::mem::take(&mut self.layout);
        for &b in &layout {
            let mut block = std::mem::replace(self.block_mut(b), empty_block());
            block.params.iter_mut().for_each(|v| *v = numbers.value(*v));
            for i in &mut block.insts {
                let mut inst = std::mem::replace(self.inst_mut(*i), empty_inst());
                inst.results.iter_mut().for_each(|v| *v = numbers.value(*v));
                *i = InstId::new(insts.len());
                insts.push(inst);
            }
            block.insts.shrink_to_fit();
            blocks.push(block);
        }
        for inst in &mut insts {
            inst.args.iter_mut().for_each(|v| *v = numbers.value(*v));
            if let Some(g) = &mut inst.guard {
                g.value = numbers.value(g.value);
            }
        }
        for block in &mut blocks {
            block.term.for_each_value(|v| *v = numbers.value(*v));
            block.term.calls_mut().into_iter().for_each(|c| c.block = numbers.block(c.block));
        }
        self.values = numbers.kept.iter().map(|v| self.values[v.index()]).collect();
        self.layout = (0..blocks.len()).map(Block::new).collect();
        (self.insts, self.blocks) = (insts, blocks);
        self.define_results();
        self.renumber_params();
        numbers.blocks
    }

    /// Makes the definitions of results say the instruction that they have now.
    fn define_results(&mut self) {
        for (n, inst) in self.insts.iter().enumerate() {
            for (k, r) in inst.results.iter().enumerate() {
                self.values[r.index()].1 = ValueDef::Inst(InstId::new(n), k as u32);
            }
        }
    }
}

fn empty_block() -> BlockData {
    BlockData {
        params: SmallVec::new(),
        insts: Vec::new(),
        term: Terminator::Unreachable,
        term_loc: LocId(0),
        no_unroll: false,
    }
}

fn empty_inst() -> InstData {
    InstData { op: Op::Undef, args: SmallVec::new(), results: SmallVec::new(), guard: None, loc: LocId(0) }
}

#[cfg(test)]
mod tests {
    use crate::{Function, FunctionBuilder, FunctionKind, IntCmp, Module, Op, Terminator, Type, Value};

    /// A loop whose body stands behind its exit, with a block that nothing reaches and an unused instruction in between.
    fn scattered() -> Function {
        let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
        let (i, kept) = (b.declare_var(Type::B32), b.declare_var(Type::B32));
        let start = b.iconst(Type::B32, 3);
        b.def_var(i, start);
        b.def_var(kept, start);
        let (gone, exit, head) = (b.create_block(), b.create_block(), b.create_block());
        b.jump(head);
        b.switch_to(gone);
        b.iconst(Type::B32, 9);
        b.jump(exit);
        b.switch_to(exit);
        b.terminate(Terminator::Exit);
        b.switch_to(head);
        let old = b.use_var(i);
        let limit = b.use_var(kept);
        let next = b.ins(Op::Add, &[old, limit], Type::B32);
        b.def_var(i, next);
        let again = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: true }, &[next, limit], Type::P);
        b.branch(again, head, exit, false);
        b.finish()
    }

    #[test]
    fn numbers_follow_the_layout_and_nothing_else_changes() {
        let mut f = scattered();
        let (blocks, values) = (f.blocks.len(), f.values.len());
        let new = f.compact();
        assert_eq!(new.iter().flatten().count(), 3, "three blocks of four are reached");
        assert!(f.blocks.len() < blocks && f.values.len() < values, "{f}");
        assert_eq!(f.insts.len(), f.layout.iter().map(|&b| f.block(b).insts.len()).sum::<usize>());
        assert!(!f.is_sparse());
        let m = Module { functions: vec![f], locations: vec![Default::default()], ..Module::default() };
        crate::validate(&m).expect("valid");
        let f = &m.functions[0];
        let mut defined: Vec<Value> = Vec::new();
        for &b in &f.layout {
            defined.extend(&f.block(b).params);
            f.block(b).insts.iter().for_each(|&i| defined.extend(&f.inst(i).results));
        }
        assert_eq!(defined, (0..f.values.len()).map(Value::new).collect::<Vec<_>>());
        // The loop still adds its start to what it carries.
        let sum = f.insts.iter().find(|i| i.op == Op::Add).expect("the sum");
        assert_eq!(f.const_of(sum.args[1]), Some(3));
        assert!(matches!(f.def(sum.args[0]), crate::ValueDef::BlockParam(_, 0)));
    }

    #[test]
    fn what_is_compact_stays_as_it_is() {
        let mut f = scattered();
        f.compact();
        let once = f.clone();
        f.compact();
        assert_eq!(f, once);
    }
}
