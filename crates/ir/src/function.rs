//! A function: blocks, instructions, values.

use crate::entity::{Block, InstId, LocId, Value};
use crate::module::{Linkage, Param};
use crate::op::Op;
use crate::types::Type;
use smallvec::SmallVec;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionKind {
    /// A kernel: launched by the host, parameters in the constant bank.
    Entry,
    /// Called by device code, parameters and results as values.
    Device,
}

/// What the launch bounds and performance directives of a kernel say. Zero: not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Launch {
    pub max_threads: [u32; 3],
    pub required_threads: [u32; 3],
    pub min_ctas: u32,
    pub max_ctas: u32,
    pub max_registers: u32,
    pub required_cluster: [u32; 3],
    pub max_cluster_rank: u32,
}

/// A variable in the local-memory frame.
#[derive(Clone, PartialEq, Debug)]
pub struct StackSlot {
    pub name: String,
    pub size: u32,
    pub align: u32,
}

/// A jump with the arguments for the target's parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockCall {
    pub block: Block,
    pub args: SmallVec<[Value; 4]>,
}

impl BlockCall {
    pub fn new(block: Block) -> Self {
        BlockCall { block, args: SmallVec::new() }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Terminator {
    Jump(BlockCall),
    /// `uniform`: the program promises that a warp does not diverge here (`bra.uni`).
    Branch {
        cond: Value,
        then: BlockCall,
        otherwise: BlockCall,
        uniform: bool,
    },
    /// By index (B32); an index past the table is undefined and faults.
    Switch {
        index: Value,
        targets: Vec<BlockCall>,
        uniform: bool,
    },
    /// From a device function, with its results.
    Return(SmallVec<[Value; 2]>),
    /// The thread ends.
    Exit,
    /// Control does not come here: the end of a `noreturn` call or a trap.
    Unreachable,
}

impl Terminator {
    pub fn calls(&self) -> SmallVec<[&BlockCall; 2]> {
        match self {
            Terminator::Jump(c) => SmallVec::from_buf_and_len([c, c], 1),
            Terminator::Branch { then, otherwise, .. } => SmallVec::from_buf([then, otherwise]),
            Terminator::Switch { targets, .. } => targets.iter().collect(),
            _ => SmallVec::new(),
        }
    }

    pub fn calls_mut(&mut self) -> SmallVec<[&mut BlockCall; 2]> {
        match self {
            Terminator::Jump(c) => smallvec::smallvec![c],
            Terminator::Branch { then, otherwise, .. } => smallvec::smallvec![then, otherwise],
            Terminator::Switch { targets, .. } => targets.iter_mut().collect(),
            _ => SmallVec::new(),
        }
    }

    /// Every value the terminator reads, block arguments included.
    pub fn for_each_value(&mut self, mut f: impl FnMut(&mut Value)) {
        match self {
            Terminator::Branch { cond, .. } => f(cond),
            Terminator::Switch { index, .. } => f(index),
            Terminator::Return(values) => values.iter_mut().for_each(&mut f),
            _ => {}
        }
        for call in self.calls_mut() {
            call.args.iter_mut().for_each(&mut f);
        }
    }

    pub fn values(&self) -> SmallVec<[Value; 8]> {
        let mut all = SmallVec::new();
        match self {
            Terminator::Branch { cond, .. } => all.push(*cond),
            Terminator::Switch { index, .. } => all.push(*index),
            Terminator::Return(values) => all.extend(values.iter().copied()),
            _ => {}
        }
        for call in self.calls() {
            all.extend(call.args.iter().copied());
        }
        all
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct BlockData {
    pub params: SmallVec<[Value; 4]>,
    pub insts: Vec<InstId>,
    pub term: Terminator,
    pub term_loc: LocId,
    /// A loop header that must not be unrolled (`.pragma "nounroll"`).
    pub no_unroll: bool,
}

/// A condition on an operation with an effect: happens where `value != negated`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Guard {
    pub value: Value,
    pub negated: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub struct InstData {
    pub op: Op,
    /// Arguments; with a guard, one pass-through argument a result follows the operation's own.
    pub args: SmallVec<[Value; 4]>,
    pub results: SmallVec<[Value; 2]>,
    pub guard: Option<Guard>,
    pub loc: LocId,
}

impl InstData {
    /// The operation's own arguments, without pass-through ones.
    pub fn own_args(&self) -> &[Value] {
        let extra = if self.guard.is_some() { self.results.len() } else { 0 };
        &self.args[..self.args.len() - extra]
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// Result `n` of an instruction.
    Inst(InstId, u32),
    /// Parameter `n` of a block.
    BlockParam(Block, u32),
    /// Parameter `n` of the function.
    FuncParam(u32),
    /// No longer defined anywhere (removed).
    None,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    pub name: String,
    pub kind: FunctionKind,
    pub linkage: Linkage,
    /// Entry functions: the parameters as the host sees them. Device functions: empty (see `param_values`).
    pub params: Vec<Param>,
    /// Device functions: one value a flattened parameter word; empty for entries.
    pub param_values: Vec<Value>,
    /// Device functions: widths of the results.
    pub results: Vec<Type>,
    pub launch: Launch,
    pub slots: Vec<StackSlot>,
    pub blocks: Vec<BlockData>,
    /// Blocks in layout order; the first is the entry. Blocks not listed are dead.
    pub layout: Vec<Block>,
    pub insts: Vec<InstData>,
    pub values: Vec<(Type, ValueDef)>,
    /// Declared only: defined in another module or provided by the system.
    pub is_declaration: bool,
    pub no_return: bool,
    pub loc: LocId,
}

impl Function {
    pub fn new(name: impl Into<String>, kind: FunctionKind) -> Self {
        Function {
            name: name.into(),
            kind,
            linkage: Linkage::Internal,
            params: Vec::new(),
            param_values: Vec::new(),
            results: Vec::new(),
            launch: Launch::default(),
            slots: Vec::new(),
            blocks: Vec::new(),
            layout: Vec::new(),
            insts: Vec::new(),
            values: Vec::new(),
            is_declaration: false,
            no_return: false,
            loc: LocId(0),
        }
    }

    pub fn entry(&self) -> Block {
        self.layout[0]
    }

    pub fn ty(&self, v: Value) -> Type {
        self.values[v.index()].0
    }

    pub fn def(&self, v: Value) -> ValueDef {
        self.values[v.index()].1
    }

    pub fn inst(&self, i: InstId) -> &InstData {
        &self.insts[i.index()]
    }

    pub fn inst_mut(&mut self, i: InstId) -> &mut InstData {
        &mut self.insts[i.index()]
    }

    pub fn block(&self, b: Block) -> &BlockData {
        &self.blocks[b.index()]
    }

    pub fn block_mut(&mut self, b: Block) -> &mut BlockData {
        &mut self.blocks[b.index()]
    }

    /// The instruction that makes `v`, if one does.
    pub fn def_inst(&self, v: Value) -> Option<InstId> {
        match self.def(v) {
            ValueDef::Inst(i, _) => Some(i),
            _ => None,
        }
    }

    /// The operation that makes `v`, if `v` is the first result of one.
    pub fn def_op(&self, v: Value) -> Option<&InstData> {
        match self.def(v) {
            ValueDef::Inst(i, 0) => Some(self.inst(i)),
            _ => None,
        }
    }

    /// The constant that `v` is.
    pub fn const_of(&self, v: Value) -> Option<u64> {
        match self.def_op(v)?.op {
            Op::Const(bits) => Some(bits),
            _ => None,
        }
    }

    pub fn new_value(&mut self, ty: Type, def: ValueDef) -> Value {
        self.values.push((ty, def));
        Value::new(self.values.len() - 1)
    }

    pub fn new_block(&mut self) -> Block {
        self.blocks.push(BlockData {
            params: SmallVec::new(),
            insts: Vec::new(),
            term: Terminator::Unreachable,
            term_loc: LocId(0),
            no_unroll: false,
        });
        Block::new(self.blocks.len() - 1)
    }

    pub fn add_block_param(&mut self, b: Block, ty: Type) -> Value {
        let n = self.block(b).params.len() as u32;
        let v = self.new_value(ty, ValueDef::BlockParam(b, n));
        self.block_mut(b).params.push(v);
        v
    }

    /// Makes an instruction with fresh results; the caller puts it into a block.
    pub fn make_inst(
        &mut self,
        op: Op,
        args: &[Value],
        results: &[Type],
        guard: Option<Guard>,
        loc: LocId,
    ) -> InstId {
        let id = InstId::new(self.insts.len());
        let results = results
            .iter()
            .enumerate()
            .map(|(n, &ty)| self.new_value(ty, ValueDef::Inst(id, n as u32)))
            .collect();
        self.insts.push(InstData { op, args: args.into(), results, guard, loc });
        id
    }

    /// Every value an instruction reads: arguments and guard.
    pub fn inst_values(&self, i: InstId) -> SmallVec<[Value; 6]> {
        let data = self.inst(i);
        data.args.iter().copied().chain(data.guard.map(|g| g.value)).collect()
    }

    pub fn successors(&self, b: Block) -> SmallVec<[Block; 2]> {
        // Asked for all the time: without the detour through a list of calls.
        match &self.block(b).term {
            Terminator::Jump(c) => SmallVec::from_buf_and_len([c.block, c.block], 1),
            Terminator::Branch { then, otherwise, .. } => SmallVec::from_buf([then.block, otherwise.block]),
            Terminator::Switch { targets, .. } => targets.iter().map(|c| c.block).collect(),
            _ => SmallVec::new(),
        }
    }

    /// Predecessors of every block (indexed by block), from live blocks only; a block that jumps twice is listed twice.
    pub fn predecessors(&self) -> Vec<SmallVec<[Block; 2]>> {
        let mut preds = vec![SmallVec::new(); self.blocks.len()];
        for &b in &self.layout {
            for s in self.successors(b) {
                preds[s.index()].push(b);
            }
        }
        preds
    }

    /// Blocks reachable from the entry, in reverse postorder.
    pub fn reverse_postorder(&self) -> Vec<Block> {
        let mut seen = vec![false; self.blocks.len()];
        let mut order = Vec::with_capacity(self.layout.len());
        let mut stack = vec![(self.entry(), 0usize)];
        seen[self.entry().index()] = true;
        while let Some((b, next)) = stack.pop() {
            let succ = self.successors(b);
            if let Some(&s) = succ.get(next) {
                stack.push((b, next + 1));
                if !seen[s.index()] {
                    seen[s.index()] = true;
                    stack.push((s, 0));
                }
            } else {
                order.push(b);
            }
        }
        order.reverse();
        order
    }

    /// Replaces every use of the values in `map` (indexed by value; `None` stays), following chains.
    pub fn replace_values(&mut self, map: &[Option<Value>]) {
        let find = |mut v: Value| {
            while let Some(Some(next)) = map.get(v.index()) {
                v = *next;
            }
            v
        };
        for b in self.layout.clone() {
            for k in 0..self.block(b).insts.len() {
                let i = self.block(b).insts[k];
                let data = self.inst_mut(i);
                data.args.iter_mut().for_each(|v| *v = find(*v));
                if let Some(g) = &mut data.guard {
                    g.value = find(g.value);
                }
            }
            self.block_mut(b).term.for_each_value(|v| *v = find(*v));
        }
    }
}
