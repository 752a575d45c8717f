//! Rewriting a function block by block: each instruction is kept, replaced by a value, or expanded into others.

use ir::{Block, Function, Guard, InstId, LocId, Op, Type, Value};
use smallvec::SmallVec;

/// What becomes of the instruction that was asked about.
pub enum Change {
    /// It stays (its data may have been changed in place).
    Keep,
    /// It goes; its only result is this value from now on.
    Replace(Value),
    /// It goes; its results are these values from now on.
    ReplaceAll(SmallVec<[Value; 2]>),
}

/// Appends instructions to the block being rewritten.
pub struct Editor<'a> {
    pub func: &'a mut Function,
    out: Vec<InstId>,
    /// Where new instructions come from.
    pub loc: LocId,
}

impl<'a> Editor<'a> {
    /// Makes instructions that are in no block yet.
    pub fn new(func: &'a mut Function, loc: LocId) -> Self {
        Editor { func, out: Vec::new(), loc }
    }

    /// The instructions that were made.
    pub fn finish(self) -> Vec<InstId> {
        self.out
    }

    pub fn ins(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        let i = self.func.make_inst(op, args, &[ty], None, self.loc);
        self.out.push(i);
        self.func.inst(i).results[0]
    }

    /// The same under a guard; the last argument is the result where it does not hold.
    pub fn guarded(&mut self, op: Op, args: &[Value], ty: Type, guard: Guard) -> Value {
        let i = self.func.make_inst(op, args, &[ty], Some(guard), self.loc);
        self.out.push(i);
        self.func.inst(i).results[0]
    }

    /// A shuffle, whose second result says whether the lane it read from is there.
    pub fn shuffle(&mut self, op: Op, args: &[Value]) -> (Value, Value) {
        let i = self.func.make_inst(op, args, &[Type::B32, Type::P], None, self.loc);
        self.out.push(i);
        let results = &self.func.inst(i).results;
        (results[0], results[1])
    }

    pub fn iconst(&mut self, ty: Type, bits: u64) -> Value {
        self.ins(Op::Const(bits & ty.mask()), &[], ty)
    }
}

/// Walks the blocks in reverse postorder and asks `visit` about each instruction, whose arguments are already replaced.
/// Returns whether anything was replaced.
pub fn rewrite(f: &mut Function, mut visit: impl FnMut(&mut Editor, Block, InstId) -> Change) -> bool {
    let mut map: Vec<Option<Value>> = vec![None; f.values.len()];
    let mut changed = false;
    for b in f.reverse_postorder() {
        let old = std::mem::take(&mut f.block_mut(b).insts);
        let mut editor = Editor { func: f, out: Vec::with_capacity(old.len()), loc: LocId(0) };
        for i in old {
            let data = editor.func.inst_mut(i);
            data.args.iter_mut().for_each(|v| *v = find(&map, *v));
            if let Some(g) = &mut data.guard {
                g.value = find(&map, g.value);
            }
            editor.loc = data.loc;
            match visit(&mut editor, b, i) {
                Change::Keep => editor.out.push(i),
                Change::Replace(v) => {
                    map[editor.func.inst(i).results[0].index()] = Some(v);
                    changed = true;
                }
                Change::ReplaceAll(values) => {
                    for (r, v) in editor.func.inst(i).results.iter().zip(values) {
                        map[r.index()] = Some(v);
                    }
                    changed = true;
                }
            }
        }
        let out = editor.out;
        f.block_mut(b).insts = out;
    }
    if changed {
        f.replace_values(&map);
    }
    changed
}

fn find(map: &[Option<Value>], mut v: Value) -> Value {
    while let Some(Some(next)) = map.get(v.index()) {
        v = *next;
    }
    v
}
