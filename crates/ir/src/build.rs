//! Builds a function in SSA form from code with mutable variables.
//!
//! The front end declares variables, defines and reads them in any block, and says `finish` when every block and jump is
//! there. A read that no definition in its block reaches becomes a block parameter; `finish` supplies the arguments from
//! the predecessors and removes the parameters that turn out to have one value only.

use crate::block_params::remove_trivial;
use crate::entity::{Block, LocId, Value, Var};
use crate::function::{BlockCall, Function, Guard, Terminator};
use crate::op::Op;
use crate::types::Type;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A variable in a block, as one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place(u64);

impl Place {
    fn new(b: Block, var: Var) -> Place {
        Place(u64::from(b.0) << 32 | u64::from(var.0))
    }
}

/// Spreads the numbers of places. There is one for every variable and block, so looking one up must be quick.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(b.into()));
    }

    fn write_u64(&mut self, n: u64) {
        // The golden ratio's bits; the high half of the product depends on all of the number.
        let product = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub struct FunctionBuilder {
    pub func: Function,
    current: Block,
    loc: LocId,
    var_types: Vec<Type>,
    /// Value of a variable at the end of a block as far as it is written.
    defs: HashMap<Place, Value, BuildHasherDefault<Mix>>,
    /// Parameters whose arguments `finish` must supply.
    pending: Vec<(Block, Var, Value)>,
    /// Blocks whose terminator is set.
    terminated: Vec<bool>,
    /// Blocks that are in the layout.
    placed: Vec<bool>,
}

impl FunctionBuilder {
    /// Starts with an entry block, current.
    pub fn new(mut func: Function) -> Self {
        let entry = func.new_block();
        func.layout.push(entry);
        FunctionBuilder {
            func,
            current: entry,
            loc: LocId(0),
            var_types: Vec::new(),
            defs: HashMap::default(),
            pending: Vec::new(),
            terminated: vec![false],
            placed: vec![true],
        }
    }

    pub fn create_block(&mut self) -> Block {
        self.terminated.push(false);
        self.placed.push(false);
        self.func.new_block()
    }

    /// Further instructions go to `b`, which takes its place in the layout.
    pub fn switch_to(&mut self, b: Block) {
        self.current = b;
        if !std::mem::replace(&mut self.placed[b.index()], true) {
            self.func.layout.push(b);
        }
    }

    pub fn current(&self) -> Block {
        self.current
    }

    pub fn set_loc(&mut self, loc: LocId) {
        self.loc = loc;
    }

    pub fn loc(&self) -> LocId {
        self.loc
    }

    /// The current block has its terminator: what follows needs a new block.
    pub fn is_terminated(&self) -> bool {
        self.terminated[self.current.index()]
    }

    pub fn declare_var(&mut self, ty: Type) -> Var {
        self.var_types.push(ty);
        Var::new(self.var_types.len() - 1)
    }

    pub fn var_type(&self, var: Var) -> Type {
        self.var_types[var.index()]
    }

    pub fn def_var(&mut self, var: Var, value: Value) {
        self.defs.insert(Place::new(self.current, var), value);
    }

    pub fn use_var(&mut self, var: Var) -> Value {
        self.read(self.current, var)
    }

    fn read(&mut self, b: Block, var: Var) -> Value {
        if let Some(&v) = self.defs.get(&Place::new(b, var)) {
            return v;
        }
        let ty = self.var_types[var.index()];
        let v = if b == self.func.entry() {
            let i = self.func.make_inst(Op::Undef, &[], &[ty], None, LocId(0));
            self.func.block_mut(b).insts.insert(0, i);
            self.func.inst(i).results[0]
        } else {
            let p = self.func.add_block_param(b, ty);
            self.pending.push((b, var, p));
            p
        };
        self.defs.insert(Place::new(b, var), v);
        v
    }

    /// The same when all jumps are known: a block that one other goes to has what that one has.
    fn read_above(&mut self, mut b: Block, var: Var, preds: &[SmallVec<[Block; 2]>]) -> Value {
        let mut passed: SmallVec<[Block; 8]> = SmallVec::new();
        while let [above] = preds[b.index()][..]
            && b != self.func.entry()
            && !self.defs.contains_key(&Place::new(b, var))
        {
            passed.push(b);
            b = above;
        }
        let v = self.read(b, var);
        for b in passed {
            self.defs.insert(Place::new(b, var), v);
        }
        v
    }

    /// Appends an operation and returns its results.
    pub fn ins_multi(
        &mut self,
        op: Op,
        args: &[Value],
        results: &[Type],
        guard: Option<Guard>,
    ) -> Vec<Value> {
        let i = self.func.make_inst(op, args, results, guard, self.loc);
        self.func.block_mut(self.current).insts.push(i);
        self.func.inst(i).results.to_vec()
    }

    /// Appends an operation with one result.
    pub fn ins(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.ins_multi(op, args, &[ty], None)[0]
    }

    /// Appends an operation without a result.
    pub fn effect(&mut self, op: Op, args: &[Value], guard: Option<Guard>) {
        self.ins_multi(op, args, &[], guard);
    }

    pub fn iconst(&mut self, ty: Type, bits: u64) -> Value {
        self.ins(Op::Const(bits & ty.mask()), &[], ty)
    }

    pub fn terminate(&mut self, term: Terminator) {
        let loc = self.loc;
        let b = self.func.block_mut(self.current);
        b.term = term;
        b.term_loc = loc;
        self.terminated[self.current.index()] = true;
    }

    pub fn jump(&mut self, to: Block) {
        self.terminate(Terminator::Jump(BlockCall::new(to)));
    }

    pub fn branch(&mut self, cond: Value, then: Block, otherwise: Block, uniform: bool) {
        self.terminate(Terminator::Branch {
            cond,
            then: BlockCall::new(then),
            otherwise: BlockCall::new(otherwise),
            uniform,
        });
    }

    /// Supplies all block arguments and returns the function. Blocks without a terminator end in `Unreachable`.
    pub fn finish(mut self) -> Function {
        let reachable = self.func.reverse_postorder();
        let mut live = vec![false; self.func.blocks.len()];
        reachable.iter().for_each(|b| live[b.index()] = true);
        self.func.layout.retain(|b| live[b.index()]);
        let preds = self.func.predecessors();
        // What each predecessor passes for each parameter; reading there may add parameters, which are then pending too.
        let mut incoming: Vec<SmallVec<[(Block, Value); 2]>> = Vec::new();
        while let Some((b, var, param)) = self.pending.pop() {
            for &p in &preds[b.index()] {
                let v = self.read_above(p, var, &preds);
                incoming.resize(incoming.len().max(param.index() + 1), SmallVec::new());
                incoming[param.index()].push((p, v));
            }
        }
        for b in self.func.layout.clone() {
            for (n, param) in self.func.block(b).params.clone().into_iter().enumerate() {
                for &(p, v) in incoming.get(param.index()).into_iter().flatten() {
                    // A predecessor that jumps here twice is listed twice.
                    for call in self.func.block_mut(p).term.calls_mut() {
                        if call.block == b && call.args.len() == n {
                            call.args.push(v);
                        }
                    }
                }
            }
        }
        remove_trivial(&mut self.func);
        self.func
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::FunctionKind;
    use crate::module::Module;
    use crate::op::IntCmp;

    fn valid(func: Function) -> Function {
        let m = Module { functions: vec![func], locations: vec![Default::default()], ..Module::default() };
        crate::validate(&m).expect("valid");
        m.functions.into_iter().next().expect("one function")
    }

    #[test]
    fn a_loop_carries_what_changes_and_nothing_else() {
        let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
        let (i, n) = (b.declare_var(Type::B32), b.declare_var(Type::B32));
        let zero = b.iconst(Type::B32, 0);
        let ten = b.iconst(Type::B32, 10);
        b.def_var(i, zero);
        b.def_var(n, ten);
        let (head, exit) = (b.create_block(), b.create_block());
        b.jump(head);
        b.switch_to(head);
        let one = b.iconst(Type::B32, 1);
        let old = b.use_var(i);
        let next = b.ins(Op::Add, &[old, one], Type::B32);
        b.def_var(i, next);
        let limit = b.use_var(n);
        let c = b.ins(Op::ICmp { cmp: IntCmp::Lt, signed: true }, &[next, limit], Type::P);
        b.branch(c, head, exit, false);
        b.switch_to(exit);
        b.terminate(Terminator::Exit);
        let f = valid(b.finish());
        assert_eq!(f.block(head).params.len(), 1, "{f}");
    }

    #[test]
    fn a_join_of_two_definitions_is_a_parameter_and_an_unwritten_variable_is_undefined() {
        let mut b = FunctionBuilder::new(Function::new("f", FunctionKind::Entry));
        let (x, y) = (b.declare_var(Type::B32), b.declare_var(Type::B32));
        let p = b.ins(Op::Const(1), &[], Type::P);
        let (t, e, j) = (b.create_block(), b.create_block(), b.create_block());
        b.branch(p, t, e, false);
        for (block, bits) in [(t, 1), (e, 2)] {
            b.switch_to(block);
            let v = b.iconst(Type::B32, bits);
            b.def_var(x, v);
            b.jump(j);
        }
        b.switch_to(j);
        let (vx, vy) = (b.use_var(x), b.use_var(y));
        b.ins(Op::Add, &[vx, vy], Type::B32);
        b.terminate(Terminator::Exit);
        let f = valid(b.finish());
        assert_eq!(f.block(j).params.len(), 1, "{f}");
        assert_eq!(f.def_op(vy).map(|d| d.op), None, "the parameter for y is gone");
    }
}
